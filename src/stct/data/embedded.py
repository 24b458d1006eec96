"""Images or columns that were made embeddings: a table and one for every row."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import is_missing
from stct.data.image_set import ImageSet, LazyImages
from stct.data.tables import Table


@dataclass(frozen=True)
class Embedded:
    """What `read_inputs` takes in place of a table and a file of embeddings."""

    table: Table  # without the rows of skipped images or texts
    row_numbers: list[int] | None  # in the source, where the table has no ids
    embeddings: NDArray[np.float32]  # (n, d)
    files: dict[str, Path]
    about: dict[str, Any]  # for the summary: of images, or of columns by a recipe
    notes: list[str]
    pixels: NDArray[np.uint8] | None  # where the images are not files
    image_folder: Path | None  # where they are: what their paths are relative to
    image_column: str | None
    recipe: dict[str, NDArray[Any]] | None = None  # how a table's columns became them


def embedded_images(
    source: Path,
    images: ImageSet,
    embeddings: NDArray[np.float32],
    about: dict[str, Any],
    *,
    label_column: str,
    image_column: str | None,
) -> Embedded:
    """Give an image set with its embeddings the form of a table.

    A source that is not a table becomes a csv table of ids and labels.
    """
    table, numbers = images.table, None
    if table is None:
        labels = images.labels
        known = [None] * len(images.ids) if labels is None else labels.tolist()
        table = _as_csv(images.ids, known, label_column)
    elif images.id_column is None:
        numbers = [int(text) for text in images.ids]
    notes = list(images.notes)
    if images.skipped:
        notes.append(
            f"images that could not be read and were left out: {len(images.skipped)}, "
            f"the first {images.skipped[0]}"
        )
    return Embedded(
        table,
        numbers,
        embeddings,
        {"table": source} if source.is_file() else {},
        {"source": source.name, **about, "skipped": images.skipped},
        notes,
        *_place(source, images, image_column),
    )


def _place(
    source: Path, images: ImageSet, image_column: str | None
) -> tuple[NDArray[np.uint8] | None, Path | None, str | None]:
    """Tell how a report finds the images: pixels, or a folder and a column."""
    if images.table is not None:
        same = image_column is not None and image_column == images.id_column
        return None, source.parent, "id" if same else image_column
    if isinstance(images.images, LazyImages) or (source / images.ids[0]).is_file():
        return None, source, "id"
    return images.images, None, None


def _as_csv(ids: list[str], labels: list[Any], label_column: str) -> Table:
    texts = ["" if is_missing(label) else str(label) for label in labels]
    return Table("csv", {"id": ids, label_column: texts}, len(ids))
