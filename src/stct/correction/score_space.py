"""What log-odds are made of: leave-one-out scores, whitened, and maybe their products.

Least-squares scores rank classes well but are not log-odds. A softmax regression on
these features, linear or quadratic, gives them the right shape. Legend: n rows,
C classes, k columns; S scores (n, C), U features (n, k).
"""

from typing import NamedTuple

import numpy as np

from stct.numeric.types import Floats

MAX_QUADRATIC = 10  # leading directions whose products are used


class ScoreSpace(NamedTuple):
    """How scores become features: 1, whitened scores, and maybe their products."""

    mean: Floats  # (C,)
    whiten: Floats  # (C, r)
    identity: Floats  # (k, C): U @ identity = S / std(S)
    quadratic: tuple[Floats, Floats] | None  # mean and whitening of the products

    def features(self, S: Floats) -> Floats:
        """Features U (n, k) of scores S (n, C)."""
        U = (S - self.mean) @ self.whiten
        columns = [np.ones((len(S), 1), U.dtype), U]
        if self.quadratic is not None:
            mean, whiten = self.quadratic
            columns.append((_products(U) - mean) @ whiten)
        return np.concatenate(columns, axis=1)


def make_space(S: Floats, *, quadratic: bool) -> ScoreSpace:
    """Whiten the scores, (n, C); directions without variance are left out."""
    mean, whiten, colour = _whitening(S)
    identity = np.vstack([mean, colour]) / max(float(S.std()), 1e-30)
    products = None
    if quadratic:
        products = _whitening(_products((S - mean) @ whiten))[:2]
        zeros = np.zeros((products[1].shape[1], S.shape[1]))
        identity = np.vstack([identity, zeros])
    return ScoreSpace(mean, whiten, identity, products)


def _whitening(A: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean (k,), whitening (k, r) and its inverse (r, k) of the rows of A (n, k)."""
    mean = A.mean(axis=0, dtype=np.float64).astype(A.dtype)
    centred = A - mean
    values, V = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(A))
    keep = values > max(values.max() * 1e-4, 1e-30)
    values, V = values[keep][::-1], V[:, keep][:, ::-1]
    root = np.sqrt(values)
    return mean, (V / root).astype(A.dtype), (V * root).T


def _products(U: Floats) -> Floats:
    i, j = np.triu_indices(min(MAX_QUADRATIC, U.shape[1]))
    return np.asarray(U[:, i] * U[:, j])
