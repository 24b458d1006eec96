"""Several labels per row, in the forms that people have, as an indicator matrix.

Legend: n rows, L labels.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from stct.labels import few

_PLAIN = (str, bytes, int, float, bool, np.generic)


class LabelSets(NamedTuple):
    """Which labels each row has, and the form in which they came."""

    values: Any  # as they came
    classes: NDArray[Any]  # (L,)
    Y: NDArray[np.int8]  # (n, L): 1, 0, or -1 in rows of which nothing is known
    separator: str | None  # of rows of text

    def decode(self, Y: NDArray[np.int8]) -> Any:
        """Give an indicator matrix (n, L) of 0 and 1 in the form of `values`.

        Labels that stay keep their order, new ones come after them; a row that has not
        changed is the value that came in.
        """
        if self.separator is None and not isinstance(self.values, list):
            return self._matrix(Y)
        rows = []
        for value, before, after in zip(self.values, self.Y, Y, strict=True):
            if (before == after).all():
                rows.append(value)
                continue
            old = [] if before[0] < 0 else split_row(value, self.separator)
            new = set(self.classes[after == 1].tolist())
            kept = list(dict.fromkeys(label for label in old if label in new))
            added = [c for c in self.classes[after == 1].tolist() if c not in kept]
            rows.append(self._row(kept + added, value))
        if isinstance(self.values, pd.Series):
            return pd.Series(rows, self.values.index, name=self.values.name)
        return np.array(rows, dtype=object) if self._is_array() else rows

    def _row(self, labels: list[Any], value: Any) -> Any:
        """Write the labels of one row."""
        if self.separator is not None:
            return self.separator.join(labels)
        kind = type(value) if isinstance(value, tuple | set | frozenset) else list
        return kind(labels)

    def _is_array(self) -> bool:
        return isinstance(self.values, np.ndarray)

    def _matrix(self, Y: NDArray[np.int8]) -> Any:
        if isinstance(self.values, pd.DataFrame):
            kinds = self.values.dtypes.where(self.values.notna().all(), np.dtype("int"))
            frame = pd.DataFrame(Y, self.values.index, self.values.columns)
            return frame.astype(kinds.to_dict())
        if sp.issparse(self.values):
            return type(self.values)(Y.astype(self.values.dtype))
        return Y.astype(np.asarray(self.values).dtype)


def read_label_sets(y: Any, separator: str | None = None) -> LabelSets:
    """Read the labels of all rows.

    Parameters
    ----------
    y : indicator matrix of shape (n, L), or sequence of n collections or texts
        An indicator matrix is an array, data frame or sparse matrix of 0 and 1 (or
        truth values); a row of NaN is unknown. Rows of a sequence are lists, tuples or
        sets of labels, or text with a ``separator``; an empty one has no labels, None
        and NaN are unknown.
    separator : str, optional
        Between the labels of a row of text, such as ``"|"``. Spaces around it do not
        matter.
    """
    if separator == "":
        raise ValueError("the separator between labels must not be empty")
    if sp.issparse(y) or isinstance(y, pd.DataFrame):
        return _from_matrix(y)
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return _from_matrix(y)
    rows: Any = y if isinstance(y, np.ndarray | pd.Series) else list(y)
    return _from_rows(rows, separator)


def is_unknown(value: Any) -> bool:
    """Tell whether nothing is known of a row."""
    missing = value is None or value is pd.NA
    return missing or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def split_row(value: Any, separator: str | None) -> list[Any]:
    """Give the labels of one row."""
    if separator is None:
        return list(value)
    return [part.strip() for part in value.split(separator) if part.strip()]


def _from_matrix(y: Any) -> LabelSets:
    names = np.asarray(y.columns) if isinstance(y, pd.DataFrame) else None
    dense = y.toarray() if sp.issparse(y) else np.asarray(y)
    try:
        numbers = dense.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "an indicator matrix holds 0 and 1 only; labels as text are a list of "
            "labels for each row, or text and separator="
        ) from error
    unknown = np.isnan(numbers)
    if (unknown.any(axis=1) != unknown.all(axis=1)).any():
        row = int(np.flatnonzero(unknown.any(axis=1) != unknown.all(axis=1))[0])
        raise ValueError(
            f"row {row} of the indicator matrix is unknown in part; a row is known, or "
            "NaN in all its columns"
        )
    bad = ~unknown & (numbers != 0.0) & (numbers != 1.0)
    if bad.any():
        row, column = (int(i[0]) for i in np.nonzero(bad))
        raise ValueError(
            f"an indicator matrix holds 0 and 1 only, got {numbers[row, column]:g} in "
            f"row {row}, column {column}; several annotators are not several labels"
        )
    Y = np.where(unknown, -1, numbers).astype(np.int8)
    classes = np.arange(Y.shape[1]) if names is None else names
    return _checked(LabelSets(y, classes, Y, None))


def _from_rows(rows: Any, separator: str | None) -> LabelSets:
    """Read collections, or text with a separator."""
    sets: list[list[Any] | None] = []
    for number, value in enumerate(rows):
        if is_unknown(value):
            sets.append(None)
        elif separator is not None and isinstance(value, str):
            sets.append(split_row(value, separator))
        elif separator is not None or isinstance(value, _PLAIN):
            raise ValueError(_wrong_row(number, value, separator))
        elif isinstance(value, Collection):
            sets.append(list(value))
        else:
            raise ValueError(_wrong_row(number, value, separator))
    try:
        found = dict.fromkeys(label for labels in sets if labels for label in labels)
    except TypeError as error:
        raise ValueError(f"a label must be text or a number: {error}") from error
    try:
        names = sorted(found)
    except TypeError:
        names = sorted(found, key=lambda label: (type(label).__name__, repr(label)))
    classes = np.empty(len(names), dtype=object)
    classes[:] = names
    if separator is not None and sum(len(s or ()) > 1 for s in sets) == 0:
        raise ValueError(
            f"no row has more than one label with the separator {separator!r}; the "
            f"labels are {few(names)}"
        )
    place = {label: column for column, label in enumerate(names)}
    Y = np.zeros((len(sets), len(names)), dtype=np.int8)
    for row, labels in enumerate(sets):
        if labels is None:
            Y[row] = -1
        else:
            Y[row, [place[label] for label in labels]] = 1
    return _checked(LabelSets(rows, classes, Y, separator))


def _wrong_row(number: int, value: Any, separator: str | None) -> str:
    kind = type(value).__name__
    if separator is not None:
        return f"row {number}: labels must be text with {separator!r}, got {kind}"
    return (
        f"row {number}: labels must be a list or set of labels, got {kind} {value!r}; "
        "text with several labels needs separator="
    )


def _checked(sets: LabelSets) -> LabelSets:
    """Refuse what there is nothing to learn from."""
    if not len(sets.classes):
        raise ValueError("there are no labels in any row")
    if (sets.Y < 0).all():
        raise ValueError("all rows are unknown; some must have labels")
    return sets
