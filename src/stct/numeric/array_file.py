"""Named arrays and a JSON object in one .npz file, checked when it is read.

Nothing is ever unpickled. A file has a format, a version and a checksum against damage;
the same content gives the same bytes.
"""

import hashlib
import io
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_ABOUT, _CHECKSUM = "about", "sha256"


def write_array_file(path: Path, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write arrays and a JSON object with ``format`` and ``version``, as a whole."""
    arrays = {
        **arrays,
        _ABOUT: np.frombuffer(json.dumps(about, allow_nan=False).encode(), np.uint8),
    }
    arrays[_CHECKSUM] = np.frombuffer(_digest(arrays), np.uint8)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(entry, member.getvalue())
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_bytes(out.getvalue())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_array_file(
    path: Path, name: str, version: int
) -> tuple[Arrays, dict[str, Any]]:
    """Read what `write_array_file` wrote, if it has this format and version."""
    try:
        arrays = _read_arrays(path)
        about = json.loads(arrays[_ABOUT].tobytes())
        checksum = arrays[_CHECKSUM].tobytes()
        found = about["format"], about["version"]
    except zipfile.BadZipFile as error:
        raise ValueError(f"it is damaged, or not a {name} file: {error}") from error
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as error:  # the header of an array raises anything
        raise ValueError(f"it is not a {name} file") from error
    if found[0] != name:
        raise ValueError(f"it is not a {name} file")
    if found[1] != version:
        raise ValueError(
            f"it has version {found[1]!r} of the format, this stct reads version "
            f"{version}"
        )
    if _digest(arrays) != checksum:
        raise ValueError("it is damaged: its checksum is another one")
    return arrays, about


class Facts:
    """A JSON object whose entries must be there and of the right type."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def need(self, name: str, kind: type) -> Any:
        """Give an entry that must be of this type."""
        value = self.values.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"its {name!r} must be {kind.__name__}, got {value!r}")
        return value

    def inner(self, name: str) -> "Facts":
        """Give an object inside."""
        return Facts(self.need(name, dict))

    def count(self, name: str) -> int:
        """Give a whole number of 0 or more."""
        value = self.need(name, int)
        if value < 0:
            raise ValueError(f"its {name!r} must be 0 or more, got {value}")
        return int(value)

    def number(self, name: str) -> float:
        """Give a finite number."""
        whole = isinstance(self.values.get(name), int)
        value = float(self.need(name, int if whole else float))
        if not np.isfinite(value):
            raise ValueError(f"its {name!r} must be finite, got {value}")
        return value

    def share(self, name: str) -> float:
        """Give a number between 0 and 1."""
        value = self.number(name)
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"its {name!r} must be between 0 and 1, got {value}")
        return value


class Shapes:
    """Arrays whose shapes must fit together."""

    def __init__(self, arrays: Arrays, **sizes: int) -> None:
        self.arrays, self.sizes = arrays, sizes

    def array(self, name: str, *axes: str | None) -> NDArray[Any]:
        """Give an array; an axis of None may have any length."""
        if name not in self.arrays:
            raise ValueError(f"it lacks the array {name!r}")
        array = self.arrays[name]
        wanted = [self.sizes[axis] if axis else None for axis in axes]
        fits = len(array.shape) == len(wanted) and all(
            size in (None, length)
            for length, size in zip(array.shape, wanted, strict=True)
        )
        if not fits:
            shown = tuple("any" if size is None else size for size in wanted)
            raise ValueError(f"its array {name!r} has shape {array.shape}, not {shown}")
        return array

    def floats(self, name: str, *axes: str | None) -> NDArray[Any]:
        """Give an array of finite floats."""
        array = self.array(name, *axes)
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"its array {name!r} must be finite floats")
        return array

    def transition(self, name: str) -> NDArray[Any]:
        """Give a matrix (C, C) whose rows are probabilities."""
        T = self.floats(name, "C", "C")
        if (T < -1e-9).any() or not np.allclose(T.sum(axis=1), 1.0, atol=1e-6):
            raise ValueError(f"its array {name!r} must have rows of probabilities")
        return T

    def permutation(self, name: str) -> NDArray[Any]:
        """Give an order of the classes."""
        order = self.array(name, "C")
        if order.dtype.kind != "i" or (np.sort(order) != np.arange(len(order))).any():
            raise ValueError(f"its array {name!r} must be a permutation")
        return order.astype(np.intp)


def _digest(arrays: Arrays) -> bytes:
    """SHA-256 of names, types, shapes and bytes of all arrays but itself."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        if name != _CHECKSUM:
            array = arrays[name]
            total.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            total.update(array.tobytes())
    return total.digest()


def _read_arrays(path: Path) -> Arrays:
    """Read all arrays; a member claims no more bytes than it has."""
    arrays: Arrays = {}
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            stored = entry.compress_type == zipfile.ZIP_STORED
            if not stored or entry.file_size > size or name in arrays:
                raise ValueError(f"its member {entry.filename!r} is not one of stct")
            arrays[name] = _parse(archive.read(entry), name)
    return arrays


def _parse(data: bytes, name: str) -> NDArray[Any]:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"its array {name!r} has version {version} of .npy")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    rest = data[stream.tell() :]
    if dtype.hasobject or len(rest) != dtype.itemsize * int(np.prod(shape, dtype=int)):
        raise ValueError(f"its array {name!r} does not hold what it claims")
    values = np.frombuffer(bytearray(rest), dtype)
    return values.reshape(shape, order="F" if fortran else "C")
