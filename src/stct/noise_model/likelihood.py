"""Softmax regression seen through an annotator: features and T explain the labels.

The clean class follows P = softmax(offset + x W), the given label follows its row of T.
Both are fitted together, by the likelihood of the labels that were given,
``sum_i log (P_i T)[given_i]``, with a Gaussian prior on W and pseudo-rows on T. No
clean label appears anywhere. Legend: n rows, k columns, C classes, t rows of a tile.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.noise_model.likelihood_tile import Runs, Seen, find_runs
from stct.noise_model.optimiser import descend, information
from stct.noise_model.transition import posterior
from stct.numeric.centring import Tile
from stct.numeric.engine import ALL, Engine, Index, Local, RowValues
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.tiles import some_of
from stct.numeric.types import Floats, Ints

WIDE = 64  # columns from which threads pay
MOST_PARAMETERS = 512  # whose curvature is worth knowing
INFORMATIVE_ROWS = 4096  # that tell it


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
    stride : int
        Let one row of so many teach W; T is then not for learning.
    """

    def __init__(
        self,
        U: RowValues,
        given: Ints,
        locked: NDArray[np.bool_],
        num_classes: int,
        *,
        offset: RowValues | None = None,
        engine: Engine | None = None,
        stride: int = 1,
    ) -> None:
        self._engine: Engine = engine or Local()
        self._U = U
        self._offset = offset
        self._num_rows = len(given)
        self._stride = stride
        # Passes over few columns are too short for threads to share the interpreter.
        self._wide = U.shape[1] >= WIDE
        self.num_classes = num_classes
        self.num_free = int(((given >= 0) & ~locked).sum())
        # Given class; C: no label; C + 1 + class: locked.
        said = np.where(given < 0, num_classes, given + locked * (num_classes + 1))
        self._said = self._engine.keep(said.astype(np.int32))
        self._runs: dict[tuple[int, bool], tuple[Ints | None, Runs]] = {}  # of a tile
        self._learnt: dict[tuple[bytes, bool], Floats] = {}  # where it was asked

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a worker has no use for."""
        return {**self.__dict__, "_engine": None, "_runs": {}, "_learnt": {}}

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
            Move W inside its columns only, in which the curvature is about 1.
        pseudo_rows : ndarray of shape (C, C), optional
            Rows that T has seen already. None leaves T as it is.
        tolerance : float
            Stop when a step gains less log-likelihood per row.
        """
        C = self.num_classes
        penalty = np.asarray(precision, dtype=np.float64)[:, None]
        size = len(penalty) * C
        scale = self._stride / max(self.num_free, 1)

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

        start, prior = np.zeros(size), np.repeat(penalty, C)
        if pseudo_rows is not None:
            start = np.concatenate([start, np.log(np.maximum(T, 1e-6)).ravel()])
            rows_of_T = pseudo_rows.sum(axis=1, keepdims=True) * T
            prior = np.concatenate([prior, rows_of_T.ravel()])
        curvature: Floats | None = None
        if basis is not None:
            curvature = np.full(size, scale)
        elif len(start) <= MOST_PARAMETERS:
            learnt = self._information(W, T, of_T=pseudo_rows is not None)
            curvature = scale * (learnt + np.diag(prior))
        best = descend(
            objective, start, curvature, max_steps=max_steps, tolerance=tolerance
        )
        return unpack(best)[1:]

    def _information(self, W: Floats, T: Floats, *, of_T: bool) -> Floats:
        """Information of W, and of log T if asked, from some rows."""
        C, n = self.num_classes, self._num_rows
        where = W.tobytes() + T.tobytes(), of_T
        if where in self._learnt:  # by a fit with another prior
            return self._learnt[where]
        U = np.asarray(self._U[0:n])
        # Low digits draw the rows: the same ones, in whatever order they came.
        some = np.flatnonzero(np.abs(U[:, -1]) * 4096.0 % 1.0 < INFORMATIVE_ROWS / n)
        U, said = U[some], self._said[some]
        P = softmax(np.asarray(U @ W, dtype=np.float32))
        given = np.where(said < C, said, -1)
        Q = posterior(P, T, given)
        locked = said > C
        Q[locked] = one_hot(said[locked] - C - 1, C)
        found = information(U, P, Q, given, T if of_T else None)
        found *= n / max(len(some), 1)
        self._learnt[where] = found
        return found

    def sums(
        self, W: Floats, T: Floats, *, count: bool = True, locked: bool = True
    ) -> Sums:
        """One pass over rows that teach, locked ones among them or not."""
        C, stride = self.num_classes, self._stride
        weights, said = _working(W), self._said_table(T)
        if not locked:
            said[C + 1 :] = 1.0  # as good as no label

        def tile(rows: slice) -> tuple[float, Floats, Floats]:
            some = some_of(rows, stride)
            U = Tile(self._U, rows, some)
            seen = self._explain(U, weights, said, rows, some)
            counts = seen.counts(C) if count else np.zeros((C, C))
            return seen.log_likelihood(), U.weighted_sum(seen.pull()), counts

        total = self._engine.sum(tile, self._num_rows, wide=self._wide)
        return Sums(float(total[0]), total[1].T, total[2])

    def log_likelihood(self, W: Floats, T: Floats) -> Floats:
        """Log-likelihood of each row's label, (n,)."""
        weights, said = _working(W), self._said_table(T)

        def tile(rows: slice) -> Floats:
            seen = self._explain(Tile(self._U, rows), weights, said, rows)
            return seen.in_row_order(seen.row_log_likelihood())

        return self._engine.take(self._engine.rows(tile, self._num_rows), None)

    def logits(self, W: Floats) -> Callable[[slice], Floats]:
        """Offset + U W of a tile, (t, C) float32."""
        weights = _working(W)

        def tile(rows: slice) -> Floats:
            return self._logits(Tile(self._U, rows), weights, rows).T

        return tile

    def posterior(self, W: Floats, T: Floats) -> tuple[Any, Any]:
        """P = Pr[clean | x] and Q = Pr[clean | x, given], both (n, C) float32."""
        weights, said = _working(W), self._said_table(T)

        def features_only(rows: slice) -> Floats:
            seen = self._explain(Tile(self._U, rows), weights, said, rows)
            return seen.in_row_order(seen.E / seen.norm).T

        def with_labels(rows: slice) -> Floats:
            return self._explain(Tile(self._U, rows), weights, said, rows).posterior().T

        return tuple(
            self._engine.rows(tile, self._num_rows)
            for tile in (features_only, with_labels)
        )

    def _said_table(self, T: Floats) -> Floats:
        """Pr[said | clean] beside a one, (2 C + 1, C, 2): given, no label, locked."""
        C = self.num_classes
        table = np.concatenate([T.T, np.ones((1, C)), np.eye(C)])
        return np.stack([table, np.ones_like(table)], axis=2).astype(np.float32)

    def _logits(
        self, U: Tile, weights: Floats, rows: slice, some: Index = ALL
    ) -> Floats:
        """Logits of one tile, (C, t) float32."""
        if self._offset is None:
            return U.times(weights)
        offset: Floats = self._offset[rows][some].T
        if not weights.any():  # where a fit begins
            return offset.copy()
        logits = U.times(weights)
        logits += offset
        return logits

    def _explain(
        self, U: Tile, weights: Floats, said: Floats, rows: slice, some: Index = ALL
    ) -> "Seen":
        """Softmax and likelihood of one tile."""
        E = self._logits(U, weights, rows, some)
        E -= E.max(axis=0)
        np.exp(E, out=E)
        which = rows.start, isinstance(some, slice)
        if which not in self._runs:
            self._runs[which] = find_runs(self._said[rows][some])
        order, runs = self._runs[which]
        if order is not None:
            E = E[:, order]
        totals = np.empty((2, E.shape[1]), np.float32)
        for value, run in runs:
            np.matmul(said[value].T, E[:, run], out=totals[:, run])
        np.maximum(totals, np.float32(1e-30), out=totals)
        return Seen(E, totals[0], totals[1], said, order, runs)


def _working(W: Floats) -> Floats:
    return np.ascontiguousarray(W.T, dtype=np.float32)  # (C, k)
