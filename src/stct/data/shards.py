"""Embeddings too large for memory: folders of .npy or parquet files, .npy shards.

Everything that can be known without reading all rows is checked here; the rest when
rows are read.
"""

from pathlib import Path
from typing import Any

import numpy as np

from stct.data.files import check_regular, reading
from stct.data.npy import check_header, read_header
from stct.data.row_groups import check_same, open_parquet
from stct.data.shard_names import check_numbers, list_shards
from stct.numeric.file_rows import FileRows, NpyPart, Part


def open_folder(
    folder: Path, *, column: str | None, id_column: str | None
) -> tuple[FileRows, list[str] | None]:
    """Rows of all .npy or all .parquet files of a folder, and their ids if any."""
    paths = list_shards(folder)
    kinds = {p.suffix.lower() for p in paths}
    if kinds not in ({".npy"}, {".parquet"}):
        found = ", ".join(sorted(kind or "no ending" for kind in kinds)) or "nothing"
        raise ValueError(
            f"{folder}: a folder of embeddings holds .npy files or .parquet files and "
            f"nothing else, found {found}"
        )
    check_numbers(folder, paths)
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
        check_same(path, paths[0], (shape[1], dtype), first)
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
    check_regular(path)
    with reading(path), path.open("rb") as file:
        header = read_header(file)
        check_header(header)
        shape, dtype, fortran = header
        offset = file.tell()
    wide = dtype.itemsize > 8  # longdouble: other machines may know another one
    if len(shape) != 2 or dtype.kind != "f" or wide or fortran or shape[1] == 0:
        order = " in column order" if fortran else ""
        raise ValueError(
            f"{path}: a shard is a 2-d array of float16, float32 or float64 in row "
            f"order, got {dtype} of shape {shape}{order}"
        )
    return (shape[0], shape[1]), dtype, offset
