"""Correct several labels per row, for `stct.estimator.LabelCorrector`.

Legend: n rows, C classes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stct.annotations import (
    Annotations,
    align_probabilities,
    as_encoded,
    restrict,
)
from stct.audit import check_verified, with_verified
from stct.checks import check_classes, check_locked
from stct.correction.annotator_estimates import (
    Annotator,
    dense_rows,
    majority_and_accuracy,
)
from stct.correction.audit import (
    AuditCalibration,
    AuditedPosterior,
    Verified,
    audit_posterior,
)
from stct.correction.result import Correction, Progress
from stct.correction.settings import AuditSettings, Settings
from stct.correction.several_labels import correct_several_labels
from stct.labels import EncodedLabels, encode, few
from stct.noise_model.transition import count_given
from stct.numeric.engine import Engine
from stct.numeric.probabilities import one_hot
from stct.numeric.tiles import TILE
from stct.numeric.top_classes import TopClasses
from stct.numeric.types import Floats, Ints

NAMED = 5  # annotators in a note


class Several(NamedTuple):
    """What one fit to several labels per row gives."""

    result: Correction
    encoded: EncodedLabels  # the given label of each row
    codes: Ints  # (n,) the same, with the labels of verified rows in place
    locked: NDArray[np.bool_]  # (n,) verified rows included
    verified: Verified | None
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
    verified: ArrayLike | None,
    verified_weight: ArrayLike | None,
    settings: Settings,
    engine: Engine,
    progress: Progress,
) -> Several:
    """Correct; the given label of a row is that of ``y``, or of the majority.

    Verified rows do not teach: what the others give them is compared with what a
    person found, and calibrates the posterior of all rows.
    """
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
    check_verified(verified, verified_weight, encoded or annotations.given)
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
    seen = check_verified(verified, verified_weight, encoded)
    codes = encoded.codes
    if seen is not None:
        codes, fixed = with_verified(codes, fixed, seen)
        result = audited(result, encoded.codes, seen, settings.audit)
    result = result._replace(transition=given_transition(result.posterior, encoded))
    found = annotations.describe(result.posterior)
    notes = describe(annotations, found, majority=y is None)
    return Several(result, encoded, codes, fixed, seen, accuracy, found, notes)


def audited(
    result: Correction, given: Ints, verified: Verified, settings: AuditSettings
) -> Correction:
    """Calibrate the posterior on verified rows, which are certain from then on.

    Of many classes only the most probable ones were kept: these stay as they are.
    """
    Q, rows = result.posterior, verified.rows
    if isinstance(Q, TopClasses):
        few_rows = TopClasses(Q.probabilities[rows], Q.classes[rows], Q.num_classes)
        audit = AuditedPosterior(few_rows.dense(), AuditCalibration())
        return result._replace(audit=audit)
    audit = audit_posterior(Q[rows], verified, settings)
    for start in range(0, len(Q), TILE):
        tile = slice(start, start + TILE)
        Q[tile] = audit.calibration.apply(Q[tile], given[tile])
    Q[rows] = one_hot(verified.clean, Q.shape[1])
    return result._replace(audit=audit)


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
    random = [one.name for one in found if one.at_random]
    if random:
        notes.append(
            f"{len(random)} of {len(found)} annotators may as well have labelled at "
            f"random: {few(random, NAMED)}"
        )
    return notes
