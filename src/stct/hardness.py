"""People err on hard rows, towards what the features confuse: find it, allow for it.

A T that is the same for every row explains such errors as weakness of the features: P
comes out too soft and T too clean. Row by row the given labels cannot tell the two
apart. Class by class they can: where annotators err towards what the features confuse,
the off-diagonal of T rises with the mean confusion K; where noise was injected, or the
features are weak, it does not. Legend: n rows, C classes.
"""

import numpy as np

from stct.linear import Floats
from stct.transition import quality

MAX_SLOPE = 1.0 / 3.0
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


def blame_annotator(T: Floats, K: Floats, slope: float) -> Floats:
    """T with the annotators' share of the confusion added, rows sum to 1, (C, C).

    Twice the slope: T shows the part that P could not take up, and about as much again
    went into P.
    """
    off = np.where(np.eye(len(T), dtype=bool), 0.0, T + 2.0 * slope * K)
    off *= np.minimum(1.0, 0.98 / np.maximum(off.sum(axis=1, keepdims=True), 1e-12))
    return np.asarray(off + np.diag(1.0 - off.sum(axis=1)))


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
