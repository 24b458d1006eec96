"""The noisy-label likelihood: softmax regression and T explain the given labels.

The clean class follows P = softmax(offset + x W), the given label its row of T. The
log-likelihood of the given labels is ``sum_i log (P_i T)[given_i]``. No clean label
appears anywhere. Legend: n rows, k columns, C classes, t rows of a tile, p parts.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stct.noise_model.likelihood_tile import LabelCodes
from stct.noise_model.optimiser import minimise, minimise_bounded
from stct.noise_model.priors import ErrorPrior, SharpnessPrior
from stct.numeric.centring import Tile
from stct.numeric.engine import ALL, Engine, Index, RowValues, read_some
from stct.numeric.tiles import some_of
from stct.numeric.types import Floats

WIDE = 64  # columns from which threads pay
FARTHEST = 8.0  # that a logarithm may move in one fit


class Sums(NamedTuple):
    """What one pass over all rows gives."""

    log_likelihood: float
    gradient: Floats  # of the log-likelihood in W (k, C), or in the scales (p,)
    counts: Floats  # (C, C) expected rows of each clean and given class


class LinearLogits:
    """Likelihood of the labels for logits offset + U W, and its maximum in W.

    Parameters
    ----------
    U : array of shape (n, k)
        Features, read as ``U[i:j]``.
    labels : LabelCodes
    engine : Engine
    offset : array of shape (n, C), optional
        Logits to add.
    stride : int
        Let one row of so many teach W.
    locked : bool
        Let locked rows teach W, too: they are certain.
    """

    def __init__(
        self,
        U: RowValues,
        labels: LabelCodes,
        engine: Engine,
        *,
        offset: RowValues | None = None,
        stride: int = 1,
        locked: bool = True,
    ) -> None:
        self._U, self._labels, self._engine = U, labels, engine
        self._offset, self._stride, self._locked = offset, stride, locked
        # Passes over few columns are too short for threads to share the interpreter.
        self._wide = U.shape[1] >= WIDE

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a worker has no use for."""
        return {**self.__dict__, "_engine": None}

    def fit(
        self,
        W: Floats,
        T: Floats,
        *,
        precision: Floats,
        basis: Floats | None = None,
        curvature: Floats | None = None,
        max_steps: int,
        tolerance: float = 1e-5,
    ) -> Floats:
        """Climb the posterior density of W from the mean of its prior; T is fixed.

        Parameters
        ----------
        W : ndarray of shape (k, C)
            Mean of the prior, where the climb begins.
        precision : ndarray of shape (k,) or (r,)
            Of the prior on the step from W, in the coordinates of ``basis``.
        basis : ndarray of shape (k, r), optional
            Move W inside its columns only.
        curvature : ndarray of shape (k,) or (r,), optional
            About that of the negative log density for each row of weights.
        tolerance : float
            Stop when a step gains less log-likelihood per row.
        """
        C, scale = self._labels.num_classes, 1.0 / max(self._labels.num_free, 1)
        scale *= self._stride
        penalty = np.asarray(precision, dtype=np.float64)[:, None]

        def moved(theta: Floats) -> tuple[Floats, Floats]:
            step = theta.reshape(-1, C)
            return step, W + (step if basis is None else basis @ step)

        def objective(theta: Floats) -> tuple[float, Floats]:
            step, weights = moved(theta)
            sums = self.sums(weights, T)
            value = 0.5 * float((penalty * step**2).sum()) - sums.log_likelihood
            slope = sums.gradient if basis is None else basis.T @ sums.gradient
            return value * scale, (penalty * step - slope).ravel() * scale

        diagonal = None
        if curvature is not None:
            diagonal = scale * np.repeat(curvature, C)
        best = minimise(
            objective,
            np.zeros(len(penalty) * C),
            diagonal,
            max_steps=max_steps,
            tolerance=tolerance,
        )
        return moved(best)[1]

    def sums(self, W: Floats, T: Floats) -> Sums:
        """One pass over the rows that teach; counts are left out."""
        stride, labels = self._stride, self._labels
        weights, table = _working(W), labels.table(T, locked=self._locked)

        def tile(rows: slice) -> tuple[float, Floats]:
            some = some_of(rows, stride)
            U = Tile(self._U, rows, some)
            here = labels.explain(
                self._logits(U, weights, rows, some), table, rows, some
            )
            return here.log_likelihood(), U.weighted_sum(here.gradient())

        total = self._engine.sum(tile, labels.num_rows, wide=self._wide)
        return Sums(float(total[0]), total[1].T, np.empty((0, 0)))

    def logits(self, W: Floats) -> Callable[[slice], Floats]:
        """Offset + U W of a tile, (t, C) float32."""
        weights = _working(W)

        def tile(rows: slice) -> Floats:
            return self._logits(Tile(self._U, rows), weights, rows, ALL).T

        return tile

    def _logits(self, U: Tile, weights: Floats, rows: slice, some: Index) -> Floats:
        """Logits of one tile, (C, t) float32."""
        if self._offset is None:
            return U.times(weights)
        offset = np.asarray(read_some(self._offset, rows, some), np.float32).T
        if not weights.any():  # where a fit begins
            return offset.copy()
        logits = U.times(weights)
        logits += offset
        return logits


