"""Rows of probabilities: of labels that are certain, and of log-odds."""

import numpy as np

from stct.linear import Floats
from stct.transition import Ints


def one_hot(given: Ints, num_classes: int) -> Floats:
    """Labels as rows of a unit matrix, (n, C) float32; no label gives zeros."""
    rows = np.vstack([np.eye(num_classes), np.zeros(num_classes)]).astype(np.float32)
    return np.asarray(rows[given])


def softmax(logits: Floats) -> Floats:
    """Row-wise, without overflow."""
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True))
