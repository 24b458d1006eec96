"""Labels of any hashable type, as integer codes and back."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning

from stct.containers import plain_labels
from stct.numeric.types import Ints

_PANDAS = (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)


class EncodedLabels(NamedTuple):
    """Codes into ``classes``; -1 marks a row without a label."""

    values: NDArray[Any]  # (n,) the labels as they came, in their own type
    classes: NDArray[Any]  # (C,) sorted
    codes: Ints  # (n,)


def encode(y: ArrayLike) -> EncodedLabels:
    """Sort the distinct labels and number them.

    None, NaN, NaT and pandas' NA are missing labels. Text, numbers, booleans and any
    other hashable values are labels; mixed types are sorted by type, then by text.
    """
    if isinstance(y, _PANDAS) and (gaps := np.asarray(y.isna())).any():
        known = y[~gaps].to_numpy()
        if known.dtype.kind in "iub":  # pandas would make floats of them, which merge
            return _with_gaps(encode(known), gaps)
    values = _as_array(y)
    missing = np.asarray(pd.isna(values), dtype=bool)
    codes = np.full(len(values), -1, dtype=np.intp)
    if values.dtype.kind == "O":
        found, distinct = pd.factorize(values[~missing])
        order = _sorted_order(distinct)
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        classes, codes[~missing] = distinct[order], rank[found]
    else:
        classes, codes[~missing] = np.unique(values[~missing], return_inverse=True)
    return EncodedLabels(values, classes, codes)


def encode_known(y: ArrayLike, classes: NDArray[Any]) -> EncodedLabels:
    """Give labels the codes of an earlier fit; refuse those that it did not know."""
    found = encode(y)
    place = {label: code for code, label in enumerate(classes.tolist())}
    unknown = [label for label in found.classes.tolist() if label not in place]
    if unknown:
        raise ValueError(
            f"labels that the model does not know: {few(unknown)}; its classes are "
            f"{few(classes)}"
        )
    moved = np.array([place[c] for c in found.classes.tolist()] + [-1], dtype=np.intp)
    return EncodedLabels(found.values, classes, moved[found.codes])


def decode(encoded: EncodedLabels, codes: Ints) -> NDArray[Any]:
    """Labels for new codes, in the type that came in; unmoved rows keep their value."""
    moved = codes != encoded.codes
    labels = encoded.values.copy()
    labels[moved] = encoded.classes[codes[moved]]
    if (codes >= 0).all():  # no gap is left that the type has no place for
        labels = labels.astype(encoded.classes.dtype, copy=False)
    return labels


def _with_gaps(known: EncodedLabels, gaps: NDArray[np.bool_]) -> EncodedLabels:
    """Put missing labels between exact ones: objects, for want of a missing number."""
    values = np.full(len(gaps), None, dtype=object)
    codes = np.full(len(gaps), -1, dtype=np.intp)
    values[~gaps], codes[~gaps] = known.values, known.codes
    return EncodedLabels(values, known.classes, codes)


def _as_array(y: ArrayLike) -> NDArray[Any]:
    """Give a 1-d array without turning mixed types into text."""
    values: NDArray[Any]
    y = plain_labels(y)
    if isinstance(y, _PANDAS):
        values = y.to_numpy()
    elif isinstance(y, list | tuple):
        types = {type(item) for item in y}
        # NumPy would turn [1, "a"] into text and (("a", 1), ...) into two columns.
        plain = len(types) == 1 and types.isdisjoint({tuple, frozenset})
        if types == {str}:  # of its own text type it drops zeros at the end
            plain = not any(item.endswith("\0") for item in y)
        values = np.asarray(y) if plain else _objects(y)
    else:
        values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is "
            "flattened",
            DataConversionWarning,
            stacklevel=4,
        )
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"y must be one label per row (1-d), got an array of shape {values.shape}"
        )
    return values


def _objects(items: Sequence[Any]) -> NDArray[Any]:
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values


def _sorted_order(distinct: NDArray[Any]) -> Ints:
    try:
        return np.argsort(distinct, kind="stable")
    except TypeError:
        keys = [(type(value).__name__, repr(value)) for value in distinct]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def few(values: Any, most: int = 5) -> str:
    """Show the first values as text."""
    shown = ", ".join(str(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ..."
