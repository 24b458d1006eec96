"""Theorems 1 and 2: what noisy labels can tell of a classifier.

T[clean, given] has rows that sum to 1. Legend: C classes.
"""

import numpy as np
from numpy.typing import NDArray

from stct.numeric.types import Floats


def accuracy_under_noise(prior: Floats, T: Floats, confusion: Floats) -> float:
    """Theorem 1, Eqs. (26)-(28): accuracy of a classifier measured on noisy labels.

    Parameters
    ----------
    prior : ndarray of shape (C,)
        Pr[clean = i].
    T : ndarray of shape (C, C)
        Pr[given = j | clean = i].
    confusion : ndarray of shape (C, C)
        Pr[predicted = j | clean = i]; the identity is the perfect classifier.
    """
    return float(prior @ (T * confusion).sum(axis=1))


def is_learnable(T: Floats) -> NDArray[np.bool_]:
    """Theorem 1's condition for each class: ``T_ii > T_ij`` for all j != i, (C,)."""
    off_diagonal = np.where(np.eye(len(T), dtype=bool), -np.inf, T)
    return np.asarray(np.diagonal(T) > off_diagonal.max(axis=1))


def hoeffding_bound(num_val: int, eps: float) -> float:
    """Theorem 2, Eq. (3): chance that a validation error is off by ``eps`` or more."""
    return min(1.0, 2.0 * float(np.exp(-2.0 * num_val * eps**2)))


def hoeffding_interval(num_val: int, level: float = 0.95) -> float:
    """Theorem 2 solved for eps: the half-width that holds with probability level."""
    return float(np.sqrt(np.log(2.0 / (1.0 - level)) / (2.0 * num_val)))
