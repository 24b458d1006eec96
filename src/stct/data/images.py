"""Images and labels from folders, tables, arrays and data sets, in one shape.

`read_images` tells the kind of source by looking at it:

- a folder with one folder of images for each class;
- a csv, tsv, jsonl or parquet table with a column of image paths;
- an .npz file with ``images`` (n, h, w) or (n, h, w, c), uint8, and ``labels``;
- the standard files of CIFAR-10 or CIFAR-100, folder or tar.gz;
- the folder of Clothing-1M, or a Hugging Face data set of ``save_to_disk``.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stct.data.cifar import is_cifar, read_cifar
from stct.data.clothing1m import is_clothing1m, read_clothing1m
from stct.data.columns import (
    ids_as_text,
    is_missing,
    name_a_few,
    read_ids,
    read_labels,
)
from stct.data.hf_dataset import is_hf_dataset, list_hf_dataset
from stct.data.image_arrays import read_npz, reshaped
from stct.data.image_files import ENDINGS, Source
from stct.data.image_lists import MOST_BYTES, Listed, load_images
from stct.data.image_set import ImageSet, LazyImages, Progress
from stct.data.tables import FORMATS, Table, read_table, require_column

__all__ = ["ImageSet", "LazyImages", "read_images"]

IMAGE_COLUMNS = (
    *("image", "path", "file", "filename", "file_name", "image_path", "file_path"),
)
PHOTO_SIDE = 224  # of photos that are trained on, as is usual
_SPLITS = {"train", "training", "test", "val", "valid", "validation", "dev"}


def read_images(
    source: str | Path,
    *,
    label_column: str = "label",
    image_column: str | None = None,
    id_column: str | None = None,
    size: int | tuple[int, int] | None = None,
    at_most: int | None = None,
    photos_at: int | None = None,
    channels: int | None = None,
    skip_bad: bool = False,
    labels_required: bool = True,
    split: str = "train",
    most_bytes: int = MOST_BYTES,
    progress: Progress | None = None,
) -> ImageSet:
    """Read images and labels from any kind of source.

    Parameters
    ----------
    source : path
        See the top of this module.
    label_column, image_column, id_column : str
        Columns of a table. The image column is by default the first of
        `IMAGE_COLUMNS` that is there; its paths are relative to the table's folder.
    size : int or (height, width), optional
        The size that all images get; by default the most common one. Another size
        is scaled to cover it and cut around the centre.
    at_most : int, optional
        Without ``size``: files of mixed sizes, or of one size that is larger, become
        squares of this size. For a reader that will not look at more pixels.
    photos_at : int, optional
        Without ``size``: files whose most common size is larger become squares of
        this size. For a reader that trains on them.
    channels : {1, 3}, optional
        Grey or colour; by default what most images are.
    skip_bad : bool
        Leave out images that cannot be read and list them in ``skipped``, instead of
        raising. Then every image is decoded once, also those that stay on the disk.
    labels_required : bool
        Raise when there are no labels. Otherwise they may be None.
    split : {"train", "test"}
        Which part of a source that holds both (CIFAR, Clothing-1M, Hugging Face).
    most_bytes : int
        A set that takes more than this in memory is not decoded now: ``images`` is
        then a `LazyImages`.
    progress : callable, optional
        Is told the share that is done.

    Raises
    ------
    ValueError
        If the source or an image cannot be read; the message names it.
    """
    path = Path(source)
    shape = _checked_size(size)
    if channels not in (None, 1, 3):
        raise ValueError(f"channels must be 1 (grey) or 3 (colour), got {channels}")
    if not path.exists():
        raise ValueError(f"{path}: there is no such file or folder")
    if is_cifar(path):
        return reshaped(read_cifar(path, split), shape, channels)
    if path.suffix.lower() == ".npz":
        return reshaped(read_npz(path, labels_required), shape, channels)
    if is_clothing1m(path):
        return read_clothing1m(
            path, split, size=shape, skip_bad=skip_bad, progress=progress
        )
    if is_hf_dataset(path):
        listed = list_hf_dataset(
            path,
            split,
            label_column=label_column,
            image_column=image_column,
            id_column=id_column,
            labels_required=labels_required,
        )
    elif path.is_dir():
        listed = _list_folder(path, labels_required)
    elif path.suffix.lower().removeprefix(".") in FORMATS:
        listed = _list_table(
            path, label_column, image_column, id_column, labels_required
        )
    else:
        raise ValueError(
            f"{path}: images come from a folder of class folders, a table (.csv, .tsv, "
            ".parquet, .jsonl) with a column of paths, an .npz file, or CIFAR's files"
        )
    return load_images(
        listed,
        where=str(path),
        size=shape,
        at_most=at_most,
        photos_at=photos_at,
        channels=channels,
        skip_bad=skip_bad,
        most_bytes=most_bytes,
        progress=progress,
    )


def _list_folder(folder: Path, labels_required: bool) -> Listed:
    """List the images of class folders, or without any of the folder itself."""
    inside = [p for p in folder.iterdir() if not p.name.startswith(".")]
    loose = sorted(p for p in inside if p.is_file() and _is_image(p))
    folders = sorted(p for p in inside if p.is_dir())
    if folders and all(p.name.lower() in _SPLITS for p in folders):
        raise ValueError(
            f"{folder}: holds {', '.join(p.name for p in folders)}; give one of these, "
            "so that its folders are the classes"
        )
    found = [(p, file) for p in folders for file in sorted(_images_below(p))]
    notes = []
    if not found and loose and not labels_required:
        paths, labels = loose, None
    elif not found:
        raise ValueError(
            f"{folder}: no class folders with images in it; expected for example "
            f"{folder.name}/cat/1.png (endings: {', '.join(ENDINGS)})"
        )
    else:
        paths = [file for _, file in found]
        labels = np.array([p.name for p, _ in found], dtype=object)
        if loose:
            notes.append(
                f"{len(loose):,} images outside the class folders were left out: "
                f"{name_a_few([p.name for p in loose], 3)}"
            )
        empty = [p.name for p in folders if p not in {kind for kind, _ in found}]
        if empty:
            notes.append(f"folders without images: {name_a_few(empty)}")
    ids = [path.relative_to(folder).as_posix() for path in paths]
    for path, name in zip(paths, ids, strict=True):
        if not _is_text(name):
            raise ValueError(f"{str(path)!r}: the name of this file is not UTF-8 text")
    sources: list[Source] = list(paths)
    return Listed(sources, [str(p) for p in paths], ids, labels, notes=notes)


def _images_below(folder: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and _is_image(Path(name)):
                yield Path(where, name)


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list_table(
    path: Path,
    label_column: str,
    image_column: str | None,
    id_column: str | None,
    labels_required: bool,
) -> Listed:
    table = read_table(path)
    if not table.num_rows:
        raise ValueError(f"{path}: the table has no rows")
    labels = None
    if labels_required or label_column in table.columns:
        labels = np.empty(table.num_rows, dtype=object)
        labels[:] = read_labels(table, path, label_column)
    name, ids = read_ids(table, path, id_column)
    column = image_column or _find_image_column(table, path)
    require_column(table, path, column, "--image-column")
    sources: list[Source] = []
    names = []
    for row, value in enumerate(table.values(column)):
        where = f"{path}: column {column!r}, row {row} (counting from 0)"
        if is_missing(value) or value == "":
            raise ValueError(f"{where}: no path of an image")
        if not isinstance(value, str):
            raise ValueError(
                f"{where}: the path of an image is text, not {type(value).__name__}"
            )
        sources.append(path.parent / value)
        names.append(f"{path}: row {row} (counting from 0), {value}")
    texts = ids_as_text(ids, str(path))
    return Listed(sources, names, texts, labels, table=table, id_column=name)


def _find_image_column(table: Table, path: Path) -> str:
    for name in IMAGE_COLUMNS:
        if name in table.columns:
            return name
    raise ValueError(
        f"{path}: no column with image paths (set --image-column); "
        f"its columns are {', '.join(table.columns)}"
    )


def _checked_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise ValueError(f"size must be 1 pixel or more, got {size}")
    return height, width
