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

from typing import NamedTuple

import numpy as np
from scipy.special import erf

from stct.correction.settings import CalibrationSettings
from stct.numeric.types import Floats, Ints

SEPARATIONS = np.geomspace(1e-3, 100.0, 400)  # mu; of a table of Geary's ratio


def sharpness_of_shape(
    S: Floats, settings: CalibrationSettings, variance: Floats | None = None
) -> float:
    """Factor that makes log-odds of scores, by the shape of their distribution.

    Geary's ratio is the mean over pairs of classes, each measured on the rows whose two
    best scores it has. The scores were estimated from labels: the variance that comes
    from that is taken from the variance within the classes.

    Parameters
    ----------
    variance : ndarray of shape (C,), optional
        Part of the variance of the scores of each class that comes from the labels
        they were estimated from. None: the scores are exact.
    """
    pairs = margins_of_pairs(S)
    enough = (pairs.num_rows >= settings.rows_per_pair) & (pairs.variance > 0.0)
    if not enough.any():
        return 1.0 / max(float(S.std()), 1e-30)
    weight = np.where(enough, pairs.num_rows, 0.0)
    weight /= weight.sum()
    total = np.where(enough, pairs.variance, 1.0)
    ratio = float(weight @ (pairs.deviation / np.sqrt(total)))
    found = np.interp(ratio, geary_ratio(SEPARATIONS), SEPARATIONS)
    mu = max(float(found), settings.least_separation)
    uncertain = 0.0
    if variance is not None:  # of all variance 2 / (mu + 2) is within the classes
        uncertain = float(weight @ (variance[pairs.classes].sum(axis=1) / total))
        uncertain = min(0.5 * (mu + 2.0) * uncertain, settings.most_uncertainty)
    log_deviation = 0.5 * float(weight @ np.log(total))
    sharpness = np.sqrt(mu * (mu + 2.0)) / np.exp(log_deviation)
    return float(sharpness / (1.0 - uncertain))


def geary_ratio(mu: Floats) -> Floats:
    """Mean absolute deviation over standard deviation of log-odds."""
    absolute = np.sqrt(4.0 * mu / np.pi) * np.exp(-mu / 4.0)
    absolute += mu * erf(np.sqrt(mu) / 2.0)
    return np.asarray(absolute / np.sqrt(mu * (mu + 2.0)))


class Pairs(NamedTuple):
    """Margins between the two best scores of the rows, by pair of classes."""

    classes: Ints  # (p, 2)
    deviation: Floats  # (p,) mean absolute deviation
    variance: Floats  # (p,)
    num_rows: Floats  # (p,)


def margins_of_pairs(S: Floats) -> Pairs:
    """Deviations of the margins of each pair of classes, lower minus higher class."""
    n, C = S.shape
    best = np.sort(np.argpartition(S, C - 2, axis=1)[:, C - 2 :], axis=1)  # (n, 2)
    rows = np.arange(n)
    margin = (S[rows, best[:, 0]] - S[rows, best[:, 1]]).astype(np.float64)
    codes, pair = np.unique(best[:, 0] * C + best[:, 1], return_inverse=True)
    count = np.bincount(pair).astype(np.float64)
    margin -= (np.bincount(pair, margin) / count)[pair]
    return Pairs(
        np.stack([codes // C, codes % C], axis=1),
        np.bincount(pair, np.abs(margin)) / count,
        np.bincount(pair, margin**2) / count,
        count,
    )
