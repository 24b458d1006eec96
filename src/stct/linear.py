"""Linear models in closed form: Eqs. (6), (7), and ridge with exact leave-one-out.

Legend: n rows, n_t sub-training rows, n_v validation rows, d columns, C classes,
L ridge strengths. H embeddings (n, d), Y soft labels (n, C), W weights (d, C).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from stct.blocks import TILE, map_tiles

Floats = NDArray[np.floating]
Result = TypeVar("Result")

# Ridge strengths in units of the mean eigenvalue of the centred Gram matrix, so the
# path is the same for embeddings of any scale.
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2)


def fit(H_t: Floats, Y_t: Floats) -> Floats:
    """Eq. (6): least squares on the sub-training set, (n_t, d), (n_t, C) -> (d, C).

    Where H_t is rank-deficient (the printed inverse does not exist) this is the
    solution of minimum norm.
    """
    return solve(H_t.T @ H_t, H_t.T @ Y_t)


def predict(H_v: Floats, W: Floats) -> Floats:
    """Eq. (7): predictions on the validation set, (n_v, d), (d, C) -> (n_v, C)."""
    return np.asarray(H_v @ W)


def solve(G: Floats, B: Floats) -> Floats:
    """Minimum-norm solution of ``G W = B`` for a Gram matrix G (d, d), B (d, C)."""
    values, V = np.linalg.eigh(G)
    real = values > _cutoff(values, G.dtype)
    V = V[:, real]
    return np.asarray(V @ ((V.T @ B) / values[real, None]))


def add_constant(H: Floats) -> Floats:
    """Append a column of ones, so that the linear model has an intercept."""
    return np.concatenate([H, np.ones((len(H), 1), H.dtype)], axis=1)


def to_simplex(Y: Floats) -> Floats:
    """Soft labels as probabilities: negative entries are 0, rows sum to 1, (n, C)."""
    Q = np.maximum(Y, 0.0)
    total = Q.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, Q / np.where(total > 0.0, total, 1.0), 1 / Y.shape[1])


class RidgeFit(NamedTuple):
    """A ridge model; the scores of labelled rows are leave-one-out."""

    scores: Floats  # (n, C)
    weights: Floats  # (d, C)
    intercept: Floats  # (C,)
    strength: float  # in units of the mean eigenvalue


class RidgePath:
    """Ridge regression on fixed rows: factor once, fit any soft labels.

    The intercept is not penalised, so the hat matrix is ``11'/n + Hc A Hc'`` with Hc
    centred: a shift of H changes nothing. Leave-one-out stays exact although the mean
    is taken over all rows, because the hat matrix is that of the model which refits
    its intercept too.

    Parameters
    ----------
    H : array of shape (n, d)
        Rows are read as ``H[i:j]``.
    labelled : ndarray of bool, shape (n,)
        Rows that the model may learn from. The others are only predicted.
    """

    def __init__(
        self, H: Floats, labelled: NDArray[np.bool_], *, num_threads: int | None = None
    ) -> None:
        self._H = H
        self._labelled = labelled
        self._num_threads = num_threads
        self._num_labelled = int(labelled.sum())
        # float16 and integers are widened, float64 keeps its precision.
        self._dtype = np.result_type(H.dtype, np.float32)
        # A row to start the mean from, and a power of two that keeps squares in range.
        start = int(np.argmax(labelled))
        self._mean = np.asarray(H[start], dtype=self._dtype)
        self._scale = 1.0
        spread = float(np.abs(self._centred(slice(start, start + TILE))).max())
        if spread > 0.0:
            self._scale = float(2.0 ** -np.floor(np.log2(spread)))
        if H.shape[1] > self._num_labelled:
            self._values, self._vectors = self._axes_of_few_rows()
        else:
            self._values, self._vectors = self._axes_of_many_rows()
        scale = float(self._values.mean()) if len(self._values) else 1.0
        self._ridges = np.array(STRENGTHS) * scale  # (L,)
        self._leverage = self._leverages()  # (n, L)

    def fit(self, Y: Floats, given: NDArray[np.intp]) -> RidgeFit:
        """Fit Y and pick the strength that agrees most with the given noisy labels.

        Theorem 1 as a model selector: the leave-one-out argmax is compared with
        ``given`` (n,), which is -1 in rows without a label. Of equal strengths the
        strongest wins: it leans least on single rows.
        """
        label_mean = Y[self._labelled].mean(axis=0, dtype=np.float64)  # (C,)
        B = self._vectors.T @ self._cross_product(Y, label_mean)  # (rank, C)
        models = [
            (self._vectors @ (B / (self._values + ridge)[:, None]), index)
            for index, ridge in enumerate(self._ridges)
        ]  # L weights (d, C)
        counts = np.zeros(len(models), dtype=np.intp)
        for rows, S in self._loo(models, label_mean, Y):
            counts += (S.argmax(axis=2) == given[rows]).sum(axis=1)
        best = len(models) - 1 - int(counts[::-1].argmax())
        scores = np.empty(Y.shape, self._dtype)
        for rows, S in self._loo(models[best : best + 1], label_mean, Y):
            scores[rows] = S[0]
        W = models[best][0] * self._scale
        return RidgeFit(scores, W, label_mean - self._mean @ W, STRENGTHS[best])

    def _centred(self, rows: slice) -> Floats:
        H: Floats = np.asarray(self._H[rows], dtype=self._dtype)
        H = H - self._mean
        H *= self._scale
        return H

    def _axes_of_many_rows(self) -> tuple[Floats, Floats]:
        """Eigenvalues and -vectors of the centred Gram matrix, summed over tiles."""

        def moments(rows: slice) -> tuple[Floats, Floats]:
            Hc = self._centred(rows)[self._labelled[rows]]
            return Hc.sum(axis=0, dtype=np.float64), Hc.T @ Hc

        d = self._H.shape[1]
        total, G = np.zeros(d), np.zeros((d, d))
        for tile_total, tile_G in self._map(moments):
            total += tile_total
            G += tile_G
        offset = total / self._num_labelled
        G -= self._num_labelled * np.outer(offset, offset)
        self._mean = (self._mean + offset / self._scale).astype(self._dtype)
        values, V = np.linalg.eigh(G)
        real = values > _cutoff(values, self._dtype)
        return values[real], V[:, real]

    def _axes_of_few_rows(self) -> tuple[Floats, Floats]:
        """Compute the same from the rows themselves when there are fewer of them."""
        H = np.asarray(self._H[self._labelled], dtype=np.float64)
        mean = H.mean(axis=0)
        self._mean = mean.astype(self._dtype)
        _, s, Vt = np.linalg.svd((H - mean) * self._scale, full_matrices=False)
        values = s**2
        real = values > _cutoff(values, self._dtype)
        return values[real], Vt[real].T

    def _leverages(self) -> Floats:
        """Diagonal of the hat matrix for each strength; 0 in rows not learnt from."""
        V = self._vectors.astype(self._dtype)
        D = 1.0 / (self._values[:, None] + self._ridges)  # (rank, L)
        D = D.astype(self._dtype)

        def leverage(rows: slice) -> Floats:
            Z = self._centred(rows) @ V
            return np.asarray((Z * Z) @ D)

        out = np.concatenate(list(self._map(leverage)))
        out += 1.0 / self._num_labelled
        # A row alone in its direction has leverage 1 and nothing to be predicted from.
        np.minimum(out, 1.0 - 1e-3, out=out)
        out[~self._labelled] = 0.0
        return out

    def _cross_product(self, Y: Floats, label_mean: Floats) -> Floats:
        """Hc' Yc over the labelled rows, (d, C)."""

        def product(rows: slice) -> Floats:
            use = self._labelled[rows]
            Yc = (Y[rows][use] - label_mean).astype(self._dtype)
            return np.asarray(self._centred(rows)[use].T @ Yc)

        B = np.zeros((self._H.shape[1], Y.shape[1]))
        for tile in self._map(product):
            B += tile
        return B

    def _loo(
        self, models: Sequence[tuple[Floats, int]], label_mean: Floats, Y: Floats
    ) -> Iterator[tuple[slice, Floats]]:
        """Leave-one-out predictions (F - l Y) / (1 - l) as (models, rows, C) tiles."""
        W = np.concatenate([weights for weights, _ in models], axis=1)  # (d, models C)
        W = W.astype(self._dtype)
        strengths = [index for _, index in models]
        mean = label_mean.astype(self._dtype)

        def predict_tile(rows: slice) -> tuple[slice, Floats]:
            F = self._centred(rows) @ W
            F = F.reshape(len(F), len(models), -1).swapaxes(0, 1) + mean
            leverage = self._leverage[rows, strengths].T[:, :, None]
            return rows, (F - leverage * Y[rows]) / (1.0 - leverage)

        return self._map(predict_tile)

    def _map(self, function: Callable[[slice], Result]) -> Iterator[Result]:
        return map_tiles(function, len(self._H), num_threads=self._num_threads)


def _cutoff(values: Floats, dtype: np.dtype[Any]) -> float:
    """Eigenvalues below this are rounding, not directions."""
    return float(values.max(initial=0.0) * len(values) * np.finfo(dtype).eps)
