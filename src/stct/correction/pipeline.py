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

from stct.correction.choice import choose
from stct.correction.doubt import give_benefit
from stct.correction.fourier_features import Lift
from stct.correction.given_labels import Labels, some_rows
from stct.correction.innocence import expected_quality
from stct.correction.paper import ConstantModel, Correction
from stct.correction.posterior import judge
from stct.correction.residual import (
    LogOdds,
    clean_shares,
    fit_annotator,
    fit_directly,
    fit_log_odds,
    hold_quality,
)
from stct.correction.score_fit import ScoreFit
from stct.correction.scores import agrees_more, score
from stct.correction.views import Testimony, hear_views
from stct.noise_model.transition import is_learnable, posterior
from stct.numeric.engine import RowValues, light_rows
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.ridge import RidgeFit, RidgePath
from stct.numeric.tiles import at_once
from stct.numeric.types import Floats

MAX_REFITS = 2
CONFIRMED = 3.0  # standard errors that a refit of taught features must gain


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
    an earlier look at the same labels, by which H was learnt: where rows are few, noise
    that it found is remembered, and a refit needs proof.
    """
    engine, n = labels.engine, len(labels.given)
    scored = score(H, labels, progress, owned=owned)
    if scored is None:  # all columns are constant
        return nothing_learnt(labels)
    path, ridge, _, lift, witnesses = scored
    del scored  # scores are let go as soon as there are later ones
    index = some_rows(n)
    sample = labels.some(index)
    S = engine.take(ridge.scores, index)

    def explain() -> tuple[ScoreFit, LogOdds, Floats] | None:
        chosen = choose(S, sample.given, sample.locked, annotator)
        if chosen is None:
            return None
        return chosen, *fit_annotator(S, sample, chosen)

    def hear() -> Testimony:
        return hear_views(witnesses.rows, witnesses.given, labels.num_classes)

    # Few rows each: a thread each is all that they can use.
    explained, heard = at_once(explain, hear)
    if explained is None:
        return nothing_learnt(labels)
    chosen = explained[0]
    taught = annotator is not None
    benefit = give_benefit(S, sample, *explained, heard, None if taught else witnesses)
    odds, T = benefit.odds, benefit.transition
    progress(0.5)
    # Features that were taught by an earlier correction repeat its errors. Taught the
    # posterior once more, they find them confirmed, and agree a little more with it.
    errors = CONFIRMED if taught else 0.0
    ridge, odds, stop, num_fits = refit(
        path, ridge, labels, chosen, odds, T, progress, errors
    )
    logits, direct = fit_directly(path, ridge.scores, odds, labels, T)
    ridge = ridge._replace(scores=None)
    progress(0.9)
    judged = judge(logits, T, labels, benefit.least)
    model = LooModel(ridge, odds, direct, judged.sharpness, lift)
    return Correction(
        engine.take(judged.posterior, None),
        judged.transition,
        is_learnable(T),
        model,
        num_fits,
        stop,
        (*describe_lift(lift), *benefit.notes),
        benefit.asked(judged.transition),
        judged.known,
    )


class Refitted(NamedTuple):
    """The last scores and log-odds, why there are no later ones, how many fits."""

    ridge: RidgeFit
    odds: LogOdds
    stop: str
    num_fits: int


def refit(
    path: RidgePath,
    ridge: RidgeFit,
    labels: Labels,
    chosen: ScoreFit,
    odds: LogOdds,
    T: Floats,
    progress: Callable[[float], None],
    errors: float,
) -> Refitted:
    """Fit the posterior, a cleaner target than the given labels, while it helps.

    That is while scores agree more with the given labels, by so many standard errors.
    T describes the annotator and stays; so does the strength, because leave-one-out is
    no longer blind: a row's label has reached the targets of the others.
    """
    engine, n = labels.engine, len(labels.given)
    given, locked = engine.keep(labels.given), engine.keep(labels.locked)
    index = some_rows(n)
    sample = labels.some(index)
    for number in range(1, MAX_REFITS + 1):
        target = clean_targets(ridge.scores, odds, T, given, locked)
        Q = light_rows(engine, target, (n, labels.num_classes))
        again = path.fit(Q, given, strength=ridge.strength)
        progress(0.5 + 0.2 * number / MAX_REFITS)
        if not agrees_more(again.scores, ridge.scores, given, engine, errors):
            return Refitted(ridge, odds, "agreement", number)
        old = odds.logits(engine.take(ridge.scores, index))
        ridge = again
        S = engine.take(ridge.scores, index)
        odds = fit_log_odds(S, sample, chosen, T, old)
    return Refitted(ridge, odds, "max_rounds", MAX_REFITS)


def describe_lift(lift: Lift | None) -> tuple[str, ...]:
    """Say that the features were not enough as they are."""
    if lift is None:
        return ()
    return (
        f"{2 * lift.frequencies.shape[1]} columns that are not linear in the "
        "embeddings were added, because they predict the given labels better",
    )


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


def correct_probabilities(P: Floats, labels: Labels) -> Correction:
    """Apply the same model of the annotator to somebody's own probabilities (n, C).

    They must be out-of-fold, as leave-one-out scores are.
    """
    scores = np.log(np.maximum(P, 1e-6)).astype(np.float32)
    chosen = choose(scores, labels.given, labels.locked)
    if chosen is None:
        return nothing_learnt(labels)
    odds, T = fit_annotator(scores, labels, chosen)
    shares = clean_shares(scores, labels, odds, T)
    expected = expected_quality(scores, labels, T, shares)
    odds, T = hold_quality(scores, labels, chosen, odds, T, expected)
    judged = judge(odds.logits(scores), T, labels)
    return Correction(
        judged.posterior,
        judged.transition,
        is_learnable(T),
        None,
        1,
        "max_rounds",
        known=judged.known,
    )


def nothing_learnt(labels: Labels) -> Correction:
    """Say that the features do not explain the labels at all: no class is learnable."""
    n, C = len(labels.given), labels.num_classes
    counts = np.bincount(labels.given[labels.given >= 0], minlength=C)
    model = ConstantModel(counts / counts.sum())
    Q = np.tile(model.shares.astype(np.float32), (n, 1))
    T, learnable = np.full((C, C), 1.0 / C), np.zeros(C, dtype=bool)
    return Correction(Q, T, learnable, model, 1, "nothing_learnt")
