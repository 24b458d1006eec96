"""The table of ``stct predict``: labels of new rows, with probabilities."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stct.data.columns import encode_label
from stct.data.tables import Table


def prediction_table(
    kind: str,
    ids: list[Any],
    classes: list[Any],
    P: NDArray[np.float32],  # noqa: N803
) -> Table:
    """Give id, label, confidence and all probabilities (n, C) as a table.

    Six digits after the point; labels in their own type where the format has any.
    """
    text = kind in ("csv", "tsv")

    def numbers(values: NDArray[np.float32]) -> list[Any]:
        return [f"{v:.6f}" if text else round(v, 6) for v in values.tolist()]

    all_text = all(isinstance(label, str) for label in classes)
    names = [encode_label(label, text_only=all_text) for label in classes]
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
