"""Noisy meta correction in the limit of one sub-training row: the default method.

One row is the sub-training set and all others are its noisy validation set. Ridge makes
every such split closed-form, so one factorisation replaces all random splits. What the
scores and the given labels say together is then a matter of likelihood; docs/method.md
has the argument. Legend: n rows, d columns, C classes; S leave-one-out scores (n, C),
P = Pr[clean | x], T[clean, given], Q = Pr[clean | x, given]. ``given`` is -1 for none.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct import hardness
from stct.correction import ConstantModel, Correction
from stct.engine import Computed, Engine, Local, RowValues, spread_rows
from stct.forward import ForwardModel, curvature
from stct.lift import SAMPLE as LIFT_ROWS
from stct.lift import Lift, choose_lift
from stct.linear import Floats, RidgeFit, RidgePath, solve
from stct.score_space import (
    ScoreFit,
    ScoreSpace,
    choose,
    fit_all,
    highest,
    make_space,
    prior_precision,
)
from stct.transition import (
    Ints,
    count_given,
    is_learnable,
    posterior,
    quality,
    raise_quality,
)
from stct.views import least_quality

MAX_FITTED = 2**18  # rows that fit T and the log-odds; scores use all rows
MAX_WITNESSES = 2**14  # rows that say how good features and labels are
MAX_REFITS = 2
STEPS = 5


class Labels(NamedTuple):
    """Everything that is known of the labels, and where their rows are worked on."""

    given: Ints  # (n,), -1 for none
    locked: NDArray[np.bool_]  # (n,)
    num_classes: int
    engine: Engine

    def model(self, U: RowValues, offset: RowValues | None = None) -> ForwardModel:
        """Likelihood of these labels for features U (n, k)."""
        return ForwardModel(
            U,
            self.given,
            self.locked,
            self.num_classes,
            offset=offset,
            engine=self.engine,
        )

    def some(self, index: Ints | None) -> "Labels":
        """Labels of some rows, whose values are here; None is all of them."""
        here = self._replace(engine=Local(getattr(self.engine, "num_threads", None)))
        if index is None:
            return here
        return here._replace(given=self.given[index], locked=self.locked[index])


class LogOdds(NamedTuple):
    """Log-odds of the clean class as a function of the scores."""

    space: ScoreSpace
    weights: Floats  # (k, C)

    def logits(self, S: Floats) -> Floats:
        """Log-odds of scores S (n, C), float32."""
        return np.asarray(self.space.features(S) @ self.weights, dtype=np.float32)


class LooModel(NamedTuple):
    """Pr[clean | x] for new rows: ridge scores, log-odds, a correction linear in x."""

    ridge: RidgeFit
    log_odds: LogOdds
    direct: tuple[Floats, Floats]  # weights (d, C), intercept (C,)
    sharpness: float
    lift: Lift | None  # makes more columns, before all else

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, C)."""
        X = X if self.lift is None else self.lift(X)
        S = X @ self.ridge.weights + self.ridge.intercept
        logits = self.log_odds.logits(S) + X @ self.direct[0] + self.direct[1]
        return softmax(logits * self.sharpness)


def correct_by_leave_one_out(
    H: RowValues,
    labels: Labels,
    progress: Callable[[float], None],
    *,
    owned: bool = False,
    annotator: Floats | None = None,
) -> Correction:
    """Score all rows, explain the labels, refit what they should be while it helps.

    ``owned`` lets H be overwritten, which saves a copy of it. ``annotator`` is a T from
    an earlier look at the same labels.
    """
    engine, n = labels.engine, len(labels.given)
    scored = score(H, labels, progress, owned=owned)
    if scored is None:  # all columns are constant
        return nothing_learnt(labels)
    path, ridge, agreed = scored.path, scored.ridge, scored.agreed
    given, locked = engine.keep(labels.given), engine.keep(labels.locked)
    index = some_rows(n)
    sample = labels.some(index)
    S = engine.take(ridge.scores, index)
    chosen = choose(S, sample.given, sample.locked, annotator)
    if chosen is None:
        return nothing_learnt(labels)
    progress(0.4)
    odds, T = fit_annotator(S, sample, chosen)
    least = least_quality(*scored.witnesses, labels.num_classes)
    odds, T = believe_views(S, sample, chosen, odds, T, least)
    progress(0.5)
    stop = "max_rounds"
    for refit in range(1, MAX_REFITS + 1):
        # The posterior is a cleaner target than the given labels. T describes the
        # annotator and stays; so does the strength, because leave-one-out is no
        # longer blind: a row's label has reached the targets of the others.
        target = clean_targets(ridge.scores, odds, T, given, locked)
        again = path.fit(engine.rows(target, n), given, strength=ridge.strength)
        progress(0.5 + 0.2 * refit / MAX_REFITS)
        agrees = agreement(again.scores, given, engine)
        if agrees <= agreed:
            stop = "agreement"
            break
        old = odds.logits(S)
        ridge, agreed, S = again, agrees, engine.take(again.scores, index)
        odds = fit_log_odds(S, sample, chosen, T, old)
    logits, direct = fit_directly(path, ridge.scores, odds, labels, T)
    progress(0.9)
    judged = judge(logits, T, labels, least)
    ridge = ridge._replace(scores=None)
    model = LooModel(ridge, odds, direct, judged.sharpness, scored.lift)
    return Correction(
        engine.take(judged.posterior, None),
        judged.transition,
        is_learnable(T),
        model,
        refit,
        stop,
    )


