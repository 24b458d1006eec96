"""summary.json: everything estimated, all settings, versions and digests."""

import hashlib
import json
import platform
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stct
from stct.console import escape_json
from stct.data.annotators import summarise_annotators
from stct.data.columns import is_missing, label_key
from stct.data.digests import describe_input
from stct.data.files import parse_json, read_text
from stct.data.inputs import Inputs
from stct.data.outputs import WRITTEN_BY
from stct.data.schema import (
    Field,
    check_fields,
    is_count,
    is_number,
    is_share,
    is_text,
    list_of,
    maybe,
    object_of,
)

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector

ACTIONS = ("keep", "relabel", "abstain", "fill")
_MOVES_LISTED = 20
_CHECKSUM = "checksum"


def summarise(
    inputs: Inputs, corrector: "LabelCorrector", new: list[Any], actions: list[str]
) -> dict[str, Any]:
    """Gather all that was estimated, and with what, for ``new`` labels (n,)."""
    classes = [inputs.original[c] for c in corrector.classes_]
    parameters = {**corrector.get_params(), "engine": str(corrector.engine)}
    accuracy = _estimated_accuracy(inputs, corrector)
    done = Counter(actions)
    given_keys, new_keys = ([label_key(v) for v in x] for x in (inputs.labels, new))
    before, after = Counter(given_keys), Counter(new_keys)
    moves = Counter(zip(given_keys, new_keys, strict=True))
    labels = dict(zip(given_keys + new_keys, inputs.labels + new, strict=True))
    return {
        "written_by": WRITTEN_BY,
        "rows": inputs.table.num_rows,
        "embedding_columns": inputs.embeddings.shape[1],
        "classes": len(classes),
        "class_names": classes,
        "noise_rate": None if accuracy["before"] is None else 1.0 - accuracy["before"],
        "estimated_accuracy": accuracy,
        "audit": _audit(corrector),
        "actions": {action: done[action] for action in ACTIONS},
        "most_common_corrections": _corrections(moves, labels)[:_MOVES_LISTED],
        "class_counts": {
            "before": [before[label_key(c)] for c in classes],
            "after": [after[label_key(c)] for c in classes],
        },
        "annotators": summarise_annotators(corrector.annotators_),
        "learnable": [bool(v) for v in corrector.learnable_],
        "transition_matrix": [
            [_number(v) for v in row] for row in corrector.transition_matrix_
        ],
        "method": parameters.pop("method"),
        "seed": parameters.pop("random_state"),
        "parameters": parameters,
        "rounds": int(corrector.n_iter_),
        "termination_condition": corrector.termination_condition_,
        "command": inputs.command,
        "label_column": inputs.label_column,
        "label_column_made": inputs.votes is not None and inputs.votes.made,
        "id_column": inputs.id_column,
        "inputs": {kind: describe_input(path) for kind, path in inputs.files.items()},
        "images": inputs.images,
        "features": inputs.features,
        "versions": versions(),
        "notes": [*inputs.notes, *corrector.notes_],
    }


def as_json(summary: dict[str, Any]) -> str:
    """Write a summary as JSON: a line for each entry, the last a checksum of them."""
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = [
        escape_json(f"  {write(name)}: {write(value)}")
        for name, value in summary.items()
        if name != _CHECKSUM  # of the summary as it was before
    ]
    body = "{\n" + ",\n".join(lines)
    return f'{body},\n  "{_CHECKSUM}": "{_sha256(body)}"\n}}\n'


def read_summary(path: Path) -> dict[str, Any]:
    """Read a file of `as_json`, which nobody has changed since.

    Raises
    ------
    ValueError
        If it is no such file, or damaged.
    """
    text = read_text(path)
    body, _, checksum = text.rpartition(f',\n  "{_CHECKSUM}": "')
    if not body:
        raise ValueError(f"{path}: not a summary of stct, it has no checksum")
    if checksum != f'{_sha256(body)}"\n}}\n':
        raise ValueError(f"{path}: damaged or changed, its checksum does not fit")
    summary = parse_json(body + "\n}", path)
    if not isinstance(summary, dict) or summary.get("written_by") != WRITTEN_BY:
        raise ValueError(f"{path}: not a summary of stct")
    return summary


