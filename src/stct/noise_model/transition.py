"""Transition matrices: how they are counted, estimated and used.

T[clean, given] has rows that sum to 1 (the paper uses both index orders; this is the
one of its Theorem 1). Legend: n rows, C classes; S scores (n, C), P(clean | x) (n, C).
"""

import numpy as np

from stct.numeric.types import Floats, Ints


def posterior(P: Floats, T: Floats, given: Ints) -> Floats:
    """Pr[clean | x, given] ~ Pr[clean | x] * T[clean, given], (n, C).

    Fuses what the features say with the given label. Rows without a label
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
    """T whose errors go to all other classes alike, (C, C)."""
    T = np.full((num_classes, num_classes), (1.0 - diagonal) / (num_classes - 1))
    np.fill_diagonal(T, diagonal)
    return T


def anchor_transition(S: Floats, given: Ints, share: float = 0.2) -> Floats:
    """T from the rows of each predicted class with the largest margins, (C, C).

    A first guess to start from: with weak features it is too noisy, with human
    annotators too clean. Twenty rows of symmetric noise are added to each class.
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
    # One error more than was seen: a few right anchors prove no perfect T.
    right = (np.trace(counts) + 1.0) / (counts.sum() + 2.0)
    diagonal = float(np.clip(right, 1.0 / C, 0.999))
    counts += 20.0 * symmetric_transition(diagonal, C)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def sparse_transition(counts: Floats, num_rows: int) -> Floats:
    """T that says no more than the counts prove (BIC), (C, C).

    One error rate for all classes, spread evenly over the other labels. A class gets
    its own error rate, and a pair of classes its own share of the errors, only where
    that raises the log-likelihood by more than half a log n, as the Bayesian
    information criterion asks. With 100 classes and 50,000 rows most of T's 10,000
    entries would be noise.
    """
    C = len(counts)
    if C == 2:
        T = counts + 1e-6
        return np.asarray(T / T.sum(axis=1, keepdims=True))
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
