"""Log-odds of the clean class and T, by the likelihood of the labels that were given.

First as a function of the scores, together with T; at last a correction linear in the
features themselves. Legend: n rows, t rows of a tile, d columns, k columns made of the
scores, C classes; S leave-one-out scores (n, C), T[clean, given].
"""

from typing import Any, NamedTuple

import numpy as np

from stct.correction.given_labels import Labels
from stct.correction.score_fit import ScoreFit, fit_all, prior_precision
from stct.correction.score_space import ScoreSpace, make_space
from stct.noise_model.transition import curvature, posterior, quality, raise_quality
from stct.numeric.engine import RowValues, light_rows
from stct.numeric.linear import solve
from stct.numeric.probabilities import softmax
from stct.numeric.ridge import RidgePath
from stct.numeric.tiles import MAX_STRIDE, some_of
from stct.numeric.types import Floats

STEPS = 5
DIRECT_STEPS = 3
TEACHING_ROWS, ROWS_PER_WEIGHT = 2**16, 32  # more teach the last weights nothing


class LogOdds(NamedTuple):
    """Log-odds of the clean class as a function of the scores."""

    space: ScoreSpace
    weights: Floats  # (k, C)

    def logits(self, S: Floats) -> Floats:
        """Log-odds of scores S (n, C), float32."""
        return np.asarray(self.space.features(S) @ self.weights, dtype=np.float32)


def fit_annotator(
    S: Floats, labels: Labels, chosen: ScoreFit
) -> tuple[LogOdds, Floats]:
    """Fit log-odds and T; T keeps only what the rows prove."""
    W, T = fit_all(labels.model(chosen.space.features(S)), chosen)
    return LogOdds(chosen.space, W), T


def clean_shares(S: Floats, labels: Labels, odds: LogOdds, T: Floats) -> Floats:
    """How many rows each clean class has, (C,)."""
    model = labels.model(odds.space.features(S))
    return np.asarray(model.sums(odds.weights, T).counts.sum(axis=1))


def hold_quality(
    S: Floats,
    labels: Labels,
    chosen: ScoreFit,
    odds: LogOdds,
    T: Floats,
    least: float,
) -> tuple[LogOdds, Floats]:
    """Hold T at the quality ``least``, if it fell below.

    That is what two views prove or few rows leave open. Log-odds of a wrong shape are
    paid for by T: the likelihood then likes an annotator who is worse than the one
    there is.
    """
    shares = clean_shares(S, labels, odds, T)
    if quality(T, shares) >= least:
        return odds, T
    T = raise_quality(T, shares, least)
    return fit_log_odds(S, labels, chosen, T, odds.logits(S)), T


def fit_log_odds(
    S: Floats, labels: Labels, chosen: ScoreFit, T: Floats, logits: Floats
) -> LogOdds:
    """Fit log-odds on new scores, T fixed, from where the old logits were."""
    space = make_space(S, quadratic=chosen.family.quadratic)
    U = space.features(S)
    W = solve((U.T @ U).astype(np.float64), (U.T @ logits).astype(np.float64))
    precision = prior_precision(space, chosen.family)
    W, _ = labels.model(U).fit(W, T, precision=precision, max_steps=STEPS)
    return LogOdds(space, W)


def teaching_stride(num_rows: int, num_weights: int) -> int:
    """Of so many labelled rows one teaches the last weights; each, if they are few."""
    enough = max(TEACHING_ROWS, ROWS_PER_WEIGHT * num_weights)
    return min(max(1, num_rows // enough), MAX_STRIDE)


def fit_directly(
    path: RidgePath, scores: RowValues, odds: LogOdds, labels: Labels, T: Floats
) -> tuple[Any, tuple[Floats, Floats]]:
    """Add a correction linear in x itself to the log-odds, by the same likelihood.

    Squared error spends its effort on rows that are clear anyway. The prior is centred
    at no correction, with the mean squared row norm as its precision; few steps suffice
    in coordinates in which the curvature is about 1. Leave-one-out is approximate here:
    one Newton step back from each row's own pull, with the mean curvature. Of very many
    rows some are enough to teach it, and only they have such a pull.

    Returns
    -------
    logits : array of shape (n, C), with the engine
    direct : tuple
        Weights (d, C) and intercept (C,) of the correction.
    """
    engine, n = labels.engine, len(labels.given)
    num_weights = path.rows.shape[1] * labels.num_classes
    stride = teaching_stride(path.num_labelled, num_weights)
    given = engine.keep(labels.given)
    shape = n, labels.num_classes
    offset = light_rows(engine, lambda rows: odds.logits(scores[rows]), shape)
    bend = engine.rows(lambda rows: curvature(softmax(offset[rows]), T), n)  # (n,)
    total = engine.sum(lambda rows: (bend[rows].sum(dtype=np.float64),), n, wide=False)
    mean_bend = max(float(total[0]) / n, 1e-6)
    values, vectors = path.axes
    penalty = float(values.sum()) / path.num_labelled
    scale = 1.0 / np.sqrt(mean_bend / stride * values + penalty)  # (rank,)
    model = labels.model(path.rows, offset, stride)
    W, _ = model.fit(
        np.zeros((len(vectors), labels.num_classes)),
        T,
        precision=penalty * scale**2,
        basis=vectors * scale,
        max_steps=DIRECT_STEPS,
    )
    moved = model.logits(W)
    # Rows that teach have a Gram matrix of about G / stride.
    leverage = path.leverage_at(penalty / mean_bend * stride)

    def without_own_pull(rows: slice) -> Floats:
        taught = some_of(rows, stride)
        logits = np.array(moved(rows), dtype=np.float32)
        P = softmax(logits[taught])
        own = leverage(rows, taught) * (stride / mean_bend)  # (t,)
        pull = own / np.maximum(1.0 - own * bend[rows][taught], 0.05)
        step = pull[:, None] * (P - posterior(P, T, given[rows][taught]))
        logits[taught] += step
        return logits

    W = W * path.rows.scale
    return engine.rows(without_own_pull, n), (W, -(path.rows.mean @ W))
