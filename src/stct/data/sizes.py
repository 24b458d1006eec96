"""How large a correction would be, and how fast its file can be read."""

import time
from pathlib import Path

from stct.data.columns import read_labels
from stct.data.embeddings import load_embeddings
from stct.data.tables import read_table
from stct.plan import Problem

_TIMED_BYTES = 2**28


def read_problem(
    table_path: Path,
    *,
    embeddings: Path | None,
    embeddings_column: str | None,
    label_column: str,
    id_column: str | None,
) -> Problem:
    """Look at a table and its embeddings."""
    table = read_table(table_path)
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
    return Problem(values.shape[0], values.shape[1], classes, values.dtype.itemsize)


def read_rate(path: Path) -> float:
    """Bytes a second, from the first 256 MB of a file or of a folder's first file."""
    if path.is_dir():
        path = min(p for p in path.iterdir() if p.is_file())
    start, done = time.perf_counter(), 0
    with path.open("rb", buffering=0) as file:
        while done < _TIMED_BYTES and (block := file.read(2**22)):
            done += len(block)
    return done / max(time.perf_counter() - start, 1e-6)
