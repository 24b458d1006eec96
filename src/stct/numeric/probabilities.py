"""Rows of probabilities: of labels that are certain, and of log-odds."""

import numpy as np

from stct.numeric.types import Floats, Ints

FEW_CLASSES = 32


def one_hot(given: Ints, num_classes: int) -> Floats:
    """Labels as rows of a unit matrix, (n, C) float32; no label gives zeros."""
    rows = np.vstack([np.eye(num_classes), np.zeros(num_classes)]).astype(np.float32)
    return np.take(rows, given, axis=0)


def softmax(logits: Floats) -> Floats:
    """Row-wise, without overflow."""
    # Sums over few classes are quicker as sums of long vectors.
    few = logits.shape[1] <= FEW_CLASSES
    E = np.array(logits.T if few else logits, order="C")
    axis = 0 if few else 1
    E -= E.max(axis=axis, keepdims=True)
    np.exp(E, out=E)
    E /= E.sum(axis=axis, keepdims=True)
    return np.ascontiguousarray(E.T if few else E)


def known_beyond_chance(mean_largest: float, num_classes: int) -> float:
    """Share of the rows whose class is known, from the mean largest probability."""
    chance = 1.0 / num_classes
    return (mean_largest - chance) / (1.0 - chance)
