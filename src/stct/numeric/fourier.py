"""Random Fourier features: cosine and sine of random projections.

Their products average to a Gaussian kernel. Legend: n rows, d columns, m frequencies.
"""

from typing import NamedTuple

import numpy as np

from stct.numeric.centring import CentredRows
from stct.numeric.engine import ALL, Computed, Engine, Index, RowValues
from stct.numeric.types import Floats

MAX_BYTES = 2**30  # more: computed again at every pass


class FourierFeatures(NamedTuple):
    """Rows as they are, centred, and cosine and sine of random projections."""

    mean: Floats  # (d,)
    scale: float
    frequencies: Floats  # (d, m)
    unit: float = 1.0  # factor of the rows, so that their size is that of a cosine

    def __call__(self, X: Floats) -> Floats:
        """(n, d) -> (n, d + 2 m) float32."""
        return self.of_centred((X - self.mean) * self.scale)

    def of_centred(self, X: Floats) -> Floats:
        """Add the columns to rows that are centred and scaled already."""
        waves = cosines_and_sines(X, self.frequencies)
        return np.concatenate([self.unit * X, waves], axis=1, dtype=waves.dtype)

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


def draw_frequencies(
    X: Floats, weights: Floats, count: int, bandwidth: float
) -> Floats:
    """Draw projections (d, count); the median distance is ``bandwidth`` radians.

    ``weights`` (d,) say how much a column counts.

    References
    ----------
    .. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines",
       NeurIPS 2007.
    """
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, len(X), (2, 512))
    squared = (((X[one] - X[other]) * weights) ** 2).sum(axis=1)
    median = max(float(np.sqrt(np.median(squared))), 1e-30)
    drawn = np.empty((X.shape[1], count))
    # The same for a column, wherever it stands.
    drawn[np.argsort((X**2).sum(axis=0))] = rng.standard_normal(drawn.shape)
    drawn *= bandwidth / median * weights[:, None]
    return drawn.astype(np.float32)
