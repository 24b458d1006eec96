"""People err on hard rows, towards what the features confuse: find it, allow for it.

A T that is the same for every row explains such errors as weakness of the features: P
comes out too soft and T too clean. Row by row the given labels cannot tell the two
apart: an annotator who guesses the label of some rows from P itself, and one who knows
these rows, give the same labels to the same rows equally often. Class by class they
can: where annotators err towards what the features confuse, the off-diagonal of T rises
with the mean confusion K; where noise was injected, or the features are weak, it does
not. Legend: n rows, C classes; P = Pr[clean | x] (n, C), T[clean, given].
"""

import numpy as np

from stct.linear import Floats
from stct.transition import Ints, quality

MAX_SLOPE = 1.0 / 3.0
MOST_GUESSED = 0.9  # of the labels that look right
MAX_EXACT_CELLS = 400  # more off-diagonal cells: pair low with high confusion only


def mean_confusion(joint: Floats, total: Floats) -> Floats:
    """K[y, g] = E[P_g | clean is y], from the sums of Q'P (C, C) and of Q (C,)."""
    return np.asarray(joint / np.maximum(total, 1e-9)[:, None])


def confusion_slope(counts: Floats, K: Floats) -> float:
    """How much of a unit of confusion the annotators share, as far as it is proven.

    The lower end of a 95% interval of the Theil-Sen slope of T's off-diagonal on K's,
    so a few large entries (one class called another) do not count as a trend. 0 if the
    interval reaches below.
    """
    off = ~np.eye(len(counts), dtype=bool)
    T = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
    k, t = K[off], T[off]
    m = len(k)
    if m <= MAX_EXACT_CELLS:
        low, high = np.triu_indices(m, 1)
        deviation = np.sqrt(m * (m - 1) * (2 * m + 5) / 18)  # Kendall's
    else:
        order, half = np.argsort(k, kind="stable"), m // 2
        low, high = order[:half], order[m - half :]
        deviation = np.sqrt(half)  # of a sign test
    step = k[high] - k[low]
    real = np.abs(step) > 1e-12
    slopes = np.sort((t[high] - t[low])[real] / step[real])
    rank = int(np.floor((len(slopes) - 1.96 * deviation) / 2))
    return float(np.clip(slopes[rank - 1], 0.0, MAX_SLOPE)) if rank >= 1 else 0.0


def sharpening(slope: float) -> float:
    """Exponent for P: what annotators confuse, the features do not."""
    return 1.0 / (1.0 - slope) ** 2


def guessed(T: Floats, slope: float) -> Floats:
    """Share of the rows of each class whose label was guessed, (C,).

    Twice the slope: T shows the part that P could not take up, and about as much again
    went into P. What is guessed looks right to T, so it is at most T's diagonal.
    """
    return np.asarray(np.minimum(2.0 * slope, MOST_GUESSED * np.diagonal(T)))


def blame_annotator(T: Floats, K: Floats, slope: float) -> Floats:
    """T with guesses, on the average of the rows of a class, (C, C)."""
    return np.asarray(T + guessed(T, slope)[:, None] * (K - np.eye(len(T))))


def posterior_of_guesses(
    clean: Floats, P: Floats, T: Floats, slope: float, given: Ints
) -> Floats:
    """Pr[clean | x, given], (n, C), if labels are guessed where P is unsure.

    In row x an annotator says g instead of y with probability
    ``T[y, g] + guessed (P[x, g] - [y is g])``. ``clean`` (n, C) is what the features
    say, P what they, and annotators who guess, confuse. Rows without a label (given is
    -1) keep ``clean``.
    """
    m = guessed(T, slope).astype(P.dtype)
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
    slope: float, T: Floats, K: Floats, shares: Floats, least: float
) -> float:
    """Give the largest share of ``slope`` that leaves T a quality of ``least``."""
    low, high = 0.0, slope
    if slope <= 0.0 or quality(blame_annotator(T, K, slope), shares) >= least:
        return slope
    for _ in range(20):
        middle = 0.5 * (low + high)
        enough = quality(blame_annotator(T, K, middle), shares) >= least
        low, high = (middle, high) if enough else (low, middle)
    return low
