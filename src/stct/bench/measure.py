"""Run one method in a process of its own: labels, seconds and peak memory.

Seconds are the best of up to three runs (one if it takes over 3 s), after a warm-up on
few rows that pays for imports. Memory is the peak above what the process had then.
"""

import contextlib
import multiprocessing
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from stct.bench.methods import METHODS, Verdict
from stct.numeric.types import Floats, Ints

_WARM_UP_ROWS = 2000
_BUDGET = 3.0  # seconds
_MAX_RUNS = 3


class Measured(NamedTuple):
    """What a method said and what it cost; or why it failed."""

    verdict: Verdict | None
    seconds: float = float("nan")
    peak_mb: float = float("nan")
    failure: str = ""


def measure(name: str, H: Floats, y: Ints, C: int) -> Measured:
    """Run a method on embeddings (n, d) and labels (n,) in another process."""
    # A forked child has the arrays already; elsewhere forking is not safe.
    kind = "fork" if sys.platform == "linux" else "spawn"
    context: Any = multiprocessing.get_context(kind)
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(send, name, H, y, C), daemon=True)
    try:
        with warnings.catch_warnings(), _no_interrupt():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork
            process.start()
        send.close()
        result: Measured = receive.recv()
    except EOFError:
        process.join()
        return Measured(None, failure=f"the process ended with {process.exitcode}")
    except BaseException:  # Ctrl-C
        if process.is_alive():
            process.kill()
        raise
    process.join()
    return result


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Keep Ctrl-C for later: an interrupt inside a hook of fork would be lost."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _child(pipe: Connection, name: str, H: Floats, y: Ints, C: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    warnings.simplefilter("ignore")
    method = METHODS[name]
    few = slice(0, min(len(H), _WARM_UP_ROWS))
    with contextlib.suppress(Exception):  # few rows may lack a class
        method(H[few], y[few], C)
    before = _resident_bytes()
    times: list[float] = []
    try:
        while sum(times) < _BUDGET and len(times) < _MAX_RUNS:
            start = time.perf_counter()
            verdict = method(H, y, C)
            times.append(time.perf_counter() - start)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        pipe.send(Measured(None, failure=what))
        return
    peak = max(0.0, (_peak_bytes() - before) / 1e6)
    pipe.send(Measured(verdict, min(times), peak))


def _resident_bytes() -> float:
    """Memory that this process has now, or the most it had where nobody tells."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return float(pages * resource.getpagesize())
    except (ImportError, OSError):
        return _peak_bytes()


def _peak_bytes() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
