"""The engine on a Ray cluster: workers read their own rows, the driver adds up sums.

One task is one unit of rows. Values that belong to rows stay in the object store as one
object for each unit. A task that dies with its worker is run again by Ray; because a
unit's sums do not depend on who adds them, the result has the same bits.
"""

import os
import socket
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from stct.numeric.engine import UNIT, Array, Computed, Parts, add
from stct.numeric.tiles import TILE, single_blas_thread

RETRIES = 5  # of a unit whose worker died
_PATIENCE = 30  # seconds for a cluster to answer; one or two are usual
_AHEAD = 32  # units in flight: bounds the sums that wait for their turn
_LESS_MEMORY = (
    "give Ray fewer workers on each machine ('ray start --num-cpus') or machines with "
    "more memory"
)
# Read by Ray when it is imported. It would give a unit that is too large for the memory
# to a worker for ever, and tell of every worker that died on stdout, which is ours.
_SETTINGS = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": str(RETRIES),
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^A worker died or was killed|^Task .* failed",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of the units after one that failed
}


class RayEngine:
    """Work on rows in the tasks of a Ray cluster.

    Parameters
    ----------
    address : str, optional
        Of a running cluster: ``"auto"`` or ``"host:port"``. Without one, Ray is
        started on this machine.
    num_workers : int, optional
        CPUs for a Ray that is started here; all by default.
    """

    def __init__(
        self, address: str | None = None, num_workers: int | None = None
    ) -> None:
        self.address = address
        self.num_workers = num_workers

    def __str__(self) -> str:
        return "ray"

    def start(self) -> None:
        """Connect, once; one sentence if that is not possible."""
        ray = _import_ray()
        if ray.is_initialized():
            return
        keywords: dict[str, Any] = {"num_cpus": self.num_workers}
        if self.address is not None:
            _check_reachable(self.address)
            keywords = {"address": self.address}
        try:
            ray.init(
                **keywords,
                include_dashboard=False if self.address is None else None,
                log_to_driver=False,
                logging_level="ERROR",
            )
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = self.address or "this machine"
            raise ValueError(f"Ray at {where} cannot be reached: {error}") from error

    def sum(
        self, function: Callable[[slice], Parts], num_rows: int, *, wide: bool = True
    ) -> list[Any]:
        """See `stct.numeric.engine.Engine`."""
        total: list[Any] = []
        waiting: deque[Any] = deque()
        for task in self._submit(_sum_unit, function, num_rows):
            waiting.append(task)
            if len(waiting) >= _AHEAD:
                total = add(total, _get(waiting.popleft()))
        while waiting:
            total = add(total, _get(waiting.popleft()))
        return total

    def rows(self, function: Callable[[slice], Array], num_rows: int) -> "RayRows":
        """See `stct.numeric.engine.Engine`."""
        # The values are results of tasks, not put by them: what a worker owns would
        # die with it.
        tasks = list(self._submit(_keep_unit, function, num_rows, num_returns=2))
        likes = _get([like for _, like in tasks])
        shape, dtype = likes[0]
        return RayRows([values for values, _ in tasks], (num_rows, *shape), dtype)

    def keep(self, values: Any) -> "RayRows":
        """See `stct.numeric.engine.Engine`."""
        if isinstance(values, RayRows):
            return values
        self.start()
        ray = _import_ray()
        blocks = range(0, len(values), UNIT)
        with _in_one_line():
            refs = [ray.put(np.ascontiguousarray(values[i : i + UNIT])) for i in blocks]
        return RayRows(refs, values.shape, values.dtype)

    def take(self, values: Any, index: Array | None) -> Array:
        """See `stct.numeric.engine.Engine`."""
        ray = _import_ray()
        if isinstance(values, Computed) and index is not None:
            pick, n = values.pick(index), values.shape[0]
            found = self._submit(_keep_unit, pick, n, num_returns=2)
            return np.concatenate(_get([rows for rows, _ in found]))
        if index is None:
            return np.concatenate(_get(values.refs))
        pick = ray.remote(_pick).options(max_retries=RETRIES)
        edges = np.searchsorted(index, np.arange(len(values.refs) + 1) * UNIT)
        tasks = [
            pick.remote(ref, index[edges[unit] : edges[unit + 1]] - unit * UNIT)
            for unit, ref in enumerate(values.refs)
        ]
        return np.concatenate(_get(tasks))

    def _submit(
        self,
        task: Callable[..., Any],
        function: Callable[..., Any],
        num_rows: int,
        num_returns: int = 1,
    ) -> Iterator[Any]:
        """Start a task for each unit, in order."""
        self.start()
        ray = _import_ray()
        remote = ray.remote(task).options(max_retries=RETRIES, num_returns=num_returns)
        with _in_one_line():
            shared = ray.put(function)
        for start in range(0, num_rows, UNIT):
            yield remote.remote(shared, start, min(start + UNIT, num_rows))


