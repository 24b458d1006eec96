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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import erf

from stct.correction.settings import CalibrationSettings
from stct.numeric.types import Floats, Ints

MAX_SCORES = 2**23
SEPARATIONS = np.geomspace(1e-3, 100.0, 4000)  # mu; of a table of Geary's ratio


def sharpness_of_shape(
    S: Floats, settings: CalibrationSettings, variance: Floats | None = None
) -> float:
    """Factor that makes log-odds of scores, by the shape of their distribution.

    Geary's ratio is the mean over pairs of classes, each measured on the rows whose
    best score is that of one of them, and weighted by the rows that have both as their
    best two. The scores were estimated from labels: the variance that comes
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
    """Margins between the scores of two classes, in the rows that have either best."""

    classes: Ints  # (p, 2)
    deviation: Floats  # (p,) mean absolute deviation
    variance: Floats  # (p,)
    num_rows: Floats  # (p,) that have these two as their best classes


def margins_of_pairs(S: Floats) -> Pairs:
    """Deviations of the margins of all pairs of classes that are the best two of a row.

    Of very many scores some rows are read.
    """
    S = S[:: max(1, S.size // MAX_SCORES)].astype(np.float64)
    n, C = S.shape
    two = np.argpartition(S, C - 2, axis=1)[:, C - 2 :]  # (n, 2) the best, in order
    members = [np.flatnonzero(two[:, 1] == c) for c in range(C)]
    size = np.array([len(rows) for rows in members], dtype=np.float64)
    both = np.maximum(size[:, None] + size, 1.0)

    def sums(function: Callable[[Floats, int], Floats]) -> Floats:
        """Sum over the members of each class, and of the other class of a pair."""
        total = np.zeros((C, C))
        for c, rows in enumerate(members):
            total[c] = function(S[rows, c][:, None] - S[rows], c).sum(axis=0)
        return total

    total = sums(lambda margin, _: margin)
    mean = (total - total.T) / both  # of S[a] - S[b] in the rows of both
    square = sums(lambda margin, c: (margin - mean[c]) ** 2)
    absolute = sums(lambda margin, c: np.abs(margin - mean[c]))
    codes, num_rows = np.unique(np.sort(two, axis=1) @ [C, 1], return_counts=True)
    low, high = codes // C, codes % C
    return Pairs(
        np.stack([low, high], axis=1),
        ((absolute + absolute.T) / both)[low, high],
        ((square + square.T) / both)[low, high],
        num_rows.astype(np.float64),
    )
