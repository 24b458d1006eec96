"""Labels of rows that have several: `MultiLabelCorrector` beside cleanlab's filter.

    python benchmarks/multilabel.py                      # generated rows, three seeds
    python benchmarks/multilabel.py --texts FILE.npz     # X (n, d), label (n,) of text

Peers get the same rows. cleanlab: out-of-fold probabilities of one logistic regression
for each label, its strength by likelihood of the given labels, then
`find_multilabel_issues_per_class`; what it flags is flipped. Right entries, F1 of the
corrected labels (micro and macro) and F1 of finding the flipped entries, in %.

``--texts`` makes labels of the 20 words that most names of intents have (card, top up,
transfer and so on). ``missing`` takes away 30% of the labels and adds 1%.
"""

import argparse
import csv
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stct import MultiLabelCorrector

Array = NDArray
RESULTS = Path(__file__).parent / "results"
ROWS, COLUMNS, LABELS = 10_000, 384, 20
STRENGTHS = (1e-3, 1e-2, 1e-1)


def thresholds(rng: np.random.Generator) -> tuple[Array, Array]:
    """Half of what decides a label is in the columns: weak features."""
    X = rng.normal(size=(ROWS, COLUMNS))
    score = X @ rng.normal(size=(COLUMNS, LABELS)) / np.sqrt(COLUMNS)
    return X, cut(score + 0.5 * rng.normal(size=score.shape), rng)


def factors(rng: np.random.Generator) -> tuple[Array, Array]:
    """Thirty hidden factors, bent and noisy in the columns; labels go together."""
    Z = rng.normal(size=(ROWS, 30))
    X = np.tanh(Z @ rng.normal(size=(30, COLUMNS)) / np.sqrt(30))
    X += 0.5 * rng.normal(size=X.shape)
    score = Z @ rng.normal(size=(30, LABELS)) / np.sqrt(30)
    return X, cut(score + 0.15 * rng.normal(size=score.shape), rng)


def prototypes(rng: np.random.Generator) -> tuple[Array, Array]:
    """Each label adds a direction of its own: clear features."""
    Y = rng.random((ROWS, LABELS)) < rng.uniform(0.05, 0.3, LABELS)
    X = 0.35 * Y @ rng.normal(size=(LABELS, COLUMNS))
    return X + rng.normal(size=X.shape), Y


def texts(path: Path) -> Callable[[np.random.Generator], tuple[Array, Array]]:
    """Real embeddings; the labels of a row are the words in the name of its class."""
    with np.load(path) as data:
        X, names = data["X"].astype(np.float64), data["label"]
    words = [set(str(name).lower().split("_")) for name in names]
    counts = Counter(word for row in words for word in row if len(word) > 3)
    common = [word for word, _ in counts.most_common(LABELS)]
    Y = np.array([[word in row for word in common] for row in words])
    return lambda _: (X, Y)


def cut(score: Array, rng: np.random.Generator) -> Array:
    """Give each label to a share of the rows between 5 and 30%."""
    shares = rng.uniform(0.05, 0.3, LABELS)
    least = [np.quantile(s, 1.0 - q) for s, q in zip(score.T, shares, strict=True)]
    return score > np.array(least)


def flipped(Y: Array, rng: np.random.Generator) -> Array:
    return Y ^ (rng.random(Y.shape) < 0.1)


def missing(Y: Array, rng: np.random.Generator) -> Array:
    return Y ^ (rng.random(Y.shape) < np.where(Y, 0.3, 0.01))


def given(X: Array, Y: Array) -> Array:
    return Y


def ours(X: Array, Y: Array) -> Array:
    return np.asarray(MultiLabelCorrector().fit_correct(X, Y))


def cleanlab(X: Array, Y: Array) -> Array:
    from cleanlab.multilabel_classification.filter import (
        find_multilabel_issues_per_class,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    X = (X - X.mean(axis=0)) / X.std()

    def out_of_fold(strength: float) -> Array:
        model = LogisticRegression(C=strength, max_iter=300)
        return np.stack(
            [
                cross_val_predict(model, X, y, cv=5, method="predict_proba")[:, 1]
                for y in Y.T
            ],
            axis=1,
        )

    def likelihood(P: Array) -> float:
        return float(np.log(np.where(Y, P, 1.0 - P)).mean())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged
        P = max((out_of_fold(strength) for strength in STRENGTHS), key=likelihood)
        labels = [np.flatnonzero(row).tolist() for row in Y]
        issues = np.asarray(find_multilabel_issues_per_class(labels, P))
    return Y ^ (issues if issues.shape == Y.shape else issues.T)


METHODS = {"given": given, "cleanlab": cleanlab, "stct": ours}


def measure(truth: Array, before: Array, after: Array) -> dict[str, float]:
    both = (after & truth).sum(axis=0)
    sizes = after.sum(axis=0) + truth.sum(axis=0)
    changed, wrong = after != before, before != truth
    found = 2.0 * (changed & wrong).sum() / max(changed.sum() + wrong.sum(), 1)
    return {
        "right": 100.0 * (after == truth).mean(),
        "micro_f1": 100.0 * 2.0 * both.sum() / sizes.sum(),
        "macro_f1": 100.0 * float(np.mean(2.0 * both / np.maximum(sizes, 1))),
        "found_f1": 100.0 * found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "multilabel.csv")
    options = parser.parse_args()
    data = {"thresholds": thresholds, "factors": factors, "prototypes": prototypes}
    if options.texts is not None:
        data["words of intents"] = texts(options.texts)
    rows = []
    for name, make in data.items():
        for noise in (flipped, missing):
            for seed in range(options.seeds):
                rng = np.random.default_rng(seed)
                X, truth = make(rng)
                before = noise(truth, rng)
                for name_of, method in METHODS.items():
                    start = time.perf_counter()
                    after = method(X.astype(np.float32), before)
                    seconds = time.perf_counter() - start
                    row = {
                        "data": name,
                        "noise": noise.__name__,
                        "seed": seed,
                        "method": name_of,
                        **measure(truth, before, after),
                        "seconds": seconds,
                    }
                    print(
                        {
                            k: v if isinstance(v, str) else round(v, 2)
                            for k, v in row.items()
                        },
                        flush=True,
                    )
                    rows.append(row)
                    write(options.output, rows)


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write what there is so far."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
            )


if __name__ == "__main__":
    main()
