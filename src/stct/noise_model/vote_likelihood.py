"""The likelihood of several labels per row, and what is fitted to it.

Pr[votes | x] = sum_y P(y | x) E(y), with the evidence E(y) = Pr[votes | y] of all
annotators of a row together. Legend: m rows, k columns, C classes; P = softmax(logits),
E evidence (m, C).
"""

import numpy as np

from stct.noise_model.optimiser import minimise, minimise_bounded
from stct.noise_model.priors import SharpnessPrior
from stct.numeric.probabilities import softmax
from stct.numeric.types import Floats

FARTHEST = 8.0  # that a logarithm may move in one fit
FREE = 1e-3  # precision of the prior on intercepts


def vote_likelihood(logits: Floats, evidence: Floats) -> tuple[float, Floats]:
    """Log-likelihood of the votes, and its gradient in the logits: Q - P, (m, C).

    Parameters
    ----------
    evidence : ndarray of shape (m, C)
        Log-probability of the votes for each clean class, up to a constant of the row.
    """
    log_P = logits - row_logsumexp(logits)
    joint = log_P + evidence
    total = row_logsumexp(joint)
    return float(total.sum(dtype=np.float64)), np.exp(joint - total) - np.exp(log_P)


def row_logsumexp(A: Floats) -> Floats:
    """Logarithm of the row sums of exp(A), (m, 1)."""
    top = A.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(A - top).sum(axis=1, keepdims=True)))


def vote_posterior(logits: Floats, evidence: Floats) -> Floats:
    """Pr[clean | x, votes], (m, C)."""
    return softmax(logits + evidence)


def fit_vote_sharpness(
    logits: Floats, evidence: Floats, prior: SharpnessPrior
) -> float:
    """Most probable factor of the logits."""
    n = max(len(logits), 1)

    def objective(theta: Floats) -> tuple[float, Floats]:
        s = float(np.exp(theta[0]))
        value, slope = vote_likelihood(np.float32(s) * logits, evidence)
        along = s * float(np.vdot(slope, logits)) + prior.slope(s)
        return -(value + prior.log_density(s)) / n, -np.array([along]) / n

    start = np.log([prior.centre])
    bounds = [(start[0] - FARTHEST, start[0] + FARTHEST)]
    return float(np.exp(minimise_bounded(objective, start, bounds, exact=False)[0]))


def fit_vote_weights(
    U: Floats, start: Floats, evidence: Floats, precision: float, max_steps: int
) -> Floats:
    """Weights W (k, C) of logits U W near a start, by the likelihood of the votes.

    The first column of U (m, k) is of ones. The prior on the other weights is normal
    around the start with this precision; intercepts are free.
    """
    n, C = len(U), start.shape[1]
    penalty = np.full((len(start), 1), precision)
    penalty[0] = FREE

    def objective(theta: Floats) -> tuple[float, Floats]:
        step = theta.reshape(-1, C)
        value, slope = vote_likelihood(U @ (start + step).astype(U.dtype), evidence)
        loss = 0.5 * float((penalty * step**2).sum()) - value
        return loss / n, (penalty * step - U.T @ slope).ravel() / n

    curvature = np.repeat(penalty[:, 0] / n + 0.1 / C, C)
    step = minimise(
        objective, np.zeros(start.size), curvature, max_steps=max_steps, tolerance=1e-5
    )
    return start + step.reshape(-1, C)
