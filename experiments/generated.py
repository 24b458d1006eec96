"""Validation sets made by rules: small loss, agreeing neighbours, fuzzy clusters.

The paper's Section V-D compares these with its noisy validation set, inside the same
NMC. It gives no settings beyond its sources; ours are the constants below, fixed before
any result was seen with the true labels. Nothing here has an argument for the truth.
Legend: n rows, n_v validation rows, d columns, C classes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stct.numeric.probabilities import one_hot

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]

NUM_NEIGHBOURS = 250  # Sel-CL on CIFAR-10
FUZZINESS = 1.1  # 2, the textbook value, gives equal memberships in 256 columns
MAX_STEPS = 100


class ValidationSet(NamedTuple):
    """Rows that a rule trusts, and the labels that it gives them."""

    rows: Ints  # (n_v,)
    labels: Ints  # (n_v,)


def by_loss(H: Floats, given: Ints, seed: int) -> ValidationSet:
    """Take rows of small training loss, by a mixture of two Gaussians (DivideMix).

    The loss is the cross-entropy of softmax regression trained on the given labels;
    scaled to [0, 1], rows that belong to the lower component with more than 1/2 stay.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.mixture import GaussianMixture

    X = (H - H.mean(axis=0)) / H.std()
    model = LogisticRegression(max_iter=50, tol=1e-2).fit(X, given)
    P = model.predict_proba(X)  # (n, classes that occur)
    column = np.searchsorted(model.classes_, given)
    loss = -np.log(np.maximum(P[np.arange(len(H)), column], 1e-12))
    loss = ((loss - loss.min()) / np.ptp(loss))[:, None]  # (n, 1)
    mixture = GaussianMixture(2, random_state=seed, reg_covar=5e-4, tol=1e-2)
    low = mixture.fit(loss).means_[:, 0].argmin()
    rows = np.flatnonzero(mixture.predict_proba(loss)[:, low] > 0.5)
    return ValidationSet(rows, given[rows])


def neighbours(H: Floats, k: int = NUM_NEIGHBOURS) -> NDArray[np.int32]:
    """Find the k nearest other rows by cosine, (n, k), a block of rows at a time."""
    unit = H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-12)
    k = min(k, len(H) - 1)
    found = np.empty((len(H), k), np.int32)
    for start in range(0, len(H), 1000):
        similar = unit[start : start + 1000] @ unit.T  # (1000, n)
        here = np.arange(len(similar))
        similar[here, start + here] = -np.inf  # not itself
        found[start : start + 1000] = np.argpartition(-similar, k - 1)[:, :k]
    return found


def by_neighbours(nearest: NDArray[np.int32], given: Ints, C: int) -> ValidationSet:
    """Take rows whose neighbours agree with them, equally many a class (Sel-CL).

    Of the rows whose neighbours vote for the given label, every class keeps those with
    the largest share of votes: as many as the median class has of them.
    """
    n, k = nearest.shape
    votes = np.zeros((n, C), np.int32)
    for column in nearest.T:
        votes[np.arange(n), given[column]] += 1
    agree = np.flatnonzero(votes.argmax(axis=1) == given)
    keep = int(np.median(np.bincount(given[agree], minlength=C)))
    share = votes[agree, given[agree]]
    rows = [
        agree[given[agree] == c][np.argsort(-share[given[agree] == c], kind="stable")]
        for c in range(C)
    ]
    chosen = np.sort(np.concatenate([r[:keep] for r in rows]))
    return ValidationSet(chosen, given[chosen])


def memberships(H: Floats, centres: Floats, fuzziness: float) -> Floats:
    """Fuzzy c-means: share of each cluster in each row, (n, d), (C, d) -> (n, C)."""
    squared = (H**2).sum(axis=1)[:, None] - 2 * H @ centres.T + (centres**2).sum(axis=1)
    logs = -np.log(np.maximum(squared, 1e-12)) / (fuzziness - 1.0)
    U = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(U / U.sum(axis=1, keepdims=True))


def move_centres(H: Floats, U: Floats, fuzziness: float) -> Floats:
    """Fuzzy c-means: mean of the rows weighted by ``U ** fuzziness``, (C, d)."""
    weights = U**fuzziness
    return np.asarray((weights.T @ H) / weights.sum(axis=0)[:, None])


def fuzzy_clusters(H: Floats, C: int, seed: int) -> Floats:
    """Fuzzy c-means of unit rows from k-means++ centres, memberships (n, C)."""
    from sklearn.cluster import kmeans_plusplus

    unit = H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-12)
    centres, _ = kmeans_plusplus(unit, C, random_state=seed)
    for _ in range(MAX_STEPS):
        moved = move_centres(unit, memberships(unit, centres, FUZZINESS), FUZZINESS)
        change = np.abs(moved - centres).max()
        centres = moved
        if change < 1e-4:
            break
    return memberships(unit, centres, FUZZINESS)


def by_clusters(U: Floats, given: Ints, C: int) -> ValidationSet:
    """Take the surer half of every fuzzy cluster, labelled with the cluster's class.

    Clusters have no names. The one use of the given labels is the assignment of
    clusters to classes, one to one, with which most of them agree.
    """
    cluster = U.argmax(axis=1)
    counts = one_hot(cluster, C).T @ one_hot(given, C)  # (clusters, classes)
    names = linear_sum_assignment(-counts)[1]
    sure = U.max(axis=1)
    rows = []
    for c in range(C):
        inside = np.flatnonzero(cluster == c)
        order = inside[np.argsort(-sure[inside], kind="stable")]
        rows.append(order[: (len(order) + 1) // 2])
    chosen = np.sort(np.concatenate(rows))
    return ValidationSet(chosen, names[cluster[chosen]])
