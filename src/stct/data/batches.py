"""A later batch: the inputs of a correction, with the classes of an earlier run."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stct.data.columns import is_missing, is_text_column, label_key, name_a_few
from stct.data.earlier import EarlierRun, find_seen
from stct.data.inputs import Inputs

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector


@dataclass(frozen=True)
class Batch(Inputs):
    """Inputs whose labels are among the classes of an earlier run."""

    codes: NDArray[np.intp] | None = None  # (n,) places among these, -1 for none
    classes: NDArray[Any] | None = None  # (C,) as the corrector has them
    class_names: Sequence[Any] = ()  # (C,) as the table of the batch has them

    @cached_property
    def targets(self) -> NDArray[np.object_]:
        """The known labels as the corrector takes them."""
        assert self.classes is not None
        known = np.array([*self.classes.tolist(), None], dtype=object)
        return np.asarray(known[self.codes])

    @cached_property
    def original(self) -> dict[Any, Any]:
        """The label of the table for each class of the corrector."""
        assert self.classes is not None
        return dict(zip(self.classes.tolist(), self.class_names, strict=True))


def as_batch(inputs: Inputs, run: EarlierRun, path: Path) -> Batch:
    """Find the labels of a table among the classes of an earlier run.

    They are the same if they are equal in type and value, or else as text: a csv file
    has no numbers.
    """
    names = run.class_names
    exact = {label_key(name): code for code, name in enumerate(names)}
    texts = {str(name): code for code, name in enumerate(names)}
    if len(texts) < len(names):  # 1 and "1" are two classes
        texts = {}

    def find(label: Any) -> int:
        return exact.get(label_key(label), texts.get(str(label), -1))

    place = {
        (type(label), label): find(label)
        for label in inputs.known
        if not is_missing(label)
    }
    unknown = [label for (_, label), code in place.items() if code < 0]
    if unknown:
        raise ValueError(
            f"{path}: labels that {run.path} does not know: {name_a_few(unknown)}; its "
            f"classes are {name_a_few(names)}"
        )
    codes = [
        -1 if is_missing(label) else place[type(label), label] for label in inputs.known
    ]
    given = {code: label for (_, label), code in place.items()}
    shown = [given.get(code, name) for code, name in enumerate(names)]
    values = {field.name: getattr(inputs, field.name) for field in fields(Inputs)}
    return Batch(
        **values,
        codes=np.array(codes, dtype=np.intp),
        classes=run.corrector.classes_,
        class_names=_in_column(shown, list(given.values()), inputs),
    )


def _in_column(names: list[Any], used: list[Any], inputs: Inputs) -> list[Any]:
    """Give class names the type that the labels of the table have."""
    if is_text_column(inputs.table, inputs.label_column):
        return [name if isinstance(name, str) else str(name) for name in names]
    kinds = {type(label) for label in used}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind not in (int, float):
        return names
    return [kind(name) if isinstance(name, str) else name for name in names]


def judge_batch(
    run: EarlierRun, batch: Batch, *, refit: bool = False
) -> tuple["LabelCorrector", dict[str, Any]]:
    """Judge a batch with an earlier run; also what the summary should say of it."""
    corrector = run.corrector
    assert batch.codes is not None
    seen, relabelled = None, 0
    if len(batch.embeddings) and batch.embeddings.shape[1] == corrector.n_features_in_:
        seen, relabelled = find_seen(run, batch.embeddings, batch.codes)
    judged = corrector.judge(
        batch.embeddings,
        batch.targets,
        locked=batch.locked,
        verified=batch.verified,
        verified_weight=batch.verified_weight,
        seen=seen,
        refit=refit,
    )
    num_seen = 0 if seen is None else len(seen.rows)
    if num_seen:
        batch.notes.append(
            f"{num_seen:,} rows have the embedding and the label of a row that "
            f"{run.path} was fitted to; they get what it said of that row when the row "
            "was left out"
        )
    if relabelled:
        batch.notes.append(
            f"{relabelled:,} rows have the embedding of a row that {run.path} was "
            "fitted to, but another label; the model has learnt that one"
        )
    return judged, {
        "corrector": str(run.path),
        "refit": refit,
        "rows_in_the_fit": num_seen,
        "differences": [d._asdict() for d in judged.differences_],
    }
