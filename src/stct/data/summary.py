"""summary.json: everything estimated, all settings, versions and digests."""

import platform
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

import stct
from stct.data.annotators import summarise_annotators
from stct.data.columns import is_missing, label_key
from stct.data.digests import describe_input
from stct.data.inputs import Inputs
from stct.data.outputs import WRITTEN_BY
from stct.data.summary_file import ACTIONS, as_json

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector

__all__ = ["ACTIONS", "as_json", "summarise"]

_MOVES_LISTED = 20


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
