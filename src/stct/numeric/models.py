"""Models that predict new rows. Legend: n rows, d columns, C classes."""

from typing import NamedTuple, Protocol, cast

import numpy as np

from stct.numeric import linear
from stct.numeric.fourier import FourierFeatures
from stct.numeric.probabilities import softmax
from stct.numeric.types import Floats, Ints


class Model(Protocol):
    """Predicts new rows."""

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, d) -> (n, C)."""


class LogOddsModel(Model, Protocol):
    """Predicts log-odds that are affine in columns made from the features."""

    def logits(self, X: Floats) -> Floats:
        """Log-odds, (n, d) -> (n, C)."""

    def columns(self, X: Floats) -> Floats:
        """Give what the weights belong to, (n, d) -> (n, k)."""


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
        return softmax(self.logits(X))

    def logits(self, X: Floats) -> Floats:
        """Log-odds, (n, d) -> (n, C)."""
        return self.columns(X) @ self.weights + self.intercept

    def columns(self, X: Floats) -> Floats:
        """Give what the weights belong to, (n, d) -> (n, k)."""
        return X if self.fourier is None else self.fourier(X)


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

    def logits(self, X: Floats) -> Floats:
        """Log-odds, (n, d) -> (n, C)."""
        return np.asarray(self._odds.logits(X)[:, self.order])

    def columns(self, X: Floats) -> Floats:
        """Give what the weights belong to, (n, d) -> (n, k)."""
        return self._odds.columns(X)

    @property
    def _odds(self) -> LogOddsModel:
        return cast(LogOddsModel, self.model)


def in_one(model: Model) -> SoftmaxModel:
    """Give a softmax model with classes in our order, without a `ReorderedModel`."""
    if isinstance(model, ReorderedModel):
        inner, order = in_one(model.model), model.order
        return inner._replace(
            weights=inner.weights[:, order], intercept=inner.intercept[order]
        )
    assert isinstance(model, SoftmaxModel)
    return model
