"""Rows of numbers that stay in files: read as ``rows[i:j]`` when they are needed.

A `FileRows` is one or many parts, one after another: .npy files here, row groups of
parquet files in `stct.data.shards`. It is small, can be sent to another process, and
opens its files there.
"""

import mmap
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Part(Protocol):
    """Consecutive rows of one file."""

    name: str  # of the file, for people
    num_rows: int
    first_row: int  # in the file

    def read(self, start: int, stop: int) -> Array:
        """Rows start:stop of this part, (t, d)."""


class NpyPart:
    """All rows of one .npy file, through a memory map."""

    def __init__(self, path: Path, shape: tuple[int, int], dtype: Any, offset: int):
        self.name = str(path.absolute())  # a worker has another current folder
        self.num_rows = shape[0]
        self.first_row = 0
        self._shape, self._dtype, self._offset = shape, np.dtype(dtype), offset

    def read(self, start: int, stop: int) -> Array:
        """Rows start:stop, (t, d), and the system is told to read on."""
        now = Path(self.name).stat()
        version = now.st_mtime_ns, now.st_size
        rows = _map_file(self.name, self._shape, self._dtype, self._offset, version)
        row = self._dtype.itemsize * self._shape[1]
        size = (stop - start) * row
        begin = self._offset % mmap.ALLOCATIONGRANULARITY + stop * row
        begin -= begin % mmap.PAGESIZE
        file_map: Any = rows.base
        if hasattr(file_map, "madvise") and begin + 4 * size < len(file_map):
            file_map.madvise(mmap.MADV_WILLNEED, begin, 4 * size)
        return np.asarray(rows[start:stop])


# Maps are kept because the pages of a new one have to be found again: by a worker, too,
# which is sent the same rows with every task. Not all: each is an open file.
@lru_cache(maxsize=64)
def _map_file(
    name: str,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    offset: int,
    version: tuple[int, int],  # of the file: another one is another map
) -> Array:
    return np.memmap(name, mode="r", dtype=dtype, offset=offset, shape=shape)


class FileRows:
    """Rows of several parts, one after another, as if they were one array (n, d)."""

    is_row_source = True  # so that nobody makes an array of it

    def __init__(self, parts: list[Part], num_columns: int, dtype: Any) -> None:
        self._parts = parts
        self._starts = np.cumsum([0, *(part.num_rows for part in parts)]).tolist()
        self.shape = (self._starts[-1], num_columns)
        self.dtype = np.dtype(dtype)
        self.ndim = 2

    @property
    def first(self) -> Part:
        """The part with the first rows."""
        return self._parts[0]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> Array:
        start, stop, step = rows.indices(len(self))
        found = []
        at = max(bisect_right(self._starts, start) - 1, 0)
        while start < stop:
            begin, end = self._starts[at], min(self._starts[at + 1], stop)
            if start < end:
                found.append(self._parts[at].read(start - begin, end - begin))
            start, at = max(start, end), at + 1
        if not found:
            return np.empty((0, self.shape[1]), self.dtype)
        block = found[0] if len(found) == 1 else np.concatenate(found)
        return block[::step]

    def name_row(self, row: int) -> str:
        """Say where a row is: its number, the file, the row in the file."""
        at = bisect_right(self._starts, row) - 1
        part = self._parts[at]
        inside = part.first_row + row - self._starts[at]
        return f"{row} ({Path(part.name).name}, row {inside})"


def from_memory_map(array: np.memmap[Any, Any]) -> FileRows | None:
    """Give a whole memory map of a file as rows; None if it is a part of one."""
    whole = isinstance(array.base, mmap.mmap) and array.filename is not None
    if not whole or array.ndim != 2 or not array.flags.c_contiguous:
        return None
    path = Path(str(array.filename))
    part = NpyPart(path, (array.shape[0], array.shape[1]), array.dtype, array.offset)
    return FileRows([part], array.shape[1], array.dtype)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Array:
    """Take single rows through blocks; they may be stored in shards."""
    if isinstance(X, np.ndarray):
        return X[rows]
    taken = np.empty((len(rows), X.shape[1]), X[0:1].dtype)
    order = np.argsort(rows, kind="stable")
    tile = 8192
    edges = np.searchsorted(rows[order], np.arange(0, X.shape[0] + tile, tile))
    for i in range(len(edges) - 1):
        here = order[edges[i] : edges[i + 1]]
        if len(here):
            taken[here] = X[i * tile : (i + 1) * tile][rows[here] - i * tile]
    return taken
