"""Rows of embeddings, centred and scaled, without a second copy of them.

Legend: t rows of a tile, d columns, m columns of a product.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from stct.numeric.engine import ALL, Index, RowValues, read_some
from stct.numeric.types import Floats

PIECE = 2**19  # numbers; a copy of so many is still in the cache when it is used


class CentredRows:
    """Rows of H as ``(H[i:j] - mean) * scale``, made when they are asked for.

    A fit reads the rows many times. Whoever may give H up calls `settle` for every row
    once and sets ``settled``: H itself is centred then.
    """

    def __init__(self, H: RowValues, mean: Floats, scale: float) -> None:
        # float16 and integers are widened, float64 keeps its precision.
        self.dtype = np.result_type(H.dtype, np.float32)
        self.shape = H.shape
        self.mean = np.asarray(mean, dtype=self.dtype)
        self.scale = scale  # a power of two
        self.settled = False
        self._H: Any = H

    def settle(self, rows: slice) -> Floats:
        """Give these rows, and put them where H had them."""
        H: Floats = self._H[rows]
        H -= self.mean
        if self.scale != 1.0:
            H *= self.scale
        return H

    def __getitem__(self, rows: slice) -> Floats:
        return self.some(rows, ALL)

    def some(self, rows: slice, index: Index) -> Floats:
        """Give some of these rows."""
        return self.centre(self.as_they_are(rows, index))

    def as_they_are(self, rows: slice, some: Index) -> Floats:
        """Give rows before they are centred, or after, if H itself was."""
        return np.asarray(read_some(self._H, rows, some))

    def centre(self, H: Floats) -> Floats:
        """Centre rows that are as they are."""
        H = np.asarray(H, dtype=self.dtype)
        if self.settled:
            return H
        centred: Floats = H - self.mean
        if self.scale != 1.0:
            centred *= self.scale
        return centred


class Tile:
    """The rows of one tile; products take a few of them at a time.

    Parameters
    ----------
    X : CentredRows or other values of rows
    rows : slice
    some : slice or ndarray of int
        These of them only.
    settle : bool
        Let `CentredRows` be centred where they are.
    """

    def __init__(
        self, X: RowValues, rows: slice, some: Index = ALL, *, settle: bool = False
    ) -> None:
        self._centred = X if isinstance(X, CentredRows) and not settle else None
        # Read once, whatever that costs.
        if self._centred is not None:
            self._rows = self._centred.as_they_are(rows, some)
        elif isinstance(X, CentredRows):
            self._rows = X.settle(rows)[some]
        else:
            self._rows = read_some(X, rows, some)

    def __iter__(self) -> Iterator[tuple[slice, Floats]]:
        count, columns = self._rows.shape
        step = max(1, PIECE // max(columns, 1))
        for start in range(0, count, step):
            part = slice(start, min(start + step, count))
            H = self._rows[part]
            yield part, H if self._centred is None else self._centred.centre(H)

    def times(self, W: Floats) -> Floats:
        """Give W X' for W (m, d), class-major: (m, t)."""
        out = np.empty((len(W), len(self._rows)), W.dtype)
        for part, X in self:
            np.matmul(W, np.asarray(X, dtype=W.dtype).T, out=out[:, part])
        return out

    def weighted_sum(self, A: Floats) -> Floats:
        """Give A X for A (m, t), (m, d)."""
        total = np.zeros((len(A), self._rows.shape[1]), A.dtype)
        for part, X in self:
            total += A[:, part] @ np.asarray(X, dtype=A.dtype)
        return total


def scale_of(differences: Floats) -> float:
    """Give a power of two that keeps squares in range; 1 for all ordinary data."""
    high, low = differences.max(initial=0.0), differences.min(initial=0.0)
    spread = max(float(high), -float(low))
    if spread == 0.0 or 1e-12 < spread < 1e12:
        return 1.0
    return float(2.0 ** -np.floor(np.log2(spread)))
