"""Softmax regression seen through an annotator: features and T explain the labels.

The clean class follows P = softmax(offset + x W), the given label follows its row of T.
Both are fitted together, by the likelihood of the labels that were given,
``sum_i log (P_i T)[given_i]``, with a Gaussian prior on W and pseudo-rows on T. No
clean label appears anywhere. Legend: n rows, k columns, C classes, t rows of a tile.
Inside a tile arrays are class-major (C, t): sums over few classes are then sums of long
vectors.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from stct.blocks import map_tiles
from stct.linear import CentredRows, Floats
from stct.transition import Ints

Result = TypeVar("Result")


class Sums(NamedTuple):
    """What one pass over all rows gives."""

    log_likelihood: float
    gradient: Floats  # (k, C) of the log-likelihood in W
    counts: Floats  # (C, C) expected rows of each clean and given class


class ForwardModel:
    """Fixed features and labels; any W and T can be tried on them.

    Parameters
    ----------
    U : array of shape (n, k)
        Features, read as ``U[i:j]``.
    given : ndarray of shape (n,)
        Labels, -1 for none.
    locked : ndarray of bool, shape (n,)
        Rows whose label is certain: they teach W, and say nothing of T.
    offset : ndarray of shape (n, C), optional
        Logits to add.
    """

    def __init__(
        self,
        U: Floats | CentredRows,
        given: Ints,
        locked: NDArray[np.bool_],
        num_classes: int,
        *,
        offset: Floats | None = None,
        num_threads: int | None = None,
    ) -> None:
        self._U = U
        self._offset = offset
        self._num_threads = num_threads
        self.num_classes = num_classes
        self.num_free = int(((given >= 0) & ~locked).sum())
        # Given class; C: no label; C + 1 + class: locked.
        self._said = np.where(
            given < 0, num_classes, given + locked * (num_classes + 1)
        )
        self._by_class: dict[int, tuple[Ints, Ints]] = {}  # of a tile: order, edges

    def fit(
        self,
        W: Floats,
        T: Floats,
        *,
        precision: Floats,
        basis: Floats | None = None,
        pseudo_rows: Floats | None = None,
        max_steps: int,
        tolerance: float = 1e-5,
    ) -> tuple[Floats, Floats]:
        """Climb the likelihood from W, the mean of its prior, and from T.

        Parameters
        ----------
        precision : ndarray of shape (k,) or (r,)
            Of the prior on the step from W, in the coordinates of ``basis``.
        basis : ndarray of shape (k, r), optional
            Move W inside its columns only: scaled well, few steps do.
        pseudo_rows : ndarray of shape (C, C), optional
            Rows that T has seen already. None leaves T as it is.
        tolerance : float
            Stop when a step gains less log-likelihood per row.
        """
        C = self.num_classes
        penalty = np.asarray(precision, dtype=np.float64)[:, None]
        size = len(penalty) * C
        scale = 1.0 / max(self.num_free, 1)

        def unpack(theta: Floats) -> tuple[Floats, Floats, Floats]:
            step = theta[:size].reshape(-1, C)
            moved = W + (step if basis is None else basis @ step)
            if pseudo_rows is None:
                return step, moved, T
            log_T = theta[size:].reshape(C, C)
            rows = np.exp(log_T - log_T.max(axis=1, keepdims=True))
            rows = rows / rows.sum(axis=1, keepdims=True)
            return step, moved, np.maximum(rows, 1e-12)

        def objective(theta: Floats) -> tuple[float, Floats]:
            step, moved, rows = unpack(theta)
            sums = self.sums(moved, rows, count=pseudo_rows is not None)
            value = 0.5 * float((penalty * step**2).sum()) - sums.log_likelihood
            slope = sums.gradient if basis is None else basis.T @ sums.gradient
            gradient = (penalty * step - slope).ravel()
            if pseudo_rows is not None:
                total = sums.counts + pseudo_rows
                value -= float((pseudo_rows * np.log(rows)).sum())
                slope_T = total.sum(axis=1, keepdims=True) * rows - total
                gradient = np.concatenate([gradient, slope_T.ravel()])
            return value * scale, gradient * scale

        start = np.zeros(size)
        if pseudo_rows is not None:
            start = np.concatenate([start, np.log(np.maximum(T, 1e-6)).ravel()])
        options = {"maxiter": max_steps, "ftol": tolerance, "gtol": 1e-6}
        best = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        return unpack(best.x)[1:]

    def sums(self, W: Floats, T: Floats, *, count: bool = True) -> Sums:
        """One pass: likelihood of the given labels, gradient, expected counts."""
        C = self.num_classes
        weights, table = _working(W), self._table(T)

        def tile(rows: slice) -> tuple[float, Floats, Floats]:
            P, Q, likelihood = self._explain(weights, table, rows)
            counts = self._count(Q, rows) if count else np.zeros((C, C))
            total = float(np.log(likelihood).sum(dtype=np.float64))
            Q -= P
            return total, Q @ self._U[rows], counts

        log_likelihood, gradient, counts = 0.0, np.zeros(W.T.shape), np.zeros((C, C))
        for part in self._map(tile):
            log_likelihood += part[0]
            gradient += part[1]
            counts += part[2]
        return Sums(log_likelihood, gradient.T, counts)

    def log_likelihood(self, W: Floats, T: Floats) -> Floats:
        """Log-likelihood of each row's label, (n,)."""
        weights, table = _working(W), self._table(T)
        parts = self._map(lambda rows: np.log(self._explain(weights, table, rows)[2]))
        return np.concatenate(list(parts))

    def logits(self, W: Floats) -> Floats:
        """Offset + U W, (n, C) float32."""
        weights = _working(W)
        parts = self._map(lambda rows: self._logits(weights, rows).T)
        return np.concatenate(list(parts))

    def posterior(self, W: Floats, T: Floats) -> tuple[Floats, Floats]:
        """P = Pr[clean | x] and Q = Pr[clean | x, given], both (n, C) float32."""
        P = np.empty((len(self._said), self.num_classes), np.float32)
        Q = np.empty_like(P)
        weights, table = _working(W), self._table(T)

        def tile(rows: slice) -> None:
            p, q, _ = self._explain(weights, table, rows)
            P[rows], Q[rows] = p.T, q.T

        for _ in self._map(tile):
            pass
        return P, Q

    def _table(self, T: Floats) -> Floats:
        """Pr[said | clean], (C, 2 C + 1): given, no label, locked."""
        C = self.num_classes
        table = np.concatenate([T, np.ones((C, 1)), np.eye(C)], axis=1)
        return np.asarray(table, dtype=np.float32)

    def _logits(self, weights: Floats, rows: slice) -> Floats:
        """Logits of one tile, (C, t) float32."""
        logits = np.asarray(self._U[rows], dtype=np.float32) @ weights
        if self._offset is not None:
            logits += self._offset[rows]
        return np.ascontiguousarray(logits.T)

    def _explain(
        self, weights: Floats, table: Floats, rows: slice
    ) -> tuple[Floats, Floats, Floats]:
        """P (C, t), Q (C, t), and the likelihood of the labels (t,) of one tile."""
        P = self._logits(weights, rows)
        P -= P.max(axis=0)
        np.exp(P, out=P)
        P /= P.sum(axis=0)
        Q = np.take(table, self._said[rows], axis=1)
        Q *= P
        likelihood = np.maximum(Q.sum(axis=0), np.float32(1e-30))
        Q /= likelihood
        return P, Q, likelihood

    def _count(self, Q: Floats, rows: slice) -> Floats:
        """Sum the columns of Q (C, t) by given class, (C, C)."""
        C = self.num_classes
        if rows.start not in self._by_class:
            said = self._said[rows]
            order = np.argsort(said, kind="stable")
            edges = np.searchsorted(said[order], np.arange(C + 1))
            self._by_class[rows.start] = order, edges
        order, edges = self._by_class[rows.start]
        present = np.flatnonzero(np.diff(edges))
        counts = np.zeros((C, C))
        if len(present):
            free = Q[:, order[: edges[C]]]
            counts[:, present] = np.add.reduceat(free, edges[present], axis=1)
        return counts

    def _map(self, function: Callable[[slice], Result]) -> Iterator[Result]:
        return map_tiles(function, len(self._said), num_threads=self._num_threads)


def curvature(P: Floats, T: Floats) -> Floats:
    """Fisher information of a given label about the logits, mean over classes, (n,).

    For a row with Pr[clean | x] = P (n, C): little where P is sure or T is noisy.
    """
    T = T.astype(P.dtype)
    P2 = P * P
    pulled = (P2 @ (T * T)) / np.maximum(P @ T, 1e-20)  # (n, C)
    total = pulled.sum(axis=1) - P2.sum(axis=1)
    return np.asarray(np.maximum(total, 0.0) / (len(T) - 1))


def _working(W: Floats) -> Floats:
    return np.ascontiguousarray(W, dtype=np.float32)  # (k, C)
