"""What changed since an earlier run on the same table.

A person who locks a few rows wants to know which other labels moved because of them.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stct.data.columns import encode_label, is_text_column, name_a_few
from stct.data.corrected import read_corrected
from stct.data.inputs import Inputs
from stct.data.tables import Table

CHANGED = "changed.csv"


class Previous(NamedTuple):
    """The labels of an earlier run, as text, by id."""

    folder: Path
    labels: dict[str, str]


def read_previous(folder: Path) -> Previous:
    """Read the labels of an output folder."""
    corrected = read_corrected(folder)
    codes = [corrected.encoded(label) for label in corrected.classes]
    texts = ["" if code < 0 else codes[code] for code in corrected.label.tolist()]
    return Previous(folder, dict(zip(corrected.ids, texts, strict=True)))


def list_changes(
    previous: Previous, inputs: Inputs, new: list[Any], confidence: list[float]
) -> Table:
    """List the rows that nobody has checked and whose label is another one now.

    Raises
    ------
    ValueError
        If the earlier run was about other rows.
    """
    names = [str(name) for name in inputs.ids]
    lacking = [name for name in names if name not in previous.labels]
    if lacking:
        raise ValueError(
            f"{previous.folder}: an earlier run without the ids {name_a_few(lacking)}; "
            "--since takes a run on the same table"
        )
    text_only = is_text_column(inputs.table, inputs.label_column)
    columns: dict[str, list[Any]] = {"id": [], "before": [], "now": []}
    columns["confidence"] = []
    for row in np.flatnonzero(~inputs.checked).tolist():
        before = previous.labels[names[row]]
        now = encode_label(new[row], text_only=text_only)
        if before != now:
            values = (names[row], before, now, confidence[row])
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
    return Table("csv", dict(columns), len(columns["id"]))
