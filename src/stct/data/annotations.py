"""Several labels per row from files: a table of votes, or columns of the table."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from stct.annotations import from_table
from stct.data.columns import as_targets, is_missing, label_key, read_ids, read_labels
from stct.data.tables import Table, read_table, require_column
from stct.labels import few

ANNOTATOR, LABEL = "annotator", "label"


class TableVotes(NamedTuple):
    """Who gave which label to which row of a table, one entry a vote."""

    rows: list[int]
    annotators: list[Any]
    labels: list[Any]
    file: Path | None  # where they were read, if not in the table itself
    columns: tuple[str, ...] = ()  # of the table, one for each annotator
    made: bool = False  # the table had no label column, and got one


def read_votes(
    path: Path,
    *,
    annotations: Path | None,
    label_columns: str | None,
    label_column: str,
    id_column: str | None,
    sep: str | None = None,
    encoding: str | None = None,
) -> tuple[Table, TableVotes]:
    """Read a table and the votes for its rows.

    A table that has no column of labels gets one: the most common label of each row.

    Parameters
    ----------
    path : Path
        The table.
    annotations : Path, optional
        A table with the columns id, annotator and label.
    label_columns : str, optional
        Instead: columns of the table, one for each annotator, with commas between
        their names.
    sep, encoding : str, optional
        Of the table, as in `read_table`.
    """
    table = read_table(path, sep=sep, encoding=encoding)
    if not table.num_rows:
        raise ValueError(f"{path}: the table has no rows")
    if annotations is not None:
        if label_columns is not None:
            raise ValueError("give --annotations or --label-columns, not both")
        votes = _from_file(table, path, annotations, id_column)
    else:
        votes = _from_columns(table, path, label_columns or "")
    where = annotations or f"{path}: columns {label_columns}"
    if not votes.labels:
        raise ValueError(f"{where}: no annotator has given a label")
    if label_column in table.columns:
        if label_column in votes.columns:
            raise ValueError(
                f"{path}: column {label_column!r} is one of --label-columns; "
                "--label-column is the label that each row has now, if it has one"
            )
        _check_known(votes, where, read_labels(table, path, label_column), path)
        return table, votes
    if label_column != LABEL:
        require_column(table, path, label_column, "--label-column")
    ids = read_ids(table, path, id_column)[1]
    table = _with_majority(table, votes, where, label_column, ids)
    return table, votes._replace(made=True)


def _from_file(
    table: Table, path: Path, file: Path, id_column: str | None
) -> TableVotes:
    """Read a long table, and find its ids in the table."""
    found = read_table(file)
    name, ids = read_ids(table, path, id_column)
    key = next((c for c in (name, "id", "row") if c in found.columns), None)
    if key is None:
        require_column(found, file, name or "id", "--id-column")
    for column in (ANNOTATOR, LABEL):
        if column not in found.columns:
            raise ValueError(
                f"{file}: no column {column!r}; votes have the columns id, annotator "
                f"and label, and these are {', '.join(found.columns)}"
            )
    places = {str(value): row for row, value in enumerate(ids)}
    rows, annotators, labels = [], [], []
    values = read_labels(found, file, LABEL)
    for line, (ident, who, label) in enumerate(
        zip(found.values(str(key)), found.values(ANNOTATOR), values, strict=True)
    ):
        row = places.get(str(ident))
        if row is None:
            raise ValueError(
                f"{file}: row {line} (counting from 0, without the header): there is "
                f"no id {str(ident)!r} in {path}"
            )
        if is_missing(who) or who == "":
            raise ValueError(
                f"{file}: row {line} (counting from 0, without the header): no "
                "annotator"
            )
        if not is_missing(label):
            rows.append(row)
            annotators.append(str(who))
            labels.append(label)
    return TableVotes(rows, annotators, labels, file)


def _from_columns(table: Table, path: Path, names: str) -> TableVotes:
    """Read columns of the table, one for each annotator."""
    columns = tuple(name.strip() for name in names.split(","))
    rows, annotators, labels = [], [], []
    for name in columns:
        if columns.count(name) > 1:
            raise ValueError(f"--label-columns: {name!r} comes twice")
        require_column(table, path, name, "--label-columns")
        for row, label in enumerate(read_labels(table, path, name)):
            if not is_missing(label):
                rows.append(row)
                annotators.append(name)
                labels.append(label)
    return TableVotes(rows, annotators, labels, None, columns)


def _check_known(
    votes: TableVotes, where: Any, labels: Sequence[Any], path: Path
) -> None:
    """Refuse labels that the table does not have."""
    known = {label_key(label) for label in labels if not is_missing(label)}
    said = {label_key(label): label for label in votes.labels}
    unknown = [label for key, label in said.items() if key not in known]
    if unknown:
        raise ValueError(
            f"{where}: labels that the label column of {path} does not have: "
            f"{few(unknown)}"
        )


def _with_majority(
    table: Table, votes: TableVotes, where: Any, label_column: str, ids: list[Any]
) -> Table:
    """Give the table with the most common label of each row as a column."""
    targets = as_targets(votes.labels)
    original = dict(zip(targets, votes.labels, strict=True))
    try:
        said = (votes.rows, votes.annotators, targets)
        found = from_table(said, table.num_rows, ids)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    values = [None if v is None else original[v] for v in found.given.values.tolist()]
    column: Any = values
    if table.format == "parquet":
        import pyarrow as pa

        column = pa.chunked_array([pa.array(values)])
    return replace(table, columns={**table.columns, label_column: column})


def vote_targets(votes: TableVotes, known: Sequence[Any], targets: Any) -> Any:
    """Give votes as `LabelCorrector.fit` takes them, in the values of its targets."""
    pairs = zip(known, targets, strict=True)
    lookup = {label_key(label): target for label, target in pairs if target is not None}
    labels = [lookup.get(label_key(label), label) for label in votes.labels]
    return votes.rows, votes.annotators, labels
