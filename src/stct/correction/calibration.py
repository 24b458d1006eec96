"""Log-odds of the clean class and T, by the likelihood of the given labels.

Ridge scores rank classes well but are not log-odds. One sharpness, and then a linear
map with a prior around it, make log-odds of them; T explains what is left. Legend:
n rows, C classes, k columns; S leave-one-out scores (n, C), W weights (k, C),
T[clean, given].
"""

from typing import NamedTuple

import numpy as np

from stct.correction.given_labels import Labels
from stct.correction.separation import sharpness_of_shape
from stct.correction.settings import CalibrationSettings
from stct.noise_model.likelihood import LinearLogits, ScaledLogits
from stct.noise_model.priors import ErrorPrior, SharpnessPrior
from stct.noise_model.transition import (
    anchor_transition,
    sparse_transition,
    symmetric_transition,
)
from stct.numeric.types import Floats

FREE = 1e-3  # precision of the prior on intercepts


class LogOdds(NamedTuple):
    """Logits that are affine in the scores: S A + b; A is (C, C), or one number."""

    matrix: Floats
    offset: Floats  # (C,)

    def logits(self, S: Floats) -> Floats:
        """Logits of scores (n, C), float32."""
        return np.asarray(self.scaled(S) + self.offset, dtype=np.float32)

    def scaled(self, S: Floats) -> Floats:
        """Give S A."""
        return np.asarray(S @ self.matrix if self.matrix.ndim else S * self.matrix)

    def times(self, factor: float) -> "LogOdds":
        """Sharpen or soften."""
        return LogOdds(self.matrix * factor, self.offset * factor)


class Calibration(NamedTuple):
    """Log-odds of the scores, and the transition matrix."""

    odds: LogOdds
    transition: Floats  # (C, C)


def calibrate(
    S: Floats,
    labels: Labels,
    settings: CalibrationSettings,
    prior: Floats | None = None,
    *,
    variance: float = 0.0,
) -> Calibration:
    """Fit log-odds and T to the labels of some rows.

    Parameters
    ----------
    S : ndarray of shape (m, C)
    labels : Labels
        Of these rows.
    prior : ndarray of shape (C, C), optional
        An earlier estimate of T.
    variance : float
        Of a score, for labels of variance 1: how uncertain the scores are.
    """
    C = labels.num_classes
    known = labels.given[labels.given >= 0]
    shares = np.bincount(known, minlength=C) / max(len(known), 1)
    unit = sharpness_of_shape(S, settings, variance * shares)
    odds = LogOdds(np.array(unit), np.zeros(C))
    fit = AlternatingFit(labels, settings, prior)
    sharpness, T = find_start(odds.logits(S), labels, settings, prior)
    sharpness, T = fit.run(fit.likelihood(odds.logits(S)), sharpness, T)
    odds = odds.times(sharpness)
    if len(S) < settings.rows_per_weight * C * C:
        return Calibration(odds, T)
    for _ in range(settings.weight_rounds):
        odds = fit_weights(S, labels, odds, T, settings)
        fit.sharpness_prior = fit.sharpness_prior.after(sharpness)
        sharpness, T = fit.run(fit.likelihood(odds.logits(S)), 1.0, T)
        odds = odds.times(sharpness)
    return Calibration(odds, T)


