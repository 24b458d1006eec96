"""The canonical problem: classes by size, rows by content, exact duplicates once.

Classes are numbered by size and rows are sorted by class and content. Sums then have
one order, and one rounding, whatever came first or how it is called. Large data stays
where it is and in its own order, array or file: sorting would mean a second copy.

Crawls and crowds deliver the same row again, label and all. Left out by itself, such a
row is still taught by its duplicate, wrong label or not: leave-one-out would call every
label right that is there twice. So duplicates of a row and its label count once.
Duplicates with another label stay: they are what another annotator said. Legend:
n rows, C classes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.given_labels import Labels
from stct.correction.result import Correction, TopClasses
from stct.numeric.engine import Engine, Local, RowValues
from stct.numeric.tiles import map_tiles
from stct.numeric.types import Floats, Ints

FIRST_COLUMNS = 8  # tell most rows apart
MAX_SORTED = 2**26  # numbers in H, 256 MB of float32; more are taken as they come


class Canonical(NamedTuple):
    """The problem that is worked on, and the way back."""

    H: Any  # (n', d)
    labels: Labels
    owned: bool  # H is a copy that may be overwritten
    rank: Ints  # (C,) number of each class
    places: Ints  # (n,) of each row among those worked on
    num_duplicates: int

    def reorder(self, T: Floats | None) -> Floats | None:
        """Give a matrix by class in the order of this problem."""
        if T is None:
            return None
        by_size = np.argsort(self.rank)
        return np.asarray(T[np.ix_(by_size, by_size)])

    def restore(self, result: Correction) -> Correction:
        """Give a result for all rows and classes, in the order in which they came."""
        if self.owned or self.num_duplicates:
            Q = result.posterior
            if isinstance(Q, TopClasses):
                Q = Q._replace(
                    probabilities=Q.probabilities[self.places],
                    classes=Q.classes[self.places],
                )
            else:
                Q = Q[self.places]
            notes = (*describe_duplicates(self.num_duplicates), *result.notes)
            result = result._replace(posterior=Q, notes=notes)
        return result.reordered(self.rank)


def canonicalise(
    H: RowValues,
    given: Ints,
    locked: NDArray[np.bool_],
    num_classes: int,
    engine: Engine,
) -> Canonical:
    """Sort classes by size and rows by class and content; drop duplicates."""
    small = H.shape[0] * H.shape[1] <= MAX_SORTED
    sizes = np.bincount(given[given >= 0], minlength=num_classes)
    rank = np.empty(num_classes + 1, dtype=np.intp)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(num_classes)
    rank[-1] = -1  # no label
    ranked = rank[given]
    if small:
        H = np.asarray(H[0 : H.shape[0]])
    elif isinstance(engine, Local) and not isinstance(H, np.ndarray):
        engine = Local(engine.num_threads, on_disk=True)
    order, original = order_by_content(H, ranked, locked, engine)
    # A duplicate would give its original's label away when that is left out.
    repeated = original != np.arange(len(given))
    labels = Labels(np.where(repeated, -1, ranked), locked, num_classes, engine)
    count = int(repeated.sum())
    if not small:
        return Canonical(H, labels, False, rank[:-1], original, count)
    rows = order[~repeated[order]]
    places = np.empty(len(original), dtype=np.intp)
    places[rows] = np.arange(len(rows))
    labels = labels.some(rows)._replace(engine=engine)
    H = _gather(np.asarray(H), rows)
    return Canonical(H, labels, True, rank[:-1], places[original], count)


def _gather(H: Floats, rows: Ints) -> Floats:
    """Copy rows of H in another order, at least float32."""
    shape = (len(rows), H.shape[1])
    out = np.empty(shape, np.result_type(H.dtype, np.float32))

    def copy(tile: slice) -> None:
        out[tile] = H[rows[tile]]

    for _ in map_tiles(copy, len(rows)):
        pass
    return out


def order_by_content(
    H: RowValues, given: Ints, locked: NDArray[np.bool_], engine: Engine
) -> tuple[Ints, Ints]:
    """Order rows by label and content, and find duplicates of a row and its label.

    Returns
    -------
    order : ndarray of shape (n,)
        By label and then by a digest: the same, in whatever order rows came.
    original : ndarray of shape (n,)
        The row that each row is a duplicate of: itself, if of none. Locked rows and
        those without a label (given is -1) are never duplicates.
    """
    n = len(given)
    if isinstance(H, np.ndarray):  # is here, whoever works on rows later
        engine = Local(getattr(engine, "num_threads", None))

    def first_columns(rows: slice) -> NDArray[np.uint64]:
        return _digest(H[rows][:, :FIRST_COLUMNS])

    digest = engine.take(engine.rows(first_columns, n), None)
    bits = max(int(given.max() + 1).bit_length(), 1)
    label = (given + 1).astype(np.uint64) << np.uint64(64 - bits)
    key = label | (digest >> np.uint64(bits))
    order = np.argsort(key)
    same = key[order][1:] == key[order][:-1]
    if not same.any():
        return order, np.arange(n)
    tied = np.zeros(n, dtype=bool)
    tied[order[np.append(same, False) | np.insert(same, 0, False)]] = True
    kept = engine.keep(tied)

    def all_columns(rows: slice) -> NDArray[np.uint64]:
        some = kept[rows]
        out = np.zeros(len(some), np.uint64)
        if some.any():
            out[some] = _digest(H[rows][some])
        return out

    second = engine.take(engine.rows(all_columns, n), None)
    order = np.lexsort((second, key))
    return order, _find_duplicates(order, key, second, tied & ~locked & (given >= 0))


def describe_duplicates(count: int) -> tuple[str, ...]:
    """Say that there are duplicates, if there are."""
    if count == 0:
        return ()
    rows = (
        "1 row is an exact duplicate"
        if count == 1
        else f"{count} rows are exact duplicates"
    )
    return (f"{rows} of another row with the same label; duplicates count once",)


def _find_duplicates(
    order: Ints,
    key: NDArray[np.uint64],
    second: NDArray[np.uint64],
    candidates: NDArray[np.bool_],
) -> Ints:
    """Give the first of the candidates that are equal, for each of them."""
    original = np.arange(len(order))
    rows = order[candidates[order]]
    if len(rows) == 0:
        return original
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (np.diff(key[rows]) != 0) | (np.diff(second[rows]) != 0)
    original[rows] = rows[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return original


def _digest(H: Floats) -> NDArray[np.uint64]:
    """One whole number for the bits of each row, (n,)."""
    wide = np.ascontiguousarray(H, np.result_type(H.dtype, np.float32))
    words = wide.view(f"u{wide.itemsize}")
    total = np.zeros(len(H), np.uint64)
    for column in words.T:
        total = (total ^ column) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total
