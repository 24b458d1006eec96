"""The files of one correction: labels, soft labels, patch and summary."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stct.data.annotators import ANNOTATORS, annotators_table
from stct.data.arrays import write_arrays
from stct.data.columns import encode_label, is_text_column
from stct.data.inputs import Inputs
from stct.data.outputs import SUMMARY, sign
from stct.data.patches import make_patch
from stct.data.row_digests import row_digests
from stct.data.since import CHANGED, Previous, list_changes
from stct.data.summary import as_json, summarise
from stct.data.table_text import SEPARATORS
from stct.data.tables import Column, Table, write_table

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector

CORRECTOR = "corrector.npz"  # the fitted model, for later batches
RECIPE = "features.npz"  # how columns became embeddings, for new rows
MOST_DIGESTS = 2**24  # rows that later batches can be compared with one by one
_CONFIDENCE_DECIMALS = 6
_FORMULA = ("=", "@")  # + and - begin numbers, too


def write_results(
    folder: Path,
    inputs: Inputs,
    corrector: "LabelCorrector",
    *,
    seconds: float,
    more_files: Sequence[str] = (),
    earlier: dict[str, Any] | None = None,
    previous: Previous | None = None,
    for_later: bool = True,
) -> dict[str, Any]:
    """Write the files into an empty folder and return the summary.

    ``earlier`` says which run judged a later batch, and what differs; labels are
    compared with those of the ``previous`` run on the same table. With
    ``for_later`` this run can judge others: the fitted corrector is written.
    """
    new = corrected_labels(inputs, corrector)
    sure = corrector.confidence_.astype(np.float64)
    confidence = sure.round(_CONFIDENCE_DECIMALS).tolist()
    text_only = is_text_column(inputs.table, inputs.label_column)
    actions = row_actions(inputs, corrector).tolist()
    labels, renamed = _labels_table(inputs, new, confidence, actions)
    patch = make_patch(inputs.ids, inputs.labels, new, confidence, text_only=text_only)
    names = [f"labels.{inputs.table.format}", "soft_labels.npz", "patch.csv", SUMMARY]
    write_table(folder / names[0], labels)
    for_later = for_later and inputs.pred_probs is None
    for_later = for_later and inputs.embeddings.shape[1] > 0
    taught = for_later and (earlier is None or earlier["refit"])
    _write_soft_labels(folder / names[1], inputs, corrector, taught=taught)
    write_table(folder / names[2], patch)
    if corrector.annotators_:
        write_table(folder / ANNOTATORS, annotators_table(corrector.annotators_))
        names.append(ANNOTATORS)
    if inputs.recipe is not None:
        write_arrays(folder / RECIPE, inputs.recipe)
        names.append(RECIPE)
    if for_later:
        corrector.save(folder / CORRECTOR)
        names.append(CORRECTOR)
    summary = summarise(inputs, corrector, new, actions)
    summary["from"] = earlier
    if previous is not None:
        changed = list_changes(previous, inputs, new, confidence)
        write_table(folder / CHANGED, changed)
        names.append(CHANGED)
        summary["since"] = {
            "folder": previous.folder.name,
            "other_labels_changed": changed.num_rows,
        }
    summary["notes"] += [*renamed, *_formula_note(labels)]
    summary["seconds"] = round(seconds, 3)
    summary["files"] = [*names, *more_files]
    sign(summary, folder)
    (folder / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    return summary


def corrected_labels(inputs: Inputs, corrector: "LabelCorrector") -> list[Any]:
    """Give the corrected labels in the table's own values."""
    rows = zip(inputs.known, inputs.targets, corrector.labels_, strict=True)
    return [
        known if target is not None and target == label else inputs.original[label]
        for known, target, label in rows
    ]


def row_actions(inputs: Inputs, corrector: "LabelCorrector") -> NDArray[np.str_]:
    """Give the actions, with a person's changes counted as changes, (n,)."""
    changed = np.where(inputs.missing, "fill", "relabel")
    return np.where(inputs.overruled, changed, corrector.action_)


def _labels_table(
    inputs: Inputs, new: list[Any], confidence: list[float], actions: list[str]
) -> tuple[Table, list[str]]:
    """Make the table of labels: ours first, then the caller's other columns."""
    table, name, id_column = inputs.table, inputs.label_column, inputs.id_column
    rows = zip(inputs.labels, inputs.missing.tolist(), strict=True)
    given = [None if missing else label for label, missing in rows]
    columns: dict[str, Column] = {
        "id": inputs.ids if id_column is None else table.columns[id_column],
        "given": table.typed(name, given),
        "label": table.typed(name, new),
        "confidence": confidence,
        "action": actions,
    }
    return with_other_columns(inputs, columns)


def with_other_columns(
    inputs: Inputs, columns: dict[str, Column]
) -> tuple[Table, list[str]]:
    """Add the caller's other columns to ours, and say which were renamed."""
    table, name, id_column = inputs.table, inputs.label_column, inputs.id_column
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
        bom=table.bom or table.encoding != "utf-8",  # for Excel
        sep=table.sep,
        schema=table.schema,
    ), notes


def _formula_note(labels: Table) -> list[str]:
    """Warn of cells that a spreadsheet would run; they are written as they came."""
    if labels.format not in SEPARATORS:
        return []
    for name, column in labels.columns.items():
        if any(isinstance(cell, str) and cell.startswith(_FORMULA) for cell in column):
            return [
                f"cells of column {name!r} begin like a formula ({' '.join(_FORMULA)}) "
                "and are written as they came: a spreadsheet may run them"
            ]
    return []


def _write_soft_labels(
    path: Path, inputs: Inputs, corrector: "LabelCorrector", *, taught: bool
) -> None:
    """Write ids (n,), classes (C,) and probabilities (n, C); no pickles, no dates.

    Of a sparse (n, C) the kept entries: top_classes and top_probabilities (n, k). Rows
    that the model was ``taught`` also get a digest and the code of their label, by
    which later batches know them: row_digests and given_codes (n,).
    """
    Q = corrector.label_distributions_  # noqa: N806
    arrays = {
        "ids": plain_array(inputs.ids),
        "classes": plain_array([inputs.original[c] for c in corrector.classes_]),
    }
    if isinstance(Q, np.ndarray):
        arrays["probabilities"] = Q.astype(np.float32)
    else:
        arrays["top_classes"] = Q.indices.reshape(Q.shape[0], -1)
        arrays["top_probabilities"] = Q.data.reshape(Q.shape[0], -1)
    if taught and len(inputs.ids) <= MOST_DIGESTS:
        place = {label: code for code, label in enumerate(corrector.classes_.tolist())}
        codes = [place.get(label, -1) for label in inputs.targets]
        arrays["row_digests"] = row_digests(inputs.embeddings)
        arrays["given_codes"] = np.array(codes, dtype=np.int32)
    write_arrays(path, arrays)


def plain_array(values: list[Any]) -> NDArray[Any]:
    """Make an array of one type: as it is, or as text where types are mixed."""
    array = np.array(values) if len({type(value) for value in values}) == 1 else None
    if array is None or array.dtype == object:
        return np.array([encode_label(value, text_only=False) for value in values])
    return array
