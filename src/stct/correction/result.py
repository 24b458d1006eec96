"""What a correction gives, by any method. Legend: n rows, d columns, C classes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.audit import AuditedPosterior
from stct.correction.fit_record import FitRecord
from stct.numeric.models import ConstantModel, Model, ReorderedModel
from stct.numeric.tiles import TILE
from stct.numeric.top_classes import MANY, TOP, TopClasses, keep_top
from stct.numeric.types import Floats, Ints

Progress = Callable[[float], None]


class Correction(NamedTuple):
    """What the features and the given labels together say, by any method."""

    posterior: Any  # (n, C) Pr[clean | x, given], or `TopClasses` of it
    transition: Floats  # (C, C) T[clean, given]
    learnable: NDArray[np.bool_]  # (C,) Theorem 1's condition
    model: Model | None  # for new rows
    num_rounds: int  # splits, or refits
    stop: str  # why it ended, see `LabelCorrector.termination_condition_`
    notes: tuple[str, ...] = ()  # what a person should know of how it was found
    confusion: float | None = None  # share of rows that the features do not know
    audit: AuditedPosterior | None = None  # of the verified rows, in their order
    fit: FitRecord | None = None  # for later batches

    def reordered(self, order: Ints) -> "Correction":
        """Give the same with class ``order[c]`` as class c; the posterior is moved."""
        model = None if self.model is None else ReorderedModel(self.model, order)
        Q = self.posterior
        if isinstance(Q, TopClasses):
            ours = np.argsort(order).astype(np.int32)
            Q = Q._replace(classes=ours[Q.classes])
        else:
            for start in range(0, len(Q), TILE):  # no second copy of n x C
                Q[start : start + TILE] = Q[start : start + TILE, order]
        audit = self.audit
        if audit is not None:
            audit = audit._replace(probabilities=audit.probabilities[:, order])
        return self._replace(
            posterior=Q,
            transition=self.transition[np.ix_(order, order)],
            learnable=self.learnable[order],
            model=model,
            audit=audit,
            fit=None if self.fit is None else self.fit.reordered(order),
        )


def nothing_learnt(given: Ints, num_classes: int) -> Correction:
    """Say that the features do not explain the labels at all: no class is learnable."""
    C = num_classes
    counts = np.bincount(given[given >= 0], minlength=C)
    model = ConstantModel(counts / counts.sum())
    shares = model.shares.astype(np.float32)
    if C <= MANY:
        Q: Any = np.tile(shares, (len(given), 1))
    else:
        tiles = (given[i : i + TILE] for i in range(0, len(given), TILE))
        kept = [keep_top(np.tile(shares, (len(tile), 1)), tile) for tile in tiles]
        top = np.concatenate(kept)
        Q = TopClasses(top[:, :TOP], top[:, TOP:].astype(np.int32), C)
    T, learnable = np.full((C, C), 1.0 / C), np.zeros(C, dtype=bool)
    return Correction(Q, T, learnable, model, 1, "nothing_learnt", confusion=1.0)
