"""What a fit keeps of its rows for later batches: the noise model and a few sums.

No row is kept. Legend: n rows, k columns of the model, C classes.
"""

from typing import NamedTuple

import numpy as np

from stct.correction.audit import AuditCalibration
from stct.correction.given_labels import Labels
from stct.correction.posterior import NoiseModel, Posterior
from stct.numeric.hat_matrix import Axes
from stct.numeric.ridge import RidgePath
from stct.numeric.types import Floats, Ints

LEAST_CURVATURE = 1e-6  # where every row is sure
MAX_AXES = 2**24  # numbers: 4,096 columns


class Columns(NamedTuple):
    """Mean and Gram matrix of the columns of the rows that were learnt from."""

    num_rows: int
    mean: Floats  # (k,)
    scale: float  # rows are centred and multiplied by it
    axes: Axes | None  # of their Gram matrix; None if there are too many columns


class FitRecord(NamedTuple):
    """What later batches need beside the model."""

    noise: NoiseModel  # for the model's logits
    calibration: AuditCalibration  # by verified rows
    columns: Columns
    given_counts: Ints  # (C,) rows with each label
    clean_counts: Floats  # (C,) expected rows of each clean class
    agreement: tuple[int, int]  # rows with the given label predicted, of how many
    curvature: float  # information of a given label about the log-odds, mean

    def reordered(self, order: Ints) -> "FitRecord":
        """Give the same with class ``order[c]`` as class c."""
        return self._replace(
            noise=self.noise.reordered(order),
            given_counts=self.given_counts[order],
            clean_counts=self.clean_counts[order],
        )


def record_fit(path: RidgePath, labels: Labels, found: Posterior) -> FitRecord:
    """Keep what later batches need of a fit."""
    known = labels.given[labels.given >= 0]
    rows, sample = path.rows, found.sample
    return FitRecord(
        found.noise,
        AuditCalibration() if found.audit is None else found.audit.calibration,
        Columns(path.num_labelled, rows.mean, rows.scale, light_axes(path.axes)),
        np.bincount(known, minlength=labels.num_classes),
        path.num_labelled * sample.clean_shares,
        sample.agreement,
        max(sample.curvature, LEAST_CURVATURE),
    )


def light_axes(axes: Axes) -> Axes | None:
    """Give axes as they are kept, in float32; None if they are too large."""
    if axes.vectors.size > MAX_AXES:
        return None
    return Axes(axes.values, np.ascontiguousarray(axes.vectors, dtype=np.float32))
