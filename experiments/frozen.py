"""What the experiments on frozen embeddings share: the file, the noise, NMC, a probe.

FILE.npz holds `train` (n, d), `y_train` (n,), `test`, `y_test`, and optionally arrays
`human_*` (n,): labels as people gave them. `benchmarks/embed_cifar.py` makes such a
file from the CIFAR-10 images; any encoder will do. True labels are used for injecting
noise and for scoring, never by a method.
"""

import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct import noise
from stct.correction.paper import (
    SplitCorrection,
    correct_by_splits,
    correct_step,
    move_to_minimiser,
    num_splits,
    num_splits_to_cover,
)
from stct.noise import NoisyLabels
from stct.numeric import linear
from stct.numeric.probabilities import one_hot

Floats = NDArray[np.floating]
Ints = NDArray[np.intp]

SYMMETRIC = [f"symmetric:{rate}" for rate in (0.2, 0.5, 0.8, 0.9)]
ASYMMETRIC = [f"asymmetric:{rate}" for rate in (0.2, 0.4)]
HUMAN = ["human:aggregate", "human:random1", "human:worst"]
STEPS = {"paper": correct_step, "split": move_to_minimiser}
COUNTS = {"printed": num_splits, "covering": num_splits_to_cover}
DATA = "npz with train, y_train, test, y_test and human_*"


class Frozen(NamedTuple):
    """Embeddings with their true labels, and labels that people gave."""

    H: Floats  # (n, d)
    truth: Ints  # (n,)
    H_test: Floats
    y_test: Ints
    human: dict[str, Ints]

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return int(self.truth.max()) + 1


def load(path: Path) -> Frozen:
    """Read an embeddings file; arrays of Python objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as file:
            names = ("train", "y_train", "test", "y_test")
            lacking = [name for name in names if name not in file.files]
            if lacking:
                raise ValueError(
                    f"no array {', '.join(lacking)}; it holds {', '.join(file.files)}"
                )
            human = {k: file[k] for k in file.files if k.startswith("human_")}
            H, y, H_test, y_test = (file[name] for name in names)
            _check_lengths(H, y, H_test, y_test, human)
    except (
        ValueError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        AttributeError,
    ) as error:
        raise ValueError(f"{path}: not an embeddings file: {error}") from error
    return Frozen(
        H.astype(np.float32),
        y.astype(np.intp),
        H_test.astype(np.float32),
        y_test.astype(np.intp),
        {k.replace("_", ":", 1): v.astype(np.intp) for k, v in human.items()},
    )


def _check_lengths(
    H: Floats, y: Ints, H_test: Floats, y_test: Ints, human: dict[str, Ints]
) -> None:
    """Refuse labels that are not one for each row."""
    rows = {"y_train": (y, H, "train"), "y_test": (y_test, H_test, "test")}
    rows |= {name: (labels, H, "train") for name, labels in human.items()}
    for name, (labels, embeddings, where) in rows.items():
        if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1]:
            raise ValueError(
                f"{name} has the shape {labels.shape}, {where} {embeddings.shape}; "
                "expected (n,) and (n, d)"
            )


def add_noise(data: Frozen, name: str, seed: int) -> NoisyLabels:
    """Make noise such as ``symmetric:0.5``, or take the labels of people."""
    if name.startswith("human:"):
        if name not in data.human:
            raise ValueError(f"the file has no labels {name.replace(':', '_')}")
        rate = float(np.mean(data.human[name] != data.truth))
        return NoisyLabels(data.human[name], rate, rate)
    kind, rate_text = name.split(":")
    rng, rate = np.random.default_rng(seed), float(rate_text)
    if kind == "symmetric":
        return noise.symmetric(data.truth, data.num_classes, rate, rng)
    return noise.asymmetric(data.truth, rate, rng)


def stream(seed: int, number: int) -> np.random.Generator:
    """Give a generator of its own for splits (1, as `stct` does) and samples (2, 3).

    With the generator of the noise, the first split would put exactly the rows that
    the noise has chosen into the validation set.
    """
    return np.random.default_rng(seed).spawn(number)[-1]


def seeds_of(noise_name: str) -> range:
    """Three draws of injected noise; there is one set of human labels."""
    return range(1) if noise_name.startswith("human:") else range(3)


def prepare(data: Frozen, H: Floats) -> Floats:
    """Centre rows at the training mean and append a constant, as `stct` does."""
    mean = data.H.mean(axis=0, dtype=np.float64)
    return linear.add_constant((H - mean).astype(np.float32))


def correct(
    data: Frozen,
    given: Ints,
    *,
    method: str,
    seed: int,
    count: str | None = None,
    val_ratio: float = 0.5,
    step_size: float = 0.2,
    validation: tuple[Floats, Ints] | None = None,
) -> SplitCorrection:
    """NMC with the paper's r, eta, delta and beta, and what an experiment changes.

    ``count`` is ``"printed"`` (the default of `paper`) or ``"covering"`` (that of
    `split`). ``validation``: rows (n_v, d) and their labels (n_v,), instead of the rows
    that a split leaves out.
    """
    C = data.num_classes
    n = len(data.H)
    count = count or ("printed" if method == "paper" else "covering")
    fixed = None
    if validation is not None:
        fixed = prepare(data, validation[0]), one_hot(validation[1], C)
    return correct_by_splits(
        prepare(data, data.H),
        one_hot(given, C),
        step=STEPS[method],
        val_ratio=val_ratio,
        step_size=step_size,
        agreement=0.998,
        max_splits=COUNTS[count](n, val_ratio, 0.9999),
        movable=np.ones(n, dtype=bool),
        generator=stream(seed, 1),
        progress=lambda share: None,
        validation=fixed,
    )


def percent(share: float) -> float:
    """Give a share as per cent with two digits."""
    return round(100.0 * float(share), 2)


def label_accuracy(data: Frozen, labels: Ints) -> float:
    """Share of right labels in per cent."""
    return percent(np.mean(labels == data.truth))


def probe_accuracy(data: Frozen, labels: Ints) -> float:
    """Fit least squares to the labels; score it on the test split, in per cent."""
    W = linear.fit(prepare(data, data.H), one_hot(labels, data.num_classes))
    scores = linear.predict(prepare(data, data.H_test), W)
    return percent(np.mean(scores.argmax(axis=1) == data.y_test))
