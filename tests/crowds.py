"""Rows with labels of several annotators, made up."""

import numpy as np


def crowd(n=600, accuracies=(0.9, 0.8, 0.8, 0.6, 0.35), votes=3, C=3, d=8, seed=0):
    """Embeddings, votes (n, a) with -1 for none, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, n)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[np.arange(n), truth] += 2.0
    Y = np.full((n, len(accuracies)), -1)
    for i in range(n):
        for a in rng.choice(len(accuracies), votes, replace=False):
            right = rng.random() < accuracies[a]
            Y[i, a] = truth[i] if right else rng.integers(C)
    return X, Y, truth


def long_table(Y, names=None):
    """Row, annotator and label of each vote."""
    rows, who = np.nonzero(Y >= 0)
    return {
        "row": rows,
        "annotator": who if names is None else np.asarray(names)[who],
        "label": Y[rows, who],
    }


def with_gaps(Y):
    return np.where(Y >= 0, Y, np.nan)
