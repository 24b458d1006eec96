"""What the annotator did: the transition matrix, and what follows from it.

T[clean, given] has rows that sum to 1 (the paper uses both index orders; this is the
one of its Theorem 1). Legend: n rows, C classes; S scores (n, C), P(clean | x) (n, C).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]

KEEP, RELABEL, ABSTAIN, FILL = "keep", "relabel", "abstain", "fill"


def accuracy_under_noise(prior: Floats, T: Floats, confusion: Floats) -> float:
    """Theorem 1, Eqs. (26)-(28): accuracy of a classifier measured on noisy labels.

    Parameters
    ----------
    prior : ndarray of shape (C,)
        Pr[clean = i].
    T : ndarray of shape (C, C)
        Pr[given = j | clean = i].
    confusion : ndarray of shape (C, C)
        Pr[predicted = j | clean = i]; the identity is the perfect classifier.
    """
    return float(prior @ (T * confusion).sum(axis=1))


def is_learnable(T: Floats) -> NDArray[np.bool_]:
    """Theorem 1's condition for each class: ``T_ii > T_ij`` for all j != i, (C,)."""
    off_diagonal = np.where(np.eye(len(T), dtype=bool), -np.inf, T)
    return np.asarray(np.diagonal(T) > off_diagonal.max(axis=1))


def hoeffding_bound(num_val: int, eps: float) -> float:
    """Theorem 2, Eq. (3): chance that a validation error is off by ``eps`` or more."""
    return min(1.0, 2.0 * float(np.exp(-2.0 * num_val * eps**2)))


def hoeffding_interval(num_val: int, level: float = 0.95) -> float:
    """Theorem 2 solved for eps: the half-width that holds with probability level."""
    return float(np.sqrt(np.log(2.0 / (1.0 - level)) / (2.0 * num_val)))


def posterior(P: Floats, T: Floats, given: Ints) -> Floats:
    """Pr[clean | x, given] ~ Pr[clean | x] * T[clean, given], (n, C).

    Fuses what the features say with what the annotator said. Rows without a label
    (given is -1) keep P.
    """
    evidence = np.vstack([T.T, np.ones(len(T))]).astype(P.dtype)[given]  # (n, C)
    Q = P * evidence
    total = Q.sum(axis=1, keepdims=True)
    # Both factors can rule out every class; then the features alone decide.
    impossible = total[:, 0] <= 0.0
    if impossible.any():
        Q[impossible], total[impossible] = P[impossible], 1.0
    return np.asarray(Q / total)


def count_transition(Q: Floats, given: Ints) -> Floats:
    """T from soft clean labels Q (n, C) and given labels, (C, C); -1 rows are left out.

    A class that nobody belongs to gets a row that says: nothing known, label kept.
    """
    num_classes = Q.shape[1]
    counts = np.zeros((num_classes, num_classes))
    known = given >= 0
    order = np.argsort(given[known], kind="stable")
    rows = np.flatnonzero(known)[order]
    starts = np.searchsorted(given[rows], np.arange(num_classes + 1))
    for j in range(num_classes):
        counts[:, j] = Q[rows[starts[j] : starts[j + 1]]].sum(axis=0, dtype=np.float64)
    total = counts.sum(axis=1, keepdims=True)
    empty = total[:, 0] <= 0
    counts[empty] = np.eye(num_classes)[empty]
    total[empty] = 1.0
    return np.asarray(counts / total)


class Decision(NamedTuple):
    """The label to use for each row, its probability, and what was done."""

    labels: Ints  # (n,)
    confidence: Floats  # (n,)
    action: NDArray[np.str_]  # (n,) of keep, relabel, abstain, fill


def decide(
    Q: Floats, given: Ints, learnable: NDArray[np.bool_], min_odds: float = 1.0
) -> Decision:
    """Keep, relabel, abstain, or fill in a missing label, from the posterior (n, C).

    *Relabel* when another label is at least ``min_odds`` times as probable as the
    given one; *abstain* when it is more probable but by less than that, or when the
    given or the most probable class fails Theorem 1's check; else *keep*. An
    abstaining row keeps its given label.
    """
    n = len(Q)
    best = Q.argmax(axis=1)
    at = np.arange(n)
    missing = given < 0
    p_best, p_given = Q[at, best], Q[at, np.where(missing, best, given)]
    moved = (best != given) & (p_best > p_given)
    sure = p_best >= min_odds * p_given
    action = np.where(moved, np.where(sure, RELABEL, ABSTAIN), KEEP)
    unlearnable = ~learnable[best] | ~learnable[np.where(missing, best, given)]
    action[unlearnable] = ABSTAIN
    action[missing] = FILL
    labels = np.where((action == RELABEL) | missing, best, given)
    return Decision(labels, Q[at, labels], action)
