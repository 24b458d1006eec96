"""Linear models in closed form: Eqs. (6), (7).

Legend: n rows, n_t sub-training rows, n_v validation rows, d columns, C classes.
H embeddings (n, d), Y soft labels (n, C), W weights (d, C).
"""

from typing import Any

import numpy as np

from stct.numeric.types import Floats


def fit(H_t: Floats, Y_t: Floats) -> Floats:
    """Eq. (6): least squares on the sub-training set, (n_t, d), (n_t, C) -> (d, C).

    Where H_t is rank-deficient (the printed inverse does not exist) this is the
    solution of minimum norm; of few rows it is a sum of these rows.
    """
    if len(H_t) < H_t.shape[1]:
        return np.asarray(H_t.T @ solve(H_t @ H_t.T, Y_t))
    return solve(H_t.T @ H_t, H_t.T @ Y_t)


def predict(H_v: Floats, W: Floats) -> Floats:
    """Eq. (7): predictions on the validation set, (n_v, d), (d, C) -> (n_v, C)."""
    return np.asarray(H_v @ W)


def solve(G: Floats, B: Floats) -> Floats:
    """Minimum-norm solution of ``G W = B`` for a Gram matrix G (d, d), B (d, C)."""
    values, V = np.linalg.eigh(G)
    real = values > smallest_real(values, G.dtype)
    V = V[:, real]
    return np.asarray(V @ ((V.T @ B) / values[real, None]))


def add_constant(H: Floats) -> Floats:
    """Append a column of ones, so that the linear model has an intercept."""
    return np.concatenate([H, np.ones((len(H), 1), H.dtype)], axis=1)


def to_simplex(Y: Floats) -> Floats:
    """Soft labels as probabilities: negative entries are 0, rows sum to 1, (n, C)."""
    Q = np.maximum(Y, 0.0)
    total = Q.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, Q / np.where(total > 0.0, total, 1.0), 1 / Y.shape[1])


def smallest_real(values: Floats, dtype: np.dtype[Any]) -> float:
    """Eigenvalues below this are rounding, not directions."""
    return float(values.max(initial=0.0) * len(values) * np.finfo(dtype).eps)
