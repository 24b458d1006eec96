"""Ridge for targets that are numbers: what predicts rows that were left out best.

Agreement with given classes chooses strength and columns of the default method. Here
the squared leave-one-out error does: of numeric labels, and of many labels at once, of
which most are rare. Errors of the targets add the same to it for all models. Legend:
n rows, d columns, L targets.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.fourier_features import column_weights
from stct.correction.settings import ScoreSettings
from stct.numeric.engine import Computed, Engine, RowValues, spread_rows
from stct.numeric.fourier import FourierFeatures, draw_frequencies
from stct.numeric.ridge import RidgePath
from stct.numeric.types import Floats


class LeftOut(NamedTuple):
    """Rows with the columns and the strength that predict the targets best."""

    path: RidgePath
    strength: float
    error: float  # mean squared leave-one-out error, in variances of the targets
    fourier: FourierFeatures | None


def choose_features(
    H: RowValues,
    Y: Floats,
    labelled: NDArray[np.bool_],
    engine: Engine,
    settings: ScoreSettings,
) -> LeftOut:
    """Choose the strength, and Fourier features if they predict the targets better.

    Parameters
    ----------
    H : array of shape (n, d)
    Y : ndarray of shape (n, L)
        Targets of variance 1.
    labelled : ndarray of bool, shape (n,)
        Rows that have targets.
    """
    path = RidgePath(H, labelled, strengths=settings.ridge, engine=engine)
    linear = _best_strength(path, Y, settings)
    if not settings.fourier or len(path.axes.values) == 0:
        return linear
    known = np.flatnonzero(labelled)
    some = known[spread_rows(len(known), settings.deciding_rows)]
    rows = path.rows
    X = engine.take(Computed(rows.__getitem__, rows.shape, rows.dtype), some)
    most = max(1, len(known) // settings.rows_per_frequency)
    most = min(settings.max_frequencies, most)
    unit = _unit(X)
    trials = []
    for weights in column_weights(X):
        drawn = draw_frequencies(X, weights, most, settings.bandwidth)
        fourier = FourierFeatures(rows.mean, rows.scale, drawn, unit)
        trials.append((_error_on(fourier.of_centred(X), Y[some], settings), fourier))
    error, fourier = min(trials, key=lambda trial: trial[0])
    if error > (1.0 - settings.least_gain) * _error_on(X, Y[some], settings):
        return linear
    wider = RidgePath(
        fourier.rows(rows, engine), labelled, strengths=settings.ridge, engine=engine
    )
    found = _best_strength(wider, Y, settings, fourier)
    better = found.error < (1.0 - settings.least_gain) * linear.error
    return found if better else linear


def _best_strength(
    path: RidgePath,
    Y: Floats,
    settings: ScoreSettings,
    fourier: FourierFeatures | None = None,
) -> LeftOut:
    """Take the strength of the least leave-one-out error."""
    errors = path.squared_errors(Y)
    best = int(errors.argmin())
    return LeftOut(path, settings.ridge.values[best], float(errors[best]), fourier)


def _error_on(X: Floats, Y: Floats, settings: ScoreSettings) -> float:
    """Least leave-one-out error of some rows by themselves."""
    path = RidgePath(X, np.ones(len(X), dtype=bool), strengths=settings.ridge)
    return float(path.squared_errors(Y).min())


def _unit(X: Floats) -> float:
    """Factor by which columns are as large as a cosine: a power of two."""
    widest = float(X.std(axis=0).max())
    return float(2.0 ** -np.floor(np.log2(widest))) if widest > 0.0 else 1.0
