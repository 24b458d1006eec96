"""CIFAR-10 and CIFAR-100 from their standard python files, folder or tar.gz.

The files are pickles. Each is compared with its published MD5 before it is read, and
read with a loader that knows plain containers and number arrays and nothing else.
"""

import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.files import check_regular, reading
from stct.data.image_set import ImageSet
from stct.data.plain_pickle import load_plain

CHECKSUMS = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
    "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    "train": "16019d7e3df5f24257cddd939b257f8d",
    "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    "meta": "7973b15100ade9c7d40fb424638fde48",
}
_ROWS_OF_A_BATCH = 10_000
_PIXELS = 3 * 32 * 32
_MOST_BYTES = 2**28  # of one file; the largest published one has 155 MB
_MOST_ARCHIVE_BYTES = 2**30  # of all files of an archive


class _Kind(NamedTuple):
    """The file names and keys of one of the two data sets."""

    train: tuple[str, ...]
    test: str
    meta: str
    labels: bytes
    names: bytes


_CIFAR10 = _Kind(
    tuple(f"data_batch_{i}" for i in range(1, 6)),
    "test_batch",
    "batches.meta",
    b"labels",
    b"label_names",
)
_CIFAR100 = _Kind(("train",), "test", "meta", b"fine_labels", b"fine_label_names")
_KINDS = (_CIFAR10, _CIFAR100)


def is_cifar(path: Path) -> bool:
    """Tell whether a path looks like CIFAR: a folder of its files, or a tar.gz."""
    if path.name.endswith((".tar.gz", ".tgz")):
        return path.is_file()
    return any(
        (path / kind.meta).is_file()
        and any((path / name).is_file() for name in (*kind.train, kind.test))
        for kind in _KINDS
    )


def read_cifar(
    path: Path, split: str = "train", *, checksums: Mapping[str, str] | None = None
) -> ImageSet:
    """Read CIFAR-10 or CIFAR-100.

    Parameters
    ----------
    path : Path
        The folder ``cifar-10-batches-py`` or ``cifar-100-python``, or the tar.gz file.
    split : {"train", "test"}
        Training batches that are not there are named in the notes.
    checksums : mapping, optional
        The MD5 of each file; `CHECKSUMS`, the published ones, by default. A file
        that is not named in it is not checked.

    Returns
    -------
    ImageSet
        Labels are class names and ``classes`` has their order; the ids are the row
        numbers in the whole split.
    """
    if split not in ("train", "test"):
        raise ValueError(f"{path}: split must be 'train' or 'test', got {split!r}")
    path = Path(path)
    expected = CHECKSUMS if checksums is None else checksums
    parts = {kind: kind.train if split == "train" else (kind.test,) for kind in _KINDS}
    names = {name for kind in _KINDS for name in (kind.meta, *parts[kind])}
    contents = _contents(path, names)
    kind = next((kind for kind in _KINDS if kind.meta in contents), None)
    if kind is None:
        raise ValueError(
            f"{path}: neither batches.meta (CIFAR-10) nor meta (CIFAR-100) is in it"
        )
    wanted = parts[kind]
    present = [name for name in wanted if name in contents]
    if not present:
        raise ValueError(f"{path}: no {split} files; expected {', '.join(wanted)}")
    classes = _class_names(path / kind.meta, contents[kind.meta], kind, expected)
    images, codes, ids = [], [], []
    for name in present:
        batch = _load(path / name, contents[name], expected)
        pixels, numbers = _arrays(path / name, batch, kind.labels, len(classes))
        images.append(pixels)
        codes.append(numbers)
        start = wanted.index(name) * _ROWS_OF_A_BATCH
        ids += [str(start + row) for row in range(len(numbers))]
    notes = []
    missing = [name for name in wanted if name not in present]
    if missing:
        notes.append(f"{path.name}: {', '.join(missing)} missing, read without")
    labels = np.array(classes, dtype=object)[np.concatenate(codes)]
    return ImageSet(np.concatenate(images), labels, ids, classes=classes, notes=notes)


def _class_names(
    path: Path, data: bytes, kind: _Kind, checksums: Mapping[str, str]
) -> tuple[str, ...]:
    meta = _load(path, data, checksums)
    try:
        return tuple(name.decode() for name in meta[kind.names])
    except (KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: no class names in it") from error


def _contents(path: Path, names: set[str]) -> dict[str, bytes]:
    """Read those files of a folder or archive that are there."""
    if path.is_dir():
        files = [path / name for name in names if (path / name).is_file()]
        for file in files:
            _check_size(file, file.stat().st_size, _MOST_BYTES)
        return {file.name: file.read_bytes() for file in files}
    contents = {}
    check_regular(path)
    total = 0
    # One pass: going back inside a compressed archive reads it all again.
    with (
        reading(path, "not a readable tar.gz"),
        tarfile.open(path, "r|*") as archive,
    ):
        for member in archive:
            name = Path(member.name).name
            total += member.size
            _check_size(path, total, _MOST_ARCHIVE_BYTES)
            # A link inside a stream would go back in it.
            if name in names and member.isreg():
                _check_size(path / name, member.size, _MOST_BYTES)
                part = archive.extractfile(member)
                contents[name] = part.read() if part else b""
    return contents


def _check_size(path: Path, size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"{path}: not a file of CIFAR: {size:,} bytes or more")


def _load(path: Path, data: bytes, checksums: Mapping[str, str]) -> dict[bytes, Any]:
    expected = checksums.get(path.name)
    found = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if expected is not None and found != expected:
        raise ValueError(
            f"{path}: not the published file: its MD5 is {found}, expected {expected}"
        )
    try:
        batch = load_plain(data, encoding="bytes")
    except ValueError as error:
        raise ValueError(f"{path}: not a CIFAR file: {error}") from error
    if not isinstance(batch, dict):
        raise ValueError(f"{path}: not a CIFAR file: it holds {type(batch).__name__}")
    return batch


def _arrays(
    path: Path, batch: dict[bytes, Any], key: bytes, num_classes: int
) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Give images (n, 32, 32, 3) and class numbers (n,)."""
    data, labels = batch.get(b"data"), batch.get(key)
    if (
        not isinstance(data, np.ndarray)
        or data.dtype != np.uint8
        or data.ndim != 2
        or data.shape[1] != _PIXELS
    ):
        raise ValueError(f"{path}: 'data' is not an uint8 array of n x {_PIXELS}")
    if not isinstance(labels, list) or len(labels) != len(data):
        raise ValueError(f"{path}: '{key.decode()}' is not one number for each image")
    if not all(type(n) is int and 0 <= n < num_classes for n in labels):
        raise ValueError(f"{path}: a label is not a number from 0 to {num_classes - 1}")
    images = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.array(labels, dtype=np.intp)
