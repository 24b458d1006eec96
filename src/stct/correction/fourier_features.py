"""Columns that are not linear in the features, where the labels ask for them.

Embeddings of a good encoder are linear in what matters; a table of measurements, a few
columns or raw pixels need not be. Random Fourier features (Rahimi and Recht, 2007)
stand in for a Gaussian kernel: cosine and sine of random projections, whose products
average to it. They are used only if they predict the given labels of rows that were
left out clearly better (Theorem 1): a linear model that is sure of the wrong class
would take right labels for noise. Legend: n rows, d columns, m frequencies, C classes.
"""

from typing import NamedTuple

import numpy as np

from stct.numeric.centring import CentredRows
from stct.numeric.engine import ALL, Computed, Engine, Index, RowValues
from stct.numeric.ridge import RidgePath
from stct.numeric.tiles import side_by_side
from stct.numeric.types import Floats, Ints

SAMPLE = 4096  # rows that decide
TRIED, USED = 128, 256  # frequencies
ROWS_PER_FREQUENCY = 8  # fewer rows, fewer frequencies
BANDWIDTHS = (1.0, 2.0)  # radians between two rows at the median distance
ERRORS = 3.0  # standard errors by which more labels must be predicted
LEAST_GAIN = 0.02  # of what is predicted beyond chance; less is not worth drawing lots
FIRST_LOOK, LOOKED_AT = 2048, 64  # rows and frequencies
HOPE = 2.0  # standard errors more of it must reach the least gain, or it ends there
MAX_BYTES = 2**30  # more: computed again at every pass


class Lift(NamedTuple):
    """Rows as they are, centred, and cosine and sine of random projections."""

    mean: Floats  # (d,)
    scale: float
    frequencies: Floats  # (d, m)

    def __call__(self, X: Floats) -> Floats:
        """(n, d) -> (n, d + 2 m) float32."""
        return self.of_centred((X - self.mean) * self.scale)

    def of_centred(self, X: Floats) -> Floats:
        """Lift rows that are centred and scaled already."""
        return np.concatenate([X, waves(X, self.frequencies)], axis=1)

    def rows(self, centred: CentredRows, engine: Engine) -> RowValues:
        """Lifted rows of centred ones (n, d); stored if they are few."""
        n, d = centred.shape

        def some(rows: slice, index: Index = ALL) -> Floats:
            return self.of_centred(centred.some(rows, index))

        shape = (n, d + 2 * self.frequencies.shape[1])
        lifted = Computed(some, shape, np.float32, some=some)
        if 4 * shape[0] * shape[1] > MAX_BYTES:
            return lifted
        stored: RowValues = engine.rows(lifted.__getitem__, n)
        return stored


def waves(X: Floats, frequencies: Floats) -> Floats:
    """Cosine and sine of projections, (n, d), (d, m) -> (n, 2 m)."""
    angle = X.astype(np.float32) @ frequencies
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def draw_frequencies(X: Floats, weights: Floats, count: int) -> Floats:
    """Projections (d, count) in which the median distance is one radian.

    ``weights`` (d,) say how much a column counts.
    """
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, len(X), (2, 512))
    squared = (((X[one] - X[other]) * weights) ** 2).sum(axis=1)
    median = max(float(np.sqrt(np.median(squared))), 1e-30)
    drawn = rng.standard_normal((X.shape[1], count)) * weights[:, None]
    return np.asarray(drawn / median, dtype=np.float32)


def choose_lift(X: Floats, S: Floats, given: Ints, path: RidgePath) -> Lift | None:
    """Give the columns that predict the given labels better than S alone, or None.

    Parameters
    ----------
    X : ndarray of shape (t, d)
        Some rows, centred and scaled.
    S : ndarray of shape (t, C)
        Their leave-one-out scores by a linear model.
    given : ndarray of shape (t,)
        Their labels; all have one.
    path : RidgePath
        Of the linear model: how rows are centred, how many have labels.
    """
    first, *finer = BANDWIDTHS
    least = least_gain(float(np.mean(S.argmax(axis=1) == given)), given)

    def best_weights(step: int, most: int) -> _Trial:
        def attempt(weights: Floats) -> _Trial:
            return _try(X[::step], S[::step], given[::step], weights, first, most)

        return max(side_by_side(attempt, _column_weights(X)), key=lambda t: t.gain)

    step = len(X) // FIRST_LOOK
    if step > 1:
        glimpse = best_weights(step, LOOKED_AT)
        if glimpse.gain + HOPE * glimpse.error < least:
            return None
    best = best_weights(1, TRIED)
    if best.gain < max(least, ERRORS * best.error):
        return None
    for bandwidth in finer:
        trial = _try(X, S, given, best.weights, bandwidth, TRIED)
        if trial.gain < best.gain:
            break
        best = trial
    count = _count(path.num_labelled, USED)
    drawn = best.bandwidth * draw_frequencies(X, best.weights, count)
    return Lift(path.rows.mean, path.rows.scale, drawn)


def least_gain(predicted: float, given: Ints) -> float:
    """Share of the labels that must be gained, where that share is predicted.

    Under much noise few labels can be predicted at all, and few more are much.
    """
    shares = np.bincount(given) / len(given)
    return LEAST_GAIN * max(predicted - float(shares @ shares), 0.0)


class _Trial(NamedTuple):
    weights: Floats
    bandwidth: float
    gain: float  # share of labels predicted that S does not
    error: float  # standard error of that


def _try(
    X: Floats, S: Floats, given: Ints, weights: Floats, bandwidth: float, most: int
) -> _Trial:
    drawn = bandwidth * draw_frequencies(X, weights, _count(len(X), most))
    # Scores are made so large that ridge leaves them alone.
    both = np.concatenate(
        [10.0 / max(float(S.std()), 1e-30) * S, waves(X, drawn)], axis=1
    )
    path = RidgePath(both.astype(np.float32), np.ones(len(X), dtype=bool), owned=True)
    target = np.eye(S.shape[1], dtype=np.float32)[given]
    by_both = path.fit(target, given).scores.argmax(axis=1) == given
    gain = by_both.astype(np.float64) - (S.argmax(axis=1) == given)
    error = max(float(gain.std()) / np.sqrt(len(gain)), 1e-12)
    return _Trial(weights, bandwidth, float(gain.mean()), error)


def _column_weights(X: Floats) -> tuple[Floats, Floats]:
    """Columns as they are, and all columns alike, (d,) each."""
    deviation = np.sqrt(np.einsum("ij,ij->j", X, X) / len(X))  # rows are centred
    used = deviation > 1e-6 * deviation.max()
    alike = np.where(used, 1.0 / np.where(used, deviation, 1.0), 0.0)
    return used.astype(np.float32), alike


def _count(num_rows: int, most: int) -> int:
    return max(1, min(most, num_rows // ROWS_PER_FREQUENCY))
