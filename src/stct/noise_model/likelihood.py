"""The noisy-label likelihood: softmax regression and T explain the given labels.

The clean class follows P = softmax(offset + x W), the given label its row of T. The
log-likelihood of the given labels is ``sum_i log (P_i T)[given_i]``. No clean label
appears anywhere. Legend: n rows, k columns, C classes, t rows of a tile, p parts.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, root
from scipy.special import betaln

from stct.noise_model.likelihood_tile import LabelCodes
from stct.noise_model.optimiser import minimise
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


import os
MIX=float(os.environ.get('MIX','.5'))

class ErrorPrior(NamedTuple):
    """Prior on the share of wrong labels: half a Beta distribution, half uniform."""

    wrong: float  # labels that the Beta distribution is worth
    right: float
    few: float = 1.0

    def log_density(self, e: float) -> float:
        """Logarithm of the density at e."""
        first, second = self._logs(e)
        return float(np.logaddexp(first, second))

    def slope(self, e: float) -> float:
        """Derivative of the logarithm of the density."""
        e = min(max(e, 1e-9), 1.0 - 1e-9)
        first, second = self._logs(e)
        share = 1.0 / (1.0 + np.exp(second - first))  # of the Beta distribution
        return float(share * (self.wrong / e - self.right / (1.0 - e)) + (1-share) * self.few / e)

    def _logs(self, e: float) -> tuple[float, float]:
        e = min(max(e, 1e-9), 1.0 - 1e-9)
        log = self.wrong * np.log(e) + self.right * np.log1p(-e) + np.log(MIX/(1-MIX))
        other = self.few * np.log(e) - betaln(self.few + 1.0, 1.0)
        return float(log - betaln(self.wrong + 1.0, self.right + 1.0)), float(other)


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

        return _minimise_bounded(objective, start, [(0.0, None)] * len(start))

    def fit_sharpness(
        self,
        sharpness: float,
        T: Floats,
        *,
        diagonal: bool,
        precision: float,
        centre: float = 1.0,
        error_prior: ErrorPrior | None = None,
        exact: bool = True,
    ) -> tuple[float, Floats]:
        """Fit the scale of a single part, and how sure T is, both at once.

        They trade against each other: soft log-odds and few errors explain the labels
        almost as well as sharp log-odds and many errors. In turn they would creep.

        Parameters
        ----------
        diagonal : bool
            Multiply T's diagonal by one factor; rows sum to 1 again.
        precision, centre : float
            Of a Gaussian prior on the logarithm of the sharpness, around that of
            ``centre``.
        error_prior : ErrorPrior, optional
            Prior on the share of wrong labels, with classes as large as the given ones.
        exact : bool
            Find the place where the slopes are 0; about is enough between rounds.
        """
        n, C = max(self.labels.num_free, 1), len(T)
        own = C if C == 2 else 1
        where = np.arange(C) if own == C else np.zeros(C, int)
        eye = np.eye(C)
        sizes = self.labels.sizes / n

        def unpack(theta: Floats) -> tuple[float, Floats]:
            rows = T * np.exp(theta[1:][where] * eye) if diagonal else T
            rows = rows / rows.sum(axis=1, keepdims=True)
            return sharpness * float(np.exp(theta[0])), rows

        def objective(theta: Floats) -> tuple[float, Floats]:
            scale, rows = unpack(theta)
            sums = self.sums(np.array([scale]), rows)
            expected, right = sums.counts.sum(axis=1), np.diagonal(rows)
            beside = np.log(scale / centre)
            slopes = [scale * float(sums.gradient[0]) - precision * beside]
            if diagonal:
                each = np.diagonal(sums.counts) - expected * right
                if error_prior is not None:
                    e = float(sizes @ (1.0 - right))
                    each -= error_prior.slope(e) * sizes * right * (1.0 - right)
                slopes.extend(np.bincount(where, each))
            value = sums.log_likelihood - 0.5 * precision * beside**2
            if error_prior is not None:
                value += error_prior.log_density(float(sizes @ (1.0 - right)))
            return -value / n, -np.array(slopes) / n

        start = np.zeros(1 + own if diagonal else 1)
        bounds = [(-FARTHEST, FARTHEST)] * len(start)
        return unpack(_minimise_bounded(objective, start, bounds, exact=exact))


def _minimise_bounded(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: Sequence[tuple[float, float | None]],
    *,
    exact: bool = True,
) -> Floats:
    """Go down, and then to where the slopes are 0: float32 knows that place better.

    Legend: p parameters, one or two.
    """
    look = _Remember(objective)
    options = {"maxiter": 60, "ftol": 1e-9 if exact else 1e-6, "gtol": 1e-6}
    best = minimize(
        look, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    low, high = np.array([(a, np.inf if b is None else b) for a, b in bounds]).T
    inside = (best.x > low) & (best.x < high)
    if not exact or not inside.all():
        return np.asarray(best.x)
    settings = {"maxfev": 8 * len(start), "eps": 1e-3}
    place = root(lambda x: look(x)[1], best.x, tol=1e-6, options=settings).x
    better = np.linalg.norm(look(place)[1]) <= np.linalg.norm(look(best.x)[1])
    near = look(place)[0] <= look(best.x)[0] + 1e-6
    moved = better and near and ((place > low) & (place < high)).all()
    return np.asarray(place if moved else best.x)


class _Remember:
    """A function that is not called twice at one place."""

    def __init__(self, function: Callable[[Floats], tuple[float, Floats]]) -> None:
        self._function = function
        self._values: dict[bytes, tuple[float, Floats]] = {}

    def __call__(self, place: Floats) -> tuple[float, Floats]:
        key = np.asarray(place).tobytes()
        if key not in self._values:
            self._values[key] = self._function(place)
        return self._values[key]


def _working(W: Floats) -> Floats:
    return np.ascontiguousarray(W.T, dtype=np.float32)  # (C, k)
