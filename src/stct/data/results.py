"""The files of one correction: labels, soft labels, patch and summary."""

import hashlib
import json
import platform
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import stct
from stct.correction import Progress
from stct.data.arrays import write_arrays
from stct.data.columns import (
    as_targets,
    encode_label,
    is_missing,
    is_text_column,
    read_ids,
    read_labels,
    read_locks,
)
from stct.data.decisions import Decisions, read_decisions
from stct.data.embedded import EmbeddedImages
from stct.data.embeddings import load_embeddings
from stct.data.outputs import SUMMARY, WRITTEN_BY
from stct.data.patches import make_patch
from stct.data.tables import Column, Table, read_table, write_table

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector

ACTIONS = ("keep", "relabel", "abstain", "fill")
_CONFIDENCE_DECIMALS = 6
_MOVES_LISTED = 20


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
    pred_probs: NDArray[Any] | None = None  # (n, C) instead of embeddings

    @cached_property
    def known(self) -> list[Any]:
        """The labels with a person's decisions in place of those of the table."""
        return [self.decisions.get(i, label) for i, label in enumerate(self.labels)]

    @cached_property
    def targets(self) -> NDArray[np.object_]:
        """The known labels as `LabelCorrector.fit` takes them."""
        return as_targets(self.known)

    @cached_property
    def original(self) -> dict[Any, Any]:
        """The label for each value in ``targets``."""
        pairs = zip(self.targets, self.known, strict=True)
        return {target: label for target, label in pairs if target is not None}

    @cached_property
    def overruled(self) -> NDArray[np.bool_]:
        """Rows whose label a person replaced by another one, (n,)."""
        pairs = zip(self.labels, self.known, strict=True)
        return np.array([_key(a) != _key(b) for a, b in pairs], dtype=bool)


def read_inputs(
    table_path: Path,
    *,
    embeddings: Path | None,
    embeddings_column: str | None = None,
    label_column: str = "label",
    id_column: str | None = None,
    locked_column: str | None = None,
    locked: Path | None = None,
    embedded: EmbeddedImages | None = None,
    pred_probs: Path | None = None,
) -> Inputs:
    """Read a table and its embeddings, joined by id where both have ids.

    ``pred_probs`` is a file of class probabilities to use instead of embeddings.

    ``locked`` is a file of decisions: its labels take the place of the table's, and
    its rows are locked, beside those that ``locked_column`` marks. ``embedded`` is a
    source of images that was read and embedded before.
    """
    table = read_table(table_path) if embedded is None else embedded.table
    if not table.num_rows:
        raise ValueError(f"{table_path}: the table has no rows")
    labels = read_labels(table, table_path, label_column)
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
    fixed = None
    if locked_column is not None:
        known = [decided.labels.get(i, label) for i, label in enumerate(labels)]
        fixed = read_locks(table, table_path, locked_column, known)
    if decided.labels:
        fixed = np.zeros(table.num_rows, dtype=bool) if fixed is None else fixed
        fixed[list(decided.labels)] = True
    if pred_probs is not None and (embeddings or embeddings_column or embedded):
        raise ValueError("give embeddings or --pred-probs, not both")
    if embedded is not None:
        X, notes, files = embedded.embeddings, embedded.notes, dict(embedded.files)  # noqa: N806
    else:
        X, notes = load_embeddings(  # noqa: N806
            table,
            table_path,
            file=embeddings or pred_probs,
            column=embeddings_column,
            id_column=id_column,
        )
        files = {"table": table_path}
    kinds = {"embeddings": embeddings, "pred_probs": pred_probs, "locked": locked}
    files |= {kind: path for kind, path in kinds.items() if path is not None}
    P = None  # noqa: N806
    if pred_probs is not None:
        P, X = (
            np.asarray(X[: table.num_rows]),
            np.zeros((table.num_rows, 0), np.float32),
        )  # noqa: N806
    return Inputs(
        table,
        label_column,
        name,
        ids,
        labels,
        X,
        fixed,
        files,
        [*notes, *decided.notes],
        decided.labels,
        images=None if embedded is None else embedded.about,
        pred_probs=P,
    )


