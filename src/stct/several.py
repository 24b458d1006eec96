"""Correct several labels per row, for `stct.estimator.LabelCorrector`.

Legend: n rows, C classes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from stct.annotations import (
    Annotations,
    align_probabilities,
    as_encoded,
    restrict,
)
from stct.checks import check_classes, check_locked
from stct.correction.annotator_estimates import (
    Annotator,
    dense_rows,
    majority_and_accuracy,
)
from stct.correction.result import Correction, Progress
from stct.correction.settings import Settings
from stct.correction.several_labels import correct_several_labels
from stct.labels import EncodedLabels, encode, few
from stct.noise_model.transition import count_given
from stct.numeric.engine import Engine
from stct.numeric.tiles import TILE
from stct.numeric.types import Floats

NAMED = 5  # annotators in a note


class Several(NamedTuple):
    """What one fit to several labels per row gives."""

    result: Correction
    encoded: EncodedLabels  # the given label of each row
    locked: Any  # (n,) of bool
    accuracy: float | None  # estimated share of right labels of the majority
    annotators: list[Annotator]
    notes: list[str]


def fit_several(
    annotations: Annotations,
    y: ArrayLike | None,
    *,
    X: Any,
    pred_probs: Any,
    locked: ArrayLike | None,
    settings: Settings,
    engine: Engine,
    progress: Progress,
) -> Several:
    """Correct; the given label of a row is that of ``y``, or of the majority."""
    P = None
    if pred_probs is not None:
        annotations, P = align_probabilities(pred_probs, annotations)
    codes = np.full(annotations.votes.num_rows, -1, dtype=np.intp)
    encoded = None
    if y is not None:
        encoded = encode(y)
        if len(encoded.codes) != len(codes):
            raise ValueError(
                f"there are {len(codes)} rows but y has {len(encoded.codes)} labels"
            )
        check_classes(encoded.classes, "y")
        annotations = restrict(annotations, encoded.classes)
        codes = encoded.codes
    votes = annotations.votes
    fixed = check_locked(locked, codes if encoded is not None else votes.majority())
    certain = np.where(fixed, codes if encoded is not None else votes.majority(), -1)
    unseen = np.flatnonzero((votes.counts_of_rows == 0) & (certain < 0))
    if X is None and P is None and len(unseen):
        raise ValueError(
            f"no annotator has labelled row {few(unseen)}, and there are no embeddings "
            "to predict the label from"
        )
    result = correct_several_labels(
        votes,
        certain,
        H=X,
        scores=None if P is None else np.log(np.maximum(P, 1e-6)).astype(np.float32),
        settings=settings,
        engine=engine,
        progress=progress,
    )
    Q = result.posterior
    accuracy = None
    if encoded is None:
        given, accuracy = majority_and_accuracy(votes, Q, certain)
        encoded = as_encoded(given, annotations.classes)
    if X is None:
        result = result._replace(model=None)
    result = result._replace(transition=given_transition(Q, encoded))
    found = annotations.describe(Q)
    notes = describe(annotations, found, majority=y is None)
    return Several(result, encoded, fixed, accuracy, found, notes)


def given_transition(Q: Any, encoded: EncodedLabels) -> Floats:
    """Pr[given | clean], counted from the posterior, (C, C)."""
    dense, C = dense_rows(Q), len(encoded.classes)
    counts = np.zeros((C, C))
    for start in range(0, len(encoded.codes), TILE):
        rows = slice(start, start + TILE)
        counts += count_given(np.asarray(dense[rows]), encoded.codes[rows])
    counts += 1e-6 * np.eye(C)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def describe(
    annotations: Annotations, found: list[Annotator], *, majority: bool
) -> list[str]:
    """Say who labelled, and who labels at random."""
    total = sum(one.labels for one in found)
    n = annotations.votes.num_rows
    rule = "; the given label of a row is that of most of them" if majority else ""
    notes = [
        f"{len(found)} annotators gave {total:,} labels, {total / n:.1f} per row{rule}"
    ]
    random = [one.name for one in found if one.at_random and one.labels >= 10]
    if random:
        notes.append(
            f"{len(random)} of {len(found)} annotators may as well have labelled at "
            f"random: {few(random, NAMED)}"
        )
    return notes