class RayRows:
    """Values of rows as objects in the cluster, one for each unit."""

    is_row_source = True

    def __init__(self, refs: list[Any], shape: tuple[int, ...], dtype: Any) -> None:
        self.refs = refs
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._last: tuple[int, Array] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        start, stop, step = rows.indices(len(self))
        found = [
            self._unit(unit)[max(start - unit * UNIT, 0) : stop - unit * UNIT]
            for unit in range(start // UNIT, -(-stop // UNIT))
        ]
        block = found[0] if len(found) == 1 else np.concatenate(found)
        return block[::step]

    def _unit(self, unit: int) -> Array:
        if self._last is None or self._last[0] != unit:
            self._last = unit, _get(self.refs[unit])
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        """Send references, not values."""
        return {**self.__dict__, "_last": None}


def _check_reachable(address: str) -> None:
    """Knock before Ray does: it would knock for minutes, and tell of every knock."""
    if address not in ("auto", "local") and "://" not in address:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"a Ray address is auto or host:port, got {address!r}")
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, OverflowError) as error:
            raise ValueError(f"Ray at {address} cannot be reached: {error}") from error
    # Whoever answers need not be Ray. A process of its own can be ended in time.
    knock = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
    command = [sys.executable, "-c", knock, address]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"Ray at {address} cannot be reached: what answers there does not speak "
            f"as Ray does, for {_PATIENCE} seconds"
        ) from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it ended without a word"]
        raise ValueError(f"Ray at {address} cannot be reached: {said[-1]}")


def _sum_unit(function: Callable[[slice], Parts], start: int, stop: int) -> list[Any]:
    total: list[Any] = []
    with single_blas_thread():
        for first in range(start, stop, TILE):
            total = add(total, function(slice(first, min(first + TILE, stop))))
    return total


def _keep_unit(
    function: Callable[[slice], Array], start: int, stop: int
) -> tuple[Array, tuple[tuple[int, ...], Any]]:
    """Values of a unit, and what they are like."""
    with single_blas_thread():
        tiles = [
            function(slice(first, min(first + TILE, stop)))
            for first in range(start, stop, TILE)
        ]
    # Row by row, as local keeps them: the order in memory is the order of sums.
    values = np.ascontiguousarray(np.concatenate(tiles))
    return values, (values.shape[1:], values.dtype)


def _pick(values: Array, index: Array) -> Array:
    return values[index]


def _get(refs: Any) -> Any:
    """Wait for results."""
    with _in_one_line():
        return _import_ray().get(refs)


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Turn Ray's errors into a sentence; one of the worker's own code is that error."""
    ray = _import_ray()
    try:
        yield
    except ray.exceptions.RayError as error:
        # Without what led to it: Ray tells that in pages.
        raise _explain(error, ray.exceptions) from None


def _explain(error: Any, kinds: Any) -> Exception:
    if isinstance(error, kinds.RayTaskError) and isinstance(error.cause, Exception):
        error = error.cause
    if isinstance(error, MemoryError | kinds.OutOfMemoryError):
        return MemoryError(f"on a Ray worker: {_LESS_MEMORY}")
    if isinstance(error, kinds.WorkerCrashedError):
        return ValueError(
            f"a Ray worker died {RETRIES + 1} times over the same rows, perhaps killed "
            f"for its memory: {_LESS_MEMORY}; see the logs of Ray"
        )
    if isinstance(error, kinds.RayTaskError):
        return ValueError(f"a Ray worker failed: {str(error).strip().splitlines()[-1]}")
    if isinstance(error, kinds.RayError):
        return ValueError(f"Ray could not finish: {str(error).strip().splitlines()[0]}")
    return error  # type: ignore[no-any-return]


def _import_ray() -> Any:
    if "ray" not in sys.modules:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError as error:
        raise ValueError(
            "the Ray engine is not installed: pip install 'stct[ray]'"
        ) from error
    return ray
