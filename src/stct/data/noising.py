"""Known noise for the labels of a table: `stct.noise` with class names for numbers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct import noise
from stct.checks import check_classes
from stct.data.columns import encode_label, is_missing
from stct.data.files import read_json, read_text, reading
from stct.data.npy import read_npy
from stct.data.tables import Column, Table

KINDS = ("symmetric", "symmetric-strict", "asymmetric", "pair", "instance", "matrix")


class NoisyColumn(NamedTuple):
    """Labels with noise and the two rates, over the rows that have a label."""

    labels: list[Any]
    nominal_rate: float
    actual_rate: float


def add_noise(
    labels: list[Any],
    kind: str,
    *,
    rate: float,
    seed: int,
    flips: str | None = None,
    matrix: Path | None = None,
    embeddings: NDArray[Any] | None = None,
    where: str = "the column of labels",
) -> NoisyColumn:
    """Replace a share of the labels; missing ones stay missing.

    Classes are numbered in the order of `class_order`. ``flips`` ("cifar10",
    "cifar100" or a JSON file) is for "asymmetric", ``matrix`` (a file) for "matrix",
    ``embeddings`` (n, d) for "instance". ``where`` names the labels in errors.
    """
    rows = [row for row, label in enumerate(labels) if not is_missing(label)]
    classes = class_order([labels[row] for row in rows])
    check_classes(classes, where)
    number = {_key(label): code for code, label in enumerate(classes)}
    codes = np.array([number[_key(labels[row])] for row in rows], dtype=np.intp)
    generator = np.random.default_rng(seed)
    if kind in ("symmetric", "symmetric-strict"):
        redraw = kind == "symmetric"
        noisy = noise.symmetric(
            codes, len(classes), rate, generator, redraw_true=redraw
        )
    elif kind == "asymmetric":
        noisy = noise.asymmetric(codes, rate, generator, read_flips(flips, classes))
    elif kind == "pair":
        noisy = noise.pair(codes, len(classes), rate, generator)
    elif kind == "instance":
        if embeddings is None:
            raise ValueError("--kind instance needs --embeddings")
        noisy = noise.instance_dependent(
            codes, embeddings[rows], len(classes), rate, generator
        )
    else:
        noisy = noise.from_matrix(codes, read_matrix(matrix, len(classes)), generator)
    result = list(labels)
    for row, old, new in zip(rows, codes, noisy.labels, strict=True):
        if old != new:
            result[row] = classes[new]
    return NoisyColumn(result, noisy.nominal_rate, noisy.actual_rate)


def class_order(labels: list[Any]) -> list[Any]:
    """Give the distinct labels: in number order if all are whole numbers, else by text.

    Text such as "10" counts as a whole number here.
    """
    distinct = list({_key(label): label for label in labels}.values())
    try:
        return sorted(distinct, key=lambda label: (_whole(label), _key(label)))
    except ValueError:
        return sorted(distinct, key=lambda label: (str(label), _key(label)))


def read_flips(flips: str | None, classes: list[Any]) -> Mapping[int, int]:
    """Read a map from class to class: "cifar10", "cifar100" or a JSON file of names."""
    if flips is None:
        raise ValueError("--kind asymmetric needs --map cifar10, cifar100 or FILE.json")
    if flips in ("cifar10", "cifar100"):
        known = noise.CIFAR10_FLIPS if flips == "cifar10" else noise.CIFAR100_FLIPS
        names = {str(source): str(target) for source, target in known.items()}
    else:
        loaded = read_json(Path(flips))
        if not isinstance(loaded, dict):
            raise ValueError(f'{flips}: must be a JSON object such as {{"cat": "dog"}}')
        names = {str(source): str(target) for source, target in loaded.items()}
    number = {str(label): code for code, label in enumerate(classes)}
    for name in [*names, *names.values()]:
        if name not in number:
            raise ValueError(
                f"--map {flips} names the class {name!r}, which the table lacks; "
                f"it has {', '.join(list(number)[:10])}"
            )
    return {number[source]: number[target] for source, target in names.items()}


def read_matrix(path: Path | None, num_classes: int) -> NDArray[np.float64]:
    """Read T[clean, given] from a .npy file or a .csv of numbers without a header."""
    if path is None:
        raise ValueError("--kind matrix needs --matrix FILE.csv or FILE.npy")
    with reading(path, "not a matrix of numbers"):
        if path.suffix.lower() == ".npy":
            loaded = read_npy(path)
        else:
            lines = read_text(path).splitlines()
            loaded = np.loadtxt(lines, delimiter=",", ndmin=2)
        T = np.asarray(loaded, dtype=np.float64)  # noqa: N806
    if T.shape != (num_classes, num_classes):
        raise ValueError(
            f"{path}: the matrix must be {num_classes} x {num_classes}, a row and a "
            f"column for each class, got shape {T.shape}"
        )
    noise.check_rows(T, f"{path}: the matrix")
    return T


def keep_column(table: Table, column: Column, name: str) -> Table:
    """Add a column under a name that is not taken."""
    if name in table.columns:
        raise ValueError(f"--keep-clean {name}: the table has that column already")
    return replace(table, columns={**table.columns, name: column})


def _whole(label: Any) -> int:
    if isinstance(label, int | str):
        return int(label)
    raise ValueError("not a whole number")


def _key(label: Any) -> str:
    return encode_label(label, text_only=False)