def check_correction(summary: dict[str, Any], path: Path) -> None:
    """Raise when a summary is not what a correction writes."""
    if "class_names" not in summary:
        raise ValueError(f"{path}: not the summary of a correction")
    check_fields(summary, _CORRECTION, path)
    count = len(summary["class_names"])
    per_class = {
        "learnable": Field("true or false for each class", list_of(_is_bool, count)),
        "transition_matrix": Field(
            "a row of shares for each class",
            list_of(list_of(maybe(is_share), count), count),
        ),
    }
    check_fields(summary, per_class, path)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_label(value: Any) -> bool:
    return type(value) in (str, bool) or is_number(value)


def _is_accuracy(value: Any) -> bool:
    interval = list_of(maybe(is_share), 2)
    return object_of(maybe(is_share), "before", "after")(value) and object_of(
        interval, "before_interval", "after_interval"
    )(value)


_CORRECTION = {
    "class_names": Field("a list of labels", list_of(_is_label)),
    "rows": Field("a whole number", is_count),
    "noise_rate": Field("null or a share", maybe(is_share), required=False),
    "estimated_accuracy": Field("shares and their intervals", _is_accuracy),
    "actions": Field("a count of rows for each", object_of(is_count, *ACTIONS)),
    "termination_condition": Field("text", is_text, required=False),
    "method": Field("text", is_text, required=False),
    "label_column": Field("text", is_text, required=False),
    "id_column": Field("null or text", maybe(is_text), required=False),
    "embedding_columns": Field("a whole number", is_count, required=False),
    "parameters": Field(
        "an object with min_odds from 1", lambda v: _has_odds(v), required=False
    ),
    "inputs": Field(
        "a file for each input", object_of(object_of(is_text, "file")), required=False
    ),
    "versions": Field("an object of texts", object_of(is_text), required=False),
    "notes": Field("a list of texts", list_of(is_text)),
    "files": Field("a list of texts", list_of(is_text)),
    "sha256": Field("a digest for each file", object_of(is_text)),
}


def _has_odds(value: Any) -> bool:
    odds: Any = value.get("min_odds", 1.0) if isinstance(value, dict) else None
    return is_number(odds) and bool(odds >= 1.0)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _estimated_accuracy(inputs: Inputs, corrector: "LabelCorrector") -> dict[str, Any]:
    """Give the estimates; a label that a person replaced was wrong before."""
    accuracy = corrector.estimated_accuracy_
    known = max(int(np.sum(~inputs.missing)), 1)
    wrong = float(np.sum(inputs.overruled & ~inputs.missing)) / known
    return {
        "before": _number(accuracy.before - wrong),
        "after": _number(accuracy.after),
        "before_interval": [
            _number(max(0.0, v - wrong)) for v in accuracy.before_interval
        ],
        "after_interval": [_number(v) for v in accuracy.after_interval],
    }


def _audit(corrector: "LabelCorrector") -> dict[str, Any] | None:
    """Give what the verified rows say beyond the estimated accuracy."""
    audit = getattr(corrector, "audit_", None)  # not where a later batch is judged
    if audit is None:
        return None
    return {
        "rows": audit.num_rows,
        "more_rows_to_halve_the_interval": audit.more_rows,
        "threshold": _number(audit.threshold),
        "sharpness": _number(audit.sharpness),
    }


def _corrections(
    moves: Counter[tuple[str, str]], labels: dict[str, Any]
) -> list[dict[str, Any]]:
    """List the moves from one label to another, by their keys, most common first."""
    changes = [m for m in moves if m[0] != m[1] and not is_missing(labels[m[0]])]
    changes.sort(key=lambda move: (-moves[move], move))
    return [
        {"from": labels[m[0]], "to": labels[m[1]], "rows": moves[m]} for m in changes
    ]


def _number(value: Any) -> float | None:
    """Give a float, or None for what JSON cannot write."""
    return float(value) if np.isfinite(value) else None


def versions() -> dict[str, str]:
    """Give the versions of what computed the result."""
    import sklearn

    return {
        "stct": stct.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
