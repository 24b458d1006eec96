"""What the annotator did: the transition matrix, and what follows from it.

T[clean, given] has rows that sum to 1 (the paper uses both index orders; this is the
one of its Theorem 1). Legend: n rows, C classes; S scores (n, C), P(clean | x) (n, C).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.numeric.types import Floats, Ints

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
    evidence = np.vstack([T.T, np.ones(len(T))]).astype(P.dtype)  # (C + 1, C)
    Q = np.take(evidence, given, axis=0)
    Q *= P
    total = _row_sums(Q)
    # Both factors can rule out every class; then the features alone decide.
    impossible = total <= 0.0
    if impossible.any():
        Q[impossible], total[impossible] = P[impossible], 1.0
    Q /= total[:, None]
    return Q


def count_given(Q: Floats, given: Ints) -> Floats:
    """Count rows of each clean and given class, (C, C), from soft labels Q (n, C).

    Rows without a label (given is -1) are left out.
    """
    C = Q.shape[1]
    order = np.argsort(given, kind="stable")
    edges = np.searchsorted(given[order], np.arange(C + 1))
    counts = np.zeros((C, C))
    for j in range(C):
        rows = order[edges[j] : edges[j + 1]]
        counts[:, j] = Q[rows].sum(axis=0, dtype=np.float64)
    return counts


def count_transition(Q: Floats, given: Ints) -> Floats:
    """T from soft clean labels Q (n, C) and given labels, (C, C).

    A class that nobody belongs to gets a row that says: nothing known, label kept.
    """
    counts = count_given(Q, given)
    total = counts.sum(axis=1, keepdims=True)
    empty = total[:, 0] <= 0
    counts[empty] = np.eye(len(counts))[empty]
    total[empty] = 1.0
    return np.asarray(counts / total)


def symmetric_transition(diagonal: float, num_classes: int) -> Floats:
    """T of an annotator who errs towards all other classes alike, (C, C)."""
    T = np.full((num_classes, num_classes), (1.0 - diagonal) / (num_classes - 1))
    np.fill_diagonal(T, diagonal)
    return T


def anchor_transition(S: Floats, given: Ints, share: float = 0.2) -> Floats:
    """T from the rows of each predicted class with the largest margins, (C, C).

    A first guess to start from: with weak features it is too noisy, with human
    annotators too clean. Twenty rows of a symmetric annotator are added to each class.
    """
    n, C = S.shape
    top = S.argmax(axis=1)
    others = S.copy()
    others[np.arange(n), top] = -np.inf
    margin = S[np.arange(n), top] - others.max(axis=1)
    counts = np.zeros((C, C))
    for c in range(C):
        rows = np.flatnonzero(top == c)
        keep = int(np.ceil(share * len(rows)))
        clearest = np.argsort(-margin[rows], kind="stable")[:keep]
        counts[c] = np.bincount(given[rows[clearest]], minlength=C)
    # One error more than was seen: a few right anchors prove no perfect annotator.
    right = (np.trace(counts) + 1.0) / (counts.sum() + 2.0)
    diagonal = float(np.clip(right, 1.0 / C, 0.999))
    counts += 20.0 * symmetric_transition(diagonal, C)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def proven_transition(counts: Floats, num_rows: int) -> Floats:
    """T that says no more than the counts prove, (C, C).

    One error rate for all classes, spread evenly over the other labels. A class gets
    its own error rate, and a pair of classes its own share of the errors, only where
    that raises the log-likelihood by more than half a log n, as the Bayesian
    information criterion asks. With 100 classes and 50,000 rows most of T's 10,000
    entries would be noise.
    """
    C = len(counts)
    needed = 0.5 * np.log(max(num_rows, 2))
    total = counts.sum(axis=1) + 1e-9
    errors = np.maximum(total - np.diagonal(counts), 1e-9)
    pooled = float(np.clip(errors.sum() / total.sum(), 1e-6, 1.0 - 1e-6))
    own = np.clip(errors / total, 1e-9, 1.0 - 1e-9)
    gain = own * np.log(own / pooled) + (1 - own) * np.log((1 - own) / (1 - pooled))
    rate = np.where(total * gain > needed, np.maximum(own, 1e-6), pooled)  # (C,)
    off = ~np.eye(C, dtype=bool)
    share = np.where(off, counts / errors[:, None], 0.0)
    proven = np.zeros((C, C), dtype=bool)
    for _ in range(4):  # who is proven decides the background, and the other way round
        rest = off & ~proven
        even = np.where(rest, share, 0.0).sum(axis=1) / np.maximum(rest.sum(axis=1), 1)
        even = np.maximum(even, 1e-9)[:, None]
        own_share = np.maximum(share, 1e-12)
        gain = own_share * np.log(own_share / even) - own_share + even
        proven = off & (errors[:, None] * gain > needed)
    spread = np.where(proven, share, np.where(off, even, 0.0))
    spread /= np.maximum(spread.sum(axis=1, keepdims=True), 1e-12)
    T = spread * rate[:, None] + np.diag(1.0 - rate) + 1e-6
    return np.asarray(T / T.sum(axis=1, keepdims=True))


def quality(T: Floats, shares: Floats) -> float:
    """Share of right labels beyond chance: 1 is a perfect annotator, 0 a random one.

    ``shares`` (C,), of any sum, are those of the clean classes.
    """
    prior = shares / shares.sum()
    chance = float(prior @ (prior @ T))
    right = float(prior @ np.diagonal(T))
    return (right - chance) / max(1.0 - chance, 1e-12)


def raise_quality(T: Floats, shares: Floats, least: float) -> Floats:
    """T moved towards the identity until its `quality` is ``least``, (C, C)."""
    prior = shares / shares.sum()

    def excess(T: Floats) -> float:  # is linear in T, and 0 where quality is `least`
        right, chance = prior @ np.diagonal(T), prior @ (prior @ T)
        return float(right - chance - least * (1.0 - chance))

    identity = np.eye(len(T))
    low, high = excess(T), excess(identity)
    if low >= 0.0:
        return T
    step = min(-low / max(high - low, 1e-12), 1.0 - 1e-6)
    return np.asarray((1.0 - step) * T + step * identity)


def odds_in_doubt(T: Floats, shares: Floats, most: float) -> Floats:
    """Odds that a new label needs besides, if the annotator may be better, (C, C).

    By given and new label. They make it the more probable one even if the annotator's
    `quality` is ``most``; with T as it is they are 1.
    """
    better = raise_quality(T, shares, most)
    told = np.maximum(T.T, 1e-12) / np.maximum(better.T, 1e-12)  # [given, new]
    own = np.diagonal(better) / np.maximum(np.diagonal(T), 1e-12)
    return np.maximum(told * own[:, None], 1.0)


class Decision(NamedTuple):
    """The label to use for each row, its probability, and what was done."""

    labels: Ints  # (n,)
    confidence: Floats  # (n,)
    action: NDArray[np.str_]  # (n,) of keep, relabel, abstain, fill


def decide(
    Q: Floats,
    given: Ints,
    learnable: NDArray[np.bool_],
    min_odds: float = 1.0,
    asked: Floats | None = None,
) -> Decision:
    """Keep, relabel, abstain, or fill in a missing label, from the posterior (n, C).

    *Relabel* when another label is at least ``min_odds`` times as probable as the
    given one, and as many times as ``asked`` (C, C) says of the two; *abstain* when it
    is more probable but by less than that, or when the given or the most probable
    class fails Theorem 1's check; else *keep*. An abstaining row keeps its given label.
    """
    best = Q.argmax(axis=1)
    at, known = np.arange(len(Q)), np.where(given < 0, best, given)
    odds = min_odds if asked is None else np.maximum(min_odds, asked[known, best])
    return decide_between(best, Q[at, best], Q[at, known], given, learnable, odds)


def decide_between(
    best: Ints,
    p_best: Floats,
    p_given: Floats,
    given: Ints,
    learnable: NDArray[np.bool_],
    min_odds: float | Floats = 1.0,
) -> Decision:
    """Decide from the most probable class (n,), its probability and the given one's.

    ``min_odds`` are the same for all rows or those of each, (n,).
    """
    missing = given < 0
    moved = (best != given) & (p_best > p_given)
    sure = p_best >= min_odds * p_given
    action = np.where(moved, np.where(sure, RELABEL, ABSTAIN), KEEP)
    unlearnable = ~learnable[best] | ~learnable[np.where(missing, best, given)]
    action[unlearnable] = ABSTAIN
    action[missing] = FILL
    follow = (action == RELABEL) | missing
    labels = np.where(follow, best, given)
    return Decision(labels, np.where(follow, p_best, p_given), action)


def curvature(P: Floats, T: Floats) -> Floats:
    """Fisher information of a given label about the logits, mean over classes, (n,).

    For a row with Pr[clean | x] = P (n, C): little where P is sure or T is noisy.
    """
    T = T.astype(P.dtype)
    P2 = P * P
    pulled = (P2 @ (T * T)) / np.maximum(P @ T, 1e-20)  # (n, C)
    total = _row_sums(pulled) - _row_sums(P2)
    return np.asarray(np.maximum(total, 0.0) / (len(T) - 1))


def _row_sums(A: Floats) -> Floats:
    """``A.sum(axis=1)``, four times as fast."""
    return np.asarray(np.einsum("ij->i", A))
