"""CIFAR-10N and CIFAR-100N: human labels of CIFAR's training images.

The authors' files (.pt and .npy) hold several sets of labels and the clean ones. They
are pickles, read as plain data; torch is not needed. The clean labels are for scoring
only. Licence of the labels: CC BY-NC 4.0; they are loaded, never shipped.
"""

import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.files import read_bytes, reading
from stct.data.image_set import ImageSet
from stct.data.npy import check_member, read_header
from stct.data.plain_pickle import load_plain

Codes = NDArray[np.int64]

SETS = {
    "aggregate": "aggre_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
    "worst": "worse_label",
    "noisy": "noisy_label",  # CIFAR-100N
    "noisy_coarse": "noisy_coarse_label",
}
_CLEAN = {"noisy_coarse": "clean_coarse_label"}
_OLD_TORCH_HEADERS = 3  # pickles before the content, in files from before the zip form


class HumanLabels(NamedTuple):
    """One set of human labels, as numbers in CIFAR's own order of classes."""

    labels: Codes  # (n,)
    clean: Codes  # (n,) for scoring only
    noise_rate: float  # share of labels that are not the clean ones


def read_cifar_n(path: Path) -> dict[str, HumanLabels]:
    """Read all sets of labels in a file, by the names in `SETS`.

    Parameters
    ----------
    path : Path
        ``CIFAR-10_human.pt``, ``CIFAR-100_human.pt``, or one of the ``.npy`` files.

    Raises
    ------
    ValueError
        If the file is something else.
    """
    content = _content(Path(path))
    found = {}
    for name, key in SETS.items():
        clean = content.get(_CLEAN.get(name, "clean_label"))
        if key in content and clean is not None:
            labels, truth = (
                _codes(path, key, content[key]),
                _codes(path, "clean", clean),
            )
            if len(labels) != len(truth):
                raise ValueError(
                    f"{path}: {len(labels)} labels in {key}, {len(truth)} clean ones"
                )
            found[name] = HumanLabels(labels, truth, float(np.mean(labels != truth)))
    if not found:
        raise ValueError(
            f"{path}: no labels of CIFAR-N in it; it holds {', '.join(content)}"
        )
    return found


def with_human_labels(images: ImageSet, path: Path, name: str) -> ImageSet:
    """Give CIFAR's training images the human labels in place of their own.

    Parameters
    ----------
    images : ImageSet
        Of `read_cifar`, also with some batches missing.
    path : Path
        The authors' file.
    name : str
        One of `SETS` that the file has.

    Raises
    ------
    ValueError
        If the clean labels of the file are not those of the images (another data set
        or another order), or if a human label is not the number of a class.
    """
    sets = read_cifar_n(path)
    if name not in sets:
        raise ValueError(f"{path}: no set {name!r}; it has {', '.join(sets)}")
    human = sets[name]
    classes = images.classes
    if classes is None or images.labels is None:
        raise ValueError("human labels go with the images of read_cifar")
    rows = np.array([int(text) for text in images.ids])
    number = {label: code for code, label in enumerate(classes)}
    codes = np.array([number[label] for label in images.labels])
    _check_clean(path, human.clean, rows, codes)
    _check_range(path, name, human.labels, rows, len(classes))
    labels = np.array(classes, dtype=object)[human.labels[rows]]
    rate = float(np.mean(human.labels[rows] != codes))
    note = f"human labels {name!r} of {Path(path).name}, noise rate {rate:.2%}"
    return replace(images, labels=labels, notes=[*images.notes, note])


def _check_clean(
    path: Path, clean: Codes, rows: NDArray[Any], codes: NDArray[Any]
) -> None:
    """Refuse a file whose clean labels are not those of the images, row by row."""
    other = rows >= len(clean)
    other[~other] = clean[rows[~other]] != codes[~other]
    if other.any():
        raise ValueError(
            f"{path}: its clean labels are not those of the images in {other.sum():,} "
            f"of {len(rows):,} rows, the first of them row {rows[other][0]} (counting "
            "from 0): another data set, or another order"
        )


def _check_range(
    path: Path, name: str, labels: Codes, rows: NDArray[Any], num_classes: int
) -> None:
    """Refuse numbers that are no class; -1 would be the last one."""
    used = labels[rows]
    bad = (used < 0) | (used >= num_classes)
    if bad.any():
        raise ValueError(
            f"{path}: {SETS[name]} has the label {used[bad][0]} in row {rows[bad][0]} "
            f"(counting from 0); allowed are 0 to {num_classes - 1}"
        )


def _content(path: Path) -> dict[str, Any]:
    data = read_bytes(path)
    with reading(path, "not a file of CIFAR-N"):
        if data[:4] == b"PK\3\4":
            content = load_plain(_zipped(data))
        elif data[:6] == b"\x93NUMPY":
            content = load_plain(_behind_header(data))
        else:
            content = load_plain(data, skip=_OLD_TORCH_HEADERS)
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: not a file of CIFAR-N: it holds {type(content).__name__}"
        )
    return {str(key): value for key, value in content.items()}


def _zipped(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [n for n in archive.namelist() if n.rsplit("/")[-1] == "data.pkl"]
        if len(names) != 1:
            raise ValueError("no data.pkl in it")
        check_member(archive.getinfo(names[0]))
        return archive.read(names[0])


def _behind_header(data: bytes) -> bytes:
    """Give what follows the header of a .npy file of objects: a pickle."""
    file = io.BytesIO(data)
    kind = read_header(file).dtype
    if kind.kind != "O":
        raise ValueError(f"an array of {kind}, expected a dictionary")
    return file.read()


def _codes(path: Path, key: str, values: Any) -> Codes:
    with reading(path, f"{key} is not a list of whole numbers"):
        codes = np.asarray(values)
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise ValueError(f"{path}: {key} is not a list of whole numbers")
    return codes.astype(np.int64)
