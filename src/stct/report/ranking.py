"""Which rows to look at first, and what the dial would do to each of them.

Legend: n rows, C classes. For every row the *other* label is the most probable one
that is not the given one; ``p_given`` and ``p_other`` are their probabilities.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.corrected import Corrected
from stct.numeric.types import Floats, Ints

# Positions of the dial: odds asked for before a label is changed.
DIAL: tuple[float, ...] = (
    *(1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 10, 12, 15),
    *(20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 700, 1000),
)

MOST_ROWS = 50_000  # in the page; more make it slow to open
_ID_CHARACTERS = 4_000_000
ROUNDING = 1e-2  # of the odds, by how probabilities are stored

FREE, LOCKED, IN_DOUBT, MISSING = range(4)  # who decides: only FREE heeds the dial


class Rivals(NamedTuple):
    """The given label of every row against its strongest rival."""

    other: Ints  # (n,), -1 where unknown
    p_given: Floats  # (n,), 0 where no label was given
    p_other: Floats  # (n,)

    @property
    def gain(self) -> Floats:
        """Right labels to expect from taking the other label instead, (n,)."""
        return self.p_other - self.p_given


def find_rivals(corrected: Corrected) -> Rivals:
    """Find the strongest rival of each given label, a block of rows at a time."""
    blocks = corrected.soft_label_blocks()
    if blocks is None:
        return _rivals_from_confidence(corrected)
    n = len(corrected.given)
    rivals = Rivals(
        np.full(n, -1, np.intp), np.zeros(n, np.float32), np.zeros(n, np.float32)
    )
    for rows, block in blocks:
        P = block.copy()  # (rows, C)
        given = corrected.given[rows]
        known = np.flatnonzero((given >= 0) & (given < P.shape[1]))
        rivals.p_given[rows][known] = P[known, given[known]]
        P[known, given[known]] = -1.0
        rivals.other[rows] = P.argmax(axis=1)
        rivals.p_other[rows] = P.max(axis=1)
    return rivals


def _rivals_from_confidence(corrected: Corrected) -> Rivals:
    """Make do with the labels file: only a changed label has a known rival."""
    moved = corrected.label != corrected.given
    sure = corrected.confidence.astype(np.float32)
    return Rivals(
        np.where(moved, corrected.label, -1),
        np.where(moved & (corrected.given >= 0), 1.0 - sure, sure),
        np.where(moved, sure, 1.0 - sure),
    )


def who_decides(
    corrected: Corrected, rivals: Rivals, locked: NDArray[np.bool_]
) -> Ints:
    """Tell for each row whether the dial decides, or why not, (n,).

    A row that abstained although its odds were good enough was in doubt for another
    reason: its class fails Theorem 1's check, or the features know too little.
    """
    given = corrected.given
    learnable = np.ones(len(corrected.classes) + 1, dtype=bool)  # the last: -1
    told = corrected.summary.get("learnable", [])
    learnable[: len(told)] = told
    best = np.where(rivals.p_other > rivals.p_given, rivals.other, given)
    decides = np.full(len(given), FREE)
    decides[~learnable[best] | ~learnable[given]] = IN_DOUBT
    asked = (1.0 + ROUNDING) * run_odds(corrected)
    good = rivals.p_other >= asked * rivals.p_given
    decides[(corrected.action == "abstain") & good] = IN_DOUBT
    decides[given < 0] = MISSING
    decides[locked] = LOCKED
    return decides


def run_odds(corrected: Corrected) -> float:
    """Give the odds that the run asked for before it changed a label."""
    return float(corrected.summary.get("parameters", {}).get("min_odds", 1.0))


class Dial(NamedTuple):
    """The dial: its positions, where it stands, and what it does to every row."""

    values: list[float]  # K positions
    start: int  # the position that the run used
    steps: Ints  # (n,): relabelled at the positions below this one; 0 = other weaker


def make_dial(corrected: Corrected, rivals: Rivals, decides: Ints) -> Dial:
    """Give every row the number of dial positions at which it is relabelled.

    At the run's own position the answer is the run's action, whatever rounding says.
    """
    values = sorted({*map(float, DIAL), run_odds(corrected)})
    start = values.index(run_odds(corrected))
    p_given, p_other = rivals.p_given.astype(float), rivals.p_other.astype(float)
    steps = np.zeros(len(p_given), dtype=np.intp)
    for value in values:
        steps += (p_other > p_given) & (p_other >= value * p_given)
    action = corrected.action
    steps = np.where(action == "relabel", np.maximum(steps, start + 1), steps)
    steps = np.where(action == "abstain", np.clip(steps, 1, max(start, 1)), steps)
    steps[(action == "keep") | (decides != FREE)] = 0
    return Dial(values, start, steps)


def review_order(first: Ints, order: Ints) -> Ints:
    """Give all rows with those to check first at the top, the rest in ``order``."""
    rest = np.ones(len(order), dtype=bool)
    rest[first] = False
    return np.concatenate([first, order[rest[order]]])


def rows_to_detail(
    rivals: Rivals, first: Ints, locked: NDArray[np.bool_], most: int
) -> Ints:
    """Choose the rows with evidence: those to check first, then all suggestions."""
    suggested = (rivals.gain > 0) & ~locked
    suggested[first] = False
    rows = np.flatnonzero(suggested)
    surest = np.argsort(-rivals.gain[rows], kind="stable")
    return np.concatenate([first, rows[surest][: max(most - len(first), 0)]])


def most_rows(ids: Sequence[str]) -> int:
    """Give the number of rows that a page can hold: fewer if their ids are long."""
    mean = sum(map(len, ids)) / max(len(ids), 1)
    return max(min(MOST_ROWS, int(_ID_CHARACTERS / max(mean, 1))), 1_000)


def page_rows(order: Ints, detailed: Ints, most: int) -> Ints:
    """Choose the rows of the page, in review order.

    All of them if they fit; else the top four fifths, an even sample of the rest (so
    that the map shows more than mistakes), and every row with evidence.
    """
    if len(order) <= most:
        return order
    top = most * 4 // 5
    places = np.linspace(top, len(order) - 1, most - top).astype(np.intp)
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[:top]] = True
    chosen[order[places]] = True
    chosen[detailed] = True
    return order[chosen[order]]
