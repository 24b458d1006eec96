"""Instance-dependent noise: labels that follow what the features confuse.

A T that is the same for every row explains such errors as weakness of the features: P
comes out too soft and T too clean. The given labels cannot tell the two apart, row by
row. So a share m of the labels, the ambiguity share, is assumed to be drawn from P
itself. m has a prior; T moves it where T has been measured: errors that do not follow
the confusion of classes speak against instance-dependent noise. Legend: n rows,
C classes; P = Pr[clean | x] (n, C), T[clean, given], K[clean, other] mean confusion.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from stct.correction.settings import NoiseSettings
from stct.noise_model.transition import count_given, posterior
from stct.numeric.types import Floats, Ints

LEAST_ROWS = 5.0  # of a class whose errors are compared
LEAST_CONFUSION = 1e-6
MOST_ELASTIC = 2.0
MAX_EXACT_CELLS = 400  # more entries: each low with one high confusion only


class AmbiguityShare(NamedTuple):
    """Share of the labels that are drawn from P, and the range it may be in."""

    low: float
    share: float
    high: float


def ambiguity_share(
    P: Floats, T: Floats, given: Ints, settings: NoiseSettings
) -> tuple[AmbiguityShare, Floats]:
    """Estimate m from some rows, (m, C); give it with the mean confusion K.

    The prior share is mixed with what the entries of T say, in proportion to the
    number of wrong labels that they were measured with. Where the features confuse
    much, it is limited: instance-dependent errors of all rows are not taken to be more
    than those that T has found and ``settings.unseen`` of the rows.
    """
    Q = posterior(P, T, given)
    counts, total = count_given(Q, given), Q.sum(axis=0, dtype=np.float64)
    K = mean_confusion(Q.T @ P, total)
    share = counts.sum(axis=1) / max(float(counts.sum()), 1e-9)
    wrong, confusion = (float(share @ (1.0 - np.diagonal(M))) for M in (T, K))

    def limit(unseen: float) -> float:
        return min(1.0, (settings.hidden * wrong + unseen) / max(confusion, 1e-9))

    known, follows = 0.0, settings.unknown
    if len(T) > 2:
        follows = 1.0  # with two classes there are no entries to compare
        errors = wrong * float(counts.sum())
        for value, low, high, rows in (
            (pooled_elasticity(counts, K), *settings.pooled, settings.pooled_rows),
            (
                median_elasticity(counts, K),
                *settings.median,
                settings.median_rows * counts.size,
            ),
        ):
            weight = errors / (errors + rows)
            evidence = min(max((value - low) / (high - low), 0.0), 1.0)
            prior = settings.unknown if known == 0.0 else 1.0
            follows *= weight * evidence + (1.0 - weight) * prior
            known = max(known, weight)
    middle = settings.share * follows * limit(settings.unseen)
    widest = (1.0 - known) * settings.widest + known * settings.share
    high = widest * follows * limit(settings.most_unseen)
    return AmbiguityShare(known * middle, middle, high), K


def mean_confusion(joint: Floats, total: Floats) -> Floats:
    """K[y, g] = E[P_g | clean is y], from the sums of Q'P (C, C) and of Q (C,).

    A class of which there is no row confuses nothing.
    """
    none = (total < 1e-6)[:, None]
    return np.where(none, np.eye(len(joint)), joint / np.maximum(total, 1e-6)[:, None])


def pooled_elasticity(counts: Floats, K: Floats) -> float:
    """Exponent a by which errors follow the confusion: the Poisson regression.

    Errors of a class go to others in proportion to ``K ** a``. 0 if they go anywhere.

    Parameters
    ----------
    counts : ndarray of shape (C, C)
        Rows by clean and given class.
    """
    off = ~np.eye(len(K), dtype=bool)
    errors = counts[off].reshape(len(K), -1)  # (C, C - 1)
    log_K = np.log(np.maximum(K[off].reshape(len(K), -1), LEAST_CONFUSION))
    total = errors.sum(axis=1, keepdims=True)

    def slope(a: float) -> float:  # of the log-likelihood, decreases in a
        share = np.exp(a * (log_K - log_K.max(axis=1, keepdims=True)))
        share /= share.sum(axis=1, keepdims=True)
        return float(((errors - total * share) * log_K).sum())

    low, high = 0.0, MOST_ELASTIC
    if slope(low) <= 0.0 or slope(high) >= 0.0:
        return low if slope(low) <= 0.0 else high
    return float(brentq(slope, low, high, xtol=1e-4))


def median_elasticity(counts: Floats, K: Floats) -> float:
    """By how many per cent errors rise where the confusion is one per cent higher.

    0 if they do not rise, 1 if they rise in proportion. The slope is Theil's and Sen's,
    so a few large entries (one class given as another) do not count as a trend.
    """
    size = counts.sum(axis=1)
    enough = size >= LEAST_ROWS
    cells = enough[:, None] & enough & ~np.eye(len(counts), dtype=bool)
    k, t = K[cells], (counts / np.maximum(size, 1e-9)[:, None])[cells]
    if len(k) < 3:
        return 0.0
    if len(k) <= MAX_EXACT_CELLS:
        one, other = np.triu_indices(len(k), 1)
    else:
        order, half = np.argsort(k, kind="stable"), len(k) // 2
        one, other = order[:half], order[len(k) - half :]
    step = k[other] - k[one]
    real = np.abs(step) > 1e-12
    if not real.any() or t.mean() <= 0.0:
        return 0.0
    slope = float(np.median((t[other] - t[one])[real] / step[real]))
    return max(slope, 0.0) * float(k.mean() / t.mean())


def sharpening(share: float) -> float:
    """Exponent for P: what annotators confuse, the features may tell apart."""
    return 1.0 / (1.0 - 0.5 * share) ** 2


def ambiguous(T: Floats, share: float, most: float) -> Floats:
    """Share of the rows of each class whose label is drawn from P, (C,).

    Such labels look right to T, so they are at most T's diagonal.
    """
    return np.asarray(np.minimum(share, most * np.diagonal(T)))


def class_average_transition(T: Floats, K: Floats, m: Floats) -> Floats:
    """T with instance-dependent noise, averaged over the rows of a class, (C, C)."""
    return np.asarray(T + m[:, None] * (K - np.eye(len(T))))


def instance_posterior(
    clean: Floats, P: Floats, T: Floats, m: Floats, given: Ints
) -> Floats:
    """Pr[clean | x, given], (n, C), with instance-dependent noise.

    In row x the label g is given instead of y with probability
    ``T[y, g] + m[y] (P[x, g] - [y is g])``. ``clean`` (n, C) is Pr[clean | x], P what
    annotators draw from. Rows without a label (given is -1) keep ``clean``.
    """
    m = m.astype(P.dtype)
    known = given >= 0
    rows, label = np.arange(len(given)), np.where(known, given, 0)
    Q = np.take(np.ascontiguousarray(T.T, dtype=P.dtype), label, axis=0)
    Q += P[rows, label][:, None] * m
    Q[rows, label] -= m[label]
    Q[~known] = 1.0
    Q *= clean
    Q /= np.maximum(Q.sum(axis=1, keepdims=True), np.finfo(P.dtype).tiny)
    return Q


def trust_in_errors(P: Floats, settings: NoiseSettings) -> float:
    """Probability that what T explains as wrong labels is not weakness of the features.

    The likelihood cannot tell rows about which the features say nothing from labels
    that were drawn at random.
    """
    known = float(P.max(axis=1).mean())  # share of the rows whose class is known
    low, high = settings.known
    return 0.5 + 0.5 * min(max((known - low) / (high - low), 0.0), 1.0)
