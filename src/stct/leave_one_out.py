"""Noisy meta correction in the limit of one sub-training row: the default method.

One row is the sub-training set and all others are its noisy validation set. Ridge makes
every such split closed-form, so one factorisation replaces all random splits. What the
scores and the given labels say together is then a matter of likelihood; docs/method.md
has the argument. Legend: n rows, d columns, C classes; S leave-one-out scores (n, C),
P = Pr[clean | x], T[clean, given], Q = Pr[clean | x, given]. ``given`` is -1 for none.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct import hardness
from stct.correction import ConstantModel, Correction
from stct.forward import ForwardModel, curvature
from stct.linear import CentredRows, Floats, RidgeFit, RidgePath, solve
from stct.score_space import (
    ScoreFit,
    ScoreSpace,
    choose,
    fit_all,
    highest,
    make_space,
    prior_precision,
)
from stct.transition import Ints, count_given, is_learnable, posterior

MAX_REFITS = 2
STEPS = 5


class Labels(NamedTuple):
    """Everything that is known of the labels."""

    given: Ints  # (n,), -1 for none
    locked: NDArray[np.bool_]  # (n,)
    num_classes: int
    num_threads: int | None

    def model(
        self, U: Floats | CentredRows, offset: Floats | None = None
    ) -> ForwardModel:
        """Likelihood of these labels for features U (n, k)."""
        return ForwardModel(
            U,
            self.given,
            self.locked,
            self.num_classes,
            offset=offset,
            num_threads=self.num_threads,
        )


class LogOdds(NamedTuple):
    """Log-odds of the clean class as a function of the scores."""

    space: ScoreSpace
    weights: Floats  # (k, C)
    logits: Floats  # (n, C)


class LooModel(NamedTuple):
    """Pr[clean | x] for new rows: ridge scores, log-odds, a correction linear in x."""

    ridge: RidgeFit
    log_odds: tuple[ScoreSpace, Floats]
    direct: tuple[Floats, Floats]  # weights (d, C), intercept (C,)
    sharpness: float

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, C)."""
        space, W = self.log_odds
        S = X @ self.ridge.weights + self.ridge.intercept
        logits = space.features(S) @ W + X @ self.direct[0] + self.direct[1]
        return softmax(logits * self.sharpness)


def correct_by_leave_one_out(
    H: Floats,
    labels: Labels,
    progress: Callable[[float], None],
    *,
    owned: bool = False,
) -> Correction:
    """Score all rows, explain the labels, refit what they should be while it helps.

    ``owned`` lets H be overwritten, which saves a copy of it.
    """
    given = labels.given
    path = RidgePath(H, given >= 0, owned=owned, num_threads=labels.num_threads)
    if len(path.values) == 0:  # all columns are constant
        return nothing_learnt(labels)
    progress(0.2)
    ridge = path.fit(one_hot(given, labels.num_classes), given)
    progress(0.3)
    chosen = choose(ridge.scores, given, labels.locked, labels.num_threads)
    if chosen is None:
        return nothing_learnt(labels)
    progress(0.5)
    odds, T = fit_annotator(ridge.scores, labels, chosen)
    stop = "max_rounds"
    for refit in range(1, MAX_REFITS + 1):
        # The posterior is a cleaner target than the given labels. T describes the
        # annotator and stays; so does the strength, because leave-one-out is no
        # longer blind: a row's label has reached the targets of the others.
        Q = posterior(softmax(odds.logits), T, given)
        Q[labels.locked] = one_hot(given[labels.locked], labels.num_classes)
        again = path.fit(Q, given, strength=ridge.strength)
        progress(0.5 + 0.2 * refit / MAX_REFITS)
        if agreement(again.scores, given) <= agreement(ridge.scores, given):
            stop = "agreement"
            break
        ridge = again
        odds = fit_log_odds(ridge.scores, labels, chosen, T, odds.logits)
    logits, direct = fit_directly(path, odds.logits, labels, T)
    progress(0.9)
    judged = judge(logits, T, labels)
    log_odds = odds.space, odds.weights
    model = LooModel(ridge, log_odds, direct, judged.sharpness)
    return Correction(
        judged.posterior, judged.transition, is_learnable(T), model, refit, stop
    )


def correct_probabilities(P: Floats, labels: Labels) -> Correction:
    """Apply the same model of the annotator to somebody's own probabilities (n, C).

    They must be out-of-fold, as leave-one-out scores are.
    """
    scores = np.log(np.maximum(P, 1e-6)).astype(np.float32)
    chosen = choose(scores, labels.given, labels.locked, labels.num_threads)
    if chosen is None:
        return nothing_learnt(labels)
    odds, T = fit_annotator(scores, labels, chosen)
    judged = judge(odds.logits, T, labels)
    return Correction(
        judged.posterior, judged.transition, is_learnable(T), None, 1, "max_rounds"
    )


