"""The label, id and lock columns of a table, and labels as text and back.

A label is text, a whole number, a float or a boolean. Missing is an empty csv cell,
a null, a NaN or a jsonl key that is not there.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.tables import Absent, Table, require_column

_LOCKED = ("true", "yes", "1", "1.0")
_HUGE = 10**100
_FREE = ("false", "no", "0", "0.0", "")


def is_missing(value: Any) -> bool:
    """Tell whether a label is None, absent or NaN."""
    return (
        value is None
        or value is Absent.ABSENT
        or (isinstance(value, float) and math.isnan(value))
    )


def is_text_column(table: Table, column: str) -> bool:
    """Tell whether a column can hold nothing but text (and nulls)."""
    if table.format != "parquet":
        return table.format != "jsonl"
    import pyarrow as pa

    kind = table.columns[column].type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def read_labels(
    table: Table, path: Path, column: str, *, lists: bool = False
) -> list[Any]:
    """Give the labels of a table; an empty csv cell becomes None.

    With ``lists`` a row may have a list of labels.

    Raises
    ------
    ValueError
        If the column is not there or holds something else than labels.
    """
    require_column(table, path, column, "--label-column")
    values = table.values(column)
    if table.format in ("csv", "tsv"):
        return [value or None for value in values]
    for row, value in enumerate(values):
        if lists and isinstance(value, list):
            continue
        if not is_missing(value) and type(value) not in (str, int, float, bool):
            several = isinstance(value, list)
            raise ValueError(
                f"{path}: column {column!r}, row {row} (counting from 0): a label is "
                f"text, a number or true/false, not {type(value).__name__}"
                + ("; several for a row need --multi-label list" if several else "")
            )
        check_label(value, f"{path}: column {column!r}, row {row} (counting from 0)")
    return values


def check_label(value: Any, where: str) -> None:
    """Refuse numbers that are no labels: infinite ones, and huge whole ones."""
    if isinstance(value, float) and math.isinf(value):
        raise ValueError(f"{where}: a label cannot be infinite")
    if isinstance(value, int) and abs(value) >= _HUGE:
        raise ValueError(f"{where}: a whole number of more than 100 digits is no label")


def encode_label(value: Any, *, text_only: bool) -> str:
    """Write a label as text from which `decode_label` makes the same label again.

    Text is written as it is and other values as JSON (``3``, ``true``, ``NaN``).
    Text that could be taken for something else is written as a JSON string: the
    empty text, text with a zero character, and either text that starts with a double
    quote (where the column holds only text) or text that is itself valid JSON (where
    other types are possible). Null is the empty text; a jsonl key that is not there
    is ``{}``.
    """
    if value is None:
        return ""
    if value is Absent.ABSENT:
        return "{}"
    if not isinstance(value, str):
        return json.dumps(value)
    quoted = value.startswith('"') if text_only else _is_json(value)
    return json.dumps(value) if quoted or not value or "\0" in value else value


def label_key(label: Any) -> str:
    """Give a text for each label, different for different labels and types."""
    return encode_label(label, text_only=False)


def decode_label(text: str, *, text_only: bool) -> Any:
    """Turn the text of `encode_label` back into the label."""
    if not text:
        return None
    plain = not text.startswith('"') if text_only else False
    value = text if plain or not _is_json(text) else json.loads(text)
    return Absent.ABSENT if value == {} else value


@lru_cache(maxsize=2**14)  # rows are many, labels few
def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def as_targets(labels: Sequence[Any]) -> NDArray[np.object_]:
    """Give labels as the estimator wants them, with None where one is missing.

    Labels of one type are passed as they are. In a column of several types (only
    jsonl can have one) 1, 1.0, true and "1" are four classes but partly equal in
    Python, so there the text of `encode_label` stands for each label.
    """
    kinds = {type(label) for label in labels if not is_missing(label)}
    mixed = len(kinds) > 1
    y = np.empty(len(labels), dtype=object)  # (n,)
    for i, label in enumerate(labels):
        if not is_missing(label):
            y[i] = encode_label(label, text_only=False) if mixed else label
    return y


def read_ids(
    table: Table, path: Path, column: str | None
) -> tuple[str | None, list[Any]]:
    """Give the name of the id column and the ids.

    Without ``column`` the ids are in the column ``id`` where there is one; otherwise
    the name is None and the ids are the row numbers, counting from 0.
    """
    if column is None and "id" not in table.columns:
        return None, list(range(table.num_rows))
    name = column or "id"
    require_column(table, path, name, "--id-column")
    ids = table.values(name)
    where = f"{path}: column {name!r}"
    check_ids(ids_as_text(ids, where), where)
    return name, ids


def ids_as_text(ids: Sequence[Any], where: str) -> list[str]:
    """Write ids as text, the form in which ids are compared.

    So the number 7 matches the text ``7`` but not ``007``.
    """
    for row, value in enumerate(ids):
        if is_missing(value) or value == "":
            raise ValueError(f"{where}: row {row} (counting from 0) has no id")
        if type(value) not in (str, int, float):
            raise ValueError(
                f"{where}: row {row} (counting from 0): an id is text or a number, "
                f"not {type(value).__name__}"
            )
        if isinstance(value, int) and abs(value) >= _HUGE:
            raise ValueError(
                f"{where}: row {row} (counting from 0): a whole number of more than "
                "100 digits is no id; write it as text"
            )
    return [str(value) for value in ids]


def check_ids(ids: Sequence[str], where: str) -> None:
    """Raise when an id comes more than once."""
    if len(set(ids)) < len(ids):
        twice = [name for name, count in Counter(ids).items() if count > 1]
        raise ValueError(f"{where}: ids that come more than once: {name_a_few(twice)}")


def name_a_few(items: Sequence[Any], limit: int = 5) -> str:
    """List the first items in one line, and say how many there are."""
    shown = ", ".join(str(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown}, ... ({len(items)} in all)"


def read_locks(
    table: Table, path: Path, column: str, labels: Sequence[Any]
) -> NDArray[np.bool_]:
    """Give the rows that a person has checked: true, yes or 1 in ``column``."""
    require_column(table, path, column, "--locked-column")
    locked = np.zeros(table.num_rows, dtype=bool)
    for row, value in enumerate(table.values(column)):
        text = "" if is_missing(value) else str(value).strip().lower()
        if text not in _LOCKED and text not in _FREE:
            raise ValueError(
                f"{path}: column {column!r}, row {row} (counting from 0): locked is "
                f"true, yes or 1, or else false, no, 0 or empty, not {value!r}"
            )
        locked[row] = text in _LOCKED
        if locked[row] and is_missing(labels[row]):
            raise ValueError(
                f"{path}: row {row} (counting from 0) is locked but has no label"
            )
    return locked
