"""A Hugging Face data set that ``save_to_disk`` wrote, as a list of images."""

from pathlib import Path
from typing import Any

import numpy as np

from stct.data.columns import check_label
from stct.data.image_files import Source
from stct.data.image_lists import Listed


def is_hf_dataset(path: Path) -> bool:
    """Tell whether a folder was written by ``save_to_disk``."""
    names = ("dataset_dict.json", "state.json")
    return path.is_dir() and any((path / name).is_file() for name in names)


def list_hf_dataset(
    path: Path,
    split: str,
    *,
    label_column: str,
    image_column: str | None,
    id_column: str | None,
    labels_required: bool,
) -> Listed:
    """List the images of one split; nothing is decoded here."""
    try:
        import datasets
    except ImportError as error:
        raise ValueError(
            f"{path}: a Hugging Face data set needs datasets: "
            "pip install 'stct[huggingface]'"
        ) from error
    try:
        data: Any = datasets.load_from_disk(str(path))
    except Exception as error:  # a damaged folder raises many kinds
        raise ValueError(f"{path}: not a readable data set: {error}") from error
    if isinstance(data, datasets.DatasetDict):
        if split not in data:
            raise ValueError(f"{path}: no split {split!r}; it has {', '.join(data)}")
        data = data[split]
    features = data.features
    kinds = [n for n, kind in features.items() if isinstance(kind, datasets.Image)]
    column = image_column or (kinds[0] if kinds else "image")
    if column not in kinds:
        raise ValueError(
            f"{path}: no column {column!r} of images (set --image-column); "
            f"its columns are {', '.join(features)}"
        )
    needed = [label_column] if labels_required else []
    for name in [*needed, *([id_column] if id_column else [])]:
        if name not in features:
            raise ValueError(
                f"{path}: no column {name!r}; its columns are {', '.join(features)}"
            )
    encoded = data.cast_column(column, datasets.Image(decode=False))[column]
    sources: list[Source] = [
        image["bytes"] if image["bytes"] is not None else Path(image["path"])
        for image in encoded
    ]
    labels, classes = None, None
    if label_column in features:
        values = list(data[label_column])
        if isinstance(features[label_column], datasets.ClassLabel):
            classes = tuple(features[label_column].names)
            values = [classes[v] if v is not None and v >= 0 else None for v in values]
        for row, value in enumerate(values):
            check_label(value, f"{path}: row {row} (counting from 0)")
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
    ids = [str(i) for i in (data[id_column] if id_column else range(len(sources)))]
    names = [f"{path}: row {row} (counting from 0)" for row in range(len(sources))]
    return Listed(sources, names, ids, labels, classes=classes)
