"""Visit rows in blocks: the one place that knows about threads and memory.

The arithmetic is always done on tiles of the same ``TILE`` rows, one BLAS thread a
tile, and results come back in row order. So sums have one fixed order, and every
thread count gives the same bits. Rows are anything that gives a NumPy array for
``X[i:j]``: an array, a memory map; in whatever blocks they are stored.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from stct.numeric.types import Floats, Ints

TILE = 8192  # rows; enough to make Python free, few enough for the cache
RUN = 16  # neighbouring rows that are worth reading by themselves
MAX_STRIDE = TILE // RUN  # every tile has a run to give

Result = TypeVar("Result")
Other = TypeVar("Other")


def single_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread: the threads are ours, one tile each."""
    limiter: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limiter


def map_tiles(
    function: Callable[[slice], Result],
    num_rows: int,
    *,
    start: int = 0,
    num_threads: int | None = None,
) -> Iterator[Result]:
    """Call ``function(rows)`` for every tile and yield the results in row order.

    Parameters
    ----------
    function : callable
        Gets the slice of one tile. Called from several threads.
    num_rows : int
    start : int
        The first row, where a tile begins.
    num_threads : int, optional
        All cores by default.
    """
    num_threads = num_threads or os.cpu_count() or 1
    tiles = [
        slice(first, min(first + TILE, num_rows))
        for first in range(start, num_rows, TILE)
    ]
    if num_threads == 1 or len(tiles) <= 1:
        yield from map(function, tiles)
        return
    pool = _pool(num_threads)
    waiting: deque[Future[Result]] = deque()
    try:
        for tile in tiles:
            waiting.append(pool.submit(function, tile))
            if len(waiting) >= 2 * num_threads:  # bounds what waits for its turn
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def some_of(rows: slice, stride: int) -> NDArray[np.intp] | slice:
    """Give an index of one row in ``stride`` of a tile, the same each time.

    Rows come in runs, which are quick to read, from random places: the classes of rows
    may follow each other in a circle. Every row is as likely as any other.
    """
    if stride == 1:
        return slice(None)
    count = rows.stop - rows.start
    starts = np.arange(0, count, RUN * stride)
    jump = RUN * np.random.default_rng(rows.start).integers(0, stride, len(starts))
    index = ((starts + jump)[:, None] + np.arange(RUN)).ravel()
    return np.asarray(index[index < count])


def side_by_side(
    function: Callable[..., Result], *arguments: Iterable[Any]
) -> list[Result]:
    """``list(map(function, *arguments))`` for a few long calls, in threads."""
    threads = os.cpu_count() or 1
    if threads == 1:
        return list(map(function, *arguments))
    # Not the pool of `map_tiles`: the calls may use that themselves.
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, *arguments))


def at_once(
    one: Callable[[], Result], other: Callable[[], Other]
) -> tuple[Result, Other]:
    """Call both, in threads."""
    first, second = side_by_side(lambda task: task(), (one, other))
    return first, second


@cache
def _pool(num_threads: int) -> ThreadPoolExecutor:
    """Keep the threads: a fit makes hundreds of short passes."""
    return ThreadPoolExecutor(num_threads, thread_name_prefix="stct")


# A forked child has the pool but not its threads. (Windows does not fork.)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def gather(H: Floats, rows: Ints) -> Floats:
    """Copy rows of H in another order, at least float32."""
    shape = (len(rows), H.shape[1])
    out = np.empty(shape, np.result_type(H.dtype, np.float32))

    def copy(tile: slice) -> None:
        out[tile] = H[rows[tile]]

    for _ in map_tiles(copy, len(rows)):
        pass
    return out


Runs = list[tuple[int, slice]]  # code, and the rows that have it


def find_runs(codes: Ints) -> tuple[Ints | None, Runs]:
    """Order of a tile by code, None if it is in order already, and its runs."""
    order = None
    if not (codes[1:] >= codes[:-1]).all():
        order = np.argsort(codes, kind="stable")
        codes = codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    stops = np.append(starts[1:], len(codes))[: len(starts)]
    runs = [
        (int(codes[start]), slice(int(start), int(stop)))
        for start, stop in zip(starts, stops, strict=True)
    ]
    return order, runs