def fit_annotator(
    S: Floats, labels: Labels, chosen: ScoreFit
) -> tuple[LogOdds, Floats]:
    """Fit log-odds and T on all rows; T keeps only what the rows prove."""
    model = labels.model(chosen.space.features(S))
    W, T = fit_all(model, chosen)
    return LogOdds(chosen.space, W, model.logits(W)), T


def fit_log_odds(
    S: Floats, labels: Labels, chosen: ScoreFit, T: Floats, logits: Floats
) -> LogOdds:
    """Fit log-odds on new scores, T fixed, from where the old logits were."""
    space = make_space(S, quadratic=chosen.family.quadratic)
    U = space.features(S)
    W = solve((U.T @ U).astype(np.float64), (U.T @ logits).astype(np.float64))
    model = labels.model(U)
    precision = prior_precision(space, chosen.family)
    W, _ = model.fit(W, T, precision=precision, max_steps=STEPS)
    return LogOdds(space, W, model.logits(W))


def fit_directly(
    path: RidgePath, offset: Floats, labels: Labels, T: Floats
) -> tuple[Floats, tuple[Floats, Floats]]:
    """Add a correction linear in x itself to the log-odds, by the same likelihood.

    Squared error spends its effort on rows that are clear anyway. The prior is centred
    at no correction, with the mean squared row norm as its precision; few steps suffice
    in coordinates in which the curvature is about 1. Leave-one-out is approximate here:
    one Newton step back from each row's own pull, with the mean curvature.

    Returns
    -------
    logits : ndarray of shape (n, C)
    direct : tuple
        Weights (d, C) and intercept (C,) of the correction.
    """
    P = softmax(offset)
    bend = curvature(P, T)  # (n,)
    mean_bend = max(float(bend.mean()), 1e-6)
    penalty = float(path.values.sum()) / path.num_labelled
    scale = 1.0 / np.sqrt(mean_bend * path.values + penalty)  # (rank,)
    basis = path.vectors * scale  # (d, rank)
    model = labels.model(path.rows, offset)
    W, _ = model.fit(
        np.zeros((len(basis), labels.num_classes)),
        T,
        precision=penalty * scale**2,
        basis=basis,
        max_steps=STEPS,
    )
    logits = model.logits(W)
    P = softmax(logits)
    Q = posterior(P, T, labels.given)
    own = path.leverage_at(penalty / mean_bend) / mean_bend  # (n,)
    pull = own / np.maximum(1.0 - own * bend, 0.05)
    logits += pull[:, None] * (P - Q)
    W = W * path.rows.scale
    return logits, (W, -(path.rows.mean @ W))


class Judgement(NamedTuple):
    """What the annotator's labels are worth, row by row."""

    posterior: Floats  # (n, C)
    transition: Floats  # (C, C)
    sharpness: float  # of P


def judge(logits: Floats, T: Floats, labels: Labels) -> Judgement:
    """Posterior of the clean class, with allowance for annotators who err on hard rows.

    The logits are sharpened or softened first, to the likelihood of the given labels:
    after few rows or much noise they come out too soft.
    """
    model = labels.model(logits)
    identity = np.eye(labels.num_classes)

    def likelihood(step: int) -> float:
        factor = 2.0 ** (step / 4)
        return model.sums(factor * identity, T, count=False).log_likelihood

    sharpness = 2.0 ** (highest(likelihood, start=0, limit=8) / 4)
    P, Q = model.posterior(sharpness * identity, T)
    K = hardness.mean_confusion(P, Q)
    slope = hardness.confusion_slope(count_given(Q, labels.given), K)
    if slope > 0.0:
        sharpness *= hardness.sharpening(slope)
        T = hardness.blame_annotator(T, K, slope)
        Q = model.posterior(sharpness * identity, T)[1]
    return Judgement(Q, T, sharpness)


def nothing_learnt(labels: Labels) -> Correction:
    """Say that the features do not explain the labels at all: no class is learnable."""
    n, C = len(labels.given), labels.num_classes
    counts = np.bincount(labels.given[labels.given >= 0], minlength=C)
    model = ConstantModel(counts / counts.sum())
    Q = np.tile(model.shares.astype(np.float32), (n, 1))
    T, learnable = np.full((C, C), 1.0 / C), np.zeros(C, dtype=bool)
    return Correction(Q, T, learnable, model, 1, "nothing_learnt")


def agreement(S: Floats, given: Ints) -> float:
    """Share of rows whose best score is at the given label."""
    return float((S.argmax(axis=1) == given).mean())


def one_hot(given: Ints, num_classes: int) -> Floats:
    """Labels as rows of a unit matrix, (n, C) float32; no label gives zeros."""
    rows = np.vstack([np.eye(num_classes), np.zeros(num_classes)]).astype(np.float32)
    return np.asarray(rows[given])


def softmax(logits: Floats) -> Floats:
    """Row-wise, without overflow."""
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True))
