"""An earlier fit and a later batch together, from sums: no old row is read again.

What the earlier rows say of the weights is kept as their estimate and its information:
the Gram matrix times the curvature of a row (Laplace's approximation). What they say of
T is kept as expected counts of clean and given classes. Both are the prior of the
batch, whose sums are then added to them. Legend: n rows of the batch, k columns of the
model, C classes; T[clean, given].
"""

from typing import Any, NamedTuple

import numpy as np

from stct.correction.fit_record import (
    LEAST_CURVATURE,
    Columns,
    FitRecord,
    light_axes,
)
from stct.correction.given_labels import Labels
from stct.correction.settings import DEFAULT, ResidualSettings
from stct.noise_model.likelihood import LinearLogits
from stct.noise_model.transition import (
    count_given,
    curvature,
    posterior,
    sparse_transition,
)
from stct.numeric.centring import CentredRows
from stct.numeric.engine import Computed, RowValues, light_rows
from stct.numeric.hat_matrix import Axes
from stct.numeric.linear import smallest_real
from stct.numeric.models import LogOddsModel, SoftmaxModel, in_one
from stct.numeric.probabilities import softmax
from stct.numeric.types import Floats

ROUNDS = 3  # of weights and T in turn; more hardly move them
STEPS = 30  # of L-BFGS, at most
TOO_WIDE = (
    "the earlier fit had {:,} columns, too many to keep their Gram matrix; fit old and "
    "new rows together instead (this needs the old table and its embeddings)"
)


class Updated(NamedTuple):
    """The model and the record of both, and the batch's own log-odds."""

    model: SoftmaxModel
    record: FitRecord
    logits: Any  # (n, C) of the model, each row without its own label


def update(
    H: RowValues,
    labels: Labels,
    model: LogOddsModel,
    record: FitRecord,
    settings: ResidualSettings = DEFAULT.residual,
) -> Updated:
    """Fit weights and T to a batch, with the earlier fit as the prior.

    The model's columns and its intercepts stay. Rows without a label teach nothing.
    """
    engine, n, C = labels.engine, len(labels.given), labels.num_classes
    old, noise = record.columns, record.noise
    if old.axes is None:
        raise ValueError(TOO_WIDE.format(len(old.mean)))
    first = model.columns(np.asarray(H[0:1]))
    wide = Computed(
        lambda rows: model.columns(H[rows]), (n, first.shape[1]), first.dtype
    )
    X = CentredRows(wide, old.mean, old.scale)
    soft = np.float32(noise.annotators)  # what the given labels are explained with
    offset = light_rows(engine, lambda rows: soft * model.logits(H[rows]), (n, C))
    given, known = engine.keep(labels.given), labels.given[labels.given >= 0]
    likelihood = LinearLogits(X, labels.codes(), engine, offset=offset)

    values, vectors = old.axes
    penalty = float(values.sum()) / old.num_rows
    information = record.curvature * values + penalty  # of the old rows, (r,)
    grown = 1.0 + len(known) / old.num_rows
    scale = 1.0 / np.sqrt(record.curvature * values * grown + penalty)
    counts_before = record.clean_counts[:, None] * noise.transition
    T: Floats = noise.transition
    W: Floats = np.zeros((first.shape[1], C))
    for _ in range(ROUNDS):
        W = likelihood.fit(
            np.zeros_like(W),
            T,
            precision=information * scale**2,
            basis=vectors * scale,
            curvature=np.ones(len(scale)),
            max_steps=STEPS,
        )
        moved = likelihood.logits(W)
        counts = counts_before + _counts(moved, labels, T)
        T = sparse_transition(counts, int(counts.sum()))
    columns = add_rows(old, X, labels)
    bend = _mean_curvature(moved, labels, T, record)
    assert columns.axes is not None
    root = columns.axes.root(penalty / bend, X.dtype)

    def left_out(rows: slice) -> Floats:
        logits = np.array(moved(rows), np.float32)
        P, said = softmax(logits), given[rows]
        own = root.leverage(X[rows]) * (said >= 0) / bend
        most = settings.most_self_influence
        own /= 1.0 - np.minimum(own * curvature(P, T), most)
        logits += own[:, None] * (P - posterior(P, T, said))
        return logits / soft

    logits = light_rows(engine, left_out, (n, C))
    W = W * (old.scale / noise.annotators)
    record = record._replace(
        noise=noise._replace(transition=T),
        columns=columns,
        given_counts=record.given_counts + np.bincount(known, minlength=C),
        clean_counts=counts.sum(axis=1),
        curvature=bend,
    )
    before = in_one(model)
    after = before._replace(
        weights=before.weights + W, intercept=before.intercept - old.mean @ W
    )
    return Updated(after, record, logits)


def _counts(moved: Any, labels: Labels, T: Floats) -> Floats:
    """Count expected rows of each clean and given class, (C, C)."""
    given, free = (labels.engine.keep(v) for v in (labels.given, ~labels.locked))

    def count(rows: slice) -> tuple[Floats]:
        said = np.where(free[rows], given[rows], -1)
        P = softmax(np.asarray(moved(rows), np.float32))
        return (count_given(posterior(P, T, said), said),)

    return np.asarray(labels.engine.sum(count, len(labels.given))[0])


def _mean_curvature(moved: Any, labels: Labels, T: Floats, record: FitRecord) -> float:
    """Information of a given label about the log-odds, mean of old and new rows."""
    given = labels.engine.keep(labels.given)

    def bend(rows: slice) -> tuple[float, int]:
        P = softmax(np.asarray(moved(rows), np.float32)[given[rows] >= 0])
        return float(curvature(P, T).sum(dtype=np.float64)), len(P)

    total, count = labels.engine.sum(bend, len(labels.given))
    old = record.columns.num_rows
    return max(float((record.curvature * old + total) / (old + count)), LEAST_CURVATURE)


def add_rows(old: Columns, X: CentredRows, labels: Labels) -> Columns:
    """Add the labelled rows of a batch to mean and Gram matrix.

    ``X`` is centred by the old mean and has the old scale.
    """
    given = labels.engine.keep(labels.given)

    def moments(rows: slice) -> tuple[Floats, Floats, int]:
        here = X[rows][given[rows] >= 0]
        return here.sum(axis=0, dtype=np.float64), here.T @ here, len(here)

    total, G, count = labels.engine.sum(moments, len(labels.given))
    assert old.axes is not None
    values, V = old.axes
    n = old.num_rows + int(count)
    G = G + (V * values) @ V.T - np.outer(total, total) / n
    values, V = np.linalg.eigh(G)
    real = values > smallest_real(values, np.dtype(np.float32))
    mean = old.mean + total / (n * old.scale)
    return Columns(n, mean, old.scale, light_axes(Axes(values[real], V[:, real])))
