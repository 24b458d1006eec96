"""What to do with each row, from its posterior, and how right the labels then are.

Legend: n rows, C classes; Q = Pr[clean | x, given] (n, C), of which `TopClasses` keeps
the most probable entries; ``given`` is -1 for none.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.result import Correction
from stct.correction.settings import DEFAULT, IntervalSettings
from stct.noise_model.theorems import hoeffding_interval
from stct.numeric.tiles import TILE
from stct.numeric.top_classes import TopClasses
from stct.numeric.types import Floats, Ints

KEEP, RELABEL, ABSTAIN, FILL = "keep", "relabel", "abstain", "fill"


class Decision(NamedTuple):
    """The label to use for each row, its probability, and what was done."""

    labels: Ints  # (n,)
    confidence: Floats  # (n,)
    action: NDArray[np.str_]  # (n,) of keep, relabel, abstain, fill


def decide(
    Q: Floats,
    given: Ints,
    learnable: NDArray[np.bool_],
    min_odds: float = 1.0,
) -> Decision:
    """Keep, relabel, abstain, or fill in a missing label, from the posterior (n, C).

    *Relabel* when another label is at least ``min_odds`` times as probable as the
    given one; *abstain* when it is more probable but by less than that, or when the
    given or the most probable class fails Theorem 1's check; else *keep*. An abstaining
    row keeps its given label.
    """
    best = Q.argmax(axis=1)
    at, known = np.arange(len(Q)), np.where(given < 0, best, given)
    return decide_between(best, Q[at, best], Q[at, known], given, learnable, min_odds)


def decide_between(
    best: Ints,
    p_best: Floats,
    p_given: Floats,
    given: Ints,
    learnable: NDArray[np.bool_],
    min_odds: float = 1.0,
) -> Decision:
    """Decide from the most probable class (n,), its probability, the given one's."""
    missing = given < 0
    moved = (best != given) & (p_best > p_given)
    sure = p_best >= min_odds * p_given
    action = np.where(moved, np.where(sure, RELABEL, ABSTAIN), KEEP)
    unlearnable = ~learnable[best] | ~learnable[np.where(missing, best, given)]
    action[unlearnable] = ABSTAIN
    action[missing] = FILL
    follow = (action == RELABEL) | missing
    labels = np.where(follow, best, given)
    return Decision(labels, np.where(follow, p_best, p_given), action)


def decide_rows(
    result: Correction, given: Ints, locked: NDArray[np.bool_], min_odds: float
) -> Decision:
    """Decide for all rows; locked ones are certain, in Q too, and are kept."""
    Q, learnable = result.posterior, result.learnable
    if isinstance(Q, TopClasses):
        decision = decide_among_top(Q, given, learnable, min_odds)
        decision.action[locked] = "keep"
        return decision
    certain = np.eye(Q.shape[1], dtype=Q.dtype)
    n = len(given)
    decision = Decision(
        np.empty(n, given.dtype), np.empty(n, Q.dtype), np.empty(n, "U7")
    )
    for start in range(0, n, TILE):  # what is needed on the way is of few rows
        rows = slice(start, start + TILE)
        fixed, said = locked[rows], given[rows]
        Q[rows][fixed] = certain[said[fixed]]
        tile = decide(Q[rows], said, learnable, min_odds)
        tile.action[fixed] = "keep"
        for whole, part in zip(decision, tile, strict=True):
            whole[rows] = part
    return decision


def decide_among_top(
    Q: TopClasses, given: Ints, learnable: NDArray[np.bool_], min_odds: float
) -> Decision:
    """Decide from the classes that were kept of each row."""
    best = Q.classes[:, 0].astype(np.intp)
    p_best = Q.probabilities[:, 0]
    p_given = np.where(given < 0, p_best, of_given(Q, given))
    return decide_between(best, p_best, p_given, given, learnable, min_odds)


class EstimatedAccuracy(NamedTuple):
    """Share of right labels, estimated without clean data, with intervals.

    They allow for the rows that were drawn, and for what estimates were off on data
    sets that were not used to set this: more, the less the features know.
    """

    before: float
    after: float
    before_interval: tuple[float, float]
    after_interval: tuple[float, float]


def estimate_accuracy(
    result: Correction,
    given: Ints,
    confidence: Floats,
    locked: NDArray[np.bool_],
    settings: IntervalSettings = DEFAULT.interval,
) -> EstimatedAccuracy:
    """Estimate from the posterior of the given labels and the confidence (n,).

    Rows that are ``locked`` are certain.
    """
    unsure = model_error(result.confusion, settings)
    unsure *= 1.0 - float(locked.mean())
    labelled = int((given >= 0).sum())
    before = float(of_given(result.posterior, given).sum(dtype=np.float64)) / labelled
    after = float(confidence.mean(dtype=np.float64))
    return EstimatedAccuracy(
        before,
        after,
        interval(before, hoeffding_interval(labelled) + unsure),  # Theorem 2
        interval(after, hoeffding_interval(len(given)) + unsure),
    )


def with_before(accuracy: EstimatedAccuracy, before: float) -> EstimatedAccuracy:
    """Give another estimate before correction, its interval moved along."""
    low, high = accuracy.before_interval
    half = max(accuracy.before - low, high - accuracy.before)
    return accuracy._replace(before=before, before_interval=interval(before, half))


def model_error(confusion: float | None, settings: IntervalSettings) -> float:
    """Half-width of an interval beyond that of sampling."""
    if confusion is None:
        return settings.uncalibrated
    return settings.least + settings.confusion * confusion


def interval(value: float, half: float) -> tuple[float, float]:
    """Interval of a share."""
    return max(0.0, value - half), min(1.0, value + half)


def of_given(Q: Floats | TopClasses, given: Ints) -> Floats:
    """Probability of each row's given label, (n,); 0 where there is none."""
    if isinstance(Q, TopClasses):
        same = Q.classes == given[:, None]
        return np.asarray(np.where(same, Q.probabilities, 0.0).sum(axis=1))
    out = np.empty(len(given), Q.dtype)
    for start in range(0, len(given), TILE):
        rows = slice(start, start + TILE)
        said = given[rows]
        out[rows] = np.where(said < 0, 0.0, Q[rows][np.arange(len(said)), said])
    return out
