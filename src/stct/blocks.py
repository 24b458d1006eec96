"""Visit rows in blocks: the one place that knows about threads and memory.

The arithmetic is always done on tiles of the same ``TILE`` rows, one BLAS thread a
tile, and results come back in row order. So sums have one fixed order and every
thread count and every block size gives the same bits. ``X`` is anything that gives
a NumPy array for ``X[i:j]``: an array, a memory map.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from os import cpu_count
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

TILE = 4096  # rows; many enough that Python costs nothing, few enough for the cache

Result = TypeVar("Result")


def single_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread: the threads are ours, one tile each."""
    limiter: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limiter


def map_tiles(
    function: Callable[[slice], Result],
    num_rows: int,
    *,
    num_threads: int | None = None,
    block_size: int | None = None,
) -> Iterator[Result]:
    """Call ``function(rows)`` for every tile and yield the results in row order.

    Parameters
    ----------
    function : callable
        Gets the slice of one tile. Called from several threads.
    num_rows : int
    num_threads : int, optional
        All cores by default.
    block_size : int, optional
        How many rows may be in work at once. Bounds the memory of results that wait
        for their turn; never changes them.
    """
    num_threads = num_threads or cpu_count() or 1
    tiles = [
        slice(start, min(start + TILE, num_rows)) for start in range(0, num_rows, TILE)
    ]
    if num_threads == 1 or len(tiles) == 1:
        yield from map(function, tiles)
        return
    in_work = max(2 * num_threads, (block_size or 0) // TILE)
    with ThreadPoolExecutor(num_threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for tile in tiles:
                waiting.append(pool.submit(function, tile))
                if len(waiting) >= in_work:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
