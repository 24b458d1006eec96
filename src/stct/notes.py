"""What a person should know of input and result, in sentences."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.correction.result import Correction
from stct.labels import EncodedLabels, few
from stct.numeric.top_classes import TopClasses

FEW_ROWS = 10  # a class with fewer gets a note: its estimates are mostly prior


def describe_input(
    encoded: EncodedLabels,
    locked: NDArray[np.bool_],
    num_columns: int,
    num_constant: int,
) -> list[str]:
    """Say in sentences what is unusual about the input."""
    notes = []
    missing = int((encoded.codes < 0).sum())
    if missing:
        notes.append(f"{missing} rows had no label; theirs are predicted (fill)")
    known = encoded.codes[encoded.codes >= 0]
    sizes = np.bincount(known, minlength=len(encoded.classes))  # a class may have none
    rare = encoded.classes[sizes < FEW_ROWS]
    if len(rare):
        notes.append(
            f"{len(rare)} of {len(sizes)} classes have fewer than {FEW_ROWS} rows, too "
            f"few to learn much about: {few(rare)}"
        )
    if locked.any():
        notes.append(f"{int(locked.sum())} rows are locked and were left as they are")
    if num_constant:
        notes.append(f"{num_constant} of {num_columns} columns are constant")
    return notes


def describe_result(
    result: Correction, classes: NDArray[Any], method: str
) -> list[str]:
    """Say in sentences what is unusual about the result."""
    notes = []
    Q = result.posterior
    if isinstance(Q, TopClasses):
        notes.append(
            f"{Q.num_classes} classes: the {Q.classes.shape[1]} most probable ones of "
            "each row were kept"
        )
    if method != "loo":
        notes.append(
            f"method {method!r} gives scores, not probabilities: confidence "
            "and estimated accuracy are not calibrated"
        )
    failed = classes[~result.learnable]
    if result.stop == "nothing_learnt":
        notes.append(
            "the features explain the given labels no better than chance, so "
            "no label was changed and the estimates mean nothing"
        )
    elif len(failed):
        notes.append(
            f"{len(failed)} of {len(classes)} classes fail Theorem 1's check "
            "(their most common given label is another class); their "
            f"rows abstain: {few(failed)}"
        )
    return [*notes, *result.notes]
