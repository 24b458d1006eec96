"""The rows of benchmarks/battery.py as a table, a summary and a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cells import REAL
from peers import PEERS

RIVALS = list(PEERS)  # to change nothing is one, too
EQUAL = -0.05  # points behind the best peer that are no difference
NAMED = -1.0  # points behind from which the picture gives a cell its name
HEADER = ["cell", "n", *PEERS, "stct", "lead", "before", "held", "ECE", "abst.", "s"]
KEY = (
    "n: seeds. Right labels in %; lead: of stct over its best peer, points;\n"
    "before: estimated minus real share of right given labels, points; held: of 100\n"
    "intervals how many hold the truth; ECE: calibration error; abst.: % of rows;\n"
    "s: seconds of stct."
)
_REAL, _INJECTED = "#c1440e", "#1b6ca8"

Line = dict[str, Any]


def read(path: Path, cells: Sequence[str], num_seeds: int) -> pd.DataFrame:
    """Give the rows of these cells and seeds."""
    rows = pd.read_csv(path)
    return rows[rows["cell"].isin(cells) & (rows["seed"] < num_seeds)]


def report(rows: pd.DataFrame) -> tuple[str, str, list[Line]]:
    """Give table and summary as text and as Markdown, and the lines of the table."""
    lines = [line_of(str(cell), group) for cell, group in rows.groupby("cell")]
    lines.sort(key=lambda line: (np.isnan(line["lead"]), line["lead"]))
    table = [fields(line) for line in lines]
    widths = [max(map(len, column)) for column in zip(HEADER, *table, strict=True)]
    text = [
        "  ".join(
            f.rjust(w) if i else f.ljust(w)
            for i, (f, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [HEADER, *table]
    ]
    ruler = ["---", *["---:"] * (len(HEADER) - 1)]
    markdown = ["| " + " | ".join(row) + " |" for row in [HEADER, ruler, *table]]
    key, summary = KEY.splitlines(), summarise(lines)
    whole = "\n".join([*text, "", *key, "", *summary])
    bullets = [f"- {sentence}" for sentence in summary]
    markdown = ["# The battery", "", *markdown]
    return whole, "\n".join([*markdown, "", *key, "", *bullets, ""]), lines


def line_of(cell: str, rows: pd.DataFrame) -> Line:
    """Means of a cell over the seeds that all of its methods have."""
    right = 100 * rows.pivot(index="seed", columns="method", values="right")
    right = right.dropna() if len(right.dropna()) else right
    ours = rows[(rows["method"] == "stct") & rows["seed"].isin(right.index)]
    held = ours[["before_held", "after_held"]].to_numpy(float)
    peers = [right[name].mean() for name in RIVALS if name in right]
    line: Line = {"cell": cell, "n": len(right), "held": held.ravel()}
    for name in [*PEERS, "stct"]:
        line[name] = right[name].mean() if name in right else np.nan
    line["given"] = 100 * rows[rows["seed"].isin(right.index)]["given"].mean()
    line["best"] = max(peers, default=np.nan)
    line["lead"] = line["stct"] - line["best"]
    line["before"] = 100 * (ours["estimate_before"] - ours["given"]).mean()
    line["ECE"] = ours["calibration_error"].mean()
    line["abst."] = 100 * ours["abstained"].mean()
    line["s"] = ours["seconds"].mean()
    return line


def fields(line: Line) -> list[str]:
    """Give a line as it is printed."""
    shown = {name: f"{line[name]:.2f}" for name in [*PEERS, "stct"]}
    shown |= {"cell": line["cell"], "n": str(line["n"])}
    shown |= {name: f"{line[name]:+.2f}" for name in ("lead", "before")}
    shown["held"] = f"{100 * line['held'].mean():.0f}" if len(line["held"]) else "nan"
    shown["ECE"], shown["abst."] = f"{line['ECE']:.3f}", f"{line['abst.']:.1f}"
    shown["s"] = f"{line['s']:.2f}"
    return [shown[name].replace("+nan", "-").replace("nan", "-") for name in HEADER]


def summarise(lines: Sequence[Line]) -> list[str]:
    """Say what the table comes to, in sentences."""
    sentences = []
    for what, some in both(lines):
        compared = [line for line in some if not np.isnan(line["lead"])]
        if compared:
            ahead = sum(line["lead"] >= EQUAL for line in compared)
            worst = min(compared, key=lambda line: line["lead"])
            sentences.append(
                f"{what}: ahead of or equal to the best peer in {ahead} of "
                f"{len(compared)} cells ({100 * ahead / len(compared):.1f}%); "
                f"worst lead {worst['lead']:+.2f} ({worst['cell']})."
            )
    for what, some in both(lines):
        held = np.concatenate([np.empty(0), *(line["held"] for line in some)])
        if len(held):
            sentences.append(
                f"{what}: {held.sum():.0f} of {len(held)} intervals hold the truth "
                f"({100 * held.mean():.1f}%)."
            )
    ours = [line for line in lines if not np.isnan(line["stct"])]
    lost = [line for line in ours if line["stct"] - line["given"] < EQUAL]
    if lost:
        worst = min(lost, key=lambda line: line["stct"] - line["given"])
        sentences.append(
            f"Below the given labels in {len(lost)} of {len(ours)} cells, by "
            f"{worst['given'] - worst['stct']:.2f} at most ({worst['cell']})."
        )
    return sentences


def both(lines: Sequence[Line]) -> list[tuple[str, list[Line]]]:
    real = [line for line in lines if line["cell"] in REAL]
    return [("Real noise", real), ("All cells", list(lines))]


def draw(lines: Sequence[Line], path: Path) -> None:
    """Ours against the best peer, a dot a cell; cells that are behind by name."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = [line for line in lines if not np.isnan(line["lead"])]
    if not lines:
        return
    figure = Figure(figsize=(7.5, 7.5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.add_subplot()
    low = min(min(line["best"], line["stct"]) for line in lines) - 3
    axis.plot([low, 101], [low, 101], color="#b8c4ce", linewidth=1, zorder=0)
    for colour, what, real in (
        (_INJECTED, "injected noise", False),
        (_REAL, "real noise", True),
    ):
        some = [line for line in lines if (line["cell"] in REAL) == real]
        places = [[line["best"] for line in some], [line["stct"] for line in some]]
        axis.scatter(*places, s=22, color=colour, label=what, alpha=0.8, linewidths=0)
    behind = [line for line in lines if line["lead"] < NAMED]
    spread_names(axis, sorted(behind, key=lambda line: line["stct"]), low)
    axis.set_xlim(low, 101)
    axis.set_ylim(low, 101)
    axis.set_aspect("equal")
    axis.set_xlabel("best peer, right labels (%)")
    axis.set_ylabel("stct, right labels (%)")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, loc="upper left")
    figure.savefig(path)


def spread_names(axis: Any, lines: Sequence[Line], low: float) -> None:
    """Names to the right of the dots, each a line higher than the last at least."""
    lowest, step = -np.inf, (101 - low) / 55
    for line in lines:
        lowest = max(line["stct"] - step / 3, lowest + step)
        axis.annotate(
            line["cell"],
            (line["best"], line["stct"]),
            (line["best"] + step, lowest),
            fontsize=7,
            arrowprops={"arrowstyle": "-", "color": "#b8c4ce", "linewidth": 0.5},
        )
