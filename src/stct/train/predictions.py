"""``stct predict``: labels of new images in a table."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stct.data.columns import encode_label
from stct.data.images import read_images
from stct.data.outputs import check_file, whole_file
from stct.data.tables import Table, table_format, write_table
from stct.train.images import Images, skipped_note
from stct.train.inference import predict
from stct.train.model_file import load_model
from stct.train.training import make_fabric


class Predicted(NamedTuple):
    """What was written, and what should be known of it."""

    rows: int
    notes: list[str]  # what was skipped, resized or converted


def predict_to_file(
    model: Path, data: Path, output: Path, *, overwrite: bool, **reading: Any
) -> Predicted:
    """Write id, label, confidence and all probabilities for new images."""
    table_format(output)
    check_file(output, overwrite=overwrite)
    network, about = load_model(model)
    channels, *size = about.image_shape
    images = read_images(
        data,
        size=(size[0], size[1]),
        channels=channels,
        labels_required=False,
        **reading,
    )
    fabric = make_fabric()
    network.to(fabric.device)
    P = predict(network, Images(images.images, fabric.device), fabric)  # noqa: N806
    table = _table(table_format(output), images.ids, about.classes, P)
    with whole_file(output, overwrite=overwrite) as path:
        write_table(path, table)
    return Predicted(len(images), [*images.notes, *skipped_note(images)])


def _table(
    kind: str,
    ids: list[str],
    classes: list[Any],
    P: NDArray[np.float32],  # noqa: N803
) -> Table:
    """Six digits after the point; labels in their own type where the format has any."""
    text = kind in ("csv", "tsv")

    def numbers(values: NDArray[np.float32]) -> list[Any]:
        return [f"{v:.6f}" if text else round(v, 6) for v in values.tolist()]

    names = [encode_label(label, text_only=False) for label in classes]
    one_type = len({type(label) for label in classes}) == 1
    labels = classes if text or one_type else names
    best = P.argmax(axis=1)
    columns = {
        "id": ids,
        "label": [labels[i] for i in best],
        "confidence": numbers(P.max(axis=1)),
        **{f"p:{name}": numbers(P[:, i]) for i, name in enumerate(names)},
    }
    return Table(kind, columns, len(ids), schema=pa.schema([]))
