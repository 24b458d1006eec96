"""Ridge regression with exact leave-one-out: all splits of one row, closed-form.

Legend: n rows, t rows of a tile, d columns, C classes, L ridge strengths. H embeddings
(n, d), Y soft labels (n, C), W weights (d, C).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.numeric.centring import CentredRows, Tile, scale_of
from stct.numeric.engine import Computed, Engine, Index, Local, RowValues
from stct.numeric.hat_matrix import Axes, left_out
from stct.numeric.linear import smallest_real
from stct.numeric.tiles import MAX_STRIDE, TILE, some_of
from stct.numeric.types import Floats, Ints


class Strengths(NamedTuple):
    """Ridge strengths to choose from, and how."""

    # In units of the mean eigenvalue of the centred Gram matrix, so that they fit
    # embeddings of any scale.
    values: tuple[float, ...]
    rows: int  # about so many choose
    # A strength that agrees a standard error less has exp(-steepness) of the weight.
    steepness: float


USUAL = Strengths((1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2), 2**15, 4.0)


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
    strengths : Strengths
    engine : Engine, optional
        Where the rows are worked on.
    owned : bool
        H is an array that nobody else needs: it may be overwritten.

    Attributes
    ----------
    rows : CentredRows
    axes : Axes
        Of the labelled rows.
    """

    def __init__(
        self,
        H: RowValues,
        labelled: NDArray[np.bool_],
        *,
        strengths: Strengths = USUAL,
        engine: Engine | None = None,
        owned: bool = False,
    ) -> None:
        self._strengths, self._engine = strengths, engine or Local()
        self._labelled = self._engine.keep(labelled)
        self._num_rows = len(labelled)
        self._owned = owned
        self.num_labelled = int(labelled.sum())
        start = int(np.argmax(labelled))
        first = H[start : min(start + TILE, self._num_rows)]
        self.rows = CentredRows(H, first[0], scale_of(first - first[0]))
        if H.shape[1] > self.num_labelled:
            mean, self.axes = self._axes_of_few_rows(H, labelled)
        else:
            mean, self.axes = self._axes_of_many_rows()
        self.rows = CentredRows(H, mean, self.rows.scale)
        values = self.axes.values
        self._unit = float(values.mean()) if len(values) else 1.0
        self._leverages: dict[float, Any] = {}  # (n,), at the last strength

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
        ``given`` (n,), which is -1 in rows without a label. The strength is a mean of
        several (see `mean_strength`): no row decides it. A ``strength`` of an earlier
        fit skips the choice. Of many rows some choose. Scores that are not kept are
        computed again whenever they are read.
        """
        label_mean, model = self._solver(Y)
        if strength is None:
            models = [model(s) for s in self._strengths.values]  # L (d, C)
            agree, count = self._agreement(models, label_mean, Y, given)
            strength = mean_strength(agree, count, self._strengths)
        best = model(strength)
        predict = self._leave_one_out(best, strength, label_mean, Y)
        scores: Any = Computed(predict, Y.shape, Y.dtype)
        if keep_scores:
            scores = self._engine.rows(predict, self._num_rows)
        W = best * self.rows.scale
        return RidgeFit(scores, W, label_mean - self.rows.mean @ W, strength)

    def squared_errors(self, Y: RowValues) -> Floats:
        """Mean squared leave-one-out error for each of the strengths, (L,).

        Of many rows some are asked.
        """
        label_mean, model = self._solver(Y)
        models = [model(s) for s in self._strengths.values]
        predictions = self._predictions_of_all(models, label_mean, Y)

        def errors(rows: slice) -> tuple[Floats, int]:
            total, count = np.zeros(len(models)), 0
            for S, target, _ in predictions(rows):
                total += ((S - target) ** 2).sum(axis=(1, 2), dtype=np.float64)
                count += target.size
            return total, count

        total, count = self._engine.sum(errors, self._num_rows)
        return np.asarray(total / max(float(count), 1.0))

    def variance_of_scores(self, strength: float) -> float:
        """Variance of a score, for labels of variance 1: mean squared hat row."""
        values = self.axes.values
        shrunk = values / (values + strength * self._unit)
        return float(shrunk @ shrunk) / self.num_labelled

    def leverage_at(self, ridge: float) -> Callable[[slice, Index], Floats]:
        """Diagonal of the hat matrix for any ridge, as a function of some rows.

        0 in rows not learnt from.
        """
        centred, labelled = self.rows, self._labelled
        root = self.axes.root(ridge, centred.dtype)

        def compute(rows: slice, some: Index) -> Floats:
            parts = [root.leverage(X) for _, X in Tile(centred, rows, some)]
            own = np.concatenate(parts) if parts else np.empty(0, centred.dtype)
            return np.asarray(own * labelled[rows][some])

        return compute

    def _axes_of_many_rows(self) -> tuple[Floats, Axes]:
        """Mean, and axes of the Gram matrix, summed over tiles."""
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
        real = values > smallest_real(values, np.dtype(np.float32))
        return self.rows.mean + offset / self.rows.scale, Axes(values[real], V[:, real])

    def _axes_of_few_rows(
        self, H: RowValues, labelled: NDArray[np.bool_]
    ) -> tuple[Floats, Axes]:
        """Compute the same from the rows themselves when there are fewer of them."""
        few = np.asarray(H[0 : self._num_rows], dtype=np.float64)[labelled]
        mean = few.mean(axis=0)
        _, s, Vt = np.linalg.svd((few - mean) * self.rows.scale, full_matrices=False)
        values = s**2
        real = values > smallest_real(values, np.dtype(np.float32))
        return mean, Axes(values[real], Vt[real].T)

    def _label_mean(self, Y: RowValues) -> Floats:
        """Mean of the labelled rows of Y, (C,)."""
        labelled = self._labelled

        def total(rows: slice) -> tuple[Floats]:
            return (labelled[rows].astype(Y.dtype) @ Y[rows],)

        total_Y = self._engine.sum(total, self._num_rows, wide=False)[0]
        return np.asarray(total_Y / self.num_labelled)

    def _cross_product(self, Y: RowValues, label_mean: Floats) -> Floats:
        """Hc' Yc over the labelled rows, (d, C).

        This pass visits every row once: rows that are ours stay centred after it.
        """
        centred, labelled = self.rows, self._labelled
        settle = self._owned and not centred.settled

        def product(rows: slice) -> tuple[Floats]:
            Yc = (Y[rows] - label_mean).astype(centred.dtype)
            Yc *= labelled[rows][:, None]
            return (Tile(centred, rows, settle=settle).weighted_sum(Yc.T),)

        total = self._engine.sum(product, self._num_rows)[0]
        centred.settled = self._owned
        return np.asarray(total.T)

    def _agreement(
        self,
        models: Sequence[Floats],
        label_mean: Floats,
        Y: RowValues,
        given: RowValues,
    ) -> tuple[Floats, int]:
        """Rows in which each model names the given label, (L,), of how many."""
        predictions = self._predictions_of_all(models, label_mean, Y)

        def agree(rows: slice) -> tuple[Floats, int]:
            counts, number = np.zeros(len(models)), 0
            for S, _, index in predictions(rows):
                said = given[rows][index]
                best, at = S.max(axis=1), np.arange(len(said))
                counts += (S[:, said, at] >= best).sum(axis=1)
                number += len(said)
            return counts, number

        counts, count = self._engine.sum(agree, self._num_rows)
        return np.asarray(counts), int(count)

    def _solver(self, Y: RowValues) -> tuple[Floats, Callable[[float], Floats]]:
        """Mean of Y (C,), and what gives the model (d, C) of a strength."""
        label_mean = self._label_mean(Y)
        values, V = self.axes
        B = V.T @ self._cross_product(Y, label_mean)  # (rank, C)

        def model(strength: float) -> Floats:
            return np.asarray(V @ (B / (values + strength * self._unit)[:, None]))

        return label_mean, model

    def _predictions_of_all(
        self, models: Sequence[Floats], label_mean: Floats, Y: RowValues
    ) -> Callable[[slice], Iterator[tuple[Floats, Floats, Ints]]]:
        """Leave-one-out predictions of some rows of a tile by all models.

        The function gives predictions (L, C, t), targets (C, t) and which rows of the
        tile these are, a few rows at a time.
        """
        centred, labelled, n = self.rows, self._labelled, self.num_labelled
        ridges = np.array(self._strengths.values) * self._unit
        axes = self.axes.astype(centred.dtype)
        W = np.concatenate([_working(model, centred.dtype) for model in models])
        mean = label_mean.astype(centred.dtype)
        stride = min(max(1, n // self._strengths.rows), MAX_STRIDE)

        def predict(rows: slice) -> Iterator[tuple[Floats, Floats, Ints]]:
            here = np.arange(rows.stop - rows.start)[some_of(rows, stride)]
            some = here[labelled[rows][here]]
            targets, known = Y[rows][some], np.ones(len(some), dtype=bool)
            for part, X in Tile(centred, rows, some):
                F = (W @ X.T).reshape(len(models), -1, len(X))  # (L, C, t)
                own = np.ascontiguousarray(axes.leverages(X, ridges).T)[:, None, :]
                target = np.ascontiguousarray(targets[part].T)
                S = left_out(F, own, known[part], target, mean, n)
                yield S, target, some[part]

        return predict

    def _leave_one_out(
        self, model: Floats, strength: float, label_mean: Floats, Y: RowValues
    ) -> Callable[[slice], Floats]:
        """Leave-one-out predictions of a tile by one model (d, C), (t, C)."""
        if strength not in self._leverages:
            compute, everything = self.leverage_at(strength * self._unit), slice(None)
            values = self._engine.rows(lambda r: compute(r, everything), self._num_rows)
            self._leverages = {strength: values}
        W = _working(model, self.rows.dtype)
        mean = label_mean.astype(self.rows.dtype)
        centred, labelled, n = self.rows, self._labelled, self.num_labelled
        leverages: Any = self._leverages[strength]

        def predict(rows: slice) -> Floats:
            F = Tile(centred, rows).times(W)  # (C, t)
            Yt = np.ascontiguousarray(Y[rows].T)
            return left_out(F, leverages[rows], labelled[rows], Yt, mean, n).T

        return predict


def mean_strength(agree: Floats, count: int, strengths: Strengths) -> float:
    """Geometric mean of the strengths, weighted by how well each of them agrees.

    So one row more or less moves the strength by little.

    Parameters
    ----------
    agree : ndarray of shape (L,)
        Rows in which the argmax is the given label.
    count : int
        Rows that were asked.
    """
    best = float(agree.max())
    error = np.sqrt(max(best * (1.0 - best / max(count, 1)), 1.0))
    weights = np.exp(strengths.steepness * (agree - best) / error)
    return float(np.exp(weights @ np.log(strengths.values) / weights.sum()))


def _working(model: Floats, dtype: np.dtype[Any]) -> Floats:
    return np.ascontiguousarray(model.T, dtype=dtype)  # (C, d)
