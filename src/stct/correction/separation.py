"""How far classes are apart, from the shape of the scores alone: no label is read.

The scores of two classes have two modes if the features tell the classes apart, and one
if they confuse them. So their distribution says how sharp the log-odds are about. The
given labels cannot say it where few errors and soft log-odds explain them as well as
many errors and sharp ones. Legend: n rows, C classes, p pairs of classes; S scores
(n, C), mu separation.

Model: the log-odds of two classes are Normal(mu, 2 mu) in rows of one class and
Normal(-mu, 2 mu) in rows of the other, as in linear discriminant analysis. Their
variance is mu^2 + 2 mu. Geary's ratio, mean absolute deviation over standard deviation,
grows with mu from that of one normal distribution, 0.798, to 1.
"""

import numpy as np
from scipy.special import erf

from stct.correction.settings import CalibrationSettings
from stct.numeric.types import Floats

SEPARATIONS = np.geomspace(1e-3, 100.0, 400)  # mu; of a table of Geary's ratio


def sharpness_of_shape(S: Floats, settings: CalibrationSettings) -> float:
    """Factor that makes log-odds of scores, by the shape of their distribution.

    Geary's ratio is the mean over pairs of classes, each measured on the rows whose two
    best scores it has.
    """
    deviation, variance, count = moments_of_pairs(S)
    enough = (count >= settings.rows_per_pair) & (variance > 0.0)
    if not enough.any():
        return 1.0 / max(float(S.std()), 1e-30)
    weight = count[enough] / count[enough].sum()
    ratio = float(weight @ (deviation[enough] / np.sqrt(variance[enough])))
    found = np.interp(ratio, geary_ratio(SEPARATIONS), SEPARATIONS)
    mu = max(float(found), settings.least_separation)
    log_deviation = 0.5 * float(weight @ np.log(variance[enough]))
    return float(np.sqrt(mu * (mu + 2.0)) / np.exp(log_deviation))


def geary_ratio(mu: Floats) -> Floats:
    """Mean absolute deviation over standard deviation of log-odds."""
    absolute = np.sqrt(4.0 * mu / np.pi) * np.exp(-mu / 4.0)
    absolute += mu * erf(np.sqrt(mu) / 2.0)
    return np.asarray(absolute / np.sqrt(mu * (mu + 2.0)))


def moments_of_pairs(S: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean absolute deviation, variance and number of the margins of each pair, (p,).

    The margin of a row is the difference of its two best scores, by number of class.
    """
    n, C = S.shape
    best = np.sort(np.argpartition(S, C - 2, axis=1)[:, C - 2 :], axis=1)  # (n, 2)
    rows = np.arange(n)
    margin = (S[rows, best[:, 0]] - S[rows, best[:, 1]]).astype(np.float64)
    pair = np.unique(best[:, 0] * C + best[:, 1], return_inverse=True)[1]
    count = np.bincount(pair)
    margin -= (np.bincount(pair, margin) / count)[pair]
    return (
        np.bincount(pair, np.abs(margin)) / count,
        np.bincount(pair, margin**2) / count,
        count.astype(np.float64),
    )
