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
from stct.data.columns import is_missing, label_key
from stct.data.inputs import Inputs
from stct.data.outputs import WRITTEN_BY

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector

ACTIONS = ("keep", "relabel", "abstain", "fill")
_MOVES_LISTED = 20


def summarise(
    inputs: Inputs, corrector: "LabelCorrector", new: list[Any], actions: list[str]
) -> dict[str, Any]:
    """Gather all that was estimated, and with what, for ``new`` labels (n,)."""
    classes = [inputs.original[c] for c in corrector.classes_]
    parameters = {**corrector.get_params(), "engine": str(corrector.engine)}
    accuracy = _estimated_accuracy(inputs, corrector)
    done = Counter(actions)
    before = Counter(label_key(label) for label in inputs.labels)
    after = Counter(label_key(label) for label in new)
    return {
        "written_by": WRITTEN_BY,
        "rows": inputs.table.num_rows,
        "embedding_columns": inputs.embeddings.shape[1],
        "classes": len(classes),
        "class_names": classes,
        "noise_rate": None if accuracy["before"] is None else 1.0 - accuracy["before"],
        "estimated_accuracy": accuracy,
        "actions": {action: done[action] for action in ACTIONS},
        "most_common_corrections": _corrections(inputs.labels, new)[:_MOVES_LISTED],
        "class_counts": {
            "before": [before[label_key(c)] for c in classes],
            "after": [after[label_key(c)] for c in classes],
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


def as_json(summary: dict[str, Any]) -> str:
    """Write a summary as JSON with one line for each entry."""
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = [f"  {write(name)}: {write(value)}" for name, value in summary.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


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
    moves = [
        (a, b) for a, b in pairs if not is_missing(a) and label_key(a) != label_key(b)
    ]
    values = {(label_key(a), label_key(b)): (a, b) for a, b in moves}
    counts = Counter((label_key(a), label_key(b)) for a, b in moves)
    ordered = sorted(counts, key=lambda move: (-counts[move], move))
    return [
        {"from": values[m][0], "to": values[m][1], "rows": counts[m]} for m in ordered
    ]


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
