"""People err on hard rows, towards what the features confuse: find it, allow for it.

A T that is the same for every row explains such errors as weakness of the features: P
comes out too soft and T too clean. Row by row the given labels cannot tell the two
apart: an annotator who guesses the label of some rows from P itself, and one who knows
these rows, give the same labels to the same rows equally often. Class by class they
can, because what P takes up is in proportion to its mean confusion K, and what is left
in T then rises less with K than people's errors do. Legend: n rows, C classes;
P = Pr[clean | x] (n, C), T[clean, given].
"""

from typing import NamedTuple

import numpy as np

from stct.noise_model.transition import quality
from stct.numeric.types import Floats, Ints

ALL_ERRORS = 0.55  # elasticity of people's errors, those that P took up and the others
PROVEN = 0.05, 0.08  # elasticity that is no people's yet, and that is
ONE_NAME = 0.1, 0.2  # elasticity among cells of one given class, likewise
GRADED = 0.2, 0.3  # share of the least-squares slope, likewise
MOST_HIDDEN = 0.5  # errors that P took up, for each one that is left
MOST_GUESSED = 2.0 / 3.0
LEAST_ROWS = 20.0  # of a class that is asked
FEW = 20.0  # rows for each entry of T, with which it is believed by half
MOST_OF_RIGHT = 0.9  # of the labels that look right may have been guessed
MAX_EXACT_CELLS = 400  # more off-diagonal cells: pair low with high confusion only


class Trend(NamedTuple):
    """How T's off-diagonal rises with K's: elasticities, 1 if in proportion."""

    elasticity: float  # by the median of all slopes, after Theil and Sen
    least: float  # lower end of its 95% interval
    one_name: float  # elasticity among cells of one given class
    graded: float  # it, as a share of that by least squares; 0 if few cells are large
    rows: float  # that tell it


NO_TREND = Trend(0.0, 0.0, 0.0, 0.0, 0.0)


def mean_confusion(joint: Floats, total: Floats) -> Floats:
    """K[y, g] = E[P_g | clean is y], from the sums of Q'P (C, C) and of Q (C,).

    A class of which there is no row confuses nothing.
    """
    none = (total < 1e-6)[:, None]
    return np.where(none, np.eye(len(joint)), joint / np.maximum(total, 1e-6)[:, None])


def error_trend(counts: Floats, K: Floats) -> Trend:
    """By how many per cent errors rise where the confusion K is one per cent higher.

    ``counts`` (C, C) are rows by clean and given class. The slope is Theil and Sen's,
    so a few large entries (one class called another) do not count as a trend. Classes
    of few rows are left out.
    """
    size, T = counts.sum(axis=1), _rows_of_one(counts)
    enough = size >= LEAST_ROWS
    cells = enough[:, None] & enough & ~np.eye(len(counts), dtype=bool)
    k, t = K[cells], T[cells]
    exact = len(k) <= MAX_EXACT_CELLS
    slopes, deviation = _slopes(k, t, exact)
    one_name = np.concatenate(
        [_slopes(K[c, g], T[c, g], exact)[0] for g, c in enumerate(cells.T)]
    )
    rank = int(np.floor((len(slopes) - 1.96 * deviation) / 2))
    if rank < 1 or len(one_name) == 0:
        return NO_TREND
    unit = float(k.mean() / max(t.mean(), 1e-9))
    middle = float(np.median(slopes))
    squares = float(np.cov(t, k)[0, 1] / max(k.var(ddof=1), 1e-12))
    return Trend(
        elasticity=unit * middle,
        least=unit * float(np.sort(slopes)[rank - 1]),
        one_name=unit * float(np.median(one_name)),
        graded=float(np.clip(middle / squares, 0.0, 1.0)) if squares > 0.0 else 0.0,
        rows=float(counts.sum()),
    )


