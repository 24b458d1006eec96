"""Embeddings with labels of which a known share is wrong."""

import numpy as np
from sklearn.datasets import load_digits

from stct import noise


def blobs(n=600, classes=3, d=6, rate=0.3, seed=0):
    """Embeddings in well separated groups, labels with symmetric noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    X = rng.normal(size=(n, d)) + 6.0 * rng.normal(size=(classes, d))[truth]
    given = noise.symmetric(truth, classes, rate, rng).labels
    return X, given, truth


def noisy_digits():
    """Pixels of 1,797 digits, labels with 50% symmetric noise, true labels."""
    X, truth = load_digits(return_X_y=True)
    given = noise.symmetric(truth, 10, 0.5, np.random.default_rng(0)).labels
    return X, given, truth


def half_known(seed, n=1000, pairs=100):
    """Classes of which eight columns know half, and rows that are there almost twice.

    The class is a third of a quantity; columns say as much of it as chance does.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    quantity = X @ rng.normal(size=8)
    quantity = quantity / quantity.std() + rng.normal(size=n)
    truth = np.digitize(quantity, np.quantile(quantity, [1 / 3, 2 / 3]))
    of = rng.permutation(n)[:pairs]
    X = np.concatenate([X, X[of] + 0.02 * rng.normal(size=(pairs, 8))])
    return X, np.concatenate([truth, truth[of]]), rng
