"""Share of right labels from rows that a person verified: design-based estimates.

Nothing is assumed of features or labels, only that the rows were drawn at random with
known probabilities. Legend: m verified rows of N; w = 1 / inclusion probability.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from stct.correction.settings import DEFAULT
from stct.numeric.types import Floats, Ints


class ShareEstimate(NamedTuple):
    """A share of all rows, estimated from a sample of them."""

    value: float
    interval: tuple[float, float]
    num_rows: int  # in the sample
    population: int

    @property
    def more_rows(self) -> int:
        """Rows to verify in addition for an interval half as wide."""
        n, population = self.num_rows, self.population
        if n >= population:
            return 0
        wanted = 1.0 / ((1.0 / n - 1.0 / population) / 4.0 + 1.0 / population)
        return int(np.ceil(wanted)) - n

    def plus(self, known: float) -> "ShareEstimate":
        """Add a share that is known exactly."""
        low, high = self.interval
        value, low, high = (min(v + known, 1.0) for v in (self.value, low, high))
        return self._replace(value=value, interval=(low, high))


def estimate_share(
    right: NDArray[np.bool_], weight: Floats, population: int
) -> ShareEstimate:
    """Estimate a share of ``population`` rows, with an interval of 95%.

    The share is the weighted mean. The interval is that of Clopper and Pearson with
    the effective sample size ``p (1 - p) / variance`` (Korn and Graubard 1998) in
    place of m. Without strata that is ``m / (1 - m / N)``: the exact interval, with
    the correction for a finite population.

    Parameters
    ----------
    right : ndarray of bool, shape (m,)
    weight : ndarray of shape (m,)
        1 / inclusion probability, up to a factor. Rows of one weight are a stratum.
    population : int
        N, all rows, the verified ones among them.
    """
    m = len(right)
    value = min(float((weight / weight.sum()) @ right), 1.0)
    variance = stratified_variance(right, weight, population)
    spread = value * (1.0 - value)
    effective = m / max(1.0 - m / population, 1e-9)
    if variance > 0.0 and spread > 0.0 and len(strata(weight)) > 1:
        effective = spread / variance
    return ShareEstimate(value, clopper_pearson(value, effective), m, population)


def stratified_variance(
    right: NDArray[np.bool_], weight: Floats, population: int
) -> float:
    """Variance of the weighted mean, with rows of one weight as a stratum.

    Of n rows of a stratum at least a quarter of one may be of the other kind: a few
    rows that are all right do not prove that all of the stratum are.
    """
    total, variance = float(weight.sum()), 0.0
    for rows in strata(weight):
        w, n = weight[rows], len(rows)
        size = population * float(w.sum()) / total  # rows of the stratum
        mean = float(w @ right[rows]) / float(w.sum())
        least = DEFAULT.interval.unseen / (n + 1)
        spread = mean * (1.0 - mean) * n / max(n - 1, 1)
        spread = max(spread, least * (1.0 - least))
        variance += max(1.0 - n / size, 0.0) * float(w @ w) * spread
    return variance / total**2


def strata(weight: Floats) -> list[Ints]:
    """Rows of one weight each, lightest first; a single row joins its neighbours."""
    order = np.argsort(weight, kind="stable")
    steps = np.diff(weight[order]) > 1e-6 * weight[order][1:]
    joined: list[Ints] = []
    for group in np.split(order, np.flatnonzero(steps) + 1):
        if joined and len(joined[-1]) < 2:
            joined[-1] = np.concatenate([joined[-1], group])
        else:
            joined.append(group)
    if len(joined) > 1 and len(joined[-1]) < 2:
        joined[-2:] = [np.concatenate(joined[-2:])]
    return joined


def clopper_pearson(
    share: float, num_rows: float, level: float = DEFAULT.interval.level
) -> tuple[float, float]:
    """Exact binomial interval; ``num_rows`` may be an effective, fractional number."""
    right = share * num_rows
    wrong = num_rows - right
    tail = (1.0 - level) / 2.0
    low = float(betaincinv(right, wrong + 1.0, tail)) if right > 0.0 else 0.0
    high = float(betaincinv(right + 1.0, wrong, 1.0 - tail)) if wrong > 0.0 else 1.0
    return low, high
