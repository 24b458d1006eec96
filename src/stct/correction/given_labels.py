"""The labels that were given, as every step of the default method takes them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.noise_model.likelihood import ForwardModel
from stct.numeric.engine import Engine, Local, RowValues
from stct.numeric.types import Ints

MAX_FITTED = 2**17  # about so many rows fit T and the log-odds; scores use all rows


class Labels(NamedTuple):
    """Everything that is known of the labels, and where their rows are worked on."""

    given: Ints  # (n,), -1 for none
    locked: NDArray[np.bool_]  # (n,)
    num_classes: int
    engine: Engine

    def model(
        self, U: RowValues, offset: RowValues | None = None, stride: int = 1
    ) -> ForwardModel:
        """Likelihood of these labels for features U (n, k)."""
        return ForwardModel(
            U,
            self.given,
            self.locked,
            self.num_classes,
            offset=offset,
            engine=self.engine,
            stride=stride,
        )

    def some(self, index: Ints | None) -> "Labels":
        """Labels of some rows, whose values are here; None is all of them."""
        here = self._replace(engine=Local(getattr(self.engine, "num_threads", None)))
        if index is None:
            return here
        return here._replace(given=self.given[index], locked=self.locked[index])


def some_rows(n: int) -> Ints | None:
    """Rows that fit what has few parameters, spread over all of them; None is all."""
    if n <= MAX_FITTED:
        return None
    stride = -(-n // MAX_FITTED)
    starts = np.arange(0, n, stride)
    jump = np.random.default_rng(0).integers(0, stride, len(starts))
    return np.asarray(np.minimum(starts + jump, n - 1))
