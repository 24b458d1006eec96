"""The numbers behind the paper's figures as tables: over the rate r and clean rows.

The paper's own numbers are in its pictures only, so there is nothing beside ours.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from drawing import noises_of, where
from reading import Rows, groups

Row = Mapping[str, str]


def value(rows: Rows, column: str) -> str:
    """Write ``mean +- spread (n)`` of a column, nothing without rows."""
    values = [float(row[column]) for row in rows if row[column]]
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread} ({len(values)})"


def sweeps(results: Path) -> list[str]:
    """Write all of them in Markdown."""
    made: list[str] = []
    for part in groups(results, "sampling_rate"):
        for column, words in (
            ("label_accuracy", "right labels after correction (%)"),
            ("test_accuracy", "test accuracy of a linear probe (%)"),
            ("samplings", "number of samplings"),
        ):
            rows = part.rows("sampling_rate")
            title = f"### Figs. 6 to 8, {words} against r: {part.on}"
            made += table(title, "r", rows, "rate", column, _kind_of_splits)
    for part in groups(results, "clean_validation"):
        title = (
            "### Figs. 9, 10, right labels after correction (%) against clean "
            f"validation rows (0: the noisy half): {part.on}"
        )
        rows = part.rows("clean_validation")
        made += table(
            title, "rows", rows, "size", "label_accuracy", lambda row: row["method"]
        )
    return made


def _kind_of_splits(row: Row) -> str:
    eta = "" if row["step_size"] == "0.2" else f", eta {row['step_size']}"
    return f"{row['method']}, {row['count']}{eta}"


def table(
    title: str,
    corner: str,
    rows: Rows,
    across: str,
    column: str,
    kind: Callable[[Row], str],
) -> Iterable[str]:
    """Write one table: a line for each noise and kind, a column for each value."""
    values = sorted({row[across] for row in rows}, key=float)
    made = [title, "", f"| {corner} | {' | '.join(values)} |"]
    made.append("|" + "---|" * (len(values) + 1))
    for noise in noises_of(rows):
        here = where(rows, noise=noise)
        for name in dict.fromkeys(kind(row) for row in here):
            chosen = [row for row in here if kind(row) == name]
            cells = [value(where(chosen, **{across: v}), column) for v in values]
            made.append(f"| {noise}, {name} | {' | '.join(cells)} |")
    return [*made, ""]
