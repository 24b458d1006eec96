"""What a correction found, in words: the first thing that a person reads."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_SWALLOWED = 0.5  # share of a class's rows that another class takes
_VANISHED = 0.25  # of its rows are left
_FEW_LEFT = 20  # rows; smaller classes come and go by chance


class Warning(NamedTuple):
    """Something that looks wrong, in a line and a sentence."""

    title: str
    text: str


def show_label(label: Any) -> str:
    """Give a label as text that can be seen."""
    if isinstance(label, str):
        visible = label.isprintable() and label.strip() == label and label
        return label if visible else json.dumps(label)
    return json.dumps(label)


def headline(
    noise_rate: float | None, learnt: bool, interval: tuple[float, float] | None = None
) -> str:
    """Say in one sentence how many labels are wrong, and how sure that is."""
    if noise_rate is None or not learnt:
        return "Nothing can be said about these labels."
    between = f": {interval[0]:.0%} to {interval[1]:.0%}" if interval else ""
    if noise_rate < 0.002:
        return f"Almost none of your labels looks wrong{between}."
    if noise_rate > 0.95:
        return f"Nearly all of your labels are probably wrong{between}."
    top, bottom = _fraction(noise_rate)
    verb = "is" if top == 1 else "are"
    return f"About {top} in {bottom} of your labels {verb} probably wrong{between}."


def _fraction(rate: float) -> tuple[int, int]:
    """Give the simple fraction nearest to a rate; 1 in n below a fifth."""
    if rate < 0.22:
        bottom = 1.0 / rate
        nice = [5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 150, 200, 300]
        return 1, min([*nice, 500], key=lambda n: abs(np.log(n / bottom)))
    simple = [(1, 4), (3, 10), (1, 3), (2, 5), (1, 2), (3, 5), (2, 3), (7, 10)]
    simple += [(3, 4), (4, 5), (9, 10)]
    return min(simple, key=lambda f: abs(f[0] / f[1] - rate))


def second_sentence(summary: dict[str, Any], learnt: bool) -> str:
    """Say what was done about it."""
    if not learnt:
        return (
            "The features explain the given labels no better than chance, so no label "
            "was changed."
        )
    actions = summary["actions"]
    after = summary["estimated_accuracy"]["after"]
    moved, filled = actions["relabel"], actions["fill"]
    done = f"{moved:,} of {summary['rows']:,} were changed"
    if filled:
        done += f", {filled:,} that were empty were filled in"
    if not moved and not filled:
        return "No label was changed."
    if after is None:
        return f"{done}."
    left = 1.0 - after
    if left < 0.002:
        return f"{done}; after that, almost none should be wrong."
    top, bottom = _fraction(left)
    return f"{done}; after that, about {top} in {bottom} should still be wrong."


def warn(
    summary: dict[str, Any],
    given: NDArray[np.intp],
    label: NDArray[np.intp],
    names: Sequence[str],
) -> list[Warning]:
    """List assumptions that look broken, from given and corrected codes (n,)."""
    found = []
    if summary.get("termination_condition") == "nothing_learnt":
        found.append(
            Warning(
                "Nothing was learnt",
                "The features tell the classes apart no better than chance. Use other "
                "embeddings; every number on this page is empty of meaning.",
            )
        )
    failed = [i for i, fine in enumerate(summary.get("learnable", [])) if not fine]
    if failed:
        found.append(
            Warning(
                f"{_list(names, failed)} {_fail(failed)} Theorem 1's check",
                "The most common label for such a class is another class's label, so "
                "noisy labels cannot teach it. Its rows abstain. Check a handful of "
                "them by hand and lock them.",
            )
        )
    found += _swallowed(given, label, names)
    noise = summary.get("noise_rate")
    if noise is not None and noise > 0.8 and not failed:
        found.append(
            Warning(
                "More than 4 in 5 labels look wrong",
                "This can be so (random labels), and it is also what wrongly joined "
                "ids or shifted rows look like. Check that every embedding belongs to "
                "its row.",
            )
        )
    return found


def _swallowed(
    given: NDArray[np.intp], label: NDArray[np.intp], names: Sequence[str]
) -> list[Warning]:
    """Find classes that another class takes, or that nearly vanish."""
    C = len(names)  # noqa: N806
    before = np.bincount(given[given >= 0], minlength=C)
    after = np.bincount(label[label >= 0], minlength=C)
    moved = (given >= 0) & (label >= 0) & (given != label)
    pairs, counts = np.unique(given[moved] * C + label[moved], return_counts=True)
    found = []
    gone = set()
    for pair, taken in zip(pairs.tolist(), counts.tolist(), strict=True):
        c, to = divmod(pair, C)
        if before[c] >= _FEW_LEFT and taken > _SWALLOWED * before[c]:
            gone.add(c)
            found.append(
                Warning(
                    f"{names[to]} swallows {names[c]}",
                    f"{taken:,} of the {before[c]:,} rows given as {names[c]} became "
                    f"{names[to]}. Either that label was used for both, or the "
                    "features cannot tell the two apart. Look at this pair first.",
                )
            )
    vanished = (before >= _FEW_LEFT) & (after < _VANISHED * before)
    found += [
        Warning(
            f"{names[c]} nearly vanishes",
            f"{before[c]:,} rows before, {after[c]:,} after. Look at its rows first.",
        )
        for c in np.flatnonzero(vanished).tolist()
        if c not in gone
    ]
    return found


def _list(names: Sequence[str], which: Sequence[int], most: int = 5) -> str:
    shown = ", ".join(names[i] for i in which[:most])
    return shown if len(which) <= most else f"{shown} and {len(which) - most} more"


def _fail(which: Sequence[int]) -> str:
    return "fails" if len(which) == 1 else "fail"
