"""Rows that are there twice: found by a digest of their content.

Crawls and crowds deliver the same row again, label and all. Left out by itself, such a
row is still taught by its copy, wrong label or not: leave-one-out would call every
label right that is there twice. So copies of a row and its label count once. Copies
with another label stay: they are what another annotator said. Legend: n rows.
"""

import numpy as np
from numpy.typing import NDArray

from stct.numeric.engine import Engine, Local, RowValues
from stct.numeric.types import Floats, Ints

FIRST_COLUMNS = 8  # tell most rows apart


def order_by_content(
    H: RowValues, given: Ints, locked: NDArray[np.bool_], engine: Engine
) -> tuple[Ints, Ints]:
    """Order rows by label and content, and find copies of a row and its label.

    Returns
    -------
    order : ndarray of shape (n,)
        By label and then by a digest: the same, in whatever order rows came.
    original : ndarray of shape (n,)
        The row that each row is a copy of: itself, if of none. Locked rows and those
        without a label (given is -1) are never copies.
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
    return order, _find_copies(order, key, second, tied & ~locked & (given >= 0))


def describe_copies(count: int) -> tuple[str, ...]:
    """Say that there are copies, if there are."""
    if count == 0:
        return ()
    rows = "1 row is an exact copy" if count == 1 else f"{count} rows are exact copies"
    return (f"{rows} of another row with the same label; copies count once",)


def _find_copies(
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
