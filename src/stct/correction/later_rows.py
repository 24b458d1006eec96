"""Rows of a later batch, judged with the model and the noise model of an earlier fit.

The model has not seen them, so there is nothing to leave out. Legend: n rows, t rows of
a tile, k columns of the model, C classes; P = Pr[clean | x], Q = Pr[clean | x, given].
"""

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from stct.correction.audit import audit_posterior
from stct.correction.canonical import order_by_content
from stct.correction.fit_record import FitRecord
from stct.correction.given_labels import Labels
from stct.correction.result import Correction
from stct.correction.settings import DEFAULT
from stct.correction.update import update
from stct.noise_model.theorems import is_learnable
from stct.numeric.engine import Computed, RowValues
from stct.numeric.models import LogOddsModel
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.top_classes import MANY, TOP, TopClasses, keep_top
from stct.numeric.types import Floats, Ints


class Seen(NamedTuple):
    """Rows that were in the fit, and what leave-one-out said of them there."""

    rows: Ints  # (s,)
    posterior: Any  # (s, C), or `TopClasses` of it


def as_seen(seen: tuple[Ints, Any] | None, labels: Labels) -> Seen | None:
    """Look at what was passed as rows that were in the fit."""
    if seen is None or isinstance(seen, Seen):
        return seen
    rows, posterior = np.asarray(seen[0]), np.asarray(seen[1])
    n, shape = len(labels.given), (len(rows), labels.num_classes)
    known = rows.ndim == 1 and rows.dtype.kind in "iu"
    if not known or posterior.shape != shape or ((rows < 0) | (rows >= n)).any():
        raise ValueError(
            "seen must be rows and their label_distributions_ in the fit, "
            f"{labels.num_classes} probabilities for each"
        )
    if labels.num_classes > MANY:
        top = keep_top(posterior, labels.given[rows])
        classes = top[:, TOP:].astype(np.int32)
        return Seen(rows, TopClasses(top[:, :TOP], classes, labels.num_classes))
    return Seen(rows, posterior)


class BatchSums(NamedTuple):
    """Sums over the rows of a batch that were not in the fit."""

    num_rows: int
    total: Floats  # (k,) of the model's columns
    given_counts: Ints  # (C,)
    agreement: tuple[int, int]  # rows with the given label predicted, of how many
    confusion: float  # mean share of a row that the features do not know


def correct_later_rows(
    H: RowValues,
    labels: Labels,
    earlier: Correction,
    seen: Seen | None = None,
    *,
    refit: bool = False,
) -> tuple[Correction, BatchSums]:
    """Correct the labels of a batch with an earlier result.

    Model and noise model stay, or with ``refit`` learn from the batch as well. How
    unsure the features are is that of the batch. Rows that were in the fit get what
    leave-one-out said of them there: the model repeats their labels too often.
    """
    model, record = cast(LogOddsModel, earlier.model), earlier.fit
    assert record is not None
    fresh = np.ones(len(labels.given), dtype=bool)
    if seen is not None:
        fresh[seen.rows] = False
    sums = sum_rows(H, labels, model, fresh)
    shape = (len(labels.given), labels.num_classes)
    logits: Any = Computed(lambda rows: model.logits(H[rows]), shape, np.float32)
    result = earlier._replace(num_rounds=0, stop="judged", notes=())
    original = np.arange(len(fresh))
    if refit:
        _, original = order_by_content(H, labels.given, labels.locked, labels.engine)
        fresh &= original == np.arange(len(fresh))  # duplicates count once
        new = np.where(fresh, labels.given, -1)
        teaching = labels._replace(given=new, locked=labels.locked & fresh)
        updated = update(H, teaching, model, record)
        noise, logits = updated.record.noise, updated.logits
        T = earlier.transition + noise.errors * (
            noise.transition - record.noise.transition
        )
        result = result._replace(
            model=updated.model,
            fit=updated.record,
            transition=T,
            learnable=is_learnable(T),
            num_rounds=1,
            stop="updated",
        )
        record = updated.record
    if labels.verified is not None:
        rows = labels.verified.rows
        alone = record.noise.posterior(
            np.asarray(labels.engine.take(logits, rows), np.float32),
            labels.verified.given,
        )
        audited = audit_posterior(alone, labels.verified, DEFAULT.audit)
        record = record._replace(calibration=audited.calibration)
        result = result._replace(audit=audited, fit=record)
    Q = judge_rows(logits, labels, record)
    again = np.flatnonzero(original != np.arange(len(original)))
    if len(again):
        put_rows(Q, again, take_rows(Q, original[again]))
    if seen is not None:
        free = ~labels.locked[seen.rows]
        put_rows(Q, seen.rows[free], take_rows(seen.posterior, free))
    if sums.num_rows:
        result = result._replace(confusion=sums.confusion)
    return result._replace(posterior=Q), sums


