"""Numeric labels that do not fit: leave-one-out residuals in units of a local scale.

Ridge predicts each label from all other rows, in closed form; wrong labels pull at the
others, so labels are winsorised to a few scales around their predictions and fitted
again. How far labels usually are from their predictions may differ by row: ridge of
the logarithm of the residuals says how. All fits use one factorisation of the rows.
Legend: n rows, d columns.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from stct.correction.result import Progress
from stct.correction.settings import ScoreSettings
from stct.correction.squared_error import LeftOut, choose_features
from stct.numeric.engine import Engine, RowValues
from stct.numeric.fourier import FourierFeatures
from stct.numeric.ridge import RidgeFit
from stct.numeric.types import Floats

# One target asks for more columns than the border between classes does.
FOURIER: dict[str, Any] = {"max_frequencies": 512, "rows_per_frequency": 4}
WINSOR = 2.5  # scales; labels farther from their prediction count as if here
ROUNDS = 3  # of winsorising and fitting; more change little
LEAST_RESIDUAL = 0.1  # scales, inside the logarithm: a residual of 0 says little
MOST_SCALE = 4.5  # times the common scale, or a part of it
SURE = 3.0  # standard errors by which a local scale must predict residuals better
NORMAL = 1.0 / norm.ppf(0.75)  # median absolute deviations in a standard deviation


class NumericCheck(NamedTuple):
    """What other rows say of each label."""

    predicted: Floats  # (n,) leave-one-out
    scale: Floats  # (n,) usual distance of a label from it, a standard deviation
    explained: float  # share of the variance of the labels, leave-one-out, winsorised
    weights: Floats  # (d,) of the model for new rows
    intercept: float
    fourier: FourierFeatures | None


def check_numbers(
    H: RowValues,
    y: Floats,
    engine: Engine,
    settings: ScoreSettings,
    progress: Progress,
) -> NumericCheck:
    """Predict every label (n,) from the other rows (n, d); NaN labels are predicted.

    Parameters
    ----------
    H : array of shape (n, d)
    y : ndarray of shape (n,)
        Not all alike.
    """
    known = np.isfinite(y)
    middle, unit = robust_location(y[known])
    target = np.where(known, (y - middle) / unit, 0.0)
    target = np.clip(target, *_far(target[known]))
    settings = replace(settings, **FOURIER)
    shared = choose_features(H, target[:, None], known, engine, settings)
    progress(0.5)
    exact = np.where(known, (y - middle) / unit, 0.0)
    for done in range(ROUNDS):
        fit = _fit(shared, target)
        predicted = np.asarray(fit.scores)[:, 0].astype(np.float64)
        residual = exact - predicted
        centre, scale = robust_location(residual[known])
        bend = np.clip(residual - centre, -WINSOR * scale, WINSOR * scale)
        target = np.where(known, predicted + centre + bend, 0.0)
        progress(0.5 + 0.4 * (done + 1) / ROUNDS)
    fit = _fit(shared, target)
    predicted = np.asarray(fit.scores)[:, 0].astype(np.float64)
    local = _local_scale(shared, exact - predicted, known)
    explained = 1.0 - float(np.var((target - predicted)[known]) / np.var(target[known]))
    return NumericCheck(
        middle + unit * predicted,
        unit * local,
        explained,
        unit * fit.weights[:, 0],
        middle + unit * float(fit.intercept[0]),
        shared.fourier,
    )


def robust_location(values: Floats) -> tuple[float, float]:
    """Median, and median absolute deviation as a standard deviation."""
    middle = float(np.median(values))
    spread = NORMAL * float(np.median(np.abs(values - middle)))
    if spread == 0.0:  # more than half of the values are one number
        spread = float(np.std(values))
    return middle, spread or 1.0


def _far(values: Floats) -> tuple[float, float]:
    """Where labels are cut for the first fit: three times the middle 90%."""
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return middle - 3.0 * (middle - low), middle + 3.0 * (high - middle)


def _fit(shared: LeftOut, target: Floats) -> RidgeFit:
    nobody = np.full(len(target), -1)
    return shared.path.fit(target[:, None], nobody, shared.strength)


def _local_scale(shared: LeftOut, residual: Floats, known: NDArray[np.bool_]) -> Floats:
    """Usual size of the residual of each row, (n,): one scale, if no more is known.

    Logarithms of winsorised residuals are predicted as the labels are. That counts only
    if it predicts residuals of rows that were left out.
    """
    _, scale = robust_location(residual[known])
    size = np.minimum(np.abs(residual) / scale, WINSOR)
    logarithm = np.where(known, np.log(size + LEAST_RESIDUAL), 0.0)
    logarithm -= known * logarithm[known].mean()
    predicted = np.asarray(_fit(shared, logarithm).scores)[:, 0].astype(np.float64)
    gain = (logarithm**2 - (logarithm - predicted) ** 2)[known]
    if gain.mean() <= SURE * gain.std() / np.sqrt(len(gain)):
        return np.full(len(residual), scale)
    bound = np.log(MOST_SCALE)
    local = np.exp(np.clip(predicted - np.median(predicted[known]), -bound, bound))
    return np.asarray(local * robust_location((residual / local)[known])[1])


def two_sided(z: Floats) -> Floats:
    """Probability that a standard normal number is at least so far from 0."""
    return np.asarray(2.0 * norm.sf(np.abs(z)))


def false_discovery(p: Floats, rate: float) -> NDArray[np.bool_]:
    """Mark what is found if ``rate`` of the findings may be false, (n,).

    References
    ----------
    .. [1] Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate",
       JRSS B 57, 1995.
    """
    order = np.argsort(p, kind="stable")
    limits = rate * np.arange(1, len(p) + 1) / len(p)
    below = np.flatnonzero(p[order] <= limits)
    found = np.zeros(len(p), dtype=bool)
    if len(below):
        found[order[: below[-1] + 1]] = True
    return found
