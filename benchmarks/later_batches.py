"""Measure later batches: the level of the test of a batch, and what a refit is worth.

    python benchmarks/later_batches.py                       # generated rows only
    python benchmarks/later_batches.py cifar10_embeddings.npz

Prints tables in Markdown. Right labels and right predictions are judged by labels that
no fit has seen; spread is that of the seeds.
"""

import sys
from pathlib import Path

import numpy as np

from stct import LabelCorrector, noise
from stct.correction.resemblance import LEVEL

SEEDS = 3
# rows of the fit and of a batch, classes, columns, distance of the classes, skewed
POPULATIONS = (
    (600, 300, 3, 8, 1.0, False),
    (300, 100, 3, 64, 1.0, False),
    (300, 300, 2, 400, 0.5, False),
    (2000, 1000, 10, 32, 0.7, True),
    (200, 60, 4, 8, 0.7, True),
    (1000, 5000, 5, 16, 1.0, False),
)


def draw(rng, n, centres, apart, skewed):
    """Rows of groups of different sizes; each label is wrong with probability 0.3."""
    num_classes, d = centres.shape
    shares = np.arange(1, num_classes + 1) / np.arange(1, num_classes + 1).sum()
    truth = rng.choice(num_classes, n, p=shares)
    X = rng.exponential(size=(n, d)) - 1.0 if skewed else rng.normal(size=(n, d))
    X = X * np.linspace(0.2, 3.0, d) + apart * centres[truth]
    other = (truth + rng.integers(1, num_classes, n)) % num_classes
    return X.astype(np.float32), np.where(rng.random(n) < 0.3, other, truth)


def level_of_the_tests(fits=60, batches=25):
    """Share of batches from the population of the fit that are called different."""
    print(f"| rows | batch | classes | columns | any at {LEVEL:.0%} | p < 0.05, each |")
    print("|---:|---:|---:|---:|---:|---|")
    for n, m, num_classes, d, apart, skewed in POPULATIONS:
        any_differs, p_values = [], []
        for seed in range(fits):
            rng = np.random.default_rng([7, seed])
            centres = rng.normal(size=(num_classes, d))
            X, given = draw(rng, n, centres, apart, skewed)
            corrector = LabelCorrector().fit(X, given)
            if corrector.termination_condition_ == "nothing_learnt":
                continue
            for _ in range(batches):
                batch = draw(rng, m, centres, apart, skewed)
                found = corrector.judge(*batch).differences_
                any_differs.append(any(f.differs for f in found))
                p_values.append([f.p_value for f in found])
        below = (np.array(p_values) < 0.05).mean(axis=0)
        each = ", ".join(f"{share:.1%}" for share in below)
        share = np.mean(any_differs)
        print(f"| {n:,} | {m:,} | {num_classes} | {d} | {share:.1%} | {each} |")


def worth_of_a_refit(path):
    """Right labels of a batch, and right predictions, in three ways."""
    with np.load(path) as data:
        X, truth = data["train"].astype(np.float32), data["y_train"]
        human = {name: data[f"human_{name}"] for name in ("worst", "aggregate")}
    symmetric = noise.symmetric(truth, 10, 0.4, np.random.default_rng(999)).labels
    print(
        "| labels | old | new | given | `--from` | `--refit` | all rows | predicted: "
        "`--from` | `--refit` | all rows |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, given in {"40% symmetric": symmetric, **human}.items():
        for n, m in ((1000, 300), (1000, 5000), (5000, 1000), (5000, 5000)):
            found = []
            for seed in range(SEEDS):
                rows = np.random.default_rng(seed).permutation(len(truth))
                old, new, rest = np.split(rows[: n + m + 4000], [n, n + m])
                first = LabelCorrector().fit(X[old], given[old])
                judged = first.judge(X[new], given[new])
                refitted = first.judge(X[new], given[new], refit=True)
                both = np.concatenate([old, new])
                whole = LabelCorrector().fit(X[both], given[both])
                labels = given[new], judged.labels_, refitted.labels_, whole.labels_[n:]
                right = [np.mean(label == truth[new]) for label in labels]
                right += [
                    np.mean(model.predict(X[rest]) == truth[rest])
                    for model in (first, refitted, whole)
                ]
                found.append(right)
            mean, spread = 100 * np.mean(found, axis=0), 100 * np.std(found, axis=0)
            cells = [f"{a:.1f} ± {b:.1f}" for a, b in zip(mean, spread, strict=True)]
            print(f"| {name} | {n:,} | {m:,} | {' | '.join(cells)} |", flush=True)


def rows_that_were_in_the_fit(path):
    """Compare leave-one-out with the model's word on rows that it has learnt from."""
    with np.load(path) as data:
        X, truth = data["train"].astype(np.float32), data["y_train"]
        given = data["human_worst"]
    print("| rows | same label | right: left out | in the fit | kept: left out | in |")
    print("|---:|---:|---:|---:|---:|---:|")
    for n in (500, 1000, 5000, 20_000):
        rows = np.random.default_rng(1).permutation(len(truth))[:n]
        corrector = LabelCorrector().fit(X[rows], given[rows])
        again = corrector.judge(X[rows], given[rows])
        shares = [np.mean(again.labels_ == corrector.labels_)]
        for reference in (truth[rows], given[rows]):
            shares += [
                np.mean(labels == reference)
                for labels in (corrector.labels_, again.labels_)
            ]
        cells = " | ".join(f"{share:.1%}" for share in shares)
        print(f"| {n:,} | {cells} |", flush=True)


if __name__ == "__main__":
    level_of_the_tests()
    for argument in sys.argv[1:]:
        print()
        worth_of_a_refit(Path(argument))
        print()
        rows_that_were_in_the_fit(Path(argument))
