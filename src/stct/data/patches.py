"""Patches: the changed labels of a table as a small csv, applied or taken back.

A patch has a row for each changed label: id, old, new, confidence. ``old`` and
``new`` are written by `stct.data.columns.encode_label`, so they stand for exactly one
typed value. Applying and reverting are exact inverses.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stct.data.columns import (
    check_ids,
    decode_label,
    encode_label,
    ids_as_text,
    is_text_column,
    name_a_few,
    read_ids,
    read_labels,
)
from stct.data.tables import Table, read_table

COLUMNS = ("id", "old", "new")


class Change(NamedTuple):
    """One changed label; ``old`` and ``new`` are encoded text."""

    id: str
    old: str
    new: str
    or_old: str | None = None  # another label that the row may have, too


class Conflict(NamedTuple):
    """A row whose label is not the one that the patch expects."""

    id: str
    expected: str
    found: str


class Patched(NamedTuple):
    """A patched table, the number of changed rows and the rows left alone."""

    table: Table
    num_changed: int
    conflicts: list[Conflict]


def make_patch(
    ids: Sequence[Any],
    old: Sequence[Any],
    new: Sequence[Any],
    confidence: Sequence[float],
    *,
    text_only: bool,
) -> Table:
    """Make the table of changed labels: those whose text differs."""
    columns: dict[str, list[Any]] = {"id": [], "old": [], "new": [], "confidence": []}
    for name, before, after, sure in zip(ids, old, new, confidence, strict=True):
        pair = [encode_label(value, text_only=text_only) for value in (before, after)]
        if pair[0] != pair[1]:
            row = (str(name), *pair, sure)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return Table("csv", columns, len(columns["id"]))


def read_patch(path: Path) -> list[Change]:
    """Read a patch; columns other than id, old and new do not matter."""
    if path.suffix.lower() != ".csv":
        raise ValueError(f"{path}: a patch is a .csv file")
    table = read_table(path)
    lacking = [name for name in COLUMNS if name not in table.columns]
    if lacking:
        raise ValueError(
            f"{path}: not a patch, no column {lacking[0]!r}; it needs id, old and new"
        )
    ids = ids_as_text(table.values("id"), f"{path}: column 'id'")
    check_ids(ids, f"{path}: column 'id'")
    return [
        Change(*row)
        for row in zip(ids, table.values("old"), table.values("new"), strict=True)
    ]


def apply_patch(
    changes: Sequence[Change],
    table: Table,
    path: Path,
    *,
    label_column: str,
    id_column: str | None = None,
) -> Patched:
    """Change every label that is what the patch expects, and list the others.

    Raises
    ------
    ValueError
        If the patch names ids that the table does not have, or a label that its
        column cannot hold.
    """
    labels = list(read_labels(table, path, label_column, lists=True))
    text_only = is_text_column(table, label_column)
    _, ids = read_ids(table, path, id_column)
    place = {str(name): row for row, name in enumerate(ids)}
    unknown = [change.id for change in changes if change.id not in place]
    if unknown:
        raise ValueError(f"{path}: no rows for the patch's ids {name_a_few(unknown)}")
    conflicts = []
    changed = 0
    for change in changes:
        row = place[change.id]
        found = encode_label(labels[row], text_only=text_only)
        if found in (change.old, change.or_old):
            changed += found != change.new
            labels[row] = decode_label(change.new, text_only=text_only)
        else:
            conflicts.append(Conflict(change.id, change.old, found))
    patched = table.with_values(label_column, labels)
    read_labels(patched, path, label_column, lists=True)
    return Patched(patched, changed, conflicts)


def reverse(changes: Sequence[Change]) -> list[Change]:
    """Turn a patch around, so that applying it takes the changes back."""
    return [Change(change.id, change.new, change.old) for change in changes]


def describe(conflicts: Sequence[Conflict]) -> list[str]:
    """List the conflicts, each in a line."""
    return [
        f"conflict: id {c.id}: expected {c.expected!r}, found {c.found!r}"
        for c in conflicts
    ]
