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
