"""How large a correction would be, and how fast its file can be read."""

import os
import time
from pathlib import Path
from typing import Any

from stct.data.columns import read_labels
from stct.data.embeddings import load_embeddings
from stct.data.row_groups import Window, time_of_row
from stct.data.shard_names import list_shards
from stct.data.tables import read_table
from stct.numeric.file_rows import FileRows
from stct.planning.plan import Problem

_TIMED_BYTES = 2**28


def read_problem(
    table_path: Path,
    *,
    embeddings: Path | None,
    embeddings_column: str | None,
    label_column: str,
    id_column: str | None,
    sep: str | None = None,
    encoding: str | None = None,
) -> Problem:
    """Look at a table and its embeddings."""
    table = read_table(table_path, sep=sep, encoding=encoding)
    labels = read_labels(table, table_path, label_column)
    values, _ = load_embeddings(
        table,
        table_path,
        file=embeddings,
        column=embeddings_column,
        id_column=id_column,
    )
    classes = len({str(label) for label in labels if label is not None})
    if classes < 2:
        raise ValueError(f"{table_path}: fewer than two classes in {label_column!r}")
    n, d = values.shape
    return Problem(n, d, classes, values.dtype.itemsize, _decoding(values))


def _decoding(values: Any) -> float:
    """Seconds for a row of parquet that stays on disk, from its first rows."""
    first = values.first if isinstance(values, FileRows) else None
    return time_of_row(first) if isinstance(first, Window) else 0.0


def read_rate(path: Path) -> float:
    """Bytes a second, from the first 256 MB of a file or of a folder's first file."""
    if path.is_dir():
        path = list_shards(path)[0]
    start, done = time.perf_counter(), 0
    with path.open("rb", buffering=0) as file:
        if hasattr(os, "posix_fadvise"):  # from the disk, not from memory
            os.posix_fadvise(file.fileno(), 0, _TIMED_BYTES, os.POSIX_FADV_DONTNEED)
        while done < _TIMED_BYTES and (block := file.read(2**22)):
            done += len(block)
    return done / max(time.perf_counter() - start, 1e-6)
