"""The peers of the battery: X (n, d), given labels (n,) in 0..C-1 and C to new labels.

None sees the truth. ``given`` changes nothing; ``probe`` is the argmax of leave-one-out
ridge; ``logistic`` multinomial logistic regression on the noisy labels (NI-ERM), its
strength by cross-validation on them; ``knn`` a vote of the nearest rows; ``cleanlab``
its own recipe; ``anchors`` the posterior with T from the clearest rows and one
sharpness for all rows.
"""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stct.bench.methods import NUM_NEIGHBOURS, given_labels, linear_probe
from stct.bench.methods import cleanlab as cleanlab_verdict
from stct.noise_model.transition import anchor_transition, posterior
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.ridge import RidgePath
from stct.numeric.tiles import single_blas_thread

Array = NDArray
Peer = Callable[[Array, Array, int], Array]

STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
CHOOSING_ROWS = 5_000
NUM_FOLDS = 3
BLOCK = 2**25  # cosines at a time


def given(X: Array, y: Array, C: int) -> Array:
    return given_labels(X, y, C).labels


def probe(X: Array, y: Array, C: int) -> Array:
    return linear_probe(X, y, C).labels


def cleanlab(X: Array, y: Array, C: int) -> Array:
    with warnings.catch_warnings():  # not converged, classes of fewer rows than folds
        warnings.simplefilter("ignore")
        return cleanlab_verdict(X, y, C).labels


def logistic(X: Array, y: Array, C: int) -> Array:
    from sklearn.linear_model import LogisticRegression

    X = X - X.mean(axis=0)
    X /= X.std()
    with warnings.catch_warnings():  # not converged
        warnings.simplefilter("ignore")
        strength = choose_strength(X, y)
        return LogisticRegression(C=strength, max_iter=300).fit(X, y).predict(X)


def choose_strength(X: Array, y: Array) -> float:
    """Take the strength that predicts most of the noisy labels of rows left out."""
    from sklearn.linear_model import LogisticRegression

    rows = np.random.default_rng(0).permutation(len(y))[:CHOOSING_ROWS]
    folds = np.array_split(rows, NUM_FOLDS)
    right = np.zeros(len(STRENGTHS))
    for fold in folds:
        others = np.setdiff1d(rows, fold)
        if len(np.unique(y[others])) == 1:
            continue
        model = LogisticRegression(max_iter=300, warm_start=True)
        for i, strength in enumerate(STRENGTHS):
            model.set_params(C=strength).fit(X[others], y[others])
            right[i] += (model.predict(X[fold]) == y[fold]).sum()
    return STRENGTHS[int(right.argmax())]


def knn(X: Array, y: Array, C: int) -> Array:
    """Most common label of the nearest other rows by cosine; never n x n at once."""
    n = len(y)
    k = min(NUM_NEIGHBOURS, max(n // C // 2, 5), n - 1)
    unit = X.astype(np.float32)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    labels = np.empty_like(y)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        cosine = unit[start : start + step] @ unit.T  # (rows, n)
        own = np.arange(len(cosine))
        cosine[own, start + own] = -np.inf  # not itself
        nearest = np.argpartition(cosine, n - k, axis=1)[:, n - k :]
        cells = own[:, None] * C + y[nearest]
        votes = np.bincount(cells.ravel(), minlength=len(own) * C)
        labels[start + own] = votes.reshape(-1, C).argmax(axis=1)
    return labels


def anchors(X: Array, y: Array, C: int) -> Array:
    """T from the clearest 20% of each predicted class, then the likeliest sharpness."""
    with single_blas_thread():
        path = RidgePath(X, np.ones(len(X), bool))
        S = path.fit(one_hot(y, C), y).scores
    T = anchor_transition(S, y)
    rows, S = np.arange(len(S)), S / S.std()
    best, labels = -np.inf, y
    for sharpness in 2.0 ** np.arange(-0.5, 4.1, 0.5):
        P = softmax(S * np.float32(sharpness))
        likelihood = np.log(np.maximum((P @ T)[rows, y], 1e-12)).mean()
        if likelihood > best:
            best, labels = likelihood, posterior(P, T, y).argmax(axis=1)
    return labels


PEERS: dict[str, Peer] = {
    "given": given,
    "probe": probe,
    "logistic": logistic,
    "knn": knn,
    "cleanlab": cleanlab,
    "anchors": anchors,
}


def correct(peer: Peer, X: Array, labels: Array) -> Array:
    """Call a peer with the classes that occur numbered 0..C-1."""
    classes, y = np.unique(labels, return_inverse=True)
    if len(classes) == 1:
        return labels
    return classes[peer(X, y.astype(np.intp), len(classes))]