def find_start(
    logits: Floats, labels: Labels, settings: CalibrationSettings, prior: Floats | None
) -> tuple[float, Floats]:
    """Sharpness and T of the most probable end of several starts, on some of the rows.

    One end may be few errors and soft log-odds, another many errors and sharp log-odds.
    Starts are symmetric T of several error rates and T from anchors.
    """
    step = max(1, len(logits) // settings.starting_rows)
    labels, logits = labels.some(np.arange(0, len(logits), step)), logits[::step]
    fit = AlternatingFit(labels, settings, prior, exact=False)
    likelihood = fit.likelihood(logits)
    ends = []
    for T in starts(logits, labels, settings) if prior is None else [prior]:
        sharpness, T = fit.run(likelihood, fit.sharpest(likelihood, T), T)
        ends.append((fit.log_posterior(likelihood, sharpness, T), sharpness, T))
    return max(ends, key=lambda end: end[0])[1:]


def starts(
    logits: Floats, labels: Labels, settings: CalibrationSettings
) -> list[Floats]:
    """Transition matrices to begin with."""
    C = labels.num_classes
    diagonals = (1.0 / C + q * (1.0 - 1.0 / C) for q in settings.starts)
    found = [symmetric_transition(diagonal, C) for diagonal in diagonals]
    free = (labels.given >= 0) & ~labels.locked
    if free.any():
        share = settings.anchors
        found.append(anchor_transition(logits[free], labels.given[free], share))
    return found


class AlternatingFit:
    """T by expectation maximisation in turn with sharpness and error rate.

    Counts of clean and given classes say where the errors go; how many there are and
    how sharp the log-odds are is fitted at once, to where the posterior is highest. Of
    two classes the error rates say everything.
    """

    def __init__(
        self,
        labels: Labels,
        settings: CalibrationSettings,
        prior: Floats | None = None,
        *,
        exact: bool = True,
    ) -> None:
        self._codes, self._engine = labels.codes(), labels.engine
        self._settings, self._prior, self._exact = settings, prior, exact
        self._sizes = self._codes.sizes / max(self._codes.num_free, 1)  # (C,)
        wrong = settings.usual_errors * settings.usual_rows
        self._errors = ErrorPrior(wrong, settings.usual_rows - wrong)
        # Of the factor that is left when logits are as sharp as their shape says.
        self.sharpness_prior = SharpnessPrior(1.0, settings.sharpness_precision)

    def likelihood(self, *logits: Floats) -> ScaledLogits:
        """Likelihood of the labels for these logits, each times a scale."""
        return ScaledLogits(logits, self._codes, self._engine)

    def run(
        self, likelihood: ScaledLogits, sharpness: float, T: Floats
    ) -> tuple[float, Floats]:
        """Give the sharpness and T at which the rounds end."""
        if len(T) > 2 or self._prior is not None:
            for _ in range(self._settings.max_rounds):
                before = T
                T = self._count(likelihood.sums(np.array([sharpness]), T).counts)
                sharpness, T = self._fit(likelihood, sharpness, T, exact=False)
                if np.abs(T - before).max() < self._settings.tolerance:
                    break
            if not self._exact:
                return sharpness, T
        return self._fit(likelihood, sharpness, T, exact=self._exact)

    def sharpest(self, likelihood: ScaledLogits, T: Floats) -> float:
        """Most probable sharpness for a given T."""
        prior = self.sharpness_prior
        return likelihood.fit_sharpness(
            prior.centre, T, prior=prior, exact=self._exact
        )[0]

    def log_posterior(
        self, likelihood: ScaledLogits, sharpness: float, T: Floats
    ) -> float:
        """Log-likelihood of the labels, and of the two numbers by their priors."""
        value = likelihood.sums(np.array([sharpness]), T).log_likelihood
        value += self.sharpness_prior.log_density(sharpness)
        return value + self._errors.log_density(
            float(self._sizes @ (1.0 - np.diagonal(T)))
        )

    def _fit(
        self, likelihood: ScaledLogits, sharpness: float, T: Floats, *, exact: bool
    ) -> tuple[float, Floats]:
        return likelihood.fit_sharpness(
            sharpness,
            T,
            prior=self.sharpness_prior,
            errors=self._errors if self._prior is None else None,
            exact=exact,
        )

    def _count(self, counts: Floats) -> Floats:
        """T that the counts prove, or a mean of it and the prior.

        The usual number of wrong labels is added, spread evenly.
        """
        C, n = len(counts), self._codes.num_free
        usual = self._errors.wrong * self._sizes / (C - 1)
        counts = counts + self._codes.pairs
        T = sparse_transition(counts + usual[:, None] * (1.0 - np.eye(C)), n)
        if self._prior is None:
            return T
        weight = prior_weight(n, C, self._settings)
        return weight * self._prior + (1.0 - weight) * T


def prior_weight(
    num_rows: int, num_classes: int, settings: CalibrationSettings
) -> float:
    """Weight of an earlier T against one that is counted in so many rows."""
    return min(1.0, settings.prior_rows * num_classes**2 / max(num_rows, 1))


def fit_weights(
    S: Floats,
    labels: Labels,
    odds: LogOdds,
    T: Floats,
    settings: CalibrationSettings,
) -> LogOdds:
    """Log-odds from whitened scores by any linear map, near the present one.

    The prior on the map's entries is Gaussian around the present ones; intercepts are
    free. T is fixed.
    """
    mean, whiten, colour = whitening(S)
    U = np.concatenate([np.ones((len(S), 1), S.dtype), (S - mean) @ whiten], axis=1)
    matrix = odds.matrix if odds.matrix.ndim else odds.matrix * np.eye(S.shape[1])
    start = np.vstack([mean @ matrix + odds.offset, colour @ matrix])
    precision = np.full(len(start), settings.weight_precision)
    precision[0] = FREE
    curvature = precision + 0.1 * len(S) / labels.num_classes
    W = LinearLogits(U, labels.codes(), labels.engine, locked=False).fit(
        start,
        T,
        precision=precision,
        curvature=curvature,
        max_steps=settings.weight_steps,
    )
    matrix = whiten @ W[1:]
    return LogOdds(matrix, W[0] - mean @ matrix)


def whitening(S: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean (C,), whitening (C, r) and its inverse (r, C) of scores (n, C)."""
    mean = S.mean(axis=0, dtype=np.float64).astype(S.dtype)
    centred = S - mean
    values, V = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(S))
    keep = values > max(values.max() * 1e-4, 1e-30)
    values, V = values[keep][::-1], V[:, keep][:, ::-1]
    root = np.sqrt(values)
    return mean, (V / root).astype(S.dtype), (V * root).T
