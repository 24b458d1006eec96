"""Which columns to use, and what to say of those that are constant or leak labels."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stct.data.columns import is_missing, name_a_few
from stct.data.embeddings import NO_EMBEDDINGS
from stct.data.image_files import ENDINGS
from stct.data.tables import Table, require_column
from stct.features.kinds import (
    CONSTANT,
    KINDS,
    LISTS,
    NUMBER,
    TEXT,
    as_numbers,
    kind_of,
)

_LEAK = 0.995  # of the labels that one column alone gives
_LEAST_ROWS = 50  # from which that means something


class Choice(NamedTuple):
    """What the rows of a table are told by."""

    kinds: dict[str, str]  # features: name and kind
    notes: list[str]
    text_column: str | None = None
    embeddings_column: str | None = None


def choose_all(
    table: Table, path: Path, labels: Sequence[Any], others: Sequence[str | None]
) -> Choice:
    """Take all columns that can be features, but the ``others``; say what was left."""
    kinds, notes = {}, []
    left: dict[str, list[str]] = {}
    for name in table.columns:
        if name in others:
            continue
        kind = kind_of(table, name)
        if kind not in KINDS:
            left.setdefault(_WHY[kind], []).append(name)
        elif _is_row_number(table, name, kind):
            left.setdefault("number the rows", []).append(name)
        elif gives_label(table, name, labels):
            left.setdefault("give the label away", []).append(name)
        else:
            kinds[name] = kind
    for why, names in left.items():
        notes.append(f"columns that {why} were left out: {name_a_few(names)}")
    if not kinds:
        raise ValueError(f"{path}: no column can be a feature; {'; '.join(notes)}")
    return Choice(kinds, notes)


def choose_named(
    table: Table, path: Path, labels: Sequence[Any], names: Sequence[str]
) -> Choice:
    """Take these columns; each must be usable."""
    kinds, notes, constant = {}, [], []
    for name in names:
        if name not in table.columns:
            raise ValueError(
                f"{path}: no column {name!r} (set --feature-columns); "
                f"its columns are {', '.join(table.columns)}"
            )
        kind = kind_of(table, name)
        if kind == CONSTANT:
            constant.append(name)
            continue
        if kind not in KINDS:
            raise ValueError(
                f"{path}: column {name!r} cannot be a feature: its values {_WHY[kind]}"
                + (" (texts: --text-column)" if kind == TEXT else "")
            )
        kinds[name] = kind
        if gives_label(table, name, labels):
            notes.append(leak_note(name))
    if constant:
        notes.append(f"columns that are constant: {name_a_few(constant)}")
    if not kinds:
        raise ValueError(f"{path}: all of --feature-columns are constant")
    return Choice(kinds, notes)


def choose(
    table: Table, path: Path, labels: Sequence[Any], others: Sequence[str | None]
) -> Choice:
    """Find out by what a table's rows can be told, where nobody has said it.

    A column of lists, else the column with the longest texts, else all columns.
    """
    rest = [name for name in table.columns if name not in others]
    kinds = {name: kind_of(table, name) for name in rest}
    lists = [name for name in rest if kinds[name] == LISTS]
    if len(lists) == 1:
        note = f"embeddings are the lists in column {lists[0]!r}"
        return Choice({}, [note], embeddings_column=lists[0])
    texts = [name for name in rest if kinds[name] == TEXT]
    images = [name for name in texts if _are_images(table.values(name))]
    if images:
        raise ValueError(
            f"{path}: column {images[0]!r} names images; give --encoder NAME, such as "
            "--encoder efficientnet-lite0"
        )
    if texts:
        best = max(texts, key=lambda name: sum(map(len, _strings(table, name))))
        note = f"features are the texts in column {best!r}"
        return Choice({}, [note], text_column=best)
    if not any(kind in KINDS for kind in kinds.values()):
        raise ValueError(
            f"{path}: {NO_EMBEDDINGS}, --pred-probs FILE, --text-column NAME or "
            "--feature-columns NAMES"
        )
    found = choose_all(table, path, labels, others)
    note = f"features are columns {name_a_few(list(found.kinds), 8)}"
    return found._replace(notes=[note, *found.notes])


def choose_text(table: Table, path: Path, labels: Sequence[Any], name: str) -> Choice:
    """Take a column of texts."""
    require_column(table, path, name, "--text-column")
    leaks = gives_label(table, name, labels)
    return Choice({}, [leak_note(name)] if leaks else [], text_column=name)


def leak_note(name: str) -> str:
    """Say that a column gives the label away."""
    return (
        f"column {name!r} gives the label of nearly every row: if it was made from the "
        "labels, it repeats their errors; leave it out"
    )


def gives_label(table: Table, name: str, labels: Sequence[Any]) -> bool:
    """Tell whether a column alone gives the given label of nearly every row.

    Each row is told by the most common label of the other rows with its value.
    """
    counts: dict[str, Counter[str]] = {}
    known = 0
    for value, label in zip(table.values(name), labels, strict=True):
        if not is_missing(label):
            counts.setdefault(str(value), Counter())[str(label)] += 1
            known += 1
    told = 0
    for count in counts.values():
        (_, first), *rest = count.most_common(2)
        if first - 1 > (rest[0][1] if rest else 0):
            told += first
    return known >= _LEAST_ROWS and told >= _LEAK * known


def _is_row_number(table: Table, name: str, kind: str) -> bool:
    """Tell whether a column only counts rows or names them."""
    if kind != NUMBER:
        return False
    numbers = as_numbers(table.values(name))
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) < len(numbers):
        return False
    counts = np.ptp(numbers) == len(numbers) - 1
    named = name.lower().endswith("id") or name.lower() in ("index", "")
    return bool((numbers == np.floor(numbers)).all() and (counts or named))


def _are_images(values: Sequence[Any]) -> bool:
    ends = [isinstance(v, str) and v.lower().endswith(tuple(ENDINGS)) for v in values]
    return sum(ends) > len(ends) / 2


def _strings(table: Table, name: str) -> list[str]:
    return [value for value in table.values(name) if isinstance(value, str)]


_WHY = {
    CONSTANT: "are constant",
    TEXT: "differ in nearly every row",
    LISTS: "are lists",
}
