"""Instance-dependent noise: labels that follow what the features confuse.

A T that is the same for every row explains such errors as weakness of the features: P
comes out too soft and T too clean. The given labels cannot tell the two apart, row by
row. So a share m of the labels, the ambiguity share, is assumed to be drawn from P
itself. m has a prior; T moves it where T has been measured: errors that do not follow
the confusion of classes speak against instance-dependent noise. Legend: n rows,
C classes; P = Pr[clean | x] (n, C), T[clean, given], K[clean, other] mean confusion.
"""

import numpy as np
from scipy.optimize import brentq

from stct.correction.settings import DEFAULT, NoiseSettings
from stct.noise_model.transition import count_given, posterior
from stct.numeric.types import Floats, Ints

LEAST_CONFUSION = 1e-6
MOST_ELASTIC = 2.0
MAX_EXACT_CELLS = 400  # more entries: each low with one high confusion only


def ambiguity_share(
    P: Floats, T: Floats, given: Ints, settings: NoiseSettings
) -> tuple[float, Floats]:
    """Estimate m from some rows, (m, C); give it with the mean confusion K.

    m is ``settings.share`` if errors follow the features as those of annotators do,
    nothing if they do not, and a part of it as far as that is not known. Two
    elasticities of the errors are asked; each counts in proportion to the number of
    wrong labels it was measured with. Ambiguous errors are at most ``settings.hidden``
    times those that T has found.
    """
    Q = posterior(P, T, given)
    counts, total = count_given(Q, given), Q.sum(axis=0, dtype=np.float64)
    K = mean_confusion(Q.T @ P, total)
    sizes = counts.sum(axis=1) / max(float(counts.sum()), 1e-9)
    wrong, confused = (float(sizes @ (1.0 - np.diagonal(M))) for M in (T, K))
    m = settings.share * min(1.0, settings.hidden * wrong / max(confused, 1e-9))
    if len(T) == 2:  # there are no entries to compare
        return m * settings.unknown, K
    errors = wrong * float(counts.sum())
    follows = evidence(pooled_elasticity(counts, K), settings.elasticity)
    weight = errors / (errors + settings.pooled_rows)
    m *= weight * follows + (1.0 - weight) * settings.unknown
    follows = evidence(median_elasticity(counts, K, settings), settings.elasticity)
    weight = errors / (errors + settings.median_rows * counts.size)
    return m * (weight * follows + (1.0 - weight)), K


def evidence(value: float, scale: tuple[float, float]) -> float:
    """Place of a value between none and enough, from 0 to 1."""
    none, enough = scale
    return min(max((value - none) / (enough - none), 0.0), 1.0)


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


def median_elasticity(
    counts: Floats, K: Floats, settings: NoiseSettings = DEFAULT.noise
) -> float:
    """By how many per cent errors rise where the confusion is one per cent higher.

    0 if they do not rise, 1 if they rise in proportion. The slope is Theil's and Sen's,
    so a few large entries (one class given as another) do not count as a trend.
    """
    size = counts.sum(axis=1)
    enough = size >= settings.least_rows
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


def sharpened(sharpness: float, share: float, settings: NoiseSettings) -> float:
    """Sharpness of the features: what annotators confuse, they may tell apart."""
    return sharpness / (1.0 - settings.sharpening * share) ** 2


def ambiguous_rows(T: Floats, share: float, settings: NoiseSettings) -> Floats:
    """Share of the rows of each class whose label is drawn from P, (C,).

    Such labels look right to T, so they are at most T's diagonal.
    """
    return np.asarray(np.minimum(share, settings.most_of_right * np.diagonal(T)))


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


def probability_of_errors(P: Floats, settings: NoiseSettings) -> float:
    """Probability that what T takes for wrong labels is not weakness of the features.

    The likelihood cannot tell labels that were drawn at random from rows of which the
    features say nothing. It is 1 where the features know the class of most rows, and
    1/2, which never changes a label, where they do not.
    """
    return 0.5 + 0.5 * evidence(float(P.max(axis=1).mean()), settings.known)