class ScaledLogits:
    """Likelihood of the labels for a sum of logits, each times one scale.

    Parameters
    ----------
    parts : sequence of array of shape (n, C)
    labels : LabelCodes
    engine : Engine
    """

    def __init__(
        self, parts: Sequence[RowValues], labels: LabelCodes, engine: Engine
    ) -> None:
        self._parts, self.labels, self._engine = parts, labels, engine

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a worker has no use for."""
        return {**self.__dict__, "_engine": None}

    def sums(self, scales: Floats, T: Floats, *, locked: bool = False) -> Sums:
        """One pass over all rows; locked ones say nothing unless asked to."""
        labels, factors = self.labels, np.asarray(scales, dtype=np.float32)
        table = labels.table(T, locked=locked)

        def tile(rows: slice) -> tuple[float, Floats, Floats]:
            parts = [part[rows].T for part in self._parts]
            logits = factors[0] * parts[0]
            for factor, part in zip(factors[1:], parts[1:], strict=True):
                logits += factor * part
            here = labels.explain(np.ascontiguousarray(logits), table, rows, ALL)
            slope = here.gradient()
            slopes = np.array([float(np.vdot(slope, part)) for part in parts])
            return here.log_likelihood(), slopes, here.counts(labels.num_classes)

        total = self._engine.sum(tile, labels.num_rows, wide=False)
        return Sums(float(total[0]), total[1], total[2])

    def fit_scales(self, start: Floats, T: Floats) -> Floats:
        """Scales of 0 or more that make the labels most likely; T is fixed, (p,)."""
        n = max(self.labels.num_free, 1)

        def objective(scales: Floats) -> tuple[float, Floats]:
            sums = self.sums(scales, T)
            return -sums.log_likelihood / n, -sums.gradient / n

        return minimise_bounded(objective, start, [(0.0, None)] * len(start))

    def fit_sharpness(
        self,
        sharpness: float,
        T: Floats,
        *,
        prior: SharpnessPrior,
        errors: ErrorPrior | None = None,
        exact: bool = True,
    ) -> tuple[float, Floats]:
        """Fit the scale of a single part, and with a prior for it the error rate of T.

        They trade against each other, so in turn they would creep. The diagonal of T
        is multiplied by one factor; of two classes each has a factor of its own.

        Parameters
        ----------
        sharpness, T : float and ndarray of shape (C, C)
            Where the fit begins.
        errors : ErrorPrior, optional
            Prior of the share of wrong labels, with classes as large as the given ones.
            Without it T stays as it is.
        exact : bool
            Find the place where the slopes are 0; about is enough between rounds.
        """
        n, C = max(self.labels.num_free, 1), len(T)
        factor = np.arange(C) if C == 2 else np.zeros(C, dtype=int)  # of each class
        sizes, eye = self.labels.sizes / n, np.eye(C)

        def unpack(theta: Floats) -> tuple[float, Floats]:
            rows = T if errors is None else T * np.exp(theta[1:][factor] * eye)
            rows = rows / rows.sum(axis=1, keepdims=True)
            return sharpness * float(np.exp(theta[0])), rows

        def objective(theta: Floats) -> tuple[float, Floats]:
            scale, rows = unpack(theta)
            sums = self.sums(np.array([scale]), rows)
            value = sums.log_likelihood + prior.log_density(scale)
            slopes = [scale * float(sums.gradient[0]) + prior.slope(scale)]
            if errors is not None:
                right = np.diagonal(rows)
                e = float(sizes @ (1.0 - right))
                value += errors.log_density(e)
                each = np.diagonal(sums.counts) - sums.counts.sum(axis=1) * right
                each -= errors.slope(e) * sizes * right * (1.0 - right)
                slopes.extend(np.bincount(factor, each))
            return -value / n, -np.array(slopes) / n

        start = np.zeros(1 if errors is None else 2 + factor[-1])
        bounds = [(-FARTHEST, FARTHEST)] * len(start)
        return unpack(minimise_bounded(objective, start, bounds, exact=exact))


def _working(W: Floats) -> Floats:
    return np.ascontiguousarray(W.T, dtype=np.float32)  # (C, k)
