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

from stct.correction.settings import ScoreSettings
from stct.numeric.centring import CentredRows
from stct.numeric.engine import ALL, Computed, Engine, Index, RowValues
from stct.numeric.ridge import RidgePath
from stct.numeric.types import Floats, Ints

MAX_BYTES = 2**30  # more: computed again at every pass


class FourierFeatures(NamedTuple):
    """Rows as they are, centred, and cosine and sine of random projections."""

    mean: Floats  # (d,)
    scale: float
    frequencies: Floats  # (d, m)

    def __call__(self, X: Floats) -> Floats:
        """(n, d) -> (n, d + 2 m) float32."""
        return self.of_centred((X - self.mean) * self.scale)

    def of_centred(self, X: Floats) -> Floats:
        """Add the columns to rows that are centred and scaled already."""
        return np.concatenate([X, cosines_and_sines(X, self.frequencies)], axis=1)

    def rows(self, centred: CentredRows, engine: Engine) -> RowValues:
        """Wider rows of centred ones (n, d); stored if they are few."""
        n, d = centred.shape

        def some(rows: slice, index: Index = ALL) -> Floats:
            return self.of_centred(centred.some(rows, index))

        shape = (n, d + 2 * self.frequencies.shape[1])
        wider = Computed(some, shape, np.float32, some=some)
        if 4 * shape[0] * shape[1] > MAX_BYTES:
            return wider
        stored: RowValues = engine.rows(wider.__getitem__, n)
        return stored


def cosines_and_sines(X: Floats, frequencies: Floats) -> Floats:
    """Cosine and sine of projections, (n, d), (d, m) -> (n, 2 m)."""
    angle = X.astype(np.float32) @ frequencies
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def draw_frequencies(X: Floats, count: int, bandwidth: float) -> Floats:
    """Draw projections (d, count); the median distance is ``bandwidth`` radians.

    References
    ----------
    .. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines",
       NeurIPS 2007.
    """
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, len(X), (2, 512))
    squared = ((X[one] - X[other]) ** 2).sum(axis=1)
    median = max(float(np.sqrt(np.median(squared))), 1e-30)
    drawn = np.empty((X.shape[1], count))
    # The same for a column, wherever it stands.
    drawn[np.argsort((X**2).sum(axis=0))] = rng.standard_normal(drawn.shape)
    return np.asarray(bandwidth / median * drawn, dtype=np.float32)


def choose_fourier_features(
    X: Floats, S: Floats, given: Ints, path: RidgePath, settings: ScoreSettings
) -> FourierFeatures | None:
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

    def count(num_rows: int, most: int) -> int:
        return max(1, min(most, num_rows // settings.rows_per_frequency))

    def gain(step: int, most: int) -> tuple[float, float]:
        x, s, g = X[::step], S[::step], given[::step]
        number = count(len(x), most)
        return gain_of_labels(x, s, g, draw_frequencies(x, number, settings.bandwidth))

    right = float((S.argmax(axis=1) == given).mean())
    least = least_gain(right, given, settings)
    if len(X) > settings.first_rows:  # is it at all probable?
        step = -(-len(X) // settings.first_rows)
        mean, error = gain(step, settings.first_frequencies)
        if mean + settings.errors * error < least:
            return None
    mean, error = gain(1, settings.max_frequencies // 2)
    if mean < max(least, settings.errors * error):
        return None
    used = count(path.num_labelled, settings.max_frequencies)
    drawn = draw_frequencies(X, used, settings.bandwidth)
    return FourierFeatures(path.rows.mean, path.rows.scale, drawn)


def least_gain(predicted: float, given: Ints, settings: ScoreSettings) -> float:
    """Share of the labels that must be gained, where that share is predicted.

    Under much noise few labels can be predicted at all, and few more are much.
    """
    shares = np.bincount(given) / len(given)
    return settings.least_gain * max(predicted - float(shares @ shares), 0.0)


def gain_of_labels(
    X: Floats, S: Floats, given: Ints, frequencies: Floats
) -> tuple[float, float]:
    """Share of the labels predicted beside S that S does not, and standard error."""
    # Scores are made so large that ridge leaves them alone.
    scores = 10.0 / max(float(S.std()), 1e-30) * S
    both = np.concatenate([scores, cosines_and_sines(X, frequencies)], axis=1)
    path = RidgePath(both.astype(np.float32), np.ones(len(X), dtype=bool), owned=True)
    target = np.eye(S.shape[1], dtype=np.float32)[given]
    return gained(path.fit(target, given).scores, S, given)


def gained(new: Floats, old: Floats, given: Ints) -> tuple[float, float]:
    """Share of the labels that only the new scores predict, and its error."""
    gain = (new.argmax(axis=1) == given).astype(np.float64)
    gain -= old.argmax(axis=1) == given
    return float(gain.mean()), max(float(gain.std()) / np.sqrt(len(gain)), 1e-12)
