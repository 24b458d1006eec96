"""A correction of the log-odds that is linear in the features themselves.

Ridge is least squares; what softmax regression would learn beyond it is a step of a few
iterations. Legend: n rows, t rows of a tile, d columns, C classes; T[clean, given].
"""

from typing import Any, NamedTuple

import numpy as np

from stct.correction.given_labels import Labels
from stct.correction.refit import Fitted
from stct.correction.scores import is_kept
from stct.correction.settings import ResidualSettings
from stct.noise_model.likelihood import LinearLogits
from stct.noise_model.transition import curvature, posterior
from stct.numeric.engine import Computed, light_rows
from stct.numeric.probabilities import softmax
from stct.numeric.ridge import RidgePath
from stct.numeric.tiles import MAX_STRIDE, some_of
from stct.numeric.types import Floats


class Residual(NamedTuple):
    """Corrected logits of all rows, and the correction for new rows."""

    logits: Any  # (n, C), with the engine
    weights: Floats  # (d, C)
    intercept: Floats  # (C,)


def teaching_stride(num_rows: int, d: int, C: int, settings: ResidualSettings) -> int:
    """Of so many rows one teaches the correction."""
    enough = max(settings.rows, settings.rows_per_weight * d * C)
    enough = max(min(enough, settings.max_scores // C), 1)
    return int(min(max(1, num_rows // enough), MAX_STRIDE))


def self_influence(
    leverage: Floats, curvature: Floats, settings: ResidualSettings
) -> Floats:
    """How far a row's own label has moved its logits, for each Q - P, (t,)."""
    share = np.minimum(leverage * curvature, settings.most_self_influence)
    return np.asarray(leverage / (1.0 - share))


def add_linear_residual(
    path: RidgePath, fitted: Fitted, labels: Labels, settings: ResidualSettings
) -> Residual:
    """Climb the likelihood of the given labels by a few steps, linear in the features.

    The prior on the weights has the precision of one row of unit variance; the climb is
    done in coordinates in which prior and likelihood have a curvature of about 1.
    Leave-one-out is approximate here: one Newton step back from the influence of each
    row's own label, with the mean curvature.
    """
    engine, n, C = labels.engine, len(labels.given), labels.num_classes
    T, (values, vectors) = fitted.transition, path.axes
    if not settings.enabled:
        nothing = np.zeros((path.rows.shape[1], C)), np.zeros(C)
        return Residual(light_rows(engine, fitted.logits, (n, C)), *nothing)
    offset = light_rows(engine, fitted.logits, (n, C))
    stride = teaching_stride(path.num_labelled, path.rows.shape[1], C, settings)

    def bend(rows: slice) -> tuple[float, int]:
        P = softmax(np.asarray(offset[rows][some_of(rows, stride)]))
        return float(curvature(P, T).sum(dtype=np.float64)), len(P)

    total, count = engine.sum(bend, n, wide=False)
    mean_bend = max(float(total) / float(count), 1e-6)
    penalty = float(values.sum()) / path.num_labelled
    scale = 1.0 / np.sqrt(mean_bend / stride * values + penalty)  # (rank,)
    model = LinearLogits(
        path.rows, labels.codes(), engine, offset=offset, stride=stride
    )
    W = model.fit(
        np.zeros((len(vectors), C)),
        T,
        precision=penalty * scale**2,
        basis=vectors * scale,
        curvature=np.ones(len(scale)),
        max_steps=settings.steps,
    )
    moved, given = model.logits(W), engine.keep(labels.given)
    # Rows that teach have a Gram matrix of about G / stride.
    leverage = path.leverage_at(penalty / mean_bend * stride)

    def left_out(rows: slice) -> Floats:
        taught = some_of(rows, stride)
        logits = np.array(moved(rows), dtype=np.float32)
        P = softmax(logits[taught])
        own = leverage(rows, taught) * (stride / mean_bend)  # (t,)
        influence = self_influence(own, curvature(P, T), settings)
        step = influence[:, None] * (P - posterior(P, T, given[rows][taught]))
        logits[taught] += step
        return logits

    logits: Any = Computed(left_out, (n, C), np.float32)
    if is_kept(n, C):
        logits = engine.rows(left_out, n)
    W = W * path.rows.scale
    return Residual(logits, W, -(path.rows.mean @ W))
