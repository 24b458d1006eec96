"""What the battery runs on: embeddings, trusted labels, and labels with real noise."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stct.data.arrays import read_array
from stct.data.columns import encode_label, is_missing, read_labels
from stct.data.embeddings import read_embeddings
from stct.data.inputs import read_inputs
from stct.data.noising import class_order
from stct.data.npy import open_npz
from stct.data.tables import require_column
from stct.numeric.types import Floats, Ints

# Names of the arrays of an .npz file, the first that is there.
EMBEDDINGS = ("embeddings", "train")
LABELS = ("labels", "label", "y", "y_train")


class Subject(NamedTuple):
    """Embeddings and labels in 0..C-1; ``noisy`` holds labels as somebody gave them."""

    H: Floats  # (n, d)
    truth: Ints  # (n,)
    classes: list[Any]  # (C,)
    noisy: dict[str, Ints]
    notes: list[str]


def read_subject(
    path: Path,
    *,
    embeddings: Path | None,
    embeddings_column: str | None,
    label_column: str | None,
    id_column: str | None,
    noisy_columns: list[str],
) -> Subject:
    """Read a table with its embeddings, or an .npz file that holds both."""
    if path.suffix.lower() == ".npz":
        if embeddings is not None:
            raise ValueError(
                f"{path}: an .npz file brings its own embeddings; drop --embeddings"
            )
        return _from_npz(path, embeddings_column, label_column, noisy_columns)
    column = label_column or "label"
    inputs = read_inputs(
        path,
        embeddings=embeddings,
        embeddings_column=embeddings_column,
        label_column=column,
        id_column=id_column,
    )
    columns = {column: inputs.labels}
    for name in noisy_columns:
        require_column(inputs.table, path, name, "--noisy-column")
        columns[name] = read_labels(inputs.table, path, name)
    return _encode(path, inputs.embeddings, columns, column, inputs.notes)


def _from_npz(
    path: Path, embeddings: str | None, labels: str | None, noisy: list[str]
) -> Subject:
    names = _names(path)
    matrix = embeddings or next((n for n in EMBEDDINGS if n in names), None)
    H = read_embeddings(path, column=matrix).values
    label = labels or next((n for n in LABELS if n in names), None)
    if label is None:
        raise ValueError(
            f"{path}: no labels: an array {', '.join(LABELS)} or --label-column; it "
            f"holds {', '.join(names)}"
        )
    wanted = [label, *(noisy or [n for n in names if n.startswith("human_")])]
    columns = {}
    for name in wanted:
        if name not in names:
            raise ValueError(f"{path}: no array {name!r}; it holds {', '.join(names)}")
        values = read_array(path, name)
        if values.ndim != 1 or values.dtype.kind not in "iuUb":
            raise ValueError(
                f"{path}: array {name!r} must be 1-d whole numbers or text, got "
                f"{values.dtype} of shape {values.shape}"
            )
        columns[name] = values.tolist()
    return _encode(path, H, columns, label, [])


def _names(path: Path) -> list[str]:
    with open_npz(path) as archive:
        return archive.names


def _encode(
    path: Path,
    H: Floats,
    columns: dict[str, list[Any]],
    trusted: str,
    notes: list[str],
) -> Subject:
    """Give every class a number; every row needs a label in every column."""
    for name, values in columns.items():
        if len(values) != len(H):
            raise ValueError(
                f"{path}: {len(values)} labels in {name!r} for {len(H)} embeddings"
            )
        empty = next((i for i, value in enumerate(values) if is_missing(value)), None)
        if empty is not None:
            raise ValueError(
                f"{path}: {name!r} has no label in row {empty} (counting from 0); a "
                "benchmark needs one in every row"
            )
    classes = class_order(columns[trusted])
    if len(classes) < 2:
        raise ValueError(f"{path}: {trusted!r} has one class; at least two are needed")
    number = {encode_label(c, text_only=False): i for i, c in enumerate(classes)}
    codes = {}
    for name, values in columns.items():
        keys = [encode_label(value, text_only=False) for value in values]
        unknown = next((key for key in keys if key not in number), None)
        if unknown is not None:
            raise ValueError(
                f"{path}: {name!r} has the label {unknown!r}, which {trusted!r} lacks"
            )
        codes[name] = np.array([number[key] for key in keys], dtype=np.intp)
    truth = codes.pop(trusted)
    return Subject(H, truth, classes, codes, notes)
