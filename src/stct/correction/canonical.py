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
from stct.correction.result import Correction
from stct.correction.settings import DEFAULT, CanonicalSettings
from stct.numeric.engine import Engine, Local, RowValues, spread_rows
from stct.numeric.tiles import gather
from stct.numeric.top_classes import TopClasses
from stct.numeric.types import Floats, Ints

MEASURED_ROWS = 4096
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
    settings: CanonicalSettings = DEFAULT.canonical,
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
    order, original = order_by_content(H, ranked, locked, engine, settings.same)
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
    H = gather(np.asarray(H), rows)
    return Canonical(H, labels, True, rank[:-1], places[original], count)


def order_by_content(
    H: RowValues,
    given: Ints,
    locked: NDArray[np.bool_],
    engine: Engine,
    same: float = DEFAULT.canonical.same,
) -> tuple[Ints, Ints]:
    """Order rows by label and content, and find duplicates of a row and its label.

    Returns
    -------
    order : ndarray of shape (n,)
        By label and then by the sum of a row: about the same, in whatever order rows
        and columns came, in whatever unit, and after rounding.
    original : ndarray of shape (n,)
        The row that each row is a duplicate of: itself, if of none. Locked rows and
        those without a label (given is -1) are never duplicates.
    """
    n = len(given)
    if isinstance(H, np.ndarray):  # is here, whoever works on rows later
        engine = Local(getattr(engine, "num_threads", None))

    def row_sum(rows: slice) -> Floats:
        return np.asarray(H[rows].sum(axis=1, dtype=np.float64))

    total = engine.take(engine.rows(row_sum, n), None)
    order = np.lexsort((total, given))
    near = _close(total, order, same) & (given[order][1:] == given[order][:-1])
    if not near.any():
        return order, np.arange(n)
    tied = np.zeros(n, dtype=bool)
    tied[order[np.append(near, False) | np.insert(near, 0, False)]] = True
    some = spread_rows(n, MEASURED_ROWS)  # say how far rows lie apart
    projected = tied.copy()
    projected[some] = True
    kept = engine.keep(projected)
    V = np.random.default_rng(0).normal(size=(H.shape[1], 3))

    def projections(rows: slice) -> Floats:
        here = kept[rows]
        out = np.zeros((len(here), 3))
        if here.any():
            out[here] = np.einsum("ij,jk->ik", H[rows][here].astype(np.float64), V)
        return out

    R = engine.take(engine.rows(projections, n), None)
    order = np.lexsort((np.where(tied, R[:, 0], 0.0), total, given))
    with np.errstate(over="ignore", invalid="ignore"):
        limits = same * np.std(R[some], axis=0)  # (3,)
    candidates = tied & ~locked & (given >= 0)
    return order, _find_duplicates(R, given, candidates, limits)


def _close(values: Floats, order: Ints, same: float) -> NDArray[np.bool_]:
    """Tell which neighbours in this order differ by no more than rounding, (n - 1,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        near: NDArray[np.bool_] = np.diff(values[order]) <= same * np.std(values)
    return near


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
    R: Floats, given: Ints, candidates: NDArray[np.bool_], limits: Floats
) -> Ints:
    """Give the first of the candidates that are equal, for each of them.

    Equal rows have projections R (n, 3) that differ by no more than ``limits`` (3,).
    """
    original, rows = np.arange(len(given)), np.flatnonzero(candidates)
    if len(rows) == 0:
        return original
    rows = rows[np.lexsort((R[rows, 0], given[rows]))]
    new = np.ones(len(rows), dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.abs(np.diff(R[rows], axis=0)) <= limits
    new[1:] = ~step.all(axis=1) | (np.diff(given[rows]) != 0)
    original[rows] = rows[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return original