class Scored(NamedTuple):
    """Leave-one-out scores of all rows, and what they were made from."""

    path: RidgePath
    ridge: RidgeFit
    agreed: float  # share of rows whose best score is at the given label
    lift: Lift | None  # that made more columns
    witnesses: tuple[Floats, Ints]  # some rows (t, d), centred, and their labels


def score(
    H: RowValues, labels: Labels, progress: Callable[[float], None], *, owned: bool
) -> Scored | None:
    """Fit ridge to the given labels, on more columns if that predicts them better."""
    engine, n = labels.engine, len(labels.given)
    labelled = labels.given >= 0
    if isinstance(H, np.ndarray):
        H = engine.keep(H)
    owned = owned and isinstance(H, np.ndarray)
    path = RidgePath(H, labelled, engine=engine, owned=owned)
    if len(path.values) == 0:
        return None
    progress(0.2)
    given = engine.keep(labels.given)
    Y = engine.rows(lambda rows: one_hot(given[rows], labels.num_classes), n)
    ridge = path.fit(Y, given)
    agreed = agreement(ridge.scores, given, engine)
    progress(0.3)
    some = spread_rows(n, MAX_WITNESSES)
    some = some[labelled[some]]
    rows = path.rows
    X = engine.take(Computed(rows.__getitem__, rows.shape, rows.dtype), some)
    witnesses = X, labels.given[some]
    few = slice(None, None, -(-len(some) // LIFT_ROWS))
    S = engine.take(ridge.scores, some[few])
    lift = choose_lift(X[few], S, labels.given[some[few]], rows)
    if lift is not None:
        lifted = RidgePath(lift.rows(rows, engine), labelled, engine=engine)
        again = lifted.fit(Y, given)
        agrees = agreement(again.scores, given, engine)
        if agrees > agreed:
            return Scored(lifted, again, agrees, lift, witnesses)
    return Scored(path, ridge, agreed, None, witnesses)


def some_rows(n: int) -> Ints | None:
    """Rows that fit what has few parameters, spread over all of them; None is all."""
    if n <= MAX_FITTED:
        return None
    stride = -(-n // MAX_FITTED)
    starts = np.arange(0, n, stride)
    jump = np.random.default_rng(0).integers(0, stride, len(starts))
    return np.asarray(np.minimum(starts + jump, n - 1))


def clean_targets(
    scores: RowValues, odds: LogOdds, T: Floats, given: RowValues, locked: RowValues
) -> Callable[[slice], Floats]:
    """Posterior of a tile, certain where a row is locked."""

    def target(rows: slice) -> Floats:
        said, fixed = given[rows], locked[rows]
        Q = posterior(softmax(odds.logits(scores[rows])), T, said)
        Q[fixed] = one_hot(said[fixed], len(T))
        return Q

    return target


def correct_probabilities(P: Floats, labels: Labels) -> Correction:
    """Apply the same model of the annotator to somebody's own probabilities (n, C).

    They must be out-of-fold, as leave-one-out scores are.
    """
    scores = np.log(np.maximum(P, 1e-6)).astype(np.float32)
    chosen = choose(scores, labels.given, labels.locked)
    if chosen is None:
        return nothing_learnt(labels)
    odds, T = fit_annotator(scores, labels, chosen)
    judged = judge(odds.logits(scores), T, labels)
    return Correction(
        judged.posterior, judged.transition, is_learnable(T), None, 1, "max_rounds"
    )


def fit_annotator(
    S: Floats, labels: Labels, chosen: ScoreFit
) -> tuple[LogOdds, Floats]:
    """Fit log-odds and T; T keeps only what the rows prove."""
    W, T = fit_all(labels.model(chosen.space.features(S)), chosen)
    return LogOdds(chosen.space, W), T


def believe_views(
    S: Floats,
    labels: Labels,
    chosen: ScoreFit,
    odds: LogOdds,
    T: Floats,
    least: float,
) -> tuple[LogOdds, Floats]:
    """Hold T at ``least``, the quality that two views prove, if it fell below.

    Log-odds of a wrong shape are paid for by T: the likelihood then likes an annotator
    who is worse than the one there is.
    """
    model = labels.model(odds.space.features(S))
    shares = model.sums(odds.weights, T).counts.sum(axis=1)
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


def fit_directly(
    path: RidgePath, scores: RowValues, odds: LogOdds, labels: Labels, T: Floats
) -> tuple[Any, tuple[Floats, Floats]]:
    """Add a correction linear in x itself to the log-odds, by the same likelihood.

    Squared error spends its effort on rows that are clear anyway. The prior is centred
    at no correction, with the mean squared row norm as its precision; few steps suffice
    in coordinates in which the curvature is about 1. Leave-one-out is approximate here:
    one Newton step back from each row's own pull, with the mean curvature.

    Returns
    -------
    logits : array of shape (n, C), with the engine
    direct : tuple
        Weights (d, C) and intercept (C,) of the correction.
    """
    engine, n = labels.engine, len(labels.given)
    given = engine.keep(labels.given)
    offset = engine.rows(lambda rows: odds.logits(scores[rows]), n)  # (n, C)

    def bend(rows: slice) -> Floats:
        return curvature(softmax(offset[rows]), T)  # (t,)

    total = engine.sum(lambda rows: (bend(rows).sum(dtype=np.float64),), n)[0]
    mean_bend = max(float(total) / n, 1e-6)
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
    moved = model.logits(W)
    leverage = path.leverage_at(penalty / mean_bend)

    def without_own_pull(rows: slice) -> Floats:
        P = softmax(moved[rows])
        own = leverage(rows) / mean_bend  # (t,)
        pull = own / np.maximum(1.0 - own * bend(rows), 0.05)
        step = pull[:, None] * (P - posterior(P, T, given[rows]))
        return np.asarray(moved[rows] + step, dtype=np.float32)

    W = W * path.rows.scale
    return engine.rows(without_own_pull, n), (W, -(path.rows.mean @ W))


class Judgement(NamedTuple):
    """What the annotator's labels are worth, row by row."""

    posterior: Any  # (n, C), with the engine
    transition: Floats  # (C, C)
    sharpness: float  # of P


def judge(
    logits: RowValues, T: Floats, labels: Labels, least: float = 0.0
) -> Judgement:
    """Posterior of the clean class, with allowance for annotators who err on hard rows.

    The logits are sharpened or softened first, to the likelihood of the given labels:
    after few rows or much noise they come out too soft.
    """
    engine, n = labels.engine, len(labels.given)
    index = some_rows(n)
    model = labels.some(index).model(engine.take(logits, index))
    identity = np.eye(labels.num_classes)

    def likelihood(step: int) -> float:
        factor = 2.0 ** (step / 4)
        return model.sums(factor * identity, T, count=False).log_likelihood

    sharpness = 2.0 ** (highest(likelihood, start=0, limit=8) / 4)
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


def nothing_learnt(labels: Labels) -> Correction:
    """Say that the features do not explain the labels at all: no class is learnable."""
    n, C = len(labels.given), labels.num_classes
    counts = np.bincount(labels.given[labels.given >= 0], minlength=C)
    model = ConstantModel(counts / counts.sum())
    Q = np.tile(model.shares.astype(np.float32), (n, 1))
    T, learnable = np.full((C, C), 1.0 / C), np.zeros(C, dtype=bool)
    return Correction(Q, T, learnable, model, 1, "nothing_learnt")


def agreement(S: RowValues, given: RowValues, engine: Engine) -> float:
    """Share of rows whose best score is at the given label."""

    def same(rows: slice) -> tuple[int]:
        return (int((S[rows].argmax(axis=1) == given[rows]).sum()),)

    n = S.shape[0]
    return float(engine.sum(same, n, wide=False)[0]) / n


def one_hot(given: Ints, num_classes: int) -> Floats:
    """Labels as rows of a unit matrix, (n, C) float32; no label gives zeros."""
    rows = np.vstack([np.eye(num_classes), np.zeros(num_classes)]).astype(np.float32)
    return np.asarray(rows[given])


def softmax(logits: Floats) -> Floats:
    """Row-wise, without overflow."""
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True))
