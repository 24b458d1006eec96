"""Files of what is not classes: several labels for a row, and numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stct.data.arrays import write_arrays
from stct.data.columns import is_missing, is_text_column, label_key
from stct.data.digests import describe_input
from stct.data.inputs import Inputs
from stct.data.outputs import SUMMARY, WRITTEN_BY, sign
from stct.data.patches import make_patch
from stct.data.results import plain_array, with_other_columns
from stct.data.summary import as_json, versions
from stct.data.tables import Column, Table, write_table

if TYPE_CHECKING:
    import pandas as pd

    from stct.multi_label import MultiLabelCorrector
    from stct.numeric_labels import NumericLabelChecker

LISTS = "list"  # stands for the separator where rows have lists of labels
_DECIMALS = 6


def place_of(inputs: Inputs) -> str:
    """Say where the labels are."""
    table = inputs.files.get("table")
    column = f"column {inputs.label_column!r}"
    return column if table is None else f"{table}: {column}"


def sets_of(inputs: Inputs, separator: str) -> list[Any]:
    """Give the labels of each row as `MultiLabelCorrector.fit` takes them.

    An empty cell of a csv has no labels; a null of another table is unknown.
    """
    text = inputs.table.format in ("csv", "tsv")
    wanted = list if separator == LISTS else str
    sets: list[Any] = []
    for row, value in enumerate(inputs.known):
        if is_missing(value):
            sets.append("" if text and wanted is str else None)
        elif isinstance(value, wanted):
            sets.append(value)
        else:
            hint = "list" if isinstance(value, list) else "'|', or what is between them"
            raise ValueError(
                f"{place_of(inputs)}, row {row} "
                f"(counting from 0): {type(value).__name__} where a {wanted.__name__} "
                f"of labels was expected; give --multi-label {hint}"
            )
    return sets


def numbers_of(inputs: Inputs) -> list[float]:
    """Give the labels as numbers, NaN where there is none."""
    numbers = []
    for row, value in enumerate(inputs.known):
        try:
            if isinstance(value, bool):
                raise ValueError
            numbers.append(float("nan") if is_missing(value) else float(value))
        except ValueError:
            raise ValueError(
                f"{place_of(inputs)}, row {row} "
                f"(counting from 0): {value!r} is no number, which --numeric needs"
            ) from None
    return numbers


def write_label_sets(
    folder: Path, inputs: Inputs, corrector: "MultiLabelCorrector", *, seconds: float
) -> dict[str, Any]:
    """Write labels, changes, labels one by one, patch, probabilities and summary."""
    old, new = inputs.labels, list(corrector.labels_)
    added, removed = corrector.added_, corrector.removed_
    table, name = inputs.table, inputs.label_column
    if table.format in ("csv", "tsv"):  # an empty cell, as it was
        new = [value or None for value in new]
    changed = [label_key(a) != label_key(b) for a, b in zip(old, new, strict=True)]
    P = corrector.label_probabilities_  # noqa: N806
    decided = (np.maximum(P, 1.0 - P)).min(axis=1)
    confidence = decided.astype(np.float64).round(_DECIMALS).tolist()
    ours: dict[str, Column] = {
        "id": _ids(inputs),
        "given": table.typed(name, old),
        "label": table.typed(name, new),
        "confidence": confidence,
        "added": [", ".join(map(str, corrector.classes_[row])) for row in added],
        "removed": [", ".join(map(str, corrector.classes_[row])) for row in removed],
    }
    labels, renamed = with_other_columns(inputs, ours)
    changes = corrector.to_frame()
    changes["row"] = [inputs.ids[row] for row in changes["row"]]
    changes = changes.rename(columns={"row": "id"}).round(_DECIMALS)
    names = [
        f"labels.{table.format}",
        "changes.csv",
        "label_summary.csv",
        "patch.csv",
        "label_probabilities.npz",
        SUMMARY,
    ]
    write_table(folder / names[0], labels)
    write_table(folder / names[1], _as_table(changes))
    per_label = corrector.summary_frame()
    write_table(folder / names[2], _as_table(per_label.round(_DECIMALS)))
    text_only = is_text_column(table, name)
    patch = make_patch(inputs.ids, old, new, confidence, text_only=text_only)
    write_table(folder / names[3], patch)
    write_arrays(
        folder / names[4],
        {
            "ids": plain_array(inputs.ids),
            "classes": plain_array(list(corrector.classes_)),
            "probabilities": P,
        },
    )
    accuracy = corrector.estimated_accuracy_
    rows = per_label.replace({np.nan: None}).to_dict("records")
    summary = _summary(inputs, corrector, "multi-label", names, seconds) | {
        "labels": len(corrector.classes_),
        "changed_rows": sum(changed),
        "added": int(added.sum()),
        "removed": int(removed.sum()),
        "estimated_accuracy": {
            "before": _number(accuracy.before),
            "after": _number(accuracy.after),
            "before_interval": list(accuracy.before_interval),
            "after_interval": list(accuracy.after_interval),
        },
        "per_label": rows,
    }
    summary["notes"] += renamed
    sign(summary, folder)
    (folder / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    return summary


def write_numeric(
    folder: Path, inputs: Inputs, checker: "NumericLabelChecker", *, seconds: float
) -> dict[str, Any]:
    """Write what was found of every row, the suspects in order, and the summary."""
    table = inputs.table
    rank = np.full(table.num_rows, -1)
    rank[checker.ranking_] = np.arange(1, len(checker.ranking_) + 1)
    columns = {
        "predicted": checker.predicted_,
        "low": checker.intervals_[:, 0],
        "high": checker.intervals_[:, 1],
        "z_score": checker.z_scores_,
    }
    given = [None if is_missing(value) else value for value in inputs.known]
    ours: dict[str, Column] = {
        "id": _ids(inputs),
        "given": table.typed(inputs.label_column, given),
        **{name: _rounded(values) for name, values in columns.items()},
        "suspect": ["yes" if value else "no" for value in checker.suspect_],
        "rank": [int(value) if value > 0 else None for value in rank],
    }
    every, renamed = with_other_columns(inputs, ours)
    suspects = [int(row) for row in checker.ranking_ if checker.suspect_[row]]
    names = [f"labels.{table.format}", f"suspects.{table.format}", SUMMARY]
    write_table(folder / names[0], every)
    write_table(folder / names[1], every.take(suspects))
    summary = _summary(inputs, checker, "numeric", names, seconds) | {
        "suspects": len(suspects),
        "explained_variance": float(checker.explained_variance_),
        "coverage": float(checker.coverage),
        "false_discovery_rate": float(checker.false_discovery_rate),
        "first_suspects": [
            {
                "id": inputs.ids[row],
                "given": given[row],
                "low": _number(checker.intervals_[row, 0]),
                "high": _number(checker.intervals_[row, 1]),
            }
            for row in suspects[:20]
        ],
    }
    summary["notes"] += renamed
    sign(summary, folder)
    (folder / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    return summary


def _summary(
    inputs: Inputs, estimator: Any, kind: str, names: list[str], seconds: float
) -> dict[str, Any]:
    """Give what the summaries have in common."""
    parameters = estimator.get_params()
    parameters.pop("settings")
    return {
        "written_by": WRITTEN_BY,
        "kind": kind,
        "rows": inputs.table.num_rows,
        "embedding_columns": inputs.embeddings.shape[1],
        "label_column": inputs.label_column,
        "id_column": inputs.id_column,
        "parameters": parameters,
        "inputs": {kind: describe_input(path) for kind, path in inputs.files.items()},
        "versions": versions(),
        "notes": [*inputs.notes, *estimator.notes_],
        "seconds": round(seconds, 3),
        "files": names,
    }


def _ids(inputs: Inputs) -> Column:
    column = inputs.id_column
    return inputs.ids if column is None else inputs.table.columns[column]


def _as_table(frame: "pd.DataFrame") -> Table:
    columns = {
        name: [None if is_missing(v) else v for v in frame[name].tolist()]
        for name in frame
    }
    return Table("csv", {str(k): v for k, v in columns.items()}, len(frame))


def _rounded(values: Any) -> list[float | None]:
    """Give numbers with seven significant digits, None for NaN."""
    return [float(f"{v:.7g}") if np.isfinite(v) else None for v in values.tolist()]


def _number(value: Any) -> float | None:
    return float(f"{value:.7g}") if np.isfinite(value) else None
