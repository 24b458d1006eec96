"""The rows of a correction as plain values, for any tool."""

from pathlib import Path
from typing import Any

from stct.data.columns import is_missing
from stct.data.corrected import Corrected
from stct.report.thumbnails import find_image_column

_MOST_CELLS = 200  # values looked at to tell what a column holds


def plain_columns(corrected: Corrected) -> dict[str, list[Any]]:
    """Give the caller's own columns of numbers, text and truth values; None missing."""
    columns = {}
    for name in corrected.other_columns:
        values = [None if is_missing(v) else v for v in corrected.table.values(name)]
        if all(v is None or isinstance(v, str | int | float) for v in values):
            columns[name] = values
    return columns


def image_column(corrected: Corrected, images: Path | None) -> str | None:
    """Find the column of image paths: files in ``images``, or names that look so."""
    columns: dict[str, list[Any]] = {**plain_columns(corrected), "id": corrected.ids}
    if images is not None:
        found = find_image_column(columns, images, None)
        if found is None:
            raise ValueError(f"{images}: no column of the table names image files here")
        return found
    endings = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
    for name, values in columns.items():
        texts = [v for v in values if isinstance(v, str) and v][:_MOST_CELLS]
        if texts and all(text.lower().endswith(endings) for text in texts):
            return name
    return None


def text_column(corrected: Corrected) -> str | None:
    """Find the column with the longest texts, if any is more than a word or two."""
    best, longest = None, 25.0
    for name, values in plain_columns(corrected).items():
        texts = [v for v in values if isinstance(v, str)][:_MOST_CELLS]
        mean = sum(map(len, texts)) / max(len(texts), 1)
        if mean >= longest:
            best, longest = name, mean
    return best
