"""What each row's label should be, given all that was learnt of it and the annotator.

Legend: n rows, C classes; P = Pr[clean | x], T[clean, given], Q = Pr[clean | x, given].
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction import instance_noise
from stct.correction.given_labels import Labels, some_rows
from stct.correction.score_fit import FREE_INTERCEPT, beside, highest
from stct.noise_model.transition import count_given, posterior
from stct.numeric.engine import RowValues, spread_rows
from stct.numeric.probabilities import known_beyond_chance, one_hot, softmax
from stct.numeric.types import Floats, Ints

SHARPNESS_ERROR = 0.2  # that log-odds are expected to have, relative
FREE, FREE_STEPS = 1.0, 20  # precision and steps of log-odds that may turn as they like
FREE_ROWS, FREE_ROWS_PER_WEIGHT = 2**14, 64  # more tell no more about these


class Judgement(NamedTuple):
    """What the annotator's labels are worth, row by row."""

    posterior: Any  # (n, C), with the engine
    transition: Floats  # (C, C)
    sharpness: float  # of P
    known: float  # share of the rows whose class the features know, beyond chance


def judge(
    logits: RowValues, T: Floats, labels: Labels, least: float = 0.0
) -> Judgement:
    """Posterior of the clean class, with allowance for annotators who err on hard rows.

    The logits are sharpened or softened first, to the likelihood of the given labels
    and a prior: the last steps that made them were few.
    """
    engine, n = labels.engine, len(labels.given)
    index = some_rows(n)
    sample, some_logits = labels.some(index), engine.take(logits, index)
    model = sample.model(some_logits)
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

    def look(rows: slice, sharpness: float) -> Floats:
        return softmax(np.float32(sharpness) * logits[rows])

    def confusion(rows: slice) -> tuple[Floats, ...]:
        P = look(rows, sharpness)
        Q = _certain(posterior(P, T, given[rows]), given[rows], locked[rows])
        largest = P.max(axis=1).sum(dtype=np.float64)
        counts = count_given(Q, given[rows])
        return Q.T @ P, Q.sum(axis=0, dtype=np.float64), counts, largest

    joint, total, counts, largest = engine.sum(confusion, n, wide=False)
    K = instance_noise.mean_confusion(joint, total)
    share = 0.0
    if instance_noise.error_trend(counts, K).least > 0.0:
        trend = trend_of_free_log_odds(some_logits, T, sample)
        share = instance_noise.guessed_share(trend, counts, K)
    share = instance_noise.up_to_quality(share, T, K, counts.sum(axis=1), least)
    sharper = sharpness * instance_noise.sharpening(share)

    def decide(rows: slice) -> Floats:
        said, P = given[rows], look(rows, sharpness)
        if share > 0.0:
            clean = look(rows, sharper)
            Q = instance_noise.posterior_of_guesses(clean, P, T, share, said)
        else:
            Q = posterior(P, T, said)
        return _certain(Q, said, locked[rows])

    average = instance_noise.blame_annotator(T, K, share)
    known = known_beyond_chance(float(largest) / n, labels.num_classes)
    return Judgement(engine.rows(decide, n), average, sharper, known)


def trend_of_free_log_odds(
    logits: Floats, T: Floats, labels: Labels
) -> instance_noise.Trend:
    """Trend of T with the confusion once log-odds (n, C) may turn as they like.

    Log-odds of a wrong shape are too sure of some pairs of classes. What was given
    there looks like a trend, too, but goes away when they are fitted freely; what
    people do not see clearly stays.
    """
    C = labels.num_classes
    count = max(FREE_ROWS, FREE_ROWS_PER_WEIGHT * C * C)
    some = spread_rows(len(logits), count)
    logits, labels = logits[some], labels.some(some)
    centred = logits - logits.mean(axis=1, keepdims=True)
    U = np.concatenate([np.ones_like(centred[:, :1]), centred], axis=1)
    start = np.concatenate([np.zeros((1, C)), np.eye(C)])
    precision = np.append(FREE_INTERCEPT, np.full(C, FREE))
    model = labels.model(U)
    W, _ = model.fit(start, T, precision=precision, max_steps=FREE_STEPS)
    P, Q = (np.asarray(values[0 : len(U)]) for values in model.posterior(W, T))
    K = instance_noise.mean_confusion(Q.T @ P, Q.sum(axis=0, dtype=np.float64))
    return instance_noise.error_trend(count_given(Q, labels.given), K)


def _certain(Q: Floats, given: Ints, locked: NDArray[np.bool_]) -> Floats:
    """Posterior of a tile, certain where a row is locked."""
    Q[locked] = one_hot(given[locked], Q.shape[1])
    return Q
