"""Ridge taught the posterior, and its log-odds beside the first ones.

The posterior is a cleaner target than the given labels, so its scores rank better, if
the posterior is right. The likelihood of the given labels says how much of either to
take: weights of 0 or more, fitted with T fixed. Legend: n rows, C classes;
Q = Pr[clean | x, given], T[clean, given].
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stct.correction.calibration import (
    AlternatingFit,
    Calibration,
    LogOdds,
    fit_weights,
)
from stct.correction.given_labels import Labels
from stct.correction.scores import Scores, is_kept, take
from stct.correction.separation import sharpness_of_shape
from stct.correction.settings import Settings
from stct.noise_model.transition import posterior
from stct.numeric.engine import light_rows
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.ridge import RidgeFit
from stct.numeric.types import Floats, Ints


class Fitted(NamedTuple):
    """Logits as a sum over ridge fits, and the transition matrix."""

    parts: list[tuple[RidgeFit, LogOdds]]
    transition: Floats  # (C, C)

    def logits(self, rows: slice) -> Floats:
        """Leave-one-out logits of a tile, (t, C) float32."""
        first, *others = (odds.logits(part.scores[rows]) for part, odds in self.parts)
        for more in others:
            first += more
        return first

    def linear(self) -> tuple[Floats, Floats]:
        """Weights (d, C) and intercept (C,) of the same logits for new rows."""
        weights = [odds.scaled(part.weights) for part, odds in self.parts]
        intercepts = [
            odds.scaled(part.intercept) + odds.offset for part, odds in self.parts
        ]
        return np.sum(weights, axis=0), np.sum(intercepts, axis=0)


def refit(
    scores: Scores,
    fitted: Calibration,
    labels: Labels,
    index: Ints,
    settings: Settings,
    *,
    features_fitted_to_labels: bool,
) -> Fitted:
    """Fit ridge to the posterior, and weigh its logits against the first ones.

    Rows ``index`` weigh them. Features that were fitted to an earlier correction of
    these labels repeat its errors and would find them confirmed: then nothing is done.
    """
    first = Fitted([(scores.ridge, fitted.odds)], fitted.transition)
    if features_fitted_to_labels or not settings.refit.enabled:
        return first
    engine, shape = labels.engine, (len(labels.given), labels.num_classes)
    target = clean_targets(first, labels)
    Q = light_rows(engine, target, shape)
    given = engine.keep(labels.given)
    strength, kept = scores.ridge.strength, is_kept(*shape)
    again = scores.path.fit(Q, given, strength=strength, keep_scores=kept)
    S_old, S = (take(engine, part.scores, index) for part in (scores.ridge, again))
    sample, T = labels.some(index), fitted.transition
    odds = LogOdds(
        np.array(sharpness_of_shape(S, settings.calibration)), np.zeros(shape[1])
    )
    fit = AlternatingFit(sample, settings.calibration)
    odds = odds.times(fit.sharpest(fit.likelihood(odds.logits(S)), T))
    if fitted.odds.matrix.ndim:
        odds = fit_weights(S, sample, odds, T, settings.calibration)
    both = fit.likelihood(fitted.odds.logits(S_old), odds.logits(S))
    old, new = both.fit_scales(np.array([0.5, 0.5]), T)
    parts = [(scores.ridge, fitted.odds.times(old)), (again, odds.times(new))]
    return Fitted(parts, T)


def clean_targets(fitted: Fitted, labels: Labels) -> Callable[[slice], Floats]:
    """Posterior of a tile, certain where a row is locked."""
    T, C = fitted.transition, labels.num_classes
    given, locked = (labels.engine.keep(v) for v in (labels.given, labels.locked))

    def target(rows: slice) -> Floats:
        label, fixed = given[rows], locked[rows]
        Q = posterior(softmax(fitted.logits(rows)), T, label)
        Q[fixed] = one_hot(label[fixed], C)
        return Q

    return target
