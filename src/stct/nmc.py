"""Noisy meta correction: one function, three methods.

``given`` holds integer labels, -1 for a row without one. Legend: n rows, d columns,
C classes.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stct import linear
from stct.correction import (
    Correction,
    LinearModel,
    correct_by_splits,
    correct_step,
    move_to_minimiser,
    num_splits,
    num_splits_to_cover,
)
from stct.leave_one_out import Labels, correct_by_leave_one_out, one_hot
from stct.linear import Floats
from stct.transition import Ints, count_transition, is_learnable

METHODS = ("loo", "split", "paper")


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
    num_threads: int | None = None,
    generator: np.random.Generator,
    progress: Callable[[float], None],
) -> Correction:
    """Correct noisy labels (n,) from embeddings (n, d); no clean data, no noise rate.

    ``"loo"`` is closed-form and uses neither the generator nor the settings of the
    paper's random splits; ``"split"`` and ``"paper"`` differ in the step only (see
    `stct.correction`). Locked rows are certain and never move.
    """
    if method == "loo":
        # Inside, classes are numbered by size and rows are sorted by content: sums then
        # have one order, and one rounding, whatever came first or how it is called.
        sizes = np.bincount(given[given >= 0], minlength=num_classes)
        rank = np.empty(num_classes + 1, dtype=np.intp)
        rank[np.argsort(-sizes, kind="stable")] = np.arange(num_classes)
        rank[-1] = -1  # no label
        rows = _order_by_content(H, given)
        labels = Labels(rank[given[rows]], locked[rows], num_classes, num_threads)
        sorted_rows = H if _is_file(H) else H[rows]
        result = correct_by_leave_one_out(sorted_rows, labels, progress)
        posterior = np.empty_like(result.posterior)
        posterior[rows] = result.posterior
        return result._replace(posterior=posterior).reordered(rank[:-1])
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
        generator=generator,
        progress=progress,
    )
    W = linear.fit(centred[known], splits.labels)  # (d + 1, C)
    Y = linear.predict(centred, W)
    Y[known] = splits.labels
    Q = linear.to_simplex(Y)
    T = count_transition(Q, given)
    model = LinearModel(W[:-1], W[-1] - mean @ W[:-1])
    return Correction(Q, T, is_learnable(T), model, splits.num_splits, splits.stop)


def _order_by_content(H: Floats, given: Ints) -> Ints:
    """Order of the rows that does not depend on how they came; files stay as they are.

    The first columns decide, then a digest of the whole row.
    """
    if _is_file(H):
        return np.arange(len(H))
    columns = [H[:, column] for column in range(min(3, H.shape[1]))]
    keys = [given, np.zeros(len(H)), *columns[::-1]]
    order = np.lexsort(keys)
    same = np.logical_and.reduce([c[order[1:]] == c[order[:-1]] for c in columns])
    if same.any():
        tied = order[np.append(same, False) | np.insert(same, 0, False)]
        weights = np.cos(np.arange(H.shape[1]))  # no two rows of numbers agree on these
        keys[1][tied] = (H[tied] * weights).sum(axis=1)
        order = np.lexsort(keys)
    return order


def _is_file(H: Floats) -> bool:
    return type(H) is not np.ndarray
