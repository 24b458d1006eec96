"""The numbers behind the pictures: counts for the dial, classes and odds."""

from typing import Any

import numpy as np

from stct.data.corrected import Corrected
from stct.numeric.types import Ints
from stct.report import ranking
from stct.report.ranking import Dial, Rivals

_MOST_CLASS_ROWS = 300  # in the table of classes
_ODDS_EDGES = np.linspace(-4.0, 4.0, 81)  # log10 of the odds


def dial_counts(
    corrected: Corrected, rivals: Rivals, decides: Ints, dial: Dial
) -> dict[str, Any]:
    """Count actions, and estimate accuracy, at every position of the dial."""
    free = decides == ranking.FREE
    fixed = corrected.action[~free]
    moved = free & (dial.steps > 0)
    edges = np.arange(len(dial.values) + 1)
    per_step = np.bincount(dial.steps[moved], minlength=len(edges))  # (K + 1,)
    relabel = per_step.sum() - np.cumsum(per_step)[:-1]  # steps > k
    sums = np.bincount(dial.steps[moved], rivals.gain[moved], minlength=len(edges))
    gain = sums.sum() - np.cumsum(sums)[:-1]
    base = rivals.p_given[free].sum(dtype=float) + corrected.confidence[~free].sum()
    return {
        "values": dial.values,
        "start": dial.start,
        "relabel": (relabel + np.sum(fixed == "relabel")).tolist(),
        "abstain": (moved.sum() - relabel + np.sum(fixed == "abstain")).tolist(),
        "keep": int((free & ~moved).sum() + np.sum(fixed == "keep")),
        "fill": int(np.sum(fixed == "fill")),
        "accuracy": ((base + gain) / len(free)).round(5).tolist(),
    }


def odds_histogram(rivals: Rivals, decides: Ints) -> dict[str, Any]:
    """Count free rows by the odds of the other label against the given one."""
    free = decides == ranking.FREE
    small = 1e-9
    odds = np.log10((rivals.p_other[free] + small) / (rivals.p_given[free] + small))
    low, high = _ODDS_EDGES[0], _ODDS_EDGES[-1]
    counts, _ = np.histogram(np.clip(odds, low, high), _ODDS_EDGES)
    return {"low": low, "high": high, "counts": counts.tolist()}


def by_class(
    corrected: Corrected, rivals: Rivals, decides: Ints, dial: Dial
) -> list[dict[str, Any]]:
    """Count each class before and, for every position of the dial, after.

    The classes with the most labels that are wrong come first.
    """
    C, K = len(corrected.classes), len(dial.values)  # noqa: N806
    given, other = corrected.given, rivals.other
    free = decides == ranking.FREE
    moved = free & (dial.steps > 0)
    known = given >= 0
    before = np.bincount(given[known], minlength=C)
    wrong = before - np.bincount(given[known], rivals.p_given[known], minlength=C)
    fixed = ~free & (corrected.label >= 0)
    base = np.bincount(given[free], minlength=C)
    base += np.bincount(corrected.label[fixed], minlength=C)
    cells = C * (K + 1)
    out = np.bincount(given[moved] * (K + 1) + dial.steps[moved], minlength=cells)
    into = np.bincount(other[moved] * (K + 1) + dial.steps[moved], minlength=cells)
    change = (into - out).reshape(C, K + 1)
    after = base[:, None] + change.sum(axis=1)[:, None] - change.cumsum(axis=1)[:, :-1]
    learnable = corrected.summary.get("learnable", [])
    listed = np.argsort(-wrong, kind="stable")[:_MOST_CLASS_ROWS].tolist()
    return [
        {
            "class": c,
            "before": int(before[c]),
            "wrong": round(float(wrong[c] / max(before[c], 1)), 4),
            "wrong_rows": round(float(wrong[c]), 1),
            "after": after[c].tolist(),
            "learnable": bool(learnable[c]) if c < len(learnable) else True,
        }
        for c in listed
    ]
