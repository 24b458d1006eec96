"""Probabilities of many classes: only the most probable ones of a row are kept.

Legend: n rows, t rows of a tile, C classes, k of them kept.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stct.numeric.types import Floats, Ints

MANY = 256  # classes; of more only the most probable ones of a row are kept
TOP = 8  # so many


class TopClasses(NamedTuple):
    """The most probable classes of each row, most probable first, and the given one."""

    probabilities: Floats  # (n, k)
    classes: NDArray[np.int32]  # (n, k)
    num_classes: int

    def dense(self) -> Floats:
        """All classes, (n, C): what was not kept is spread evenly over the others."""
        n, k = self.probabilities.shape
        rest = np.maximum(1.0 - self.probabilities.sum(axis=1, keepdims=True), 0.0)
        Q = np.repeat(rest / (self.num_classes - k), self.num_classes, axis=1)
        np.put_along_axis(Q, self.classes.astype(np.intp), self.probabilities, axis=1)
        return np.asarray(Q, dtype=np.float32)

    def sparse(self) -> csr_array:
        """Give the kept entries only, (n, C)."""
        n, k = self.probabilities.shape
        places = self.classes.ravel(), np.arange(0, n * k + 1, k)
        shape = (n, self.num_classes)
        return csr_array((self.probabilities.ravel(), *places), shape=shape)


def keep_top(Q: Floats, given: Ints) -> Floats:
    """Probabilities and numbers of the most probable classes, (t, 2 TOP) float32.

    The given class is among them, in the last place if it is not probable.
    """
    top = np.argpartition(Q, -TOP, axis=1)[:, -TOP:]
    at = np.arange(len(Q))[:, None]
    order = np.lexsort((top, -Q[at, top]), axis=1)
    top = np.take_along_axis(top, order, axis=1)
    missing = (given >= 0) & (top != given[:, None]).all(axis=1)
    top[missing, -1] = given[missing]
    return np.concatenate([Q[at, top], top], axis=1).astype(np.float32)
