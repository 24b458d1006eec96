"""The given labels, as every stage of the correction takes them. Legend: n rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.audit import Verified
from stct.correction.settings import CalibrationSettings
from stct.noise_model.likelihood_tile import LabelCodes
from stct.numeric.engine import Engine, Local
from stct.numeric.types import Ints


class Labels(NamedTuple):
    """Everything that is known of the labels, and where their rows are worked on."""

    given: Ints  # (n,), -1 for none
    locked: NDArray[np.bool_]  # (n,)
    num_classes: int
    engine: Engine
    verified: Verified | None = None  # rows of the whole problem

    def codes(self) -> LabelCodes:
        """Give them as the likelihood takes them."""
        pairs = None if self.verified is None else self.verified.pairs(self.num_classes)
        return LabelCodes(self.given, self.locked, self.num_classes, self.engine, pairs)

    def some(self, index: Ints) -> "Labels":
        """Labels of some rows, whose values are in this process."""
        here = Local(getattr(self.engine, "num_threads", None))
        return self._replace(
            given=self.given[index], locked=self.locked[index], engine=here
        )


def sample_rows(labels: Labels, size: int) -> Ints:
    """Rows with a label, spread over all of them by a fixed draw, in order."""
    rows = np.flatnonzero(labels.given >= 0)
    if len(rows) <= size:
        return rows
    stride = len(rows) / size
    jump = np.random.default_rng(0).random(size)
    places = ((np.arange(size) + jump) * stride).astype(np.intp)
    return np.asarray(rows[np.minimum(places, len(rows) - 1)])


def sample_size(num_classes: int, settings: CalibrationSettings) -> int:
    """Rows that fit what has few parameters."""
    return max(settings.rows, settings.rows_per_class * num_classes)
