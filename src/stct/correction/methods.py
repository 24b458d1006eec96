"""Noisy meta correction: one function, three methods.

``given`` holds integer labels, -1 for a row without one. Legend: n rows, d columns,
C classes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.correction.canonical import describe_copies, order_by_content
from stct.correction.given_labels import Labels
from stct.correction.many_classes import MANY, correct_many_classes
from stct.correction.paper import (
    Correction,
    LinearModel,
    TopClasses,
    correct_by_splits,
    correct_step,
    move_to_minimiser,
    num_splits,
    num_splits_to_cover,
)
from stct.correction.pipeline import correct_by_leave_one_out
from stct.noise_model.transition import count_transition, is_learnable
from stct.numeric import linear
from stct.numeric.engine import Engine, Local
from stct.numeric.probabilities import one_hot
from stct.numeric.tiles import map_tiles
from stct.numeric.types import Floats, Ints

METHODS = ("loo", "split", "paper")
MAX_SORTED = 2**26  # numbers in H, 256 MB of float32; more are taken as they come


def correct_labels(
    H: Floats,
    given: Ints,
    num_classes: int,
    *,
    method: str = "loo",
    locked: NDArray[np.bool_],
    val_ratio: float = 0.5,
    step_size: float = 0.2,
    agreement: float = 0.998,
    coverage: float = 0.9999,
    annotator: Floats | None = None,
    engine: Engine,
    generator: np.random.Generator,
    progress: Callable[[float], None],
) -> Correction:
    """Correct noisy labels (n,) from embeddings (n, d); no clean data, no noise rate.

    ``"loo"`` is closed-form and uses neither the generator nor the settings of the
    paper's random splits; ``"split"`` and ``"paper"`` differ in the step only (see
    `stct.correction.paper`). Locked rows are certain and never move. ``annotator``
    (C, C) is a T from an earlier look at the same labels, which ``"loo"`` remembers.
    """
    if method == "loo":
        small = len(H) * H.shape[1] <= MAX_SORTED
        # Inside, classes are numbered by size and rows are sorted by class and content:
        # sums then have one order, and one rounding, whatever came first or how it is
        # called. Large data stays where it is and in its own order, array or file:
        # sorting would mean a second copy of it.
        sizes = np.bincount(given[given >= 0], minlength=num_classes)
        rank = np.empty(num_classes + 1, dtype=np.intp)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(num_classes)
        rank[-1] = -1  # no label
        ranked = rank[given]
        H = np.asarray(H[0 : len(H)]) if small else H
        if isinstance(engine, Local) and not isinstance(H, np.ndarray):
            engine = Local(engine.num_threads, on_disk=True)
        order, original = order_by_content(H, ranked, locked, engine)
        # A copy would give its original's label away when that is left out.
        copied = original != np.arange(len(H))
        places = original  # of each row among those that are worked on
        labels = Labels(np.where(copied, -1, ranked), locked, num_classes, engine)
        if small:
            rows = order[~copied[order]]
            labels = labels.some(rows)._replace(engine=engine)
            H = _gather(H, rows)
            among = np.empty(len(original), dtype=np.intp)
            among[rows] = np.arange(len(rows))
            places = among[original]
        del order, ranked  # long, and of no use any more
        if annotator is not None:
            by_size = np.argsort(rank[:-1])
            annotator = annotator[np.ix_(by_size, by_size)]
        if num_classes > MANY:
            result = correct_many_classes(H, labels, progress, annotator=annotator)
        else:
            result = correct_by_leave_one_out(
                H, labels, progress, owned=small, annotator=annotator
            )
        if small or copied.any():
            posterior = _pick(result.posterior, places)
            notes = (*describe_copies(int(copied.sum())), *result.notes)
            result = result._replace(posterior=posterior, notes=notes)
        return result.reordered(rank[:-1])
    H = np.asarray(H[0 : len(H)])  # random splits need all rows at hand
    known = np.flatnonzero(given >= 0)
    count = num_splits if method == "paper" else num_splits_to_cover
    dtype = np.result_type(H.dtype, np.float32)
    mean = H[known].mean(axis=0, dtype=np.float64)
    centred = linear.add_constant((H - mean).astype(dtype))  # (n, d + 1)
    splits = correct_by_splits(
        centred[known],
        one_hot(given[known], num_classes).astype(dtype),
        step=correct_step if method == "paper" else move_to_minimiser,
        val_ratio=val_ratio,
        step_size=step_size,
        agreement=agreement,
        max_splits=count(len(known), val_ratio, coverage),
        movable=~locked[known],
        # A stream of its own: noise made with the same seed must not meet its own draws
        # again as the first split.
        generator=generator.spawn(1)[0],
        progress=progress,
    )
    W = linear.fit(centred[known], splits.labels)  # (d + 1, C)
    Y = linear.predict(centred, W)
    Y[known] = splits.labels
    Q = linear.to_simplex(Y)
    T = count_transition(Q, given)
    model = LinearModel(W[:-1], W[-1] - mean @ W[:-1])
    return Correction(Q, T, is_learnable(T), model, splits.num_splits, splits.stop)


def _pick(posterior: Any, rows: Ints) -> Any:
    """Give what belongs to these rows, in this order."""
    if isinstance(posterior, TopClasses):
        return posterior._replace(
            probabilities=posterior.probabilities[rows],
            classes=posterior.classes[rows],
        )
    return posterior[rows]


def _gather(H: Floats, rows: Ints) -> Floats:
    """Copy rows of H in another order, at least float32."""
    shape = (len(rows), H.shape[1])
    out = np.empty(shape, np.result_type(H.dtype, np.float32))

    def copy(tile: slice) -> None:
        out[tile] = H[rows[tile]]

    for _ in map_tiles(copy, len(rows)):
        pass
    return out
