"""Noisy meta correction in the limit of one sub-training row: the default method.

One row is the sub-training set and all others are its noisy validation set; ridge
makes every such split closed-form, so one factorisation replaces all random splits.
Legend: n rows, d columns, C classes; S scores (n, C), P = Pr[clean | x] (n, C),
T[clean, given], Q = Pr[clean | x, given] (n, C). ``given`` is -1 for no label.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction import Correction
from stct.linear import Floats, RidgePath
from stct.transition import Ints, posterior

# Shrinkage of T towards a symmetric matrix, in rows per class: a small class must
# not be described by a handful of anchors.
PSEUDO_ROWS = 20.0
ANCHOR_SHARE = 0.2
SHARPNESS = np.geomspace(0.5, 16.0, 16)
MAX_ROUNDS = 8


class Explanation(NamedTuple):
    """The sharpness and the T that explain the given labels best."""

    probabilities: Floats  # (n, C)
    transition: Floats  # (C, C)
    sharpness: float


def correct_by_leave_one_out(
    H: Floats,
    given: Ints,
    num_classes: int,
    *,
    locked: NDArray[np.bool_],
    num_threads: int | None,
    progress: Callable[[float], None],
) -> Correction:
    """Alternate between scoring all rows and asking what the labels must have been.

    Round by round the posterior becomes the new target. The round whose scores agree
    most with the labels that were *given* is kept.
    """
    path = RidgePath(H, given >= 0, num_threads=num_threads)
    best: Correction | None = None
    best_agreement = -1.0
    Q = one_hot(given, num_classes)
    for number in range(1, MAX_ROUNDS + 1):
        ridge = path.fit(Q, given)
        agreement = float((ridge.scores.argmax(axis=1) == given).mean())
        if agreement <= best_agreement:
            break
        explained = explain(ridge.scores, given, free=~locked & (given >= 0))
        Q = posterior(explained.probabilities, explained.transition, given)
        Q[locked] = one_hot(given[locked], num_classes)
        best_agreement = agreement
        best = Correction(
            Q,
            explained.transition,
            ridge.weights * explained.sharpness,
            ridge.intercept * explained.sharpness,
            number,
            "agreement",
        )
        progress(number / MAX_ROUNDS)
    assert best is not None
    return best


def correct_probabilities(
    P: Floats, given: Ints, *, locked: NDArray[np.bool_]
) -> Correction:
    """Apply the same posterior to somebody's own out-of-fold probabilities (n, C)."""
    scores = np.log(np.maximum(P, 1e-6)).astype(np.float32)
    explained = explain(scores, given, free=~locked & (given >= 0))
    Q = posterior(explained.probabilities, explained.transition, given)
    Q[locked] = one_hot(given[locked], P.shape[1])
    none = np.empty((0, P.shape[1]))
    return Correction(Q, explained.transition, none, none, 1, "agreement")


def explain(S: Floats, given: Ints, *, free: NDArray[np.bool_]) -> Explanation:
    """Find the sharpness of P and the T under which ``P T`` fits the given labels."""
    S = S / max(float(S.std()), float(np.finfo(S.dtype).tiny))
    T = anchor_transition(S, given, free)
    at = np.flatnonzero(free)
    likelihood = []
    for a in SHARPNESS:
        P = softmax(S * S.dtype.type(a))
        noisy = (P[at] * T.T.astype(P.dtype)[given[at]]).sum(axis=1)
        likelihood.append(np.log(np.maximum(noisy, 1e-12)).mean(dtype=np.float64))
    a = float(SHARPNESS[int(np.argmax(likelihood))])
    return Explanation(softmax(S * S.dtype.type(a)), T, a)


def anchor_transition(S: Floats, given: Ints, free: NDArray[np.bool_]) -> Floats:
    """T from the rows that are predicted with the largest margins, shrunk, (C, C)."""
    num_classes = S.shape[1]
    top = S.argmax(axis=1)
    ordered = np.partition(S, -2, axis=1)
    margin = ordered[:, -1] - ordered[:, -2]
    counts = np.zeros((num_classes, num_classes))
    for c in range(num_classes):
        rows = np.flatnonzero((top == c) & free)
        keep = max(1, round(ANCHOR_SHARE * len(rows)))
        rows = rows[np.argsort(-margin[rows], kind="stable")[:keep]]
        counts[c] = np.bincount(given[rows], minlength=num_classes)
    diagonal = np.trace(counts) / max(counts.sum(), 1.0)
    prior = np.full_like(counts, (1.0 - diagonal) / max(num_classes - 1, 1))
    np.fill_diagonal(prior, diagonal)
    counts += PSEUDO_ROWS * prior
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def one_hot(given: Ints, num_classes: int) -> Floats:
    """Labels as rows of a unit matrix, (n, C) float32; no label gives zeros."""
    rows = np.vstack([np.eye(num_classes), np.zeros(num_classes)]).astype(np.float32)
    return np.asarray(rows[given])


def softmax(logits: Floats) -> Floats:
    """Row-wise, without overflow."""
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True))
