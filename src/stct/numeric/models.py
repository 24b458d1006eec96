"""Models that predict new rows. Legend: n rows, d columns, C classes."""

from typing import NamedTuple, Protocol

import numpy as np

from stct.numeric import linear
from stct.numeric.fourier import FourierFeatures
from stct.numeric.probabilities import softmax
from stct.numeric.types import Floats, Ints


class Model(Protocol):
    """Predicts new rows."""

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, d) -> (n, C)."""


class LinearModel(NamedTuple):
    """Eq. (7) for new rows, as probabilities."""

    weights: Floats  # (d, C)
    intercept: Floats  # (C,)

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, d) -> (n, C)."""
        return linear.to_simplex(linear.predict(X, self.weights) + self.intercept)


class SoftmaxModel(NamedTuple):
    """Softmax of logits that are affine in the features, or in more columns."""

    weights: Floats  # (d, C)
    intercept: Floats  # (C,)
    fourier: FourierFeatures | None = None

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, d) -> (n, C)."""
        X = X if self.fourier is None else self.fourier(X)
        return softmax(X @ self.weights + self.intercept)


class ConstantModel(NamedTuple):
    """The same probabilities for every row, when nothing was learnt."""

    shares: Floats  # (C,)

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean], (n, d) -> (n, C)."""
        return np.tile(self.shares, (len(X), 1))


class ReorderedModel(NamedTuple):
    """A model whose class ``order[c]`` is our class c."""

    model: Model
    order: Ints  # (C,)

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, d) -> (n, C)."""
        return self.model.probabilities(X)[:, self.order]
