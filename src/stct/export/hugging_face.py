"""Hugging Face: a dataset on disk with class labels, for ``load_from_disk``."""

from pathlib import Path
from typing import Any

import numpy as np

from stct.data.corrected import Corrected
from stct.export.rows import image_column, plain_columns

_MOST_PROBABILITIES = 50_000_000  # rows times classes; beyond, soft_labels.npz has them


def write_dataset(corrected: Corrected, folder: Path, images: Path | None) -> str:
    """Write the dataset; say how to load it."""
    try:
        import datasets
    except ImportError as error:
        raise ValueError(
            "the package datasets is not installed: pip install 'stct[huggingface]'"
        ) from error
    datasets.disable_progress_bars()
    names = [corrected.encoded(label) for label in corrected.classes]
    kind = datasets.ClassLabel(names=names)
    columns: dict[str, Any] = {
        "id": corrected.ids,
        "given": _codes(corrected.given),
        "label": _codes(corrected.label),
        "confidence": corrected.confidence.tolist(),
        "action": corrected.action.tolist(),
    }
    features = {
        "id": datasets.Value("string"),
        "given": kind,
        "label": kind,
        "confidence": datasets.Value("float64"),
        "action": datasets.Value("string"),
    }
    for name, values in plain_columns(corrected).items():
        columns[name], features[name] = _typed(values, datasets)
    if images is not None:
        column = image_column(corrected, images)
        paths = columns.get(column or "id", corrected.ids)
        columns["image"] = [_picture(path, images) for path in paths]
        features["image"] = datasets.Image()
    blocks = corrected.soft_label_blocks()
    num_learnt = len(corrected.summary.get("learnable", names))
    if blocks is not None and len(corrected.ids) * num_learnt <= _MOST_PROBABILITIES:
        columns["probabilities"] = np.concatenate([P for _, P in blocks])
        features["probabilities"] = datasets.List(datasets.Value("float32"))
    made = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
    made.save_to_disk(folder)
    return "In Python: datasets.load_from_disk('{output}')"


def _codes(codes: Any) -> list[int | None]:
    return [int(code) if code >= 0 else None for code in codes]


def _typed(values: list[Any], datasets: Any) -> tuple[list[Any], Any]:
    """Give a column of one type; one of mixed types becomes text."""
    kinds = {type(value) for value in values if value is not None}
    for kind, name in ((bool, "bool"), (int, "int64"), (float, "float64")):
        if kinds == {kind}:
            wide = kind is int and any(
                v is not None and abs(v) >= 2**63 for v in values
            )
            if not wide:
                return values, datasets.Value(name)
    texts = [None if value is None else str(value) for value in values]
    return texts, datasets.Value("string")


def _picture(path: Any, folder: Path) -> dict[str, Any] | None:
    """Give an image file whole, so that the dataset can be moved."""
    if not isinstance(path, str) or not path:
        return None
    file = folder / path
    return {"bytes": file.read_bytes(), "path": path} if file.is_file() else None
