"""What to do with each row, from its posterior, and how right the labels then are.

Legend: n rows, C classes; Q = Pr[clean | x, given] (n, C), of which `TopClasses` keeps
the most probable entries; ``given`` is -1 for none.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.paper import Correction, TopClasses
from stct.labels import few
from stct.noise_model.transition import (
    Decision,
    decide,
    decide_between,
    hoeffding_interval,
)
from stct.numeric.tiles import TILE
from stct.numeric.types import Floats, Ints

MODEL_ERROR = 0.025  # of an estimate where the features know three in four classes
KNOWN_WELL, IGNORANCE_ERROR = 0.75, 0.25  # and for each row less that they know


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
        tile = decide(Q[rows], said, learnable, min_odds, result.asked)
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

    They allow for the rows that were drawn and for what such estimates were off in
    trials with known labels (`interval`).
    """

    before: float
    after: float
    before_interval: tuple[float, float]
    after_interval: tuple[float, float]


def estimate_accuracy(
    Q: Floats | TopClasses,
    given: Ints,
    confidence: Floats,
    known: float,
    locked: NDArray[np.bool_],
) -> EstimatedAccuracy:
    """Estimate from the posterior of the given labels and the confidence (n,).

    ``known`` is the share of the rows whose class the features know, beyond chance;
    rows that are ``locked`` are certain.
    """
    open_to_doubt = 1.0 - float(locked.mean())
    labelled = int((given >= 0).sum())
    before = float(of_given(Q, given).sum(dtype=np.float64)) / labelled
    after = float(confidence.mean(dtype=np.float64))
    return EstimatedAccuracy(
        before,
        after,
        interval(before, labelled, known, open_to_doubt),
        interval(after, len(given), known, open_to_doubt),
    )


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


def interval(
    value: float, n: int, known: float, open_to_doubt: float = 1.0
) -> tuple[float, float]:
    """Interval of an estimate from n rows, of which the features know ``known``.

    Sampling (Theorem 2) is the smaller part with many rows. The likelihood cannot tell
    weak features from wrong labels, and the less the features know, the more that
    matters: nine in ten estimates of `benchmarks/robustness.py` were within this, and
    set it.
    """
    unsure = MODEL_ERROR + IGNORANCE_ERROR * max(KNOWN_WELL - known, 0.0)
    half = hoeffding_interval(n) + open_to_doubt * unsure
    return max(0.0, value - half), min(1.0, value + half)


def describe_result(
    result: Correction, classes: NDArray[Any], method: str
) -> list[str]:
    """Say in sentences what is unusual about the result."""
    notes = []
    Q = result.posterior
    if isinstance(Q, TopClasses):
        notes.append(
            f"{Q.num_classes} classes: the shorter method for more than 256, and "
            f"the {Q.classes.shape[1]} most probable classes of a row were kept"
        )
    if method != "loo":
        notes.append(
            f"method {method!r} gives scores, not probabilities: confidence "
            "and estimated accuracy are not calibrated"
        )
    failed = classes[~result.learnable]
    if result.stop == "nothing_learnt":
        notes.append(
            "the features explain the given labels no better than chance, so "
            "no label was changed and the estimates mean nothing"
        )
    elif len(failed):
        notes.append(
            f"{len(failed)} of {len(classes)} classes fail Theorem 1's check "
            "(the annotator's most common label for them is another one); their "
            f"rows abstain: {few(failed)}"
        )
    return [*notes, *result.notes]
