"""Several labels per row, as they come in: columns, or a long table.

Legend: n rows, v votes, a annotators, C classes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stct.correction.annotator_estimates import Annotator, describe_annotators
from stct.label_kinds import warn_of_indicators
from stct.labels import EncodedLabels, encode, few
from stct.noise_model.votes import Votes
from stct.numeric.top_classes import TopClasses
from stct.numeric.types import Floats, Ints

COLUMNS = ("row", "annotator", "label")


class Annotations(NamedTuple):
    """Who gave which label to which row."""

    votes: Votes
    names: NDArray[Any]  # (a,)
    classes: NDArray[Any]  # (C,)
    single: bool = False  # one annotator, and no other label: one label per row

    @property
    def given(self) -> EncodedLabels:
        """The labels of a single annotator, or the majority of several."""
        return as_encoded(self.votes.majority(), self.classes)

    def describe(self, Q: Floats | TopClasses) -> list[Annotator]:
        """Estimate the annotators from the posterior (n, C)."""
        return describe_annotators(Q, self.votes, self.names, self.classes)


def as_encoded(codes: Ints, classes: NDArray[Any]) -> EncodedLabels:
    """Give labels for codes, None where there is none (-1)."""
    if len(codes) and (codes >= 0).all():
        return EncodedLabels(classes[codes], classes, codes)
    values = np.full(len(codes), None, dtype=object)
    values[codes >= 0] = classes[codes[codes >= 0]]
    return EncodedLabels(values, classes, codes)


def has_columns(y: Any) -> bool:
    """Tell whether y has a column for each of several annotators."""
    if isinstance(y, pd.DataFrame):
        return y.shape[1] > 1
    if isinstance(y, list) and y and all(isinstance(row, list) for row in y):
        return len(y[0]) > 1
    return isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1


def read_annotations(
    X: Any, y: Any, annotations: Any, pred_probs: Any
) -> tuple[Annotations | None, Any]:
    """Give the votes, if there are several per row, and one label per row.

    The latter is None if y held the votes; of a single annotator it is what they said.
    """
    if annotations is None:
        if not has_columns(y):
            return None, y
        found, y = from_columns(y), None
    elif has_columns(y):
        raise ValueError("pass y with a column per annotator or annotations, not both")
    else:
        rows = next((v for v in (X, pred_probs, y) if v is not None), None)
        index = X.index if isinstance(X, pd.DataFrame) else None
        found = from_table(annotations, count_rows(rows), index)
    if X is not None and pred_probs is not None:
        raise ValueError("pass embeddings X or pred_probs, not both")
    rows = X if pred_probs is None else pred_probs
    n = count_rows(rows)
    if n not in (-1, found.votes.num_rows):
        raise ValueError(f"there are {n} rows but labels of {found.votes.num_rows}")
    if found.votes.num_annotators == 1 and (y is None or said_by_one(found, y)):
        return found._replace(single=True), found.given.values if y is None else y
    return found, y


def count_rows(rows: Any) -> int:
    """Count rows of anything; -1 for nothing."""
    if rows is None:
        return -1
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def said_by_one(annotations: Annotations, y: Any) -> bool:
    """Tell whether y is what the only annotator said."""
    one, same = annotations.given, encode(y)
    if len(one.codes) != len(same.codes) or len(one.classes) != len(same.classes):
        return False
    return bool(
        (one.codes == same.codes).all()
        and all(a == b for a, b in zip(one.classes, same.classes, strict=True))
    )


def from_columns(y: Any) -> Annotations:
    """Read labels of shape (n, k), a column for each annotator; None, NaN: no label."""
    if isinstance(y, list):
        if len({len(row) for row in y}) > 1:
            raise ValueError(
                "y has rows of different length; give None for no label. Rows with "
                "several labels each are corrected by stct.MultiLabelCorrector"
            )
        table = np.empty((len(y), len(y[0])), dtype=object)
        table[:] = y
        y = table
    if isinstance(y, pd.DataFrame):
        names, types = list(y.columns), set(y.dtypes)
        y = y.to_numpy() if len(types) == 1 else y.to_numpy(dtype=object)
    else:
        names = [f"column {i}" for i in range(y.shape[1])]
    n, k = y.shape
    warn_of_indicators(y)
    values = y.ravel()
    encoded = encode(values)
    rows, who = np.divmod(np.flatnonzero(encoded.codes >= 0), k)
    labels = encoded.codes[encoded.codes >= 0]
    return collect(rows, who, labels, n, names, encoded.classes)


def from_table(annotations: Any, num_rows: int, index: Any = None) -> Annotations:
    """Read a long table of one vote a line.

    Parameters
    ----------
    annotations : DataFrame, mapping, or three sequences
        Columns ``row`` (or ``id``), ``annotator`` and ``label``. A row is a number from
        0; an id is looked up in ``index``. Lines without a label say nothing.
    num_rows : int
        -1: as many as the annotations have.
    index : sequence of length n, optional
        Ids of the rows.
    """
    where, who, said, by_id = _three_columns(annotations)
    encoded = encode(said)
    rows = _find_ids(where, index, num_rows) if by_id else _check_rows(where, num_rows)
    if pd.isna(who).any():
        raise ValueError("annotations: there are labels without an annotator")
    try:
        codes, names = pd.factorize(who, sort=True)
    except TypeError:  # of several types
        codes, names = pd.factorize(who)
    known = encoded.codes >= 0
    return collect(
        rows[known],
        codes[known],
        encoded.codes[known],
        num_rows if num_rows >= 0 else int(rows.max(initial=-1)) + 1,
        list(names),
        encoded.classes,
        None if index is None else list(index),
    )


def collect(
    rows: Ints,
    annotators: Ints,
    labels: Ints,
    num_rows: int,
    names: Sequence[Any],
    classes: NDArray[Any],
    ids: Sequence[Any] | None = None,
) -> Annotations:
    """Check the votes; annotators without a label are left out."""
    if len(labels) == 0:
        raise ValueError("no annotator has given a label")
    if len(classes) < 2:
        raise ValueError(
            f"the annotators give one label only ({few(classes)}); at least two "
            "classes are needed"
        )
    given = np.bincount(annotators, minlength=len(names)) > 0
    present, who = np.flatnonzero(given), (np.cumsum(given) - 1)[annotators]
    kept = np.empty(len(present), dtype=object)
    kept[:] = [names[i] for i in present.tolist()]
    _refuse_two_labels(rows, who, labels, kept, classes, ids)
    votes = Votes(rows, who, labels, num_rows, len(present), len(classes))
    return Annotations(votes, kept, classes)


def restrict(
    annotations: Annotations, classes: NDArray[Any], where: str = "y"
) -> Annotations:
    """Give the same with the classes of other labels, of which there may be more."""
    lookup = {label: code for code, label in enumerate(classes)}
    unknown = [label for label in annotations.classes if label not in lookup]
    if unknown:
        raise ValueError(
            f"annotators give labels that {where} does not have: {few(unknown)}; its "
            f"classes are {few(classes)}"
        )
    moved = np.array([lookup[label] for label in annotations.classes], dtype=np.intp)
    votes = annotations.votes
    votes = Votes(
        votes.rows.astype(np.intp),
        votes.pair_annotator[votes.pairs],
        moved[votes.pair_label[votes.pairs]],
        votes.num_rows,
        votes.num_annotators,
        len(classes),
    )
    return annotations._replace(votes=votes, classes=classes)


def align_probabilities(
    pred_probs: Any, annotations: Annotations
) -> tuple[Annotations, Floats]:
    """Give probabilities (n, C) with a column for each class, and votes likewise."""
    P = np.asarray(pred_probs)
    n = annotations.votes.num_rows
    if P.ndim != 2 or P.dtype.kind not in "fiu" or len(P) != n:
        raise ValueError(
            f"pred_probs must be numbers ({n}, C), got {P.dtype} {P.shape}"
        )
    if not np.isfinite(P).all() or (P < 0).any() or (P.sum(axis=1) <= 0).any():
        raise ValueError("pred_probs must be finite, non-negative, and not all 0")
    if hasattr(pred_probs, "columns"):
        names = encode(list(pred_probs.columns))
        P = P[:, np.argsort(names.codes)]
        annotations = restrict(annotations, names.classes, "pred_probs")
    if P.shape[1] != len(annotations.classes):
        raise ValueError(
            f"pred_probs has {P.shape[1]} columns but the annotators give "
            f"{len(annotations.classes)} labels; there must be one column per label, "
            "in sorted order"
        )
    return annotations, P / P.sum(axis=1, keepdims=True)


def _three_columns(annotations: Any) -> tuple[Any, Any, Any, bool]:
    """Give rows or ids, annotators, labels, and whether they are ids."""
    if isinstance(annotations, tuple | list) and len(annotations) == 3:
        annotations = dict(zip(COLUMNS, annotations, strict=True))
    columns = list(getattr(annotations, "keys", list)())
    by_id = "row" not in columns and "id" in columns
    wanted = ("id" if by_id else "row", *COLUMNS[1:])
    lacking = [name for name in wanted if name not in columns]
    if lacking:
        raise ValueError(
            "annotations must have the columns row (or id), annotator and label; "
            f"there is no {lacking[0]!r}"
        )
    where, who, said = (annotations[name] for name in wanted)
    if not len(where) == len(who) == len(said):
        raise ValueError("annotations: row, annotator and label differ in length")
    return np.asarray(where), _as_objects(who), said, by_id


def _as_objects(values: Any) -> NDArray[Any]:
    array = np.asarray(values)
    return array if array.ndim == 1 else np.array(list(map(str, values)), dtype=object)


def _find_ids(where: NDArray[Any], index: Any, num_rows: int) -> Ints:
    if index is None or len(index) != num_rows:
        raise ValueError(
            "annotations have ids: X must be a DataFrame whose index holds them; "
            "otherwise give row numbers in a column 'row'"
        )
    ids = pd.Index(index)
    if not ids.is_unique:
        raise ValueError("annotations have ids, but the index of X is not unique")
    rows = np.asarray(ids.get_indexer(pd.Index(where)))
    if (rows < 0).any():
        unknown = list(dict.fromkeys(where[rows < 0].tolist()))
        raise ValueError(f"annotations name rows that X does not have: {few(unknown)}")
    return rows.astype(np.intp)


def _check_rows(where: NDArray[Any], num_rows: int) -> Ints:
    whole = where.dtype.kind in "iu" or (
        where.dtype.kind == "f" and bool((where == np.floor(where)).all())
    )
    if not whole:
        raise ValueError("annotations: 'row' must hold row numbers from 0")
    if num_rows < 0 and len(where):
        num_rows = int(where.max()) + 1
    outside = where[(where < 0) | (where >= num_rows)]
    if len(outside):
        raise ValueError(
            f"annotations name rows that X does not have: {few(np.unique(outside))}; "
            f"there are {num_rows} rows, from 0"
        )
    return where.astype(np.intp)


def _refuse_two_labels(
    rows: Ints,
    who: Ints,
    labels: Ints,
    names: NDArray[Any],
    classes: NDArray[Any],
    ids: Sequence[Any] | None,
) -> None:
    """Refuse an annotator who gives one row two labels."""
    said = (rows.astype(np.int64) * len(names) + who) * len(classes) + labels
    said.sort()
    vote = said // len(classes)
    twice = np.flatnonzero((np.diff(vote) == 0) & (np.diff(said) > 0))
    if len(twice):
        i = int(twice[0])
        row, annotator = divmod(int(vote[i]), len(names))
        one, other = (classes[said[j] % len(classes)] for j in (i, i + 1))
        name = row if ids is None else ids[row]
        raise ValueError(
            f"annotator {names[annotator]} gives row {name} two labels, {one} and "
            f"{other}; one row takes one label of each annotator"
        )
