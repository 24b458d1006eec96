"""Arrays in .npz files: no pickles, no dates, so the same arrays give the same bytes.

Members are stored, not compressed, and can be read in blocks of rows.
"""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.npy import open_npz, read_header

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
    """Read every array of an .npz file."""
    with open_npz(path) as archive:
        return {name: archive.read(name) for name in archive.names}


def read_array(path: Path, name: str) -> Array:
    """Read one array of an .npz file."""
    with open_npz(path) as archive:
        return archive.read(name)


def array_names(path: Path) -> list[str]:
    """Name the arrays of an .npz file."""
    with open_npz(path) as archive:
        return archive.names


def row_blocks(
    path: Path, name: str, shape: tuple[int, int]
) -> Iterator[tuple[slice, Array]]:
    """Read one array of floats of this shape in blocks of rows, each with its place."""
    with open_npz(path) as archive, archive.open(name) as file:
        header = read_header(file)
        if header.dtype != np.float32 or header.fortran or header.shape != shape:
            raise ValueError(
                f"{path}: array {name!r} must be float32 of shape {shape}, got "
                f"{header.dtype} of shape {header.shape}"
            )
        for start in range(0, shape[0], _BLOCK):
            rows = slice(start, min(start + _BLOCK, shape[0]))
            count = (rows.stop - rows.start) * shape[1]
            data = file.read(count * header.dtype.itemsize)
            yield rows, np.frombuffer(data, header.dtype).reshape(-1, shape[1])
        file.read(1)  # to the end, where the checksum is checked
