"""Linear models in closed form: Eqs. (6), (7), and ridge with exact leave-one-out.

Legend: n rows, n_t sub-training rows, n_v validation rows, d columns, C classes,
L ridge strengths. H embeddings (n, d), Y soft labels (n, C), W weights (d, C).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.blocks import TILE
from stct.centred import CentredRows, Tile, scale_of
from stct.engine import Computed, Engine, Local, RowValues

Floats = NDArray[np.floating]

# Ridge strengths in units of the mean eigenvalue of the centred Gram matrix, so the
# path is the same for embeddings of any scale.
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2)
# A row that is alone in its direction has leverage 1 and nothing to be predicted from:
# it gets the mean. Dividing what is left by 1 - leverage would give its label away.
MOST_LEVERAGE = 1.0 - 1e-3
CHOOSING_ROWS = 16_384  # at least so many choose the strength


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

    scores: Any  # (n, C), with the engine
    weights: Floats  # (d, C)
    intercept: Floats  # (C,)
    strength: float  # in units of the mean eigenvalue


class RidgePath:
    """Ridge regression on fixed rows: factor once, fit any soft labels.

    Rows and targets are centred, so a shift of H changes nothing. Leave-one-out leaves
    a row out of the weights and of the means by which the other rows are centred: where
    columns outnumber rows these would give its label away. The prediction is then
    added to the label mean of all rows: a mean that lacks just this row's label would
    give it away too, and with weak features nothing else would be left to learn from.

    Parameters
    ----------
    H : array of shape (n, d)
        Rows are read as ``H[i:j]``.
    labelled : ndarray of bool, shape (n,)
        Rows that the model may learn from. The others are only predicted.
    engine : Engine, optional
        Where the rows are worked on.
    owned : bool
        H is an array that nobody else needs: it may be overwritten.

    Attributes
    ----------
    rows : CentredRows
    values, vectors : ndarray of shape (rank,), (d, rank)
        Eigenvalues and -vectors of the Gram matrix of the labelled centred rows.
    """

    def __init__(
        self,
        H: RowValues,
        labelled: NDArray[np.bool_],
        *,
        engine: Engine | None = None,
        owned: bool = False,
    ) -> None:
        self._engine: Engine = engine or Local()
        self._labelled = self._engine.keep(labelled)
        self._num_rows = len(labelled)
        self.num_labelled = int(labelled.sum())
        start = int(np.argmax(labelled))
        first = H[start : min(start + TILE, self._num_rows)]
        self.rows = CentredRows(H, first[0], scale_of(first - first[0]))
        if H.shape[1] > self.num_labelled:
            mean, self.values, self.vectors = self._axes_of_few_rows(H, labelled)
        else:
            mean, self.values, self.vectors = self._axes_of_many_rows()
        self.rows = CentredRows(H, mean, self.rows.scale)
        unit = float(self.values.mean()) if len(self.values) else 1.0
        self._ridges = np.array(STRENGTHS) * unit  # (L,)
        self._leverage = self._leverages(owned)  # (n, L)

    def fit(
        self,
        Y: RowValues,
        given: RowValues,
        strength: float | None = None,
        *,
        keep_scores: bool = True,
    ) -> RidgeFit:
        """Fit Y; pick the strength that agrees most with the given noisy labels.

        Theorem 1 as a model selector: the leave-one-out argmax is compared with
        ``given`` (n,), which is -1 in rows without a label. Of equal strengths the
        strongest wins: it leans least on single rows. A ``strength`` of an earlier
        fit skips the choice. Of many rows every few choose. Scores that are not kept
        are computed again whenever they are read.
        """
        n = self._num_rows
        label_mean = self._label_mean(Y)  # (C,)
        B = self.vectors.T @ self._cross_product(Y, label_mean)  # (rank, C)
        models = [
            (self.vectors @ (B / (self.values + ridge)[:, None]), index)
            for index, ridge in enumerate(self._ridges)
        ]  # L weights (d, C)
        if strength is None:
            stride = max(1, n // CHOOSING_ROWS)
            predict = self._leave_one_out(models, label_mean, Y, stride)

            def agree(rows: slice) -> tuple[Floats]:
                same = predict(rows).argmax(axis=2) == given[rows][::stride]
                return (same.sum(axis=1),)

            counts = self._engine.sum(agree, n)[0]
            best = len(models) - 1 - int(counts[::-1].argmax())
        else:
            best = STRENGTHS.index(strength)
        predict_best = self._leave_one_out([models[best]], label_mean, Y)
        scores: Any = Computed(lambda rows: predict_best(rows)[0], Y.shape, Y.dtype)
        if keep_scores:
            scores = self._engine.rows(scores.__getitem__, n)
        W = models[best][0] * self.rows.scale
        return RidgeFit(scores, W, label_mean - self.rows.mean @ W, STRENGTHS[best])

    def leverage_at(self, ridge: float) -> Callable[[slice], Floats]:
        """Diagonal of the hat matrix for any ridge, as a function of the rows.

        Interpolated between the strengths of the path; 0 in rows not learnt from.
        """
        steps = np.arange(len(self._ridges))
        place = float(np.interp(np.log(ridge), np.log(self._ridges), steps))
        low = min(int(place), len(steps) - 2)
        share = place - low
        leverage = self._leverage

        def interpolate(rows: slice) -> Floats:
            mine = leverage[rows]
            return np.asarray((1.0 - share) * mine[:, low] + share * mine[:, low + 1])

        return interpolate

    def _axes_of_many_rows(self) -> tuple[Floats, Floats, Floats]:
        """Mean, eigenvalues and -vectors of the Gram matrix, summed over tiles."""
        centred, labelled = self.rows, self._labelled
        everything = self.num_labelled == self._num_rows

        def moments(rows: slice) -> tuple[Floats, Floats]:
            H = centred[rows]
            H = H if everything else H[labelled[rows]]
            return H.sum(axis=0, dtype=np.float64), H.T @ H

        total, G = self._engine.sum(moments, self._num_rows)
        offset = total / self.num_labelled
        G -= self.num_labelled * np.outer(offset, offset)
        values, V = np.linalg.eigh(G)
        real = values > _cutoff(values, self.rows.dtype)
        return self.rows.mean + offset / self.rows.scale, values[real], V[:, real]

    def _axes_of_few_rows(
        self, H: RowValues, labelled: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats]:
        """Compute the same from the rows themselves when there are fewer of them."""
        few = np.asarray(H[0 : self._num_rows], dtype=np.float64)[labelled]
        mean = few.mean(axis=0)
        _, s, Vt = np.linalg.svd((few - mean) * self.rows.scale, full_matrices=False)
        values = s**2
        real = values > _cutoff(values, self.rows.dtype)
        return mean, values[real], Vt[real].T

    def _leverages(self, owned: bool) -> Any:
        """Diagonal of the hat matrix for each strength; 0 in rows not learnt from.

        This pass visits every row once: rows that are ours stay centred after it.
        """
        centred, labelled = self.rows, self._labelled
        V = self.vectors.astype(self.rows.dtype)
        D = 1.0 / (self.values[:, None] + self._ridges)  # (rank, L)
        D = D.astype(self.rows.dtype)

        def leverage(rows: slice) -> Floats:
            out = np.empty((rows.stop - rows.start, D.shape[1]), centred.dtype)
            here = slice(0, len(out))
            tile = Tile(centred.settle(rows), here) if owned else Tile(centred, rows)
            for part, X in tile:
                Z = X @ V
                np.square(Z, out=Z)
                np.matmul(Z, D, out=out[part])
            np.minimum(out, MOST_LEVERAGE, out=out)
            out[~labelled[rows]] = 0.0
            return out

        result = self._engine.rows(leverage, self._num_rows)
        centred.settled = owned
        return result

    def _label_mean(self, Y: RowValues) -> Floats:
        """Mean of the labelled rows of Y, (C,)."""
        labelled = self._labelled

        def total(rows: slice) -> tuple[Floats]:
            return (Y[rows][labelled[rows]].sum(axis=0, dtype=np.float64),)

        total_Y = self._engine.sum(total, self._num_rows, wide=False)[0]
        return np.asarray(total_Y / self.num_labelled)

    def _cross_product(self, Y: RowValues, label_mean: Floats) -> Floats:
        """Hc' Yc over the labelled rows, (d, C)."""
        centred, labelled = self.rows, self._labelled

        def product(rows: slice) -> tuple[Floats]:
            Yc = (Y[rows] - label_mean).astype(centred.dtype)
            Yc *= labelled[rows][:, None]
            return (Tile(centred, rows).weighted_sum(Yc.T),)

        return np.asarray(self._engine.sum(product, self._num_rows)[0].T)

    def _leave_one_out(
        self,
        models: Sequence[tuple[Floats, int]],
        label_mean: Floats,
        Y: RowValues,
        stride: int = 1,
    ) -> Callable[[slice], Floats]:
        """Leave-one-out predictions (F - l Y) / (1 - l) of a tile, (models, t, C)."""
        W = np.concatenate([weights.T for weights, _ in models])  # (models C, d)
        W = np.ascontiguousarray(W, dtype=self.rows.dtype)
        strengths = [index for _, index in models]
        mean = label_mean.astype(self.rows.dtype)
        n = mean.dtype.type(self.num_labelled)
        centred, leverages, labelled = self.rows, self._leverage, self._labelled

        def predict(rows: slice) -> Floats:
            F = Tile(centred, rows, stride=stride).times(W)
            F = F.reshape(len(models), -1, F.shape[1]).swapaxes(1, 2)
            # Left out of the weights and of the means that the others are centred by,
            # a row has leverage l + 1/n. The label mean alone is that of all rows.
            known = labelled[rows][::stride, None]
            leverage = leverages[rows][::stride, strengths].T[:, :, None] + known / n
            Yc = known * (Y[rows][::stride] - mean)
            F -= leverage * Yc
            F /= np.maximum(1.0 - leverage, 1.0 - MOST_LEVERAGE)
            F += Yc / (n - 1)
            F *= leverage < MOST_LEVERAGE
            F += mean
            return np.asarray(F)

        return predict


def _cutoff(values: Floats, dtype: np.dtype[Any]) -> float:
    """Eigenvalues below this are rounding, not directions."""
    return float(values.max(initial=0.0) * len(values) * np.finfo(dtype).eps)
