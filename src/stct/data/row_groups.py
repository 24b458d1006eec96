"""Parquet by row group: a window of rows is decoded when one of them is asked for.

The next one is decoded at the same time, so that decoding goes on beside computing.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import ids_as_text
from stct.data.files import brief, check_regular
from stct.data.list_columns import from_arrow_lists, is_list
from stct.numeric.file_rows import FileRows

Array = NDArray[Any]

_WINDOW_BYTES = 2**25  # 32 MB decoded at a time
_BUFFER_BYTES = 2**22  # of the file, for each column
_WINDOWS_KEPT = (os.cpu_count() or 1) + 2  # one for each thread, and the next


class Group(NamedTuple):
    """One row group of a parquet file."""

    path: str  # absolute: a worker has another current folder
    number: int
    columns: tuple[str, ...]
    version: tuple[int, int]  # of the file: rows of another one are other rows

    def __str__(self) -> str:
        return f"{self.path}: row group {self.number}"

    def batches(self, num_rows: int) -> Iterator[Any]:
        """Decode the group from its first row on, so many rows at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # Else all bytes of the group would be read before its first row is there.
            buffers = {"pre_buffer": False, "buffer_size": _BUFFER_BYTES}
            with pq.ParquetFile(self.path, **buffers) as file:
                yield from file.iter_batches(
                    num_rows, row_groups=[self.number], columns=list(self.columns)
                )
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self} cannot be read: {brief(error)}") from error

    def numbers(self, batch: Any) -> Array:
        """Give a decoded batch as an array (t, d)."""
        if is_list(batch.column(0).type):
            return from_arrow_lists(batch.column(0), str(self))
        arrays = [c.to_numpy(zero_copy_only=False) for c in batch.columns]
        return np.column_stack(arrays)


class Window:
    """Some rows of a row group, decoded when they are asked for.

    Writers make groups of a million rows: too many to hold several of them.
    """

    def __init__(
        self, group: Group, start: int, num_rows: int, like: Array, first_row: int
    ) -> None:
        self.name = group.path
        self.num_rows = num_rows
        self.first_row = first_row + start  # in the file
        self.group = group
        self.start = start  # in the group
        self.following: Window | None = None
        self._like = like.shape[1], like.dtype

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the chain: it would be sent one inside the other."""
        return {**self.__dict__, "following": None}

    def read(self, start: int, stop: int) -> Array:
        """Rows start:stop, (t, d)."""
        return _decoded.get(self)[start:stop]

    def decode(self, reader: "_Reader") -> Array:
        """All rows of the window, (t, d)."""
        values = reader.read(self.group, self.start, self.num_rows)
        found = values.shape[1], values.dtype
        check_same(Path(str(self.group)), None, found, self._like)
        return values


class _Reader:
    """Goes through a row group once; starts again for rows that it has passed."""

    def __init__(self) -> None:
        self._group: Group | None = None
        self._at = 0  # the first row of the group that was not given yet
        self._batches: Iterator[Any] = iter(())
        self._rest: Any = None  # of a batch

    def read(self, group: Group, start: int, num_rows: int) -> Array:
        """Give rows of a group, (num_rows, d)."""
        if group != self._group or start < self._at:
            self._group, self._at, self._rest = group, 0, None
            self._batches = group.batches(num_rows)
        found, stop = [], start + num_rows
        while self._at < stop:
            if not self._rest:
                self._rest = next(self._batches, None)
            if not self._rest:
                raise ValueError(f"{group} has fewer rows than its file says")
            skip = max(start - self._at, 0)
            taken = self._rest.slice(0, stop - self._at)
            if skip < len(taken):
                found.append(group.numbers(taken.slice(skip)))
            self._rest = self._rest.slice(len(taken))
            self._at += len(taken)
        return found[0] if len(found) == 1 else np.concatenate(found)


class _Decoded:
    """Windows that were decoded last, and the next one: ahead of who computes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Group, int], Future[Array]] = OrderedDict()
        # One thread: it goes on in a group where the last window ended.
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="stct-parquet")
        self._reader = _Reader()

    def get(self, window: Window) -> Array:
        with self._lock:
            future = self._ask(window)
            if window.following is not None:
                self._ask(window.following)
        return future.result()

    def _ask(self, window: Window) -> "Future[Array]":
        key = window.group, window.start
        if key not in self._known:
            while len(self._known) >= _WINDOWS_KEPT:
                self._known.popitem(last=False)
            self._known[key] = self._decoder.submit(window.decode, self._reader)
        self._known.move_to_end(key)
        return self._known[key]


