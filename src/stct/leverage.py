"""How much of its own label is in a row's prediction: the diagonal of the hat matrix.

Leave-one-out divides by one minus it. With ridge r and Gram matrix V diag(v) V' it is
``x' V diag(1 / (v + r)) V' x``. Legend: t rows of a tile, d columns, L ridges.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

# A row that is alone in its direction has leverage 1 and nothing to be predicted from:
# it gets the mean. Dividing what is left by 1 - leverage would give its label away.
MOST_LEVERAGE = 1.0 - 1e-3
BLOCK = 64  # columns


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

    def total_leverage(self, ridge: float) -> float:
        """Sum of the leverages of all rows that G was made of."""
        return float((self.values / (self.values + ridge)).sum())

    def root(self, ridge: float, dtype: np.dtype[Any]) -> Floats:
        """Lower triangular F (d, d) with ``F F' = V diag(1 / (v + ridge)) V'``."""
        V = self.vectors
        # Directions that were left out teach nothing. Next to nothing keeps F real.
        nothing = 1e-6 / (float(self.values.max()) + ridge)
        inverse = (V * (1.0 / (self.values + ridge) - nothing)) @ V.T
        inverse[np.diag_indices(len(V))] += nothing
        return np.linalg.cholesky(inverse).astype(dtype)


def leverage(X: Floats, root: Floats) -> Floats:
    """``|x' F|^2`` of rows (t, d) for one ridge, (t,), by half of a full product."""
    total = np.zeros(len(X), X.dtype)
    for start in range(0, len(root), BLOCK):
        Z = X[:, start:] @ root[start:, start : start + BLOCK]
        total += np.einsum("ij,ij->i", Z, Z)
    return np.minimum(total, MOST_LEVERAGE)