def judge_rows(logits: RowValues, labels: Labels, record: FitRecord) -> Any:
    """Pr[clean | x, given] of all rows, (n, C) or `TopClasses`."""
    engine, C = labels.engine, labels.num_classes
    given, locked = (engine.keep(v) for v in (labels.given, labels.locked))

    def judge(rows: slice) -> Floats:
        label, fixed = given[rows], locked[rows]
        Q = record.noise.posterior(np.asarray(logits[rows], np.float32), label)
        Q = record.calibration.apply(Q, label)
        Q[fixed] = one_hot(label[fixed], C)
        return Q if C <= MANY else keep_top(Q, label)

    Q: Any = engine.take(engine.rows(judge, len(labels.given)), None)
    return Q if C <= MANY else TopClasses(Q[:, :TOP], Q[:, TOP:].astype(np.int32), C)


def take_rows(Q: Any, rows: Any) -> Any:
    """Give the posterior of some rows."""
    if isinstance(Q, TopClasses):
        return TopClasses(Q.probabilities[rows], Q.classes[rows], Q.num_classes)
    return Q[rows]


def put_rows(Q: Any, rows: Ints, values: Any) -> None:
    """Set the posterior of some rows."""
    if isinstance(Q, TopClasses):
        Q.probabilities[rows], Q.classes[rows] = values.probabilities, values.classes
    else:
        Q[rows] = values


def sum_rows(
    H: RowValues, labels: Labels, model: LogOddsModel, fresh: NDArray[np.bool_]
) -> BatchSums:
    """Add up what tells whether a batch looks like the rows of the fit, one pass.

    Only ``fresh`` rows (n,) count: of those that were in the fit the model knows the
    label.
    """
    engine, C = labels.engine, labels.num_classes
    given, asked = engine.keep(labels.given), engine.keep(fresh)
    free = engine.keep(~labels.locked)
    k = model.columns(np.asarray(H[0:1])).shape[1]

    def add(rows: slice) -> tuple[int, Floats, Ints, int, int, float]:
        some = np.flatnonzero(asked[rows])
        if not len(some):
            return 0, np.zeros(k), np.zeros(C, np.intp), 0, 0, 0.0
        X = H[rows][some]
        P = softmax(np.asarray(model.logits(X), np.float32))
        label = given[rows][some]
        judged = (label >= 0) & free[rows][some]
        agree = (P.argmax(axis=1) == label) & judged
        unsure = len(P) - float(P.max(axis=1).sum(dtype=np.float64))
        counts = np.bincount(label[label >= 0], minlength=C)
        total = model.columns(X).sum(axis=0, dtype=np.float64)
        return len(P), total, counts, int(agree.sum()), int(judged.sum()), unsure

    rows, total, counts, agree, judged, unsure = engine.sum(add, len(labels.given))
    return BatchSums(
        int(rows),
        np.asarray(total),
        counts.astype(np.intp),
        (int(agree), int(judged)),
        float(unsure) / max(float(rows), 1.0),
    )


def why_not_judged(method: str, stop: str) -> str:
    """Say why an earlier fit cannot judge a batch."""
    if stop == "nothing_learnt":
        return "the earlier fit learnt nothing, so it cannot judge other rows"
    if method == "loo":
        return (
            "the earlier fit had several labels for a row, and a noise model for each "
            "annotator: it predicts, but judges no rows of one label"
        )
    if method == "loo":
        return (
            "a fit to several labels per row has no single transition matrix to judge "
            "other rows with; it can predict them"
        )
    return f"method {method!r} has no noise model to judge other rows with; use 'loo'"
