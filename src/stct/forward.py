"""Softmax regression seen through an annotator: features and T explain the labels.

The clean class follows P = softmax(x W + offset), the given label T[clean, given]. Both
are fitted together, by the likelihood of the labels that were given:
``sum_i log (P_i T)[given_i]``, with a Gaussian prior on W and pseudo-rows on T.
Legend: n rows, k columns, C classes; class-major arrays (C, n) inside tiles, because
sums over a few classes are then sums of long vectors.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from stct.blocks import map_tiles
from stct.linear import Floats
from stct.transition import Ints

PSEUDO_ROWS = 20.0  # of a symmetric annotator, added to every class


class Annotator(NamedTuple):
    """Who said what: an evidence row for each label that a row can carry.

    ``said`` is the given class, C for a row without a label, and C + 1 + class for a
    locked row, whose label is certain.
    """

    said: Ints  # (n,)
    num_classes: int

    def evidence(self, T: Floats) -> Floats:
        """Pr[said | clean] as a table (2 C + 1, C)."""
        C = self.num_classes
        table = np.concatenate([T.T, np.ones((1, C)), np.eye(C)])
        return np.asarray(table, dtype=np.float32)


class ForwardFit(NamedTuple):
    """Weights and annotator that explain the given labels best."""

    weights: Floats  # (k, C)
    transition: Floats  # (C, C)
    log_likelihood: float  # sum over rows


def make_annotator(
    given: Ints, locked: NDArray[np.bool_], num_classes: int
) -> Annotator:
    """Code what every row carries; see `Annotator`."""
    said = np.where(given < 0, num_classes, given + locked * (num_classes + 1))
    return Annotator(said, num_classes)


def fit(
    U: Floats,
    annotator: Annotator,
    T: Floats,
    W: Floats,
    *,
    precision: Floats,
    offset: Floats | None = None,
    fit_transition: bool = True,
    max_steps: int = 30,
    num_threads: int | None = None,
) -> ForwardFit:
    """Maximise the likelihood of the given labels over W and T.

    Parameters
    ----------
    U : ndarray of shape (n, k)
        Features, roughly whitened; the constant is one of them.
    T, W : ndarray
        Where to start; W (k, C) is also the mean of its prior.
    precision : ndarray of shape (k,)
        Of the prior on each row of W.
    offset : ndarray of shape (n, C), optional
        Logits to add.
    """
    C = annotator.num_classes
    start, k = W, U.shape[1]
    penalty = np.asarray(precision, dtype=np.float64)[:, None]
    n = len(U)
    prior = PSEUDO_ROWS * symmetric_transition(_mean_diagonal(T), C)

    def objective(theta: Floats) -> tuple[float, Floats]:
        W, T = _unpack(theta, k, C)
        log_likelihood, gradient, counts = _sums(
            U, annotator, W, T, offset, num_threads
        )
        step = W - start
        value = -log_likelihood + 0.5 * float((penalty * step**2).sum())
        gradient_W = penalty * step - gradient
        gradient_T = np.zeros((C, C))
        if fit_transition:
            value -= float((prior * np.log(T)).sum())
            total = counts + prior
            gradient_T = total.sum(axis=1, keepdims=True) * T - total
        flat = np.concatenate([gradient_W.ravel(), gradient_T.ravel()])
        return value / n, flat / n

    theta = np.concatenate([W.ravel(), np.log(np.maximum(T, 1e-6)).ravel()])
    best = minimize(
        objective,
        theta,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_steps, "ftol": 1e-7, "gtol": 1e-6},
    )
    W, T = _unpack(best.x, k, C)
    return ForwardFit(W, T, _sums(U, annotator, W, T, offset, num_threads)[0])


def _sums(
    U: Floats,
    annotator: Annotator,
    W: Floats,
    T: Floats,
    offset: Floats | None,
    num_threads: int | None,
) -> tuple[float, Floats, Floats]:
    """Log-likelihood, its gradient in W (k, C), and expected counts of T (C, C)."""
    C = annotator.num_classes
    table = annotator.evidence(T).T  # (C, 2 C + 1)
    weights = np.ascontiguousarray(W.T, dtype=np.float32)  # (C, k)

    def tile(rows: slice) -> tuple[float, Floats, Floats]:
        said = annotator.said[rows]
        logits = weights @ U[rows].T  # (C, t)
        if offset is not None:
            logits += offset[rows].T
        P = softmax(logits)
        Q = P * table[:, said]
        likelihood = np.maximum(Q.sum(axis=0), np.float32(1e-30))
        Q /= likelihood
        order = np.argsort(said, kind="stable")
        starts = np.searchsorted(said[order], np.arange(C))
        counts = np.zeros((C, C))
        present = np.diff(np.append(starts, np.searchsorted(said[order], C))) > 0
        if present.any():
            last = int(np.searchsorted(said[order], C))
            sums = np.add.reduceat(Q[:, order[:last]], starts[present], axis=1)
            counts[:, present] = sums
        return (
            float(np.log(likelihood).sum(dtype=np.float64)),
            (Q - P) @ U[rows],
            counts,
        )

    total, gradient, counts = 0.0, np.zeros(W.T.shape), np.zeros((C, C))
    for part in map_tiles(tile, len(U), num_threads=num_threads):
        total += part[0]
        gradient += part[1]
        counts += part[2]
    return total, gradient.T, counts


def softmax(logits: Floats) -> Floats:
    """Over the first axis (classes), without overflow; changes its argument."""
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits


def symmetric_transition(diagonal: float, num_classes: int) -> Floats:
    """T of an annotator who errs towards all classes alike, (C, C)."""
    T = np.full((num_classes, num_classes), (1.0 - diagonal) / (num_classes - 1))
    np.fill_diagonal(T, diagonal)
    return T


def _mean_diagonal(T: Floats) -> float:
    return float(np.clip(np.diagonal(T).mean(), 1.0 / len(T), 0.999))


def _unpack(theta: Floats, k: int, C: int) -> tuple[Floats, Floats]:
    W = theta[: k * C].reshape(k, C)
    log_T = theta[k * C :].reshape(C, C)
    T = np.exp(log_T - log_T.max(axis=1, keepdims=True))
    return W, np.maximum(T / T.sum(axis=1, keepdims=True), 1e-12)
