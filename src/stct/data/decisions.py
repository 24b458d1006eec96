"""Decisions: labels that a person chose for single rows, as the report exports them.

A csv file with the columns id and label. Labels are written as in a patch (see
`stct.data.columns.encode_label`), so they keep their exact value and type.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stct.data.check_files import is_check_file
from stct.data.columns import (
    check_ids,
    check_label,
    decode_label,
    encode_label,
    ids_as_text,
    is_missing,
    is_text_column,
    name_a_few,
)
from stct.data.tables import Table, read_table


class Decisions(NamedTuple):
    """The label that a person chose for each decided row, and notes about them."""

    labels: dict[int, Any]
    notes: list[str]


def read_decisions(
    path: Path,
    table: Table,
    table_path: Path,
    *,
    label_column: str,
    ids: Sequence[Any],
    labels: Sequence[Any],
) -> Decisions:
    """Read decisions about the rows of a table.

    Raises
    ------
    ValueError
        If the file is no decisions file, names ids that the table lacks, or has a
        label that the table's column cannot hold.
    """
    if path.suffix.lower() != ".csv":
        raise ValueError(f"{path}: decisions are a .csv file with columns id and label")
    decided = read_table(path)
    for name in ("id", "label"):
        if name not in decided.columns:
            raise ValueError(
                f"{path}: not a decisions file, no column {name!r}; "
                "it needs id and label"
            )
    names = ids_as_text(decided.values("id"), f"{path}: column 'id'")
    check_ids(names, f"{path}: column 'id'")
    place = {str(value): row for row, value in enumerate(ids)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise ValueError(
            f"{path}: ids that {table_path} lacks: {name_a_few(unknown)}; "
            "these decisions are about another table"
        )
    text_only = is_text_column(table, label_column)
    known = {
        encode_label(label, text_only=text_only): label
        for label in labels
        if not is_missing(label)
    }
    chosen: dict[int, Any] = {}
    new: dict[str, None] = {}
    for name, text in zip(names, decided.values("label"), strict=True):
        if not text and is_check_file(decided):  # nobody has looked at it yet
            continue
        if not text:
            raise ValueError(f"{path}: id {name} has no label")
        if text not in known:
            value = decode_label(text, text_only=text_only)
            known[text] = _typed(table, label_column, value, path)
            new[text] = None
        chosen[place[name]] = known[text]
    notes = []
    if new:
        notes.append(
            f"{len(new)} labels in {path.name} are in no row of the table and become "
            f"classes of their own: {name_a_few(list(new))}"
        )
    return Decisions(chosen, notes)


def _typed(table: Table, column: str, value: Any, path: Path) -> Any:
    """Give a label as the column would hold it."""
    if type(value) not in (str, int, float, bool):
        raise ValueError(f"{path}: a label is text, a number or true/false: {value!r}")
    check_label(value, f"{path}: the label of a row")
    if table.format != "parquet":
        return value
    try:
        return table.typed(column, [value]).to_pylist()[0]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
