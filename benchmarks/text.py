"""Short texts in many classes, with wrong labels: TF-IDF and MiniLM, stct and cleanlab.

    python benchmarks/text.py DATA [--seeds 5] [--out FOLDER]

DATA is an .npz with `text` (n,) and `label` (n,): Banking77, 10,003 questions to a bank
in 77 intents. 15% of the rows get a wrong label: half of these another class at random,
half a look-alike, one of the ten classes whose mean MiniLM embeddings are nearest.

Features are those of `stct correct --text-column`: TF-IDF, and `--encoder minilm`.
cleanlab gets the same features: out-of-fold multinomial logistic regression, its
strength chosen by cross-validated likelihood of the noisy labels; flagged rows take the
most probable class. Every cell is one row of FOLDER/text.csv, written when it is done;
those that are there are not computed again. At the end FOLDER/text.md. True labels are
for making noise and for scoring only; a few of Banking77's own labels are wrong.
"""

import argparse
import csv
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stct import LabelCorrector
from stct.encoders import default_cache, embed_text

Array = NDArray
WRONG, NEAREST = 0.15, 10
STRENGTHS = (1.0, 3.0, 10.0)
FOLDS = 5
COLUMNS = ("features", "method", "seed", "n", "C", "given", "right", "seconds", "cpu")
TITLES = {"tfidf": "TF-IDF", "minilm": "MiniLM"}


def corrupt(truth: Array, near: Array, seed: int) -> Array:
    """Give 15% of the rows another label: at random, or one that looks alike."""
    rng = np.random.default_rng(seed)
    labels, classes = truth.copy(), len(near)
    rows = rng.permutation(len(truth))[: int(WRONG * len(truth))]
    random, alike = np.array_split(rows, 2)
    shift = rng.integers(1, classes, len(random))
    labels[random] = (truth[random] + shift) % classes
    labels[alike] = near[truth[alike], rng.integers(0, near.shape[1], len(alike))]
    return labels


def nearest_classes(X: Array, truth: Array) -> Array:
    """Give the classes with the nearest mean embeddings, nearest first, (C, 10)."""
    means = np.stack([X[truth == c].mean(axis=0) for c in range(truth.max() + 1)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosines = means @ means.T
    np.fill_diagonal(cosines, -np.inf)
    return np.argsort(-cosines, axis=1, kind="stable")[:, :NEAREST]


def ours(X: Array, y: Array) -> Array:
    return LabelCorrector().fit(X, y).labels_


def cleanlab(X: Array, y: Array) -> Array:
    from cleanlab.filter import find_label_issues
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    best, P = -np.inf, np.empty(0)
    X = X / np.sqrt(np.square(X).sum(axis=1).mean())
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=100, tol=1e-3)
        with warnings.catch_warnings():  # not converged
            warnings.simplefilter("ignore")
            found = cross_val_predict(model, X, y, cv=FOLDS, method="predict_proba")
        likelihood = np.log(np.maximum(found[np.arange(len(y)), y], 1e-12)).mean()
        if likelihood > best:
            best, P = likelihood, found
    flagged = find_label_issues(y, P, n_jobs=1)
    return np.where(flagged, P.argmax(axis=1), y)


METHODS = {"stct": ours, "cleanlab": cleanlab}


def run(data: Path, seeds: int, path: Path) -> None:
    with np.load(data, allow_pickle=False) as archive:
        texts = [str(text) for text in archive["text"]]
        truth = np.unique(archive["label"], return_inverse=True)[1]
    start, cpu = time.perf_counter(), time.process_time()
    features = {"tfidf": embed_text(texts)}
    spent = time.perf_counter() - start, time.process_time() - cpu
    print(f"TF-IDF of {len(texts):,} texts: {spent[0]:.1f} s, {spent[1]:.1f} s of CPU")
    features["minilm"] = embed_text(texts, "minilm", cache_dir=default_cache())
    near = nearest_classes(features["minilm"], truth)
    done = read(path)
    known = {(row["features"], row["method"], row["seed"]) for row in done}
    for seed in range(seeds):
        given = corrupt(truth, near, seed)
        for method, function in METHODS.items():
            for name, X in features.items():
                if (name, method, str(seed)) in known:
                    continue
                start, cpu = time.perf_counter(), time.process_time()
                labels = function(X, given)
                row = {
                    "features": name,
                    "method": method,
                    "seed": str(seed),
                    "n": str(len(truth)),
                    "C": str(len(near)),
                    "given": f"{np.mean(given == truth):.4f}",
                    "right": f"{np.mean(labels == truth):.4f}",
                    "seconds": f"{time.perf_counter() - start:.1f}",
                    "cpu": f"{time.process_time() - cpu:.1f}",
                }
                done.append(row)
                write(path, done)
                print(row, flush=True)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def report(rows: list[dict[str, str]], path: Path) -> None:
    """Write the table: mean and spread over the seeds."""
    cells = defaultdict(list)
    for row in rows:
        cells[row["features"], row["method"]].append(row)
    first = rows[0]
    lines = [
        "# Texts",
        "",
        f"Right labels in %, {int(first['n']):,} questions to a bank in {first['C']} "
        f"classes (Banking77), {float(first['given']):.1%} of the given labels right. "
        "Mean and standard deviation over seeds of the noise. Made by "
        "`python benchmarks/text.py`, which says what the noise is.",
        "",
        "| features | method | right % | seeds | CPU seconds |",
        "|---|---|---|---|---|",
    ]
    for (name, method), found in sorted(cells.items(), reverse=True):
        right = 100 * np.array([float(row["right"]) for row in found])
        spread = f" ± {right.std(ddof=1):.2f}" if len(found) > 1 else ""
        cpu = np.mean([float(row["cpu"]) for row in found])
        lines.append(
            f"| {TITLES[name]} | {method} | {right.mean():.2f}{spread} | {len(found)} "
            f"| {cpu:.0f} |"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    path = arguments.out / "text.csv"
    run(arguments.data, arguments.seeds, path)
    report(read(path), arguments.out / "text.md")


if __name__ == "__main__":
    main()
