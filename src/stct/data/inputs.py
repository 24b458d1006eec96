"""What one correction starts from: a table, its labels, embeddings and locked rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stct.checks import check_classes
from stct.correction.result import Progress
from stct.data.annotations import TableVotes, vote_targets
from stct.data.audits import Audit, read_audit
from stct.data.columns import (
    as_targets,
    is_missing,
    label_key,
    read_ids,
    read_labels,
    read_locks,
)
from stct.data.decisions import Decisions, read_decisions
from stct.data.embedded import Embedded
from stct.data.embeddings import NO_EMBEDDINGS, load_embeddings
from stct.data.tables import Table, read_table
from stct.label_kinds import check_kind

NO_FEATURES = (
    "no embeddings: labels are estimated from the annotators alone; with --embeddings, "
    "--text-column or --feature-columns more can be told"
)

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector


@dataclass(frozen=True)
class Inputs:
    """A table with everything that the correction needs from it."""

    table: Table
    label_column: str
    id_column: str | None  # None: ids are row numbers
    ids: list[Any]
    labels: list[Any]
    embeddings: Any  # (n, d), an array or rows in files
    locked: NDArray[np.bool_] | None
    files: dict[str, Path]
    notes: list[str] = field(default_factory=list)
    decisions: dict[int, Any] = field(default_factory=dict)  # row: label of a person
    images: dict[str, Any] | None = None  # where an encoder made the embeddings
    features: dict[str, Any] | None = None  # where a recipe made them of columns
    recipe: dict[str, NDArray[Any]] | None = None  # that recipe as plain arrays
    pred_probs: NDArray[Any] | None = None  # (n, C) instead of embeddings
    audit: Audit | None = None  # rows that a person verified
    command: list[str] | None = None  # of this run, for the next round
    votes: TableVotes | None = None  # several labels per row

    @cached_property
    def known(self) -> list[Any]:
        """The labels with a person's decisions in place of those of the table."""
        return [self.decisions.get(i, label) for i, label in enumerate(self.labels)]

    @cached_property
    def targets(self) -> NDArray[np.object_]:
        """The known labels as `LabelCorrector.fit` takes them."""
        return as_targets(self.known)

    @cached_property
    def verified(self) -> NDArray[np.object_] | None:
        """Verified labels as `LabelCorrector.fit` takes them, (n,)."""
        if self.audit is None:
            return None
        target = {
            label_key(label): target
            for label, target in zip(self.known, self.targets, strict=True)
        }
        values = np.full(len(self.labels), None, dtype=object)
        for row, label in zip(self.audit.rows, self.audit.labels, strict=True):
            values[row] = target.get(label_key(label), label)
        return values

    @cached_property
    def verified_weight(self) -> NDArray[np.float64] | None:
        """Weights of the verified rows among all, (n,)."""
        if self.audit is None:
            return None
        weight = np.ones(len(self.labels))
        weight[self.audit.rows] = self.audit.weight
        return weight

    @cached_property
    def checked(self) -> NDArray[np.bool_]:
        """Rows whose label a person vouches for, (n,)."""
        rows = np.zeros(len(self.labels), dtype=bool)
        if self.locked is not None:
            rows |= self.locked
        if self.audit is not None:
            rows[self.audit.rows] = True
        return rows

    @cached_property
    def original(self) -> dict[Any, Any]:
        """The label for each value in ``targets``."""
        pairs = zip(self.targets, self.known, strict=True)
        return {target: label for target, label in pairs if target is not None}

    @cached_property
    def overruled(self) -> NDArray[np.bool_]:
        """Rows whose label a person replaced by another one, (n,)."""
        replaced = np.zeros(len(self.labels), dtype=bool)
        for row, label in self.decisions.items():
            replaced[row] = label_key(label) != label_key(self.labels[row])
        return replaced

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Rows without a label in the table, (n,)."""
        return np.array([is_missing(label) for label in self.labels], dtype=bool)


def read_inputs(
    table_path: Path,
    *,
    embeddings: Path | None,
    embeddings_column: str | None = None,
    label_column: str = "label",
    id_column: str | None = None,
    locked_column: str | None = None,
    locked: Path | None = None,
    audit: Path | None = None,
    embedded: Embedded | None = None,
    pred_probs: Path | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    classes: bool = True,
    to_fit: bool = True,
    voted: tuple[Table, TableVotes] | None = None,
) -> Inputs:
    """Read a table and its embeddings, joined by id where both have ids.

    ``pred_probs`` is a file of class probabilities to use instead of embeddings.

    ``locked`` is a file of decisions: its labels take the place of the table's, and
    its rows are locked, beside those that ``locked_column`` marks. ``embedded`` is a
    source of images, or a table with a recipe, that was read and embedded before.
    Labels that are no ``classes`` are several for a row, text or lists, or numbers.
    Inputs that are not ``to_fit`` may be of one class or none. ``voted`` is the table
    with several labels per row; then embeddings may be missing.
    ``audit`` is a file of rows that were drawn at random and verified.
    """
    table = _table(table_path, embedded, voted, sep, encoding)
    votes = None if voted is None else voted[1]
    labels = read_labels(table, table_path, label_column, lists=not classes)
    if classes:
        check_label_kind(labels, f"{table_path}: column {label_column!r}")
    name, ids = read_ids(table, table_path, id_column)
    if embedded is not None and embedded.row_numbers is not None:
        ids = list(embedded.row_numbers)
    decided = Decisions({}, [])
    if locked is not None:
        decided = read_decisions(
            locked,
            table,
            table_path,
            label_column=label_column,
            ids=ids,
            labels=labels,
        )
    about = {"label_column": label_column, "ids": ids, "labels": labels}
    seen = _read_audit(audit, decided, table, table_path, about)
    fixed = _locks(table, table_path, locked_column, labels, decided)
    nothing = not (pred_probs or embeddings or embeddings_column or embedded)
    if not (nothing and votes is not None):
        _check_source(pred_probs, bool(embeddings or embeddings_column or embedded))
    files = {"table": table_path} if embedded is None else dict(embedded.files)
    if embedded is not None:
        X, notes = embedded.embeddings, embedded.notes  # noqa: N806
    elif nothing:
        X, notes = np.zeros((table.num_rows, 0), np.float32), [NO_FEATURES]  # noqa: N806
    else:
        X, notes = load_embeddings(  # noqa: N806
            table,
            table_path,
            file=embeddings or pred_probs,
            column=embeddings_column,
            id_column=id_column,
        )
    kinds = {"embeddings": embeddings, "pred_probs": pred_probs, "locked": locked}
    kinds["audit"] = audit
    kinds["annotations"] = None if votes is None else votes.file
    files |= {kind: path for kind, path in kinds.items() if path is not None}
    P = None  # noqa: N806
    if pred_probs is not None:
        P, X = (
            np.asarray(X[: table.num_rows]),
            np.zeros((table.num_rows, 0), np.float32),
        )  # noqa: N806
    inputs = Inputs(
        table,
        label_column,
        name,
        ids,
        labels,
        X,
        fixed,
        files,
        [*table.notes, *notes, *decided.notes],
        decided.labels,
        images=embedded.about if embedded and embedded.recipe is None else None,
        features=embedded.about if embedded and embedded.recipe is not None else None,
        recipe=None if embedded is None else embedded.recipe,
        pred_probs=P,
        audit=seen,
        votes=votes,
    )
    if classes and to_fit:
        folder = embedded is not None and embedded.recipe is None
        column = "" if folder else f": column {label_column!r}"
        check_classes(list(inputs.original.values()), f"{table_path}{column}")
    return inputs


def _made_notes(votes: TableVotes | None, path: Path, column: str) -> list[str]:
    """Say that the given labels were made of votes."""
    if votes is None or not votes.made:
        return []
    return [f"{path} has no column {column!r}: given is the most common label of a row"]


def _table(
    path: Path,
    embedded: Embedded | None,
    voted: tuple[Table, TableVotes] | None,
    sep: str | None,
    encoding: str | None,
) -> Table:
    """Give the table, which may have been read before."""
    if embedded is not None:
        return embedded.table
    if voted is not None:
        return voted[0]
    table = read_table(path, sep=sep, encoding=encoding)
    if not table.num_rows:
        raise ValueError(f"{path}: the table has no rows")
    return table


def _locks(
    table: Table,
    path: Path,
    column: str | None,
    labels: Sequence[Any],
    decided: Decisions,
) -> NDArray[np.bool_] | None:
    """Tell which rows are locked, by a column or by a decision; None if none can be."""
    fixed = None
    if column is not None:
        known = [decided.labels.get(i, label) for i, label in enumerate(labels)]
        fixed = read_locks(table, path, column, known)
    if decided.labels:
        fixed = np.zeros(table.num_rows, dtype=bool) if fixed is None else fixed
        fixed[list(decided.labels)] = True
    return fixed


def check_label_kind(labels: Sequence[Any], where: str) -> None:
    """Refuse labels that are no classes, before anything else takes time."""
    known = {label_key(label): label for label in labels if not is_missing(label)}
    count = sum(not is_missing(label) for label in labels)
    try:
        check_kind(list(known.values()), count)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _check_source(pred_probs: Path | None, has_embeddings: bool) -> None:
    """Require embeddings or probabilities, one of the two."""
    if pred_probs is not None and has_embeddings:
        raise ValueError("give embeddings or --pred-probs, not both")
    if pred_probs is None and not has_embeddings:
        raise ValueError(f"{NO_EMBEDDINGS}, or --pred-probs FILE")


def _read_audit(
    path: Path | None,
    decided: Decisions,
    table: Table,
    table_path: Path,
    about: dict[str, Any],
) -> Audit | None:
    """Read an audit, and take its rows out of decisions that say the same."""
    if path is None:
        return None
    audit = read_audit(path, table, table_path, **about)
    for row, label in zip(audit.rows.tolist(), audit.labels, strict=True):
        if row not in decided.labels:
            continue
        if label_key(decided.labels[row]) != label_key(label):
            raise ValueError(
                f"{path}: id {about['ids'][row]} is verified as {label!r}, and "
                f"{decided.labels[row]!r} in --locked"
            )
        del decided.labels[row]
    return audit


def fit_inputs(
    corrector: "LabelCorrector", inputs: Inputs, progress: Progress | None = None
) -> None:
    """Fit to embeddings or probabilities; what the fit warns of becomes a note."""
    more: dict[str, Any] = {"locked": inputs.locked, "progress": progress}
    if inputs.audit is not None:
        more["verified"] = inputs.verified
        more["verified_weight"] = inputs.verified_weight
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        if inputs.votes is not None:
            more["annotations"] = vote_targets(
                inputs.votes, inputs.known, inputs.targets
            )
        if inputs.pred_probs is None and not inputs.embeddings.shape[1]:
            corrector.fit(y=inputs.targets, **more)
        elif inputs.pred_probs is None:
            corrector.fit(inputs.embeddings, inputs.targets, **more)
        else:
            corrector.fit(y=inputs.targets, pred_probs=inputs.pred_probs, **more)
    inputs.notes.extend(str(warning.message) for warning in said)
