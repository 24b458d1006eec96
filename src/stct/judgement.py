"""What each row's label should be, given all that was learnt of it and the annotator.

Legend: n rows, C classes; P = Pr[clean | x], T[clean, given], Q = Pr[clean | x, given].
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stct import hardness
from stct.engine import RowValues
from stct.given_labels import Labels, some_rows
from stct.linear import Floats
from stct.probabilities import one_hot, softmax
from stct.score_fit import beside, highest
from stct.transition import count_given, posterior

SHARPNESS_ERROR = 0.2  # that log-odds are expected to have, relative


class Judgement(NamedTuple):
    """What the annotator's labels are worth, row by row."""

    posterior: Any  # (n, C), with the engine
    transition: Floats  # (C, C)
    sharpness: float  # of P


def judge(
    logits: RowValues, T: Floats, labels: Labels, least: float = 0.0
) -> Judgement:
    """Posterior of the clean class, with allowance for annotators who err on hard rows.

    The logits are sharpened or softened first, to the likelihood of the given labels
    and a prior: the last steps that made them were few.
    """
    engine, n = labels.engine, len(labels.given)
    index = some_rows(n)
    model = labels.some(index).model(engine.take(logits, index))
    identity = np.eye(labels.num_classes)

    @cache
    def likelihood(step: int) -> float:
        factor = 2.0 ** (step / 4)
        against = 0.5 * float(np.log(factor) / SHARPNESS_ERROR) ** 2
        rows = model.log_likelihood(factor * identity, T)
        return float(rows.sum(dtype=np.float64)) - against

    step = beside(likelihood, highest(likelihood, start=0, limit=8))
    sharpness = 2.0 ** (step / 4)
    given, locked = engine.keep(labels.given), engine.keep(labels.locked)

    def explain(rows: slice, sharpness: float, T: Floats) -> tuple[Floats, Floats]:
        P = softmax(np.float32(sharpness) * logits[rows])
        Q = posterior(P, T, given[rows])
        Q[locked[rows]] = one_hot(given[rows][locked[rows]], len(T))
        return P, Q

    def confusion(rows: slice) -> tuple[Floats, ...]:
        P, Q = explain(rows, sharpness, T)
        return Q.T @ P, Q.sum(axis=0, dtype=np.float64), count_given(Q, given[rows])

    joint, total, counts = engine.sum(confusion, n, wide=False)
    K = hardness.mean_confusion(joint, total)
    slope = hardness.confusion_slope(counts, K)
    slope = hardness.up_to_quality(slope, T, K, counts.sum(axis=1), least)
    final_T, final_sharpness = T, sharpness
    if slope > 0.0:
        final_sharpness *= hardness.sharpening(slope)
        final_T = hardness.blame_annotator(T, K, slope)
    Q = engine.rows(lambda rows: explain(rows, final_sharpness, final_T)[1], n)
    return Judgement(Q, final_T, final_sharpness)
