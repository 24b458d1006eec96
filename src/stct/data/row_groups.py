"""Parquet by row group: a group is decoded when its rows are asked for."""

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import ids_as_text
from stct.data.list_columns import from_arrow_lists, is_list
from stct.rows import FileRows

Array = NDArray[Any]

_GROUPS_KEPT = 3  # decoded row groups: one for each thread, and the next


class GroupPart:
    """One row group of a parquet file, decoded when its rows are asked for."""

    def __init__(
        self, path: Path, group: int, first_row: int, num_rows: int, columns: list[str]
    ) -> None:
        self.name = str(path.absolute())  # a worker has another current folder
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
            check_same(Path(where), None, found, self._expected)
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
    first_columns: list[str] = []
    for path in paths:
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
