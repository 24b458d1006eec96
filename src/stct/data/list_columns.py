"""Columns that hold a list of numbers in each row, as one array."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.tables import Table

Array = NDArray[Any]


def column_of_lists(table: Table, column: str, where: str) -> Array:
    """Give a column of lists (parquet, jsonl) or of texts (csv) as (n, d).

    A text is a JSON list, or numbers with spaces or commas between them, as NumPy
    and pandas write arrays.

    Raises
    ------
    ValueError
        If a row has no list of numbers, or one of another length.
    """
    if table.format == "parquet":
        return from_arrow_lists(table.columns[column], where)
    rows = table.values(column)
    if table.format != "jsonl":
        rows = [_parse_list(cell, f"{where}, row {i}") for i, cell in enumerate(rows)]
    return _from_lists(rows, where)


def is_list(kind: Any) -> bool:
    """Tell whether an Arrow type is one of lists."""
    import pyarrow as pa

    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    )


def from_arrow_lists(column: Any, where: str) -> Array:
    """Give an Arrow column of lists as an array (n, d)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_list(column.type):
        raise ValueError(
            f"{where} holds {column.type}; embeddings are lists of numbers"
        )
    kind = column.type.value_type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ValueError(f"{where} holds lists of {kind}; embeddings are numbers")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    _check_lengths(np.nan_to_num(lengths, nan=-1).astype(int), where)
    flat = np.asarray(pc.list_flatten(column).to_numpy(zero_copy_only=False))
    if not len(column) or not flat.size:
        raise ValueError(f"{where} has no numbers")
    return flat.reshape(len(column), -1)


def _parse_list(cell: str, where: str) -> Any:
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        pass
    text = cell.strip()
    if "..." in text and text.startswith("["):
        raise ValueError(
            f"{where} (counting from 0): NumPy has left out numbers ('...'); save "
            "embeddings with numpy.save, or as lists"
        )
    text = text.removeprefix("[").removesuffix("]")
    try:
        return [float(part) for part in text.replace(",", " ").split()] or None
    except ValueError:
        return None


def _from_lists(rows: list[Any], where: str) -> Array:
    lengths = [len(row) if isinstance(row, list) else -1 for row in rows]
    _check_lengths(np.array(lengths, dtype=int), where)
    values = np.empty((len(rows), lengths[0] if lengths else 0))  # (n, d)
    for i, row in enumerate(rows):
        if not all(type(v) in (int, float) for v in row):
            raise ValueError(f"{where}, row {i} (counting from 0): not all are numbers")
        try:
            values[i] = row
        except OverflowError:
            raise ValueError(
                f"{where}, row {i} (counting from 0): a number that is too large"
            ) from None
    return values


def _check_lengths(lengths: NDArray[np.int_], where: str) -> None:
    """Require one length for all lists; -1 stands for a row without a list."""
    odd = np.flatnonzero((lengths != lengths[:1]) | (lengths < 0))
    if len(odd):
        row = odd[0]
        found = "no list of numbers" if lengths[row] < 0 else f"{lengths[row]} numbers"
        wanted = f", row 0 has {lengths[0]}" if lengths[0] >= 0 else ""
        raise ValueError(f"{where}, row {row} (counting from 0) has {found}{wanted}")
