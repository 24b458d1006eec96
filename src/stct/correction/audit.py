"""What rows that a person verified say about the noise model: the audit.

Errors that follow the features cannot be told from weak features by noisy labels. Of
verified rows both labels are known, the given one and the right one. Such pairs enter
the likelihood of T, and they say how far the posterior can be trusted: its sharpness a,
and the log-odds x against the given label at which that label is as probable as its
rival. ``Q'[y] ~ (Q[y] exp(-x [y = g]))^a``; a = 1 and x = 0 change nothing. Legend:
m verified rows, C classes; Q = Pr[clean | x, given] (m, C) as if nobody had looked.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from stct.correction.settings import AuditSettings
from stct.numeric.probabilities import softmax
from stct.numeric.types import Floats, Ints

LEAST = 1e-12  # probability
BOUNDS = ((-2.0, 2.0), (-8.0, 8.0))  # of log a and x


class Verified(NamedTuple):
    """Rows whose right label a person has verified."""

    rows: Ints  # (m,)
    given: Ints  # (m,) label before that, -1 for none
    clean: Ints  # (m,) verified label
    weight: Floats  # (m,) 1 / inclusion probability, up to a factor

    def pairs(self, num_classes: int) -> Floats:
        """Count rows by clean and given class, weighted, (C, C)."""
        counts = np.zeros((num_classes, num_classes))
        known = self.given >= 0
        if not known.any():
            return counts
        weight = self.weight[known] / max(float(self.weight[known].mean()), 1e-30)
        np.add.at(counts, (self.clean[known], self.given[known]), weight)
        return counts

    def reordered(self, places: Ints, rank: Ints) -> "Verified":
        """Give the same with row ``places[i]`` for i and class ``rank[c]`` for c."""
        given = np.where(self.given < 0, -1, rank[self.given])
        return Verified(places[self.rows], given, rank[self.clean], self.weight)


class AuditCalibration(NamedTuple):
    """Correction of the posterior that the verified rows ask for."""

    sharpness: float = 1.0  # a
    threshold: float = 0.0  # x; above 0 more labels change

    def apply(self, Q: Floats, given: Ints) -> Floats:
        """Give the calibrated posterior of some rows, (m, C)."""
        if self.sharpness == 1.0 and self.threshold == 0.0:
            return Q
        z = np.log(np.maximum(Q, LEAST))
        known = np.flatnonzero(given >= 0)
        z[known, given[known]] -= self.threshold
        return softmax(np.asarray(self.sharpness * z, dtype=Q.dtype))


class AuditedPosterior(NamedTuple):
    """What verified rows would have got had nobody looked, and the calibration."""

    probabilities: Floats  # (m, C)
    calibration: AuditCalibration


def audit_posterior(
    Q: Floats, verified: Verified, settings: AuditSettings
) -> AuditedPosterior:
    """Calibrate on the verified rows, whose posterior without that is Q (m, C)."""
    order = np.argsort(verified.rows, kind="stable")  # the order of sums
    Q, given, clean = Q[order], verified.given[order], verified.clean[order]
    calibration = fit_calibration(Q, given, clean, settings)
    honest = np.empty_like(Q)
    honest[order] = cross_fitted(Q, given, clean, settings)
    return AuditedPosterior(honest, calibration)


def fit_calibration(
    Q: Floats, given: Ints, clean: Ints, settings: AuditSettings
) -> AuditCalibration:
    """Fit sharpness and threshold to the verified labels, (m,).

    Both have priors around "as it is". Rows count less the farther they are from the
    threshold of the decision, since what matters is the truth there. The threshold
    moves as far as there is evidence: by half where it is ``sqrt(evidence)`` standard
    errors from 0.
    """
    if not len(clean):
        return AuditCalibration()
    rows, known = np.arange(len(clean)), given >= 0
    label = np.where(known, given, 0)
    z = np.log(np.maximum(Q.astype(np.float64), LEAST))
    rival = z.copy()
    rival[rows[known], label[known]] = -np.inf
    gap = np.where(known, z[rows, label] - rival.max(axis=1), 0.0)
    weight = np.exp(-0.5 * (gap / settings.nearness) ** 2)

    def objective(theta: Floats) -> tuple[float, Floats]:
        return negative_log_posterior(theta, z, given, clean, weight, settings)

    best = minimize(objective, np.zeros(2), jac=True, bounds=BOUNDS)
    x = float(best.x[1])
    error = squared_error(best.x, z, given, clean, weight, settings)
    if x > 0.0:
        x *= x * x / (x * x + settings.evidence * error)
    return AuditCalibration(float(np.exp(best.x[0])), x)


def negative_log_posterior(
    theta: Floats,
    z: Floats,
    given: Ints,
    clean: Ints,
    weight: Floats,
    settings: AuditSettings,
) -> tuple[float, Floats]:
    """Negative log posterior density of (log a, x), and its gradient."""
    a, x = float(np.exp(theta[0])), float(theta[1])
    rows, known = np.arange(len(clean)), given >= 0
    moved = z.copy()
    moved[rows[known], given[known]] -= x
    P = softmax(a * moved)
    log_P = np.log(np.maximum(P[rows, clean], 1e-300))
    precision = np.array([settings.sharpness_precision, settings.threshold_precision])
    value = -float(weight @ log_P) + 0.5 * float(precision @ theta**2)
    slope = P * weight[:, None]
    slope[rows, clean] -= weight
    gradient = np.array(
        [a * float((slope * moved).sum()), -a * float(slope[known, given[known]].sum())]
    )
    return value, gradient + precision * theta


def squared_error(
    theta: Floats,
    z: Floats,
    given: Ints,
    clean: Ints,
    weight: Floats,
    settings: AuditSettings,
) -> float:
    """Squared standard error of x: inverse curvature, from differences of slopes."""
    step = 1e-4
    hessian = np.empty((2, 2))
    for i, direction in enumerate(step * np.eye(2)):
        up, down = (
            negative_log_posterior(theta + s, z, given, clean, weight, settings)[1]
            for s in (direction, -direction)
        )
        hessian[i] = (up - down) / (2.0 * step)
    hessian = 0.5 * (hessian + hessian.T) + 1e-9 * np.eye(2)
    return max(float(np.linalg.inv(hessian)[1, 1]), 0.0)


def cross_fitted(
    Q: Floats, given: Ints, clean: Ints, settings: AuditSettings
) -> Floats:
    """Calibrated posterior of each verified row, by the other ones, (m, C).

    It says what a row would have got had nobody looked at it.
    """
    out = Q.copy()
    folds = np.arange(len(clean)) % max(settings.folds, 2)
    for fold in np.unique(folds):
        here, others = folds == fold, folds != fold
        fit = fit_calibration(Q[others], given[others], clean[others], settings)
        out[here] = fit.apply(Q[here], given[here])
    return out
