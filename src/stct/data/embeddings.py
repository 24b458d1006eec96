"""Embeddings from .npy, .npz or .parquet files, or from a list column of the table.

Large .npy and .parquet files and folders of them stay on disk (`stct.data.shards`).
Nothing here ever unpickles: an array of Python objects is an error.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import check_ids, ids_as_text, name_a_few, read_ids
from stct.data.list_columns import column_of_lists, from_arrow_lists, is_list
from stct.data.npy import Npz, map_npy, open_npz, read_npy
from stct.data.row_groups import open_parquet
from stct.data.shards import open_folder
from stct.data.tables import Table, read_table, require_column
from stct.numeric.file_rows import FileRows

Array = NDArray[Any]

NO_EMBEDDINGS = (
    "no embeddings: give --embeddings FILE, or --embeddings-column NAME for a list "
    "column of the table"
)
_MEMORY_MAP_FROM = 256 * 2**20  # bytes; a smaller .npy file is read into memory
_CHECK_ROWS = 65_536


def load_embeddings(
    table: Table,
    table_path: Path,
    *,
    file: Path | None,
    column: str | None,
    id_column: str | None,
) -> tuple[Any, list[str]]:
    """Give the embeddings (n, d) of a table's rows, and notes about them.

    From ``file`` if there is one (there ``column`` chooses an array or column of the
    file), and otherwise from the list column ``column`` of the table.
    """
    if file is None:
        if column is None:
            raise ValueError(NO_EMBEDDINGS)
        require_column(table, table_path, column, "--embeddings-column")
        where = f"{table_path}: column {column!r}"
        return _checked(column_of_lists(table, column, where), where), []
    embeddings = read_embeddings(file, column=column, id_column=id_column)
    name, ids = read_ids(table, table_path, id_column)
    texts = None if name is None else [str(i) for i in ids]
    notes = []
    if texts is None and embeddings.ids is not None:
        notes.append(
            f"{file.name} has ids but the table has none: matched by row order"
        )
    return align(embeddings, file, texts, table.num_rows), notes


class Embeddings(NamedTuple):
    """One row of numbers for each id, or for each row of the table without ids."""

    values: Any  # (n, d), an array or `FileRows`
    ids: list[str] | None


def read_embeddings(
    path: Path, *, column: str | None = None, id_column: str | None = None
) -> Embeddings:
    """Read an embedding file.

    Parameters
    ----------
    path : Path
        A folder of .npy or of .parquet files, or one file: ``.npy``: one 2-d array.
        ``.npz``: the array ``embeddings``, or the only 2-d
        array, with optional 1-d ``ids``. ``.parquet``, or a table of text such as
        ``.csv``: one list column, or else every numeric column, with optional ids.
    column : str, optional
        The array of an .npz or the list column of a .parquet file to take.
    id_column : str, optional
        Name of the id column of a .parquet file; ``id`` is tried after it.
    """
    reader = _READERS.get(path.suffix.lower().replace(".gz", ".csv"))
    values: Any
    if not path.exists():
        raise ValueError(f"{path}: No such file or folder")
    if path.is_dir():
        values, ids = open_folder(path, column=column, id_column=id_column)
    elif reader is None:
        raise ValueError(
            f"{path}: embeddings must end in .npy, .npz, .parquet, .csv, .tsv or "
            f".jsonl, or be a folder of .npy or .parquet, got "
            f"{path.suffix or 'no ending'!r}"
        )
    elif path.suffix.lower() == ".parquet" and _is_big(path):
        values, ids = open_parquet([path], column=column, id_column=id_column)
    else:
        values, ids = reader(path, column, id_column)
    if ids is not None:
        if len(ids) != len(values):
            raise ValueError(f"{path}: {len(ids)} ids for {len(values)} embeddings")
        check_ids(ids, str(path))
    if not isinstance(values, FileRows):  # those are checked when they are read
        values = _checked(values, str(path))
    return Embeddings(values, ids)


def align(
    embeddings: Embeddings, path: Path, ids: Sequence[str] | None, num_rows: int
) -> Any:
    """Bring embeddings into the order of the table.

    Joined by id when both sides have ids, as exact text; otherwise by row, and then
    the row counts must agree.
    """
    values = embeddings.values
    if ids is None or embeddings.ids is None:
        if len(values) != num_rows:
            raise ValueError(
                f"{path}: {len(values)} embeddings for {num_rows} rows of the table; "
                "without ids on both sides the counts must agree"
            )
        return values
    place = {name: i for i, name in enumerate(embeddings.ids)}
    without = [name for name in ids if name not in place]
    if without:
        raise ValueError(f"{path}: no embedding for table ids {name_a_few(without)}")
    if len(place) > len(ids):
        known = set(ids)
        extra = [name for name in embeddings.ids if name not in known]
        raise ValueError(f"{path}: ids that the table lacks: {name_a_few(extra)}")
    order = np.array([place[name] for name in ids], dtype=np.intp)  # (n,)
    wrong = np.flatnonzero(order != np.arange(len(order)))
    if len(wrong) and isinstance(values, FileRows):
        row = int(wrong[0])
        raise ValueError(
            f"{path}: row {values.name_row(row)} has id {embeddings.ids[row]!r} where "
            f"the table has {ids[row]!r}; embeddings that stay on disk must be in the "
            "order of the table"
        )
    return values[order] if len(wrong) else values


def _read_npy(
    path: Path, column: str | None, id_column: str | None
) -> tuple[Array, None]:
    if column is not None:
        raise ValueError(
            f"{path}: a .npy file has no columns; drop --embeddings-column"
        )
    return map_npy(path) if _is_big(path) else read_npy(path), None


def _is_big(path: Path) -> bool:
    return path.stat().st_size >= _MEMORY_MAP_FROM


def _read_npz(
    path: Path, column: str | None, id_column: str | None
) -> tuple[Array, list[str] | None]:
    with open_npz(path) as archive:
        usual = "embeddings" if "embeddings" in archive.names else None
        values = archive.read(column or usual or _only_matrix(archive))
        ids = archive.read("ids") if "ids" in archive.names else None
    if ids is None:
        return values, None
    if ids.ndim != 1 or ids.dtype.kind not in "iufU":
        raise ValueError(f"{path}: ids must be 1-d numbers or text, got {_kind(ids)}")
    return values, ids_as_text(ids.tolist(), f"{path}: ids")


def _only_matrix(archive: Npz) -> str:
    names = archive.names
    matrices = [name for name in names if len(archive.header(name).shape) == 2]
    if len(matrices) != 1:
        raise ValueError(
            "needs an array 'embeddings' or exactly one 2-d array; it holds "
            f"{', '.join(names) or 'nothing'} (choose with --embeddings-column)"
        )
    return matrices[0]


def _read_parquet(
    path: Path, column: str | None, id_column: str | None
) -> tuple[Array, list[str] | None]:
    import pyarrow as pa

    table = read_table(path)
    named = [n for n in (id_column, "id") if n in table.columns]
    ids = None
    if named:
        ids = ids_as_text(table.values(named[0]), f"{path}: column {named[0]!r}")
    # pandas stores an index of its own under this name; it is no embedding
    rest = [
        n for n in table.columns if n not in named[:1] and not n.startswith("__index_")
    ]
    lists = [n for n in rest if is_list(table.columns[n].type)]
    if column is not None or len(lists) == 1:
        name = column or lists[0]
        if name not in lists:
            raise ValueError(f"{path}: no list column {name!r}; it has {lists}")
        where = f"{path}: column {name!r}"
        return from_arrow_lists(table.columns[name], where), ids
    if lists:
        raise ValueError(
            f"{path}: several list columns ({', '.join(lists)}); "
            "choose one with --embeddings-column"
        )
    for n in rest:
        kind = table.columns[n].type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise ValueError(
                f"{path}: column {n!r} holds {kind}; embeddings are numbers (only the "
                "id column may be something else)"
            )
    if not rest:
        raise ValueError(f"{path}: no embedding columns")
    arrays = [table.columns[n].to_numpy(zero_copy_only=False) for n in rest]
    return np.column_stack(arrays), ids


def _read_text(
    path: Path, column: str | None, id_column: str | None
) -> tuple[Array, list[str] | None]:
    """Read a csv, tsv or jsonl table: one column of lists, or columns of numbers."""
    table = read_table(path)
    named = [n for n in (id_column, "id") if n in table.columns][:1]
    ids = None
    if named:
        ids = ids_as_text(table.values(named[0]), f"{path}: column {named[0]!r}")
    rest = [n for n in table.columns if n not in named and n != ""]  # pandas' index
    if column is not None:
        require_column(table, path, column, "--embeddings-column")
    if column is not None or len(rest) == 1:
        name = column or rest[0]
        return column_of_lists(table, name, f"{path}: column {name!r}"), ids
    if not rest:
        raise ValueError(f"{path}: no embedding columns")
    return np.column_stack([_number_column(table, path, n) for n in rest]), ids


def _number_column(table: Table, path: Path, name: str) -> Array:
    values = table.values(name)
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        for row, value in enumerate(values):
            try:
                float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{path}: column {name!r}, row {row} (counting from 0): "
                    f"{str(value)[:40]!r} is no number; embeddings are numbers (only "
                    "the id column may be something else)"
                ) from None
        raise


def _checked(values: Array, where: str) -> Array:
    """Check shape, type and finite values; give floats, as wide as can be used."""
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{where}: embeddings must be numbers, got {_kind(values)}")
    if values.ndim != 2 or (values.shape[1] == 0 and len(values)):
        raise ValueError(
            f"{where}: embeddings must be 2-d, one row of numbers for each row of the "
            f"table, got {_kind(values)}"
        )
    # A mapped file of float16 is widened where it is read.
    is_mapped = isinstance(values, np.memmap) and values.dtype == np.float16
    if values.dtype not in (np.float32, np.float64) and not is_mapped:
        small = values.dtype.itemsize <= 2
        values = values.astype(np.float32 if small else np.float64)
    bad: list[int] = []
    for start in range(0, len(values), _CHECK_ROWS):
        block = np.isfinite(values[start : start + _CHECK_ROWS]).all(axis=1)
        bad.extend((start + np.flatnonzero(~block)).tolist())
    if bad:
        raise ValueError(
            f"{where}: NaN or infinite values in rows (counting from 0) "
            f"{name_a_few(bad)}; embeddings must be finite"
        )
    return values


_READERS = {".npy": _read_npy, ".npz": _read_npz, ".parquet": _read_parquet}
_READERS |= dict.fromkeys((".csv", ".tsv", ".jsonl"), _read_text)


def _kind(values: Array) -> str:
    return f"{values.dtype} of shape {values.shape}"
