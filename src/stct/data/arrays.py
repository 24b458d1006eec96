"""Arrays in .npz files: no pickles, no dates, so the same arrays give the same bytes.

Members are stored, not compressed, and can be read in blocks of rows.
"""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_BLOCK = 65_536  # rows


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write named arrays to an .npz file."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_arrays(path: Path) -> dict[str, Array]:
    """Read every array of an .npz file that `write_arrays` wrote."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                name.removesuffix(".npy"): _read(archive, name)
                for name in archive.namelist()
            }
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise ValueError(f"{path}: not an .npz file of stct: {error}") from error


def read_array(path: Path, name: str) -> Array:
    """Read one array of an .npz file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, f"{name}.npy")
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise ValueError(f"{path}: no readable array {name!r}: {error}") from error


def array_names(path: Path) -> list[str]:
    """Name the arrays of an .npz file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: not an .npz file of stct: {error}") from error


def row_blocks(path: Path, name: str) -> Iterator[tuple[slice, Array]]:
    """Read one 2-d array in blocks of rows, each with its place."""
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(f"{name}.npy") as file,
        ):
            (num_rows, num_columns), dtype = _header(file)
            for start in range(0, num_rows, _BLOCK):
                rows = slice(start, min(start + _BLOCK, num_rows))
                count = (rows.stop - rows.start) * num_columns
                data = file.read(count * dtype.itemsize)
                yield rows, np.frombuffer(data, dtype).reshape(-1, num_columns)
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise ValueError(f"{path}: no readable array {name!r}: {error}") from error


def _read(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _header(file: IO[bytes]) -> tuple[tuple[int, int], np.dtype[Any]]:
    """Give shape and type of a 2-d array in C order."""
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read(file)
    if len(shape) != 2 or fortran or dtype.hasobject:
        raise ValueError("not a 2-d array of numbers in C order")
    return (shape[0], shape[1]), dtype
