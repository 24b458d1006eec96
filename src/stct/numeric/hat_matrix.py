"""How much of its own label is in a row's prediction: the diagonal of the hat matrix.

Leave-one-out divides by one minus it. With ridge r and Gram matrix V diag(v) V' it is
``x' V diag(1 / (v + r)) V' x``. Legend: t rows of a tile, d columns, C classes, L
ridges.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.numeric.types import Floats

# A row that is alone in its direction has leverage 1 and nothing to be predicted from:
# it gets the mean. Dividing what is left by 1 - leverage would give its label away.
MOST_LEVERAGE = 1.0 - 1e-3
BLOCK = 64  # columns
FULL_RANK = 0.6  # of the columns: with fewer directions a triangle is no less work


class Axes(NamedTuple):
    """Eigenvalues and -vectors of a Gram matrix, without directions of no variance."""

    values: Floats  # (rank,)
    vectors: Floats  # (d, rank)

    def astype(self, dtype: np.dtype[Any]) -> "Axes":
        """Give vectors of another type; the values stay as they are."""
        return self._replace(vectors=self.vectors.astype(dtype))

    def leverages(self, X: Floats, ridges: Floats) -> Floats:
        """Leverages of rows (t, d) for several ridges (L,) at once, (t, L)."""
        D = 1.0 / (self.values[:, None] + ridges)  # (rank, L)
        Z = X @ self.vectors
        np.square(Z, out=Z)
        return np.asarray(np.minimum(Z @ D.astype(X.dtype), MOST_LEVERAGE))

    def root(self, ridge: float, dtype: np.dtype[Any]) -> "Root":
        """Give F with ``F F' = V diag(1 / (v + ridge)) V'``."""
        values, V = self
        if len(values) < FULL_RANK * len(V):
            return Root((V / np.sqrt(values + ridge)).astype(dtype), triangular=False)
        # Directions that were left out teach nothing. Next to nothing keeps F real.
        nothing = 1e-6 / (float(values.max()) + ridge)
        inverse = (V * (1.0 / (values + ridge) - nothing)) @ V.T
        inverse[np.diag_indices(len(V))] += nothing
        return Root(np.linalg.cholesky(inverse).astype(dtype), triangular=True)


class Root(NamedTuple):
    """Leverages for one ridge, as the squared lengths of ``x' F``."""

    F: Floats  # (d, rank), or (d, d) lower triangular
    triangular: bool

    def leverage(self, X: Floats) -> Floats:
        """Leverages of rows (t, d), (t,)."""
        total = np.zeros(len(X), X.dtype)
        for start in range(0, self.F.shape[1], BLOCK):
            # Above the diagonal are zeros: half of the work.
            below = slice(start if self.triangular else 0, None)
            Z = X[:, below] @ self.F[below, start : start + BLOCK]
            total += np.einsum("ij,ij->i", Z, Z)
        return np.minimum(total, MOST_LEVERAGE)


def left_out(
    F: Floats,
    own: Floats,
    known: NDArray[np.bool_],
    Y: Floats,
    mean: Floats,
    n: int,
) -> Floats:
    """Leave-one-out predictions (F - l Y) / (1 - l) from those by all rows.

    Left out of the weights and of the means that the others are centred by, a row has
    leverage l + 1/n. The label mean alone is that of all rows.

    Parameters
    ----------
    F : ndarray of shape (..., C, t)
        Overwritten.
    own : ndarray of shape (..., 1, t)
        Leverages.
    known : ndarray of bool, shape (t,)
        Rows that were learnt from.
    Y : ndarray of shape (C, t)
    mean : ndarray of shape (C,)
    n : int
        How many rows were learnt from.
    """
    count, mean = mean.dtype.type(n), mean[:, None]
    own = own + known / count
    rest = np.maximum(1.0 - own, 1.0 - MOST_LEVERAGE)
    # The label mean of all rows: 1 / (n - 1) of the row's own label comes back.
    F -= (own - rest / (count - 1)) * (known * (Y - mean))
    F /= rest
    if own.max(initial=0.0) >= MOST_LEVERAGE:
        F *= own < MOST_LEVERAGE
    F += mean
    return F
