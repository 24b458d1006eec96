"""The engine seam: map over blocks of rows, add up what comes back.

The mathematics says what to do with a slice of rows; an engine says where. Two things
come out of a pass: sums, small, added in one fixed order (tiles inside a unit of rows,
then units), so that every engine and every number of workers gives the same bits; and
values that belong to rows, which stay where they were computed until somebody reads
``values[i:j]``. `Local` is threads of this process; a cluster: `numeric.ray_engine`.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stct.numeric.scratch import make_room
from stct.numeric.tiles import RUN, TILE, map_tiles

UNIT = 16 * TILE  # rows whose sums are added up first: what a worker gets at a time
FEW = 2**17  # rows for which there is memory for what can be computed again

Array = NDArray[Any]
Index = slice | NDArray[np.intp]  # some rows of a tile
ALL = slice(None)
Parts = tuple[Any, ...]  # arrays and numbers


class RowValues(Protocol):
    """Values of rows: an array, a file, blocks on other machines; read ``[i:j]``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows first."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    def __getitem__(self, rows: slice, /) -> Array:
        """Values of a few rows."""


class Computed:
    """Values of rows that are computed again each time they are read.

    Parameters
    ----------
    function : callable
        Gets the slice of the rows.
    some : callable, optional
        Gets the slice and which of its rows are wanted, where that is less work.
    """

    def __init__(
        self,
        function: Callable[[slice], Array],
        shape: tuple[int, ...],
        dtype: Any,
        *,
        some: Callable[[slice, Index], Array] | None = None,
    ) -> None:
        self._function = function
        self._some = some
        self.shape = shape
        self.dtype = np.dtype(dtype)

    def __getitem__(self, rows: slice) -> Array:
        return self._function(rows)

    def some(self, rows: slice, index: Index) -> Array:
        """Values of some of the rows."""
        return self[rows][index] if self._some is None else self._some(rows, index)

    def pick(self, index: Array) -> Callable[[slice], Array]:
        """Give the function that finds the rows of an index in a tile."""

        def picked(rows: slice) -> Array:
            low, high = np.searchsorted(index, (rows.start, rows.stop))
            if low == high:
                return np.empty((0, *self.shape[1:]), self.dtype)
            wanted = index[low:high]
            runs = np.split(wanted, np.flatnonzero(np.diff(wanted) > 1) + 1)
            if len(runs) * RUN <= len(wanted) + RUN:
                parts = [self[slice(int(run[0]), int(run[-1]) + 1)] for run in runs]
                return np.concatenate(parts)
            return np.asarray(self[rows][wanted - rows.start])

        return picked


def read_some(values: RowValues, rows: slice, some: Index) -> Array:
    """Read some of the rows of a tile."""
    if isinstance(values, Computed):
        return values.some(rows, some)
    return values[rows][some]


class Engine(Protocol):
    """Where the work on rows is done."""

    def sum(
        self, function: Callable[[slice], Parts], num_rows: int, *, wide: bool = True
    ) -> list[Any]:
        """Add up ``function(rows)`` over all tiles, in float64.

        ``wide`` says that a tile is long work: then threads pay.
        """

    def rows(self, function: Callable[[slice], Array], num_rows: int) -> Any:
        """Keep ``function(rows)`` of all tiles, as `RowValues`."""

    def keep(self, values: Array) -> Any:
        """Give values that exist already to whoever works on their rows."""

    def take(self, values: Any, index: Array | None) -> Array:
        """Bring the values of some rows here, in order; None is all."""


class Local:
    """One process, threads, rows in memory or read as they are needed.

    ``on_disk`` has values of many rows in a temporary file: for rows that are in files
    themselves.
    """

    def __init__(
        self, num_threads: int | None = None, *, on_disk: bool = False
    ) -> None:
        self.num_threads = num_threads
        self.on_disk = on_disk

    def sum(
        self, function: Callable[[slice], Parts], num_rows: int, *, wide: bool = True
    ) -> list[Any]:
        """See `Engine`."""
        threads = self.num_threads if wide else 1
        parts = map_tiles(function, num_rows, num_threads=threads)
        total: list[Any] = []
        unit: list[Any] = []
        for number, part in enumerate(parts):
            if number % (UNIT // TILE) == 0:
                total, unit = add(total, unit), []
            unit = add(unit, part)
        return add(total, unit)

    def rows(self, function: Callable[[slice], Array], num_rows: int) -> Array:
        """See `Engine`."""
        out: list[Array] = []

        def fill(rows: slice) -> None:
            out[0][rows] = function(rows)

        first = function(slice(0, min(TILE, num_rows)))
        room = make_room if self.on_disk else np.empty
        out.append(room((num_rows, *first.shape[1:]), first.dtype))
        out[0][: len(first)] = first
        threads = self.num_threads
        for _ in map_tiles(fill, num_rows, start=len(first), num_threads=threads):
            pass
        return out[0]

    def keep(self, values: Array) -> Array:
        """See `Engine`."""
        return values

    def take(self, values: Any, index: Array | None) -> Any:
        """See `Engine`."""
        if isinstance(values, Computed) and index is not None:
            pick, threads = values.pick(index), self.num_threads
            tiles = map_tiles(pick, values.shape[0], num_threads=threads)
            return np.concatenate(list(tiles))
        return values if index is None else values[index]


def light_rows(
    engine: Engine, function: Callable[[slice], Array], shape: tuple[int, ...]
) -> Any:
    """Give float32 values that are quick to compute: kept if few, else computed again.

    So memory hardly grows with rows that are many.
    """
    if shape[0] <= FEW:
        return engine.rows(function, shape[0])
    return Computed(function, shape, np.float32)


def spread_rows(num_rows: int, count: int) -> Array:
    """About ``count`` row numbers from all over, in runs that are quick to read."""
    if num_rows <= count:
        return np.arange(num_rows)
    starts = np.linspace(0, num_rows - RUN, count // RUN).astype(np.intp)
    chosen = np.zeros(num_rows, dtype=bool)
    chosen[starts[:, None] + np.arange(RUN)] = True
    return np.flatnonzero(chosen)


def add(total: list[Any], part: Any) -> list[Any]:
    """Add parts to a total, in float64; an empty total takes them over."""
    if not total:
        return [np.array(value, dtype=np.float64) for value in part]
    for mine, value in zip(total, part, strict=bool(part)):
        mine += value
    return total
