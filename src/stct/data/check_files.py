"""Check files: rows for a person to look at, and the label that the person gives.

A csv file with the columns id, given, suggested, label, worth and the caller's own.
``label`` is empty until a person has filled it in. Labels are written as in a patch
(see `stct.data.columns.encode_label`); ``worth`` is the probability that the label is
wrong as it is.
"""

from collections.abc import Sequence
from pathlib import Path

from stct.data.columns import check_ids, encode_label, ids_as_text, is_missing
from stct.data.corrected import Corrected
from stct.data.patches import Change
from stct.data.tables import Column, Table


def make_checks(corrected: Corrected, rows: list[int], worth: Sequence[float]) -> Table:
    """Make the table of rows to look at, in this order."""
    table = corrected.table
    given, label = table.values("given"), table.values("label")
    columns: dict[str, Column] = {
        "id": [corrected.ids[row] for row in rows],
        "given": [encoded_or_empty(corrected, given[row]) for row in rows],
        "suggested": [encoded_or_empty(corrected, label[row]) for row in rows],
        "label": [""] * len(rows),
        "worth": [f"{value:.6f}" for value in worth],
    }
    return Table("csv", columns | own_columns(corrected, rows, columns), len(rows))


def own_columns(
    corrected: Corrected, rows: list[int], taken: dict[str, Column]
) -> dict[str, Column]:
    """Give the caller's own columns of some rows, as text."""
    columns: dict[str, Column] = {}
    for name in corrected.other_columns:
        values = corrected.table.values(name)
        cells = [values[row] for row in rows]
        lists = any(isinstance(cell, list | dict | bytes) for cell in cells)
        if name not in taken and not lists:
            columns[name] = ["" if is_missing(cell) else str(cell) for cell in cells]
    return columns


def is_check_file(table: Table) -> bool:
    """Tell a check file from a patch and from decisions."""
    return all(name in table.columns for name in ("id", "given", "suggested", "label"))


def read_checks(table: Table, path: Path) -> list[Change]:
    """Give the rows whose label a person has filled in, as changes.

    A row may have its given label or the suggested one when they are applied.
    """
    names = ids_as_text(table.values("id"), f"{path}: column 'id'")
    check_ids(names, f"{path}: column 'id'")
    rows = zip(
        names,
        table.values("given"),
        table.values("label"),
        table.values("suggested"),
        strict=True,
    )
    changes = [Change(*row) for row in rows if row[2]]
    if not changes:
        raise ValueError(f"{path}: no row has a label: fill in the column 'label'")
    return changes


def encoded_or_empty(corrected: Corrected, value: object) -> str:
    """Write a label as a check or audit file does; nothing where there is none."""
    if is_missing(value) or value == "":
        return ""
    return encode_label(value, text_only=corrected.text_only)
