"""The methods of the battery: ours and their peers, each as one function.

All take embeddings H (n, d), given labels y (n,) in 0..C-1 and C, and never the truth.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from stct import LabelCorrector
from stct.numeric.probabilities import one_hot
from stct.numeric.ridge import RidgePath
from stct.numeric.tiles import single_blas_thread
from stct.numeric.types import Floats, Ints

NUM_NEIGHBOURS = 50
NUM_FOLDS = 5


class Verdict(NamedTuple):
    """New labels, and how much each given label is to be doubted."""

    labels: Ints  # (n,)
    doubt: Floats | None  # (n,) higher: more likely wrong; any scale


Method = Callable[[Floats, Ints, int], Verdict]


def given_labels(H: Floats, y: Ints, C: int) -> Verdict:
    """Change nothing."""
    return Verdict(y, None)


def linear_probe(H: Floats, y: Ints, C: int) -> Verdict:
    """Argmax of leave-one-out ridge: no transition matrix, no posterior."""
    with single_blas_thread():
        path = RidgePath(H, np.ones(len(H), dtype=bool))
        S = path.fit(one_hot(y, C), y).scores  # (n, C)
    return Verdict(S.argmax(axis=1), S.max(axis=1) - S[np.arange(len(y)), y])


def knn_vote(H: Floats, y: Ints, C: int) -> Verdict:
    """Most common label of the 50 nearest other rows, by cosine."""
    from sklearn.neighbors import NearestNeighbors

    unit = H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-12)
    k = min(NUM_NEIGHBOURS + 1, len(H))
    search = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=-1).fit(unit)
    nearest = search.kneighbors(unit, return_distance=False)[:, 1:]  # not itself
    votes = np.zeros((len(H), C), np.int32)
    rows = np.arange(len(H))
    for column in nearest.T:
        votes[rows, y[column]] += 1
    return Verdict(votes.argmax(axis=1), -votes[rows, y].astype(np.float32))


def cleanlab(H: Floats, y: Ints, C: int) -> Verdict:
    """Cleanlab's own recipe: out-of-fold logistic regression, flagged rows change."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    P = cross_val_predict(model, H, y, cv=NUM_FOLDS, method="predict_proba")
    flagged = find_label_issues(y, P, n_jobs=1)
    doubt = 1.0 - get_label_quality_scores(y, P)
    return Verdict(np.where(flagged, P.argmax(axis=1), y), doubt)


def corrector(method: str) -> Method:
    """Make a method of `LabelCorrector`, with its defaults."""

    def correct(H: Floats, y: Ints, C: int) -> Verdict:
        fitted: Any = LabelCorrector(method, random_state=0).fit(H, y)
        column = np.searchsorted(fitted.classes_, y)
        trust = fitted.label_distributions_[np.arange(len(y)), column]
        return Verdict(fitted.labels_, 1.0 - trust)

    return correct


METHODS: dict[str, Method] = {
    "given": given_labels,
    "probe": linear_probe,
    "knn": knn_vote,
    "cleanlab": cleanlab,
    "paper": corrector("paper"),
    "split": corrector("split"),
    "loo": corrector("loo"),
}
TITLES = {
    "given": "given labels",
    "probe": "linear probe",
    "knn": f"k-NN vote ({NUM_NEIGHBOURS})",
    "cleanlab": "cleanlab",
    "paper": "paper, Eq. (9)",
    "split": "stct split",
    "loo": "stct loo (default)",
}


def is_installed(name: str) -> bool:
    """Tell whether a method can run here; all but cleanlab always can."""
    return name != "cleanlab" or find_spec("cleanlab") is not None
