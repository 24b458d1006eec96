"""Rows of embeddings, centred and scaled, without a second copy of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.engine import RowValues

Floats = NDArray[np.floating]


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
        H: Floats = np.asarray(self._H[rows], dtype=self.dtype)
        if self.settled:
            return H
        centred: Floats = H - self.mean
        if self.scale != 1.0:
            centred *= self.scale
        return centred


def scale_of(differences: Floats) -> float:
    """Give a power of two that keeps squares in range; 1 for all ordinary data."""
    spread = float(np.abs(np.asarray(differences, dtype=np.float64)).max(initial=0.0))
    if spread == 0.0 or 1e-12 < spread < 1e12:
        return 1.0
    return float(2.0 ** -np.floor(np.log2(spread)))
