"""Label noise of known kind and rate, for experiments and demonstrations.

Every function takes integer labels (n,) in 0..C-1 and a generator, changes nothing
in place, and returns the noisy labels with the nominal and the actual rate.
Legend: n rows, C classes, d columns; T[clean, given] with rows that sum to 1.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.intp]

# automobile <- truck, airplane <- bird, horse <- deer, cat <-> dog: the map that
# the literature calls asymmetric noise on CIFAR-10.
CIFAR10_FLIPS: Mapping[int, int] = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}

# The fine classes of CIFAR-100 by coarse class, five each, in the data set's own
# numbering. Asymmetric noise moves a class to the next one in its group, cyclically.
CIFAR100_GROUPS: tuple[tuple[int, ...], ...] = (
    (4, 30, 55, 72, 95),
    (1, 32, 67, 73, 91),
    (54, 62, 70, 82, 92),
    (9, 10, 16, 28, 61),
    (0, 51, 53, 57, 83),
    (22, 39, 40, 86, 87),
    (5, 20, 25, 84, 94),
    (6, 7, 14, 18, 24),
    (3, 42, 43, 88, 97),
    (12, 17, 37, 68, 76),
    (23, 33, 49, 60, 71),
    (15, 19, 21, 31, 38),
    (34, 63, 64, 66, 75),
    (26, 45, 77, 79, 99),
    (2, 11, 35, 46, 98),
    (27, 29, 44, 78, 93),
    (36, 50, 65, 74, 80),
    (47, 52, 56, 59, 96),
    (8, 13, 48, 58, 90),
    (41, 69, 81, 85, 89),
)
CIFAR100_FLIPS: Mapping[int, int] = {
    group[i]: group[(i + 1) % 5] for group in CIFAR100_GROUPS for i in range(5)
}


class NoisyLabels(NamedTuple):
    """Noisy labels, the rate that was asked for and the share that really changed."""

    labels: Labels  # (n,)
    nominal_rate: float
    actual_rate: float


def symmetric(
    labels: Labels,
    num_classes: int,
    rate: float,
    generator: np.random.Generator,
    *,
    redraw_true: bool = True,
) -> NoisyLabels:
    """Give a share ``rate`` of the rows a label drawn uniformly.

    With ``redraw_true`` (the paper's convention) all classes can be drawn, the true
    one too, so the actual rate is about ``rate * (C - 1) / C``. Without it the label
    always changes and the actual rate is the nominal one.
    """
    _check_rate(rate)
    chosen = generator.permutation(len(labels))[: round(rate * len(labels))]
    noisy = labels.copy()
    if redraw_true:
        noisy[chosen] = generator.integers(0, num_classes, len(chosen))
    else:
        shift = generator.integers(1, num_classes, len(chosen))
        noisy[chosen] = (labels[chosen] + shift) % num_classes
    return _report(labels, noisy, rate)


def asymmetric(
    labels: Labels,
    rate: float,
    generator: np.random.Generator,
    flips: Mapping[int, int] = CIFAR10_FLIPS,
) -> NoisyLabels:
    """Move a share ``rate`` of each class in ``flips`` to the class it maps to.

    Classes that are not in ``flips`` keep their labels, so the actual rate over all
    rows is lower than the nominal one (on CIFAR-10: half of it).
    """
    _check_rate(rate)
    noisy = labels.copy()
    for source, target in flips.items():
        rows = np.flatnonzero(labels == source)
        noisy[generator.permutation(rows)[: round(rate * len(rows))]] = target
    return _report(labels, noisy, rate)


def pair(
    labels: Labels, num_classes: int, rate: float, generator: np.random.Generator
) -> NoisyLabels:
    """Move a share ``rate`` of every class to the next class, cyclically."""
    flips = {c: (c + 1) % num_classes for c in range(num_classes)}
    return asymmetric(labels, rate, generator, flips)


def instance_dependent(
    labels: Labels,
    features: NDArray[np.floating],
    num_classes: int,
    rate: float,
    generator: np.random.Generator,
) -> NoisyLabels:
    """Flip rows with a probability and a target that depend on the row's features.

    A row's own flip rate comes from a normal distribution around ``rate`` (standard
    deviation 0.1, truncated to [0, 1]); its target from a softmax over random
    projections of its standardised features, one projection for each clean class.
    """
    _check_rate(rate)
    n, d = features.shape
    H = np.asarray(features, dtype=np.float64)
    H = (H - H.mean(axis=0)) / max(float(H.std()), np.finfo(float).tiny)  # (n, d)
    flip = np.clip(generator.normal(rate, 0.1, n), 0.0, 1.0) if rate else np.zeros(n)
    noisy = labels.copy()
    for c in range(num_classes):
        rows = np.flatnonzero(labels == c)
        logits = H[rows] @ generator.normal(size=(d, num_classes)) / np.sqrt(d)
        logits[:, c] = -np.inf
        target = np.exp(logits - logits.max(axis=1, keepdims=True))  # (n_c, C)
        T = target / target.sum(axis=1, keepdims=True) * flip[rows, None]
        T[:, c] = 1.0 - flip[rows]
        noisy[rows] = _draw(T, generator)
    return _report(labels, noisy, rate)


def from_matrix(
    labels: Labels, T: NDArray[np.floating], generator: np.random.Generator
) -> NoisyLabels:
    """Draw each label from its row of ``T[clean, given]``.

    The nominal rate is the one that T implies for these labels.
    """
    T = np.asarray(T, dtype=np.float64)
    if T.ndim != 2 or T.shape[0] != T.shape[1] or len(labels) and max(labels) >= len(T):
        raise ValueError(
            f"T must be square with a row for every class, got shape {T.shape}"
        )
    check_rows(T, "T")
    nominal = float(np.mean(1.0 - T[labels, labels])) if len(labels) else 0.0
    return _report(labels, _draw(T[labels], generator), nominal)


def check_rows(T: NDArray[np.floating], name: str) -> None:
    """Refuse what is no matrix of probabilities; ``name`` says what it is."""
    if (T < 0).any() or not np.allclose(T.sum(axis=1), 1.0):
        raise ValueError(f"{name} must be non-negative with rows that sum to 1")


def _draw(T: NDArray[np.floating], generator: np.random.Generator) -> Labels:
    """Draw one class for each row of probabilities (n, C)."""
    edges = T.cumsum(axis=1)
    edges[:, -1] = 1.0  # rounding must not leave a draw without a class
    return np.asarray((edges > generator.random(len(T))[:, None]).argmax(axis=1))


def _report(clean: Labels, noisy: Labels, nominal: float) -> NoisyLabels:
    actual = float(np.mean(clean != noisy)) if len(clean) else 0.0
    return NoisyLabels(noisy, nominal, actual)


def _check_rate(rate: float) -> None:
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must be between 0 and 1, got {rate}")
