"""Embeddings too large for memory: a folder of shards, or parquet by row group.

Shards are taken in the order of their names, numbers in them by value. Everything that
can be known without reading all rows is checked here; the rest when rows are read.
"""

import re
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import ids_as_text
from stct.data.list_columns import from_arrow_lists, is_list
from stct.rows import FileRows, NpyPart, Part

Array = NDArray[Any]

_GROUPS_KEPT = 3  # decoded row groups: one for each thread, and the next


def open_folder(
    folder: Path, *, column: str | None, id_column: str | None
) -> tuple[FileRows, list[str] | None]:
    """Rows of all .npy or all .parquet files of a folder, and their ids if any."""
    names = [p for p in folder.iterdir() if p.is_file() and p.name[0] not in "._"]
    kinds = {p.suffix.lower() for p in names}
    if kinds not in ({".npy"}, {".parquet"}):
        found = ", ".join(sorted(kind or "no ending" for kind in kinds)) or "nothing"
        raise ValueError(
            f"{folder}: a folder of embeddings holds .npy files or .parquet files and "
            f"nothing else, found {found}"
        )
    paths = sorted(names, key=lambda path: _natural(path.name))
    _check_numbers(folder, paths)
    if kinds == {".npy"}:
        if column is not None:
            raise ValueError(
                f"{folder}: .npy files have no columns; drop --embeddings-column"
            )
        return open_npy(paths), None
    return open_parquet(paths, column=column, id_column=id_column)


def open_npy(paths: list[Path]) -> FileRows:
    """Rows of .npy files, of one width and type."""
    parts: list[Part] = []
    first: tuple[int, np.dtype[Any]] | None = None
    for path in paths:
        shape, dtype, offset = _npy_header(path)
        first = first or (shape[1], dtype)
        _check_same(path, paths[0], (shape[1], dtype), first)
        needed = offset + shape[0] * shape[1] * dtype.itemsize
        size = path.stat().st_size
        if size < needed:
            raise ValueError(
                f"{path}: truncated, {size:,} bytes where {shape[0]:,} rows need "
                f"{needed:,}"
            )
        if shape[0]:
            parts.append(NpyPart(path, shape, dtype, offset))
    assert first is not None
    return FileRows(parts, *first)


def _npy_header(path: Path) -> tuple[tuple[int, int], np.dtype[Any], int]:
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read(file)
            offset = file.tell()
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: not a .npy file of numbers: {error}") from error
    if dtype.hasobject:
        raise ValueError(
            f"{path}: an array of Python objects (a pickle) is never loaded; save "
            "numbers"
        )
    if len(shape) != 2 or dtype.kind != "f" or fortran or shape[1] == 0:
        order = " in column order" if fortran else ""
        raise ValueError(
            f"{path}: a shard is a 2-d array of floats in row order, got {dtype} of "
            f"shape {shape}{order}"
        )
    return (shape[0], shape[1]), dtype, offset


class GroupPart:
    """One row group of a parquet file, decoded when its rows are asked for."""

    def __init__(
        self, path: Path, group: int, first_row: int, num_rows: int, columns: list[str]
    ) -> None:
        self.name = str(path)
        self.num_rows = num_rows
        self.first_row = first_row
        self._group = group
        self._columns = columns
        self._expected: tuple[int, np.dtype[Any]] | None = None

    def expect(self, width: int, dtype: np.dtype[Any]) -> None:
        """Set what every row must be like."""
        self._expected = width, dtype

    def read(self, start: int, stop: int) -> Array:
        """Rows start:stop, (t, d)."""
        return _cache.get(self)[start:stop]

    def decode(self) -> Array:
        """All rows of the group, (t, d)."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        where = f"{self.name}: row group {self._group}"
        try:
            with pq.ParquetFile(self.name) as file:
                table = file.read_row_group(self._group, columns=self._columns)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{where} cannot be read: {error}") from error
        if is_list(table.column(0).type):
            values = from_arrow_lists(table.column(0).combine_chunks(), where)
        else:
            arrays = [c.to_numpy(zero_copy_only=False) for c in table.columns]
            values = np.column_stack(arrays)
        if self._expected is not None:
            found = values.shape[1], values.dtype
            _check_same(Path(where), None, found, self._expected)
        return values


class _GroupCache:
    """The row groups that were decoded last, for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int], Array] = OrderedDict()

    def get(self, part: GroupPart) -> Array:
        key = part.name, part.first_row
        with self._lock:
            if key not in self._known:
                while len(self._known) >= _GROUPS_KEPT:
                    self._known.popitem(last=False)
                self._known[key] = part.decode()
            self._known.move_to_end(key)
            return self._known[key]


_cache = _GroupCache()


def open_parquet(
    paths: list[Path], *, column: str | None, id_column: str | None
) -> tuple[FileRows, list[str] | None]:
    """Rows of parquet files by row group, and their ids if any."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts: list[GroupPart] = []
    ids: list[str] | None = None
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                schema, metadata = file.schema_arrow, file.metadata
                columns, id_name = _choose_columns(path, schema, column, id_column)
                if id_name is not None:
                    mine = file.read(columns=[id_name]).column(0).to_pylist()
                    where = f"{path}: column {id_name!r}"
                    ids = (ids or []) + ids_as_text(mine, where)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path}: not a parquet file: {error}") from error
        row = 0
        for group in range(metadata.num_row_groups):
            size = metadata.row_group(group).num_rows
            if size:
                parts.append(GroupPart(path, group, row, size, columns))
            row += size
    if not parts:
        raise ValueError(f"{paths[0]}: no rows")
    first = parts[0].read(0, 1)
    if first.dtype.kind != "f":
        raise ValueError(f"{paths[0]}: embeddings by row group are floats")
    for part in parts:
        part.expect(first.shape[1], first.dtype)
    return FileRows([*parts], first.shape[1], first.dtype), ids


def _choose_columns(
    path: Path, schema: Any, column: str | None, id_column: str | None
) -> tuple[list[str], str | None]:
    """Columns with the numbers, and the one with the ids."""
    import pyarrow as pa

    id_name = next((n for n in (id_column, "id") if n in schema.names), None)
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


def _check_same(
    path: Path,
    other: Path | None,
    found: tuple[int, np.dtype[Any]],
    first: tuple[int, np.dtype[Any]],
) -> None:
    if found != first:
        like = "the first shard" if other is None else other.name
        raise ValueError(
            f"{path}: {found[0]} columns of {found[1]}, but {like} has {first[0]} of "
            f"{first[1]}; all shards must be alike"
        )


def _check_numbers(folder: Path, paths: list[Path]) -> None:
    """Find a shard that is missing by the numbers in the names, where they have any."""
    matches = [re.fullmatch(r"(.*?)(\d+)(-of-(\d+))?\.\w+", p.name) for p in paths]
    found = [m for m in matches if m]
    if len(found) < len(paths) or len({(m[1], m[4]) for m in found}) > 1:
        return
    numbers = [int(m[2]) for m in found]
    first = min(numbers[0], 1)
    last = first + int(found[0][4]) - 1 if found[0][4] else numbers[-1]
    missing = sorted(set(range(first, last + 1)) - set(numbers))
    if missing:
        raise ValueError(
            f"{folder}: shard {missing[0]} is missing ({paths[0].name} to "
            f"{paths[-1].name}, {len(paths)} of {last - first + 1} files)"
        )


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key: numbers in a name by value."""
    pieces = re.split(r"(\d+)", name)
    return [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in pieces if p]
