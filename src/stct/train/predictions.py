"""``stct predict``: labels of new images in a table."""

from pathlib import Path
from typing import Any, NamedTuple

from stct.data.images import read_images
from stct.data.outputs import check_file, whole_file
from stct.data.predictions import prediction_table
from stct.data.tables import table_format, write_table
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
    table = prediction_table(table_format(output), images.ids, about.classes, P)
    with whole_file(output, overwrite=overwrite) as path:
        write_table(path, table)
    return Predicted(len(images), [*images.notes, *skipped_note(images)])