def fit_inputs(
    corrector: "LabelCorrector", inputs: Inputs, progress: Progress | None = None
) -> None:
    """Fit to embeddings or probabilities; what the fit warns of becomes a note."""
    more: dict[str, Any] = {"locked": inputs.locked, "progress": progress}
    if inputs.pred_probs is None:
        corrector.fit(inputs.embeddings, inputs.targets, **more)
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        corrector.fit(y=inputs.targets, pred_probs=inputs.pred_probs, **more)
    inputs.notes.extend(str(warning.message) for warning in said)


def write_results(
    folder: Path,
    inputs: Inputs,
    corrector: "LabelCorrector",
    *,
    seconds: float,
    more_files: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the four files into an empty folder and return the summary."""
    new = corrected_labels(inputs, corrector)
    sure = corrector.confidence_.astype(np.float64)
    confidence = sure.round(_CONFIDENCE_DECIMALS).tolist()
    text_only = is_text_column(inputs.table, inputs.label_column)
    actions = row_actions(inputs, corrector).tolist()
    labels, renamed = _labels_table(inputs, new, confidence, actions)
    patch = make_patch(inputs.ids, inputs.labels, new, confidence, text_only=text_only)
    names = [f"labels.{inputs.table.format}", "soft_labels.npz", "patch.csv", SUMMARY]
    write_table(folder / names[0], labels)
    _write_soft_labels(folder / names[1], inputs, corrector)
    write_table(folder / names[2], patch)
    summary = _summarise(inputs, corrector, new)
    summary["notes"] += renamed
    summary["seconds"] = round(seconds, 3)
    summary["files"] = [*names, *more_files]
    (folder / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    return summary


def as_json(summary: dict[str, Any]) -> str:
    """Write a summary as JSON with one line for each entry."""
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = [f"  {write(name)}: {write(value)}" for name, value in summary.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def corrected_labels(inputs: Inputs, corrector: "LabelCorrector") -> list[Any]:
    """Give the corrected labels in the table's own values."""
    rows = zip(inputs.known, inputs.targets, corrector.labels_, strict=True)
    return [
        known if target is not None and target == label else inputs.original[label]
        for known, target, label in rows
    ]


def row_actions(inputs: Inputs, corrector: "LabelCorrector") -> NDArray[np.str_]:
    """Give the actions, with a person's changes counted as changes, (n,)."""
    missing = np.array([is_missing(label) for label in inputs.labels], dtype=bool)
    changed = np.where(missing, "fill", "relabel")
    return np.where(inputs.overruled, changed, corrector.action_)


def _labels_table(
    inputs: Inputs, new: list[Any], confidence: list[float], actions: list[str]
) -> tuple[Table, list[str]]:
    """Make the table of labels: ours first, then the caller's other columns."""
    table, name = inputs.table, inputs.label_column
    given = [None if is_missing(label) else label for label in inputs.labels]
    id_column = inputs.id_column
    columns: dict[str, Column] = {
        "id": inputs.ids if id_column is None else table.columns[id_column],
        "given": table.typed(name, given),
        "label": table.typed(name, new),
        "confidence": confidence,
        "action": actions,
    }
    notes = []
    others = [other for other in table.columns if other not in (name, id_column)]
    for other in others:
        free = other
        while free in columns or (free != other and free in others):
            free += "_original"
        if free != other:
            notes.append(f"your column {other!r} is {free!r} in the labels file")
        columns[free] = table.columns[other]
    return Table(
        table.format,
        columns,
        table.num_rows,
        newline=table.newline,
        bom=table.bom,
        schema=table.schema,
    ), notes


def _write_soft_labels(path: Path, inputs: Inputs, corrector: "LabelCorrector") -> None:
    """Write ids (n,), classes (C,) and probabilities (n, C); no pickles, no dates.

    Of a sparse (n, C) the kept entries: top_classes and top_probabilities (n, k).
    """
    Q = corrector.label_distributions_  # noqa: N806
    arrays = {
        "ids": _plain_array(inputs.ids),
        "classes": _plain_array([inputs.original[c] for c in corrector.classes_]),
    }
    if isinstance(Q, np.ndarray):
        arrays["probabilities"] = Q.astype(np.float32)
    else:
        arrays["top_classes"] = Q.indices.reshape(Q.shape[0], -1)
        arrays["top_probabilities"] = Q.data.reshape(Q.shape[0], -1)
    write_arrays(path, arrays)


def _plain_array(values: list[Any]) -> NDArray[Any]:
    """Make an array of one type: as it is, or as text where types are mixed."""
    array = np.array(values) if len({type(value) for value in values}) == 1 else None
    if array is None or array.dtype == object:
        return np.array([encode_label(value, text_only=False) for value in values])
    return array


def _summarise(
    inputs: Inputs, corrector: "LabelCorrector", new: list[Any]
) -> dict[str, Any]:
    classes = [inputs.original[c] for c in corrector.classes_]
    parameters = {**corrector.get_params(), "engine": str(corrector.engine)}
    accuracy = _estimated_accuracy(inputs, corrector)
    actions = Counter(row_actions(inputs, corrector).tolist())
    before = Counter(_key(label) for label in inputs.labels)
    after = Counter(_key(label) for label in new)
    return {
        "written_by": WRITTEN_BY,
        "rows": inputs.table.num_rows,
        "embedding_columns": inputs.embeddings.shape[1],
        "classes": len(classes),
        "class_names": classes,
        "noise_rate": None if accuracy["before"] is None else 1.0 - accuracy["before"],
        "estimated_accuracy": accuracy,
        "actions": {action: actions[action] for action in ACTIONS},
        "most_common_corrections": _corrections(inputs.labels, new)[:_MOVES_LISTED],
        "class_counts": {
            "before": [before[_key(c)] for c in classes],
            "after": [after[_key(c)] for c in classes],
        },
        "learnable": [bool(v) for v in corrector.learnable_],
        "transition_matrix": [
            [_number(v) for v in row] for row in corrector.transition_matrix_
        ],
        "method": parameters.pop("method"),
        "seed": parameters.pop("random_state"),
        "parameters": parameters,
        "rounds": int(corrector.n_iter_),
        "termination_condition": corrector.termination_condition_,
        "label_column": inputs.label_column,
        "id_column": inputs.id_column,
        "inputs": {
            kind: {"file": path.name, "sha256": _sha256(path)}
            for kind, path in inputs.files.items()
        },
        "images": inputs.images,
        "versions": _versions(),
        "notes": [*inputs.notes, *corrector.notes_],
    }


def _estimated_accuracy(inputs: Inputs, corrector: "LabelCorrector") -> dict[str, Any]:
    """Give the estimates; a label that a person replaced was wrong before."""
    accuracy = corrector.estimated_accuracy_
    missing = np.array([is_missing(label) for label in inputs.labels], dtype=bool)
    known = max(int(np.sum(~missing)), 1)
    wrong = float(np.sum(inputs.overruled & ~missing)) / known
    return {
        "before": _number(accuracy.before - wrong),
        "after": _number(accuracy.after),
        "before_interval": [
            _number(max(0.0, v - wrong)) for v in accuracy.before_interval
        ],
        "after_interval": [_number(v) for v in accuracy.after_interval],
    }


def _corrections(given: list[Any], new: list[Any]) -> list[dict[str, Any]]:
    """Count the moves from one label to another, most common first."""
    pairs = zip(given, new, strict=True)
    moves = [(a, b) for a, b in pairs if not is_missing(a) and _key(a) != _key(b)]
    values = {(_key(a), _key(b)): (a, b) for a, b in moves}
    counts = Counter((_key(a), _key(b)) for a, b in moves)
    ordered = sorted(counts, key=lambda move: (-counts[move], move))
    return [
        {"from": values[m][0], "to": values[m][1], "rows": counts[m]} for m in ordered
    ]


def _key(label: Any) -> str:
    """Give a text for each label, different for different labels and types."""
    return encode_label(label, text_only=False)


def _number(value: Any) -> float | None:
    """Give a float, or None for what JSON cannot write."""
    return float(value) if np.isfinite(value) else None


def _sha256(path: Path) -> str:
    """Digest of a file, or of the names and digests of the files of a folder."""
    if path.is_dir():
        inside = [f"{_sha256(p)}  {p.name}\n" for p in sorted(path.iterdir())]
        return hashlib.sha256("".join(inside).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _versions() -> dict[str, str]:
    import sklearn

    return {
        "stct": stct.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