_decoded = _Decoded()


def _forget() -> None:
    """Begin anew: a forked child has the windows but not the thread."""
    global _decoded
    _decoded = _Decoded()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_forget)


def open_parquet(
    paths: list[Path], *, column: str | None, id_column: str | None
) -> tuple[FileRows, list[str] | None]:
    """Rows of parquet files by row group, and their ids if any."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    groups: list[tuple[Group, int, int]] = []  # with its first row and their number
    ids: list[str] | None = None
    first_columns: list[str] = []
    for path in paths:
        check_regular(path)
        try:
            with pq.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
                columns, id_name = _choose_columns(path, schema, column, id_column)
                first_columns = first_columns or columns
                _check_columns(path, paths[0], columns, first_columns)
                if id_name is not None:
                    mine = file.read(columns=[id_name]).column(0).to_pylist()
                    where = f"{path}: column {id_name!r}"
                    ids = (ids or []) + ids_as_text(mine, where)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: not a parquet file: {brief(error)}") from error
        row, now = 0, path.stat()
        version = now.st_mtime_ns, now.st_size
        for group in range(metadata.num_row_groups):
            size = metadata.row_group(group).num_rows
            if size:
                place = Group(str(path.absolute()), group, tuple(columns), version)
                groups.append((place, row, size))
            row += size
    if not groups:
        raise ValueError(f"{paths[0]}: no rows")
    first = _Reader().read(groups[0][0], 0, 1)
    if first.dtype.kind != "f":
        raise ValueError(f"{paths[0]}: embeddings by row group are floats")
    return FileRows([*_windows(groups, first)], first.shape[1], first.dtype), ids


def time_of_row(window: Window) -> float:
    """Seconds that decoding takes for a row."""
    start = time.perf_counter()
    window.decode(_Reader())
    return (time.perf_counter() - start) / window.num_rows


def _windows(groups: list[tuple[Group, int, int]], like: Array) -> list[Window]:
    """Divide row groups into windows, each of which knows the next."""
    most = max(1, _WINDOW_BYTES // max(like.nbytes, 1))
    windows = [
        Window(group, start, min(most, size - start), like, first_row)
        for group, first_row, size in groups
        for start in range(0, size, most)
    ]
    for window, following in pairwise(windows):
        window.following = following
    return windows


def _choose_columns(
    path: Path, schema: Any, column: str | None, id_column: str | None
) -> tuple[list[str], str | None]:
    """Columns with the numbers, and the one with the ids."""
    import pyarrow as pa

    id_name = next((n for n in (id_column, "id") if n in schema.names), None)
    twice = [name for name in schema.names if schema.names.count(name) > 1]
    if twice:
        raise ValueError(f"{path}: the column name {twice[0]!r} comes twice")
    rest = [n for n in schema.names if n != id_name and not n.startswith("__index_")]
    lists = [n for n in rest if is_list(schema.field(n).type)]
    if column is not None or len(lists) == 1:
        name = column or lists[0]
        if name not in lists:
            raise ValueError(f"{path}: no list column {name!r}; it has {lists}")
        return [name], id_name
    if lists:
        raise ValueError(
            f"{path}: several list columns ({', '.join(lists)}); "
            "choose one with --embeddings-column"
        )
    odd = [n for n in rest if not pa.types.is_floating(schema.field(n).type)]
    if odd or not rest:
        found = f"column {odd[0]!r} holds {schema.field(odd[0]).type}" if odd else ""
        raise ValueError(f"{path}: {found or 'no columns'}; embeddings are floats")
    return rest, id_name


def _check_columns(path: Path, other: Path, found: list[str], first: list[str]) -> None:
    """Refuse columns of other names or in another order: numbers would be mixed."""
    if found == first:
        return
    if len(found) != len(first):
        what = f"{len(found)} columns of numbers, but {other.name} has {len(first)}"
    else:
        at = next(i for i, name in enumerate(found) if name != first[i])
        what = f"column {found[at]!r} where {other.name} has {first[at]!r}"
    raise ValueError(f"{path}: {what}; all files must have the same columns in order")


def check_same(
    path: Path,
    other: Path | None,
    found: tuple[int, np.dtype[Any]],
    first: tuple[int, np.dtype[Any]],
) -> None:
    """Refuse rows of another width or type."""
    if found != first:
        like = "the first shard" if other is None else other.name
        raise ValueError(
            f"{path}: {found[0]} columns of {found[1]}, but {like} has {first[0]} of "
            f"{first[1]}; all shards must be alike"
        )