def _slopes(k: Floats, t: Floats, exact: bool) -> tuple[Floats, float]:
    """Slopes of t on k (m,) between two cells, and the deviation of their balance.

    Between all cells or, if not ``exact``, between those of low and high confusion.
    """
    m = len(k)
    if exact:
        low, high = np.triu_indices(m, 1)
        deviation = np.sqrt(m * (m - 1) * (2 * m + 5) / 18)  # Kendall's
    else:
        order, half = np.argsort(k, kind="stable"), m // 2
        low, high = order[:half], order[m - half :]
        deviation = np.sqrt(half)  # of a sign test
    step = k[high] - k[low]
    real = np.abs(step) > 1e-12
    return (t[high] - t[low])[real] / step[real], float(deviation)


def guessed_share(trend: Trend, counts: Floats, K: Floats) -> float:
    """Share of the labels that were guessed from what the features confuse.

    Of errors with the elasticity a = `ALL_ERRORS`, P has taken up some, h for each one
    that is left, and these have the elasticity 1: ``a (1 + h) = elasticity + h``. That
    is believed as far as there is a trend at all (even noise has none), one that is
    more than a few large cells or than large classes that are named more often, by
    annotators and features alike, and as there are rows enough to know it.
    """
    hidden = max(ALL_ERRORS - trend.elasticity, 0.0) / (1.0 - ALL_ERRORS)
    hidden = min(hidden, MOST_HIDDEN)
    believed = _between(trend.least, *PROVEN) * _between(trend.graded, *GRADED)
    believed *= _between(trend.one_name, *ONE_NAME)
    believed *= trend.rows / (trend.rows + FEW * counts.size)
    errors, confusion = _off_diagonal(counts, K)
    share = believed * hidden * errors / max(confusion, 1e-9)
    return min(share, MOST_GUESSED)


def _between(value: float, low: float, high: float) -> float:
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


def _rows_of_one(counts: Floats) -> Floats:
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9))


def _off_diagonal(counts: Floats, K: Floats) -> tuple[float, float]:
    """Share of wrong labels, and mean confusion, over all rows."""
    share = counts.sum(axis=1) / max(float(counts.sum()), 1e-9)
    T = _rows_of_one(counts)
    errors, confusion = (float(share @ (1.0 - np.diagonal(M))) for M in (T, K))
    return errors, confusion


def sharpening(share: float) -> float:
    """Exponent for P: what annotators confuse, the features do not."""
    return 1.0 / (1.0 - 0.5 * share) ** 2


def guessed(T: Floats, share: float) -> Floats:
    """Share of the rows of each class whose label was guessed, (C,).

    What is guessed looks right to T, so it is at most T's diagonal.
    """
    return np.asarray(np.minimum(share, MOST_OF_RIGHT * np.diagonal(T)))


def blame_annotator(T: Floats, K: Floats, share: float) -> Floats:
    """T with guesses, on the average of the rows of a class, (C, C)."""
    return np.asarray(T + guessed(T, share)[:, None] * (K - np.eye(len(T))))


def posterior_of_guesses(
    clean: Floats, P: Floats, T: Floats, share: float, given: Ints
) -> Floats:
    """Pr[clean | x, given], (n, C), if labels are guessed where P is unsure.

    In row x an annotator says g instead of y with probability
    ``T[y, g] + guessed (P[x, g] - [y is g])``. ``clean`` (n, C) is what the features
    say, P what they, and annotators who guess, confuse. Rows without a label (given is
    -1) keep ``clean``.
    """
    m = guessed(T, share).astype(P.dtype)
    known = given >= 0
    rows, said = np.arange(len(given)), np.where(known, given, 0)
    Q = np.take(np.ascontiguousarray(T.T, dtype=P.dtype), said, axis=0)
    Q += P[rows, said][:, None] * m
    Q[rows, said] -= m[said]
    Q[~known] = 1.0
    Q *= clean
    Q /= np.maximum(Q.sum(axis=1, keepdims=True), np.finfo(P.dtype).tiny)
    return Q


def up_to_quality(
    share: float, T: Floats, K: Floats, shares: Floats, least: float
) -> float:
    """Give the largest part of ``share`` that leaves T a quality of ``least``."""
    low, high = 0.0, share
    if share <= 0.0 or quality(blame_annotator(T, K, share), shares) >= least:
        return share
    for _ in range(20):
        middle = 0.5 * (low + high)
        enough = quality(blame_annotator(T, K, middle), shares) >= least
        low, high = (middle, high) if enough else (low, middle)
    return low
