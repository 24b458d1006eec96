"""Audit files: rows drawn at random, and the label that a person verified for each.

A csv file with the columns id, given and verified, and weight where rows were not all
drawn with the same probability: 1 / inclusion probability. Labels are written as in a
patch (see `stct.data.columns.encode_label`). An empty ``verified`` is a row that
nobody has looked at yet.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import (
    check_ids,
    encode_label,
    ids_as_text,
    is_missing,
    is_text_column,
    name_a_few,
)
from stct.data.tables import Table, read_table

COLUMNS = ("id", "given", "verified")


class Audit(NamedTuple):
    """The verified label of each row that was looked at."""

    rows: NDArray[np.intp]  # (m,) in the order of the table
    labels: list[Any]  # (m,) verified
    weight: NDArray[np.float64]  # (m,) 1 / inclusion probability, up to a factor


def read_audit(
    path: Path,
    table: Table,
    table_path: Path,
    *,
    label_column: str,
    ids: Sequence[Any],
    labels: Sequence[Any],
) -> Audit:
    """Read an audit file about the rows of a table.

    Raises
    ------
    ValueError
        If the file is no audit file, is about another table, or about given labels
        that have changed since; if a verified label is no class of the table, or a
        weight is not positive; if nobody has verified a row of it.
    """
    if path.suffix.lower() != ".csv":
        raise ValueError(f"{path}: an audit is a .csv file")
    audit = read_table(path)
    lacking = [name for name in COLUMNS if name not in audit.columns]
    if lacking:
        raise ValueError(
            f"{path}: not an audit, no column {lacking[0]!r}; it needs id, given and "
            "verified (and weight, where rows were drawn with different probabilities)"
        )
    names = ids_as_text(audit.values("id"), f"{path}: column 'id'")
    check_ids(names, f"{path}: column 'id'")
    place = {str(value): row for row, value in enumerate(ids)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise ValueError(
            f"{path}: ids that {table_path} lacks: {name_a_few(unknown)}; "
            "this audit is about another table"
        )
    text_only = is_text_column(table, label_column)
    rows = [place[name] for name in names]
    found = [encode_label(labels[row], text_only=text_only) for row in rows]
    said = audit.values("given")
    changed = [
        name
        for name, old, now in zip(names, said, found, strict=True)
        if old != now and not (old == "" and now in ("", "{}", "NaN"))
    ]
    if changed:
        raise ValueError(
            f"{path}: the label in {table_path} is not the given one of the audit for "
            f"ids {name_a_few(changed)}; these rows have changed since"
        )
    known = {
        encode_label(label, text_only=text_only): label
        for label in labels
        if not is_missing(label)
    }
    verified = audit.values("verified")
    done = [i for i, text in enumerate(verified) if text]
    strange = [verified[i] for i in done if verified[i] not in known]
    if strange:
        raise ValueError(
            f"{path}: column 'verified': labels that no row of {table_path} has: "
            f"{name_a_few(sorted(set(strange)))}; allowed are {name_a_few(list(known))}"
        )
    if not done:
        raise ValueError(f"{path}: nobody has verified a row: 'verified' is empty")
    weight = read_weights(audit, path)
    order = sorted(done, key=lambda i: rows[i])
    return Audit(
        np.array([rows[i] for i in order], dtype=np.intp),
        [known[verified[i]] for i in order],
        weight[order],
    )


def read_weights(audit: Table, path: Path) -> NDArray[np.float64]:
    """Give the weight of each row; all 1 without such a column."""
    if "weight" not in audit.columns:
        return np.ones(audit.num_rows)
    weights = []
    for row, text in enumerate(audit.values("weight")):
        try:
            weights.append(float(text))
        except ValueError:
            weights.append(math.nan)
        if not 0.0 < weights[-1] < math.inf:
            raise ValueError(
                f"{path}: column 'weight', row {row} (counting from 0): a weight is a "
                f"positive number, not {text!r}"
            )
    return np.array(weights)
