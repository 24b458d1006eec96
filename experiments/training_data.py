"""What the experiments that train read: images, noisy labels, a clean test set.

The truth makes the noise and marks the result only.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct import noise
from stct.data.cifar_n import with_human_labels
from stct.data.clothing1m import is_clothing1m
from stct.data.images import ImageSet, read_images

FLIPS = {"cifar100": noise.CIFAR100_FLIPS}  # the others: CIFAR-10's map
CIFAR_ROWS = {"cifar10-10k": 10_000, "cifar10": 50_000, "cifar100": 50_000}

Ints = NDArray[np.intp]


class Sources(NamedTuple):
    """What ``stct train`` is told to read."""

    train: Path
    test: Path


@dataclass(frozen=True)
class Arrays:
    """Images (n, h, w, c) uint8, given and true labels (n,), and a clean test set."""

    images: NDArray[np.uint8]
    given: Ints
    truth: Ints
    test_images: NDArray[np.uint8]
    test_truth: Ints

    def digest(self, *, labels: bool) -> str:
        """Tell other images apart, and with ``labels`` other labels."""
        digest = hashlib.sha256()
        for array in (self.images, self.test_images):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array))
        for codes in (self.given, self.test_truth) if labels else ():
            digest.update(codes.astype(np.int64))
        return digest.hexdigest()

    def sources(self, place: Path) -> Sources:
        """Give the files of a folder that hold it."""
        return Sources(place / "train.npz", place / "test.npz")

    def write(self, place: Path) -> None:
        """Write these files, each as a whole."""
        train, test = self.sources(place)
        _write(train, self.images, self.given)
        _write(test, self.test_images, self.test_truth)


@dataclass(frozen=True)
class Clothing:
    """The folder of Clothing-1M, read where it is; nobody knows its true labels."""

    folder: Path
    truth: None = None

    def digest(self, *, labels: bool) -> str:
        """Tell other lists of images apart, and with ``labels`` other labels."""
        digest = hashlib.sha256()
        for split in ("train", "test"):
            read = read_images(self.folder, split=split)
            digest.update(json.dumps(read.ids).encode())
            if labels and read.labels is not None:
                digest.update(json.dumps(read.labels.tolist()).encode())
        return digest.hexdigest()

    def sources(self, place: Path) -> Sources:
        """Give the folder itself: it holds both parts."""
        return Sources(self.folder, self.folder)

    def write(self, place: Path) -> None:
        """Write nothing."""


Task = Arrays | Clothing


def make_task(folder: Path, dataset: str, noise_name: str, seed: int) -> Task:
    """Read a data set and put noise into its training labels."""
    if dataset == "clothing1m":
        if not is_clothing1m(folder / dataset):
            raise ValueError(f"{folder / dataset}: no lists of Clothing-1M in it")
        return Clothing(folder / dataset)
    kind, rate = noise_name.split(":")
    people = None
    if dataset == "digits":
        images, truth, test_images, test_truth = _digits(seed)
    else:
        name = "cifar-100-python" if dataset == "cifar100" else "cifar-10-batches-py"
        read = read_images(folder / name)
        rows = CIFAR_ROWS[dataset]
        _check_rows(folder / name, read, rows)
        if kind == "human":
            people = _codes(_with_people(folder, dataset, read, rate))[:rows]
        images, truth = np.asarray(read.images[:rows]), _codes(read)[:rows]
        test = read_images(folder / name, split="test")
        test_images, test_truth = np.asarray(test.images), _codes(test)
    if people is None:
        people = _noisy(truth, dataset, kind, float(rate), seed)
    return Arrays(images, people, truth, test_images, test_truth)


def _noisy(truth: Ints, dataset: str, kind: str, rate: float, seed: int) -> Ints:
    rng = np.random.default_rng(seed)
    if kind == "symmetric":
        return noise.symmetric(truth, int(truth.max()) + 1, rate, rng).labels
    flips = FLIPS.get(dataset, noise.CIFAR10_FLIPS)
    return noise.asymmetric(truth, rate, rng, flips).labels


def _with_people(folder: Path, dataset: str, read: ImageSet, name: str) -> ImageSet:
    file = "CIFAR-100_human.pt" if dataset == "cifar100" else "CIFAR-10_human.pt"
    if not (folder / file).is_file():
        raise ValueError(
            f"{folder / file}: no such file; human labels are in the file of that name "
            "that the authors of CIFAR-N publish"
        )
    return with_human_labels(read, folder / file, name)


def _digits(seed: int) -> tuple[Any, ...]:
    """Four of five of scikit-learn's digits to train on, the others to test on."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 8, 8, 1) * (255 / 16)).astype(np.uint8)
    order = np.random.default_rng([seed, 1]).permutation(len(labels))
    images, truth = images[order], labels[order].astype(np.intp)
    n = len(truth) * 4 // 5
    return images[:n], truth[:n], images[n:], truth[n:]


def _check_rows(path: Path, read: ImageSet, num_rows: int) -> None:
    """Refuse a CIFAR that lacks rows: its table would be another one's."""
    wanted = {str(row) for row in range(num_rows)}
    found = len(wanted.intersection(read.ids))
    if found < num_rows:
        raise ValueError(
            f"{path}: {found:,} of the first {num_rows:,} training images are there, "
            f"all are needed ({'; '.join(read.notes) or 'files are too short'})"
        )


def _codes(read: ImageSet) -> Ints:
    number = {name: code for code, name in enumerate(read.classes or ())}
    assert read.labels is not None
    return np.array([number[label] for label in read.labels], dtype=np.intp)


def _write(path: Path, images: NDArray[Any], labels: NDArray[Any]) -> None:
    temporary = path.with_name(f".{path.name}")
    with temporary.open("wb") as file:
        np.savez(file, images=images, labels=labels)
    temporary.rename(path)
