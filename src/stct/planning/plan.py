"""What a correction will cost on this machine: time, memory, disk, which engine.

Every step of the default method is a number of passes over rows. The passes are timed
for two seconds on random rows of the right width and number of classes; the rest is
arithmetic, and docs/scale.md has it in words.
"""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stct.console import size
from stct.correction.canonical import MAX_SORTED
from stct.correction.given_labels import sample_size
from stct.correction.residual import teaching_stride
from stct.correction.scores import is_kept
from stct.correction.settings import DEFAULT
from stct.estimator import MAX_DENSE
from stct.noise_model.likelihood import LinearLogits, ScaledLogits
from stct.noise_model.likelihood_tile import LabelCodes
from stct.noise_model.transition import symmetric_transition
from stct.numeric.engine import Local
from stct.numeric.probabilities import one_hot
from stct.numeric.ridge import RidgePath
from stct.numeric.scratch import LEAST as LEAST_ON_DISK
from stct.numeric.tiles import TILE, single_blas_thread
from stct.numeric.top_classes import MANY, TOP
from stct.planning.command_cost import (
    BASE_MEMORY,
    READ_BYTES,
    REPORT_READS,
    START,
    driver_memory,
    measure_around,
)

CALIBRATION_ROWS = 2 * TILE
MAX_NUMBERS = 2**23  # of the calibration rows: few if they are wide
MAX_WIDTH = 512  # columns and classes of the calibration; what is wider is scaled
# Counted on the default method: ridge fits with their scores, passes over all rows in
# all columns, those of them over rows that teach, passes over (n, C), and passes over
# the sampled rows.
FITS, WIDE_PASSES, TAUGHT_PASSES = 2.5, 1, 5
NARROW_PASSES, SAMPLE_PASSES = 6, 250
# What is not kept is computed again: so many times a ridge fit.
COMPUTED_AGAIN = 8.0
MANY_ROWS_FACTOR = 0.7  # of many rows, leverages at one strength
READS = 11  # times that every row is read; rows that teach are read more often
LONG = 3600.0  # seconds from which more machines are worth their trouble


# Of a cluster, and of the disk where only sizes are known; docs/scale.md has it.
MACHINE_CPUS, MACHINE_MEMORY, DISK_RATE = 16, 64e9, 1e9
ASSUMED = "machines of 16 CPUs, 64 GB, and 1 GB a second from the disk"


class Problem(NamedTuple):
    """How large the data is."""

    rows: int
    columns: int
    classes: int
    bytes_per_number: int = 4
    decoding: float = 0.0  # seconds for a row each time it is read, of parquet


class Plan(NamedTuple):
    """What to expect."""

    seconds: float  # of the fit
    command_seconds: float  # of all of 'stct correct'
    memory: float  # bytes, beyond what the system caches of files
    input: float  # bytes of the embeddings
    disk: float  # bytes that will be written, temporary files among them
    engine: str
    workers: int
    reason: str
    assumed: str  # of machines that could not be measured


class Costs(NamedTuple):
    """Seconds for each row of one pass of each kind."""

    factor: float  # Gram matrix, eigenvectors, leverages
    ridge: float  # one fit with its scores
    wide: float  # likelihood and gradient in all columns
    narrow: float  # the same of logits
    eigen: float  # once, not for each row: eigenvectors


def make_plan(
    problem: Problem, *, workers: int | None = None, read_rate: float | None = None
) -> Plan:
    """Time the passes and add them up.

    Parameters
    ----------
    problem : Problem
    workers : int, optional
        CPUs of a cluster; those of this machine by default.
    read_rate : float, optional
        Bytes a second that files are read with, `DISK_RATE` by default; taken into
        account where the data does not fit into memory.
    """
    cores = os.cpu_count() or 1
    total = workers or cores
    n, d, C = problem[:3]
    data = float(n) * d * problem.bytes_per_number
    costs = measure(problem)
    machines = 1.0 if total <= cores else max(1.0, total / MACHINE_CPUS)
    memory_there = available_memory() if total <= cores else machines * MACHINE_MEMORY
    fits = data <= 0.7 * memory_there
    rate = read_rate or DISK_RATE
    # What does not fit into memory is read again in every pass, while that works.
    again = 0.0 if fits else _reads(problem) * data / (rate * machines)
    work = max(_seconds(problem, costs) * cores / total, again)
    around = measure_around(d, _time)
    rest = START + n * (
        around.row + around.near / cores + REPORT_READS * problem.decoding
    )
    rest += 0.0 if fits else REPORT_READS * data / rate
    kept = C if n * C <= MAX_DENSE else 2 * TOP
    driver = driver_memory(n, kept)
    memory = max(driver, BASE_MEMORY + READ_BYTES * n + _memory(problem, total))
    engine, reason = _choose(work, memory, driver, total, cores)
    assumed = total > cores or not (fits or read_rate)
    return Plan(
        work,
        work + rest,
        memory,
        data,
        90.0 * n + 4.0 * n * kept + (12.0 * n * C if _on_disk(problem) else 0.0),
        engine,
        total,
        reason,
        ASSUMED if assumed else "",
    )


def _choose(
    seconds: float, memory: float, driver: float, workers: int, cores: int
) -> tuple[str, str]:
    """Name the engine, and say why."""
    free = available_memory()
    if workers > cores:
        reason = f"{workers:,} CPUs instead of the {cores} of this machine"
    elif memory > free:
        reason = f"{size(memory)} of memory are needed and {size(free)} are free here"
    elif seconds > LONG:
        reason = "more than an hour on this machine: a cluster shares the passes"
    else:
        return "local", "this machine is enough"
    held = f"; the process that writes the table needs {size(driver)} alone"
    return "ray", reason + (held if driver > free else "")


def _reads(problem: Problem) -> float:
    """Count how often every row is read in a fit."""
    n, d, C = problem[:3]
    if n * d <= MAX_SORTED:
        return 2.0  # a check, and then they are sorted in memory
    if problem.decoding:  # and be it for the few that teach
        return READS + TAUGHT_PASSES
    return READS + TAUGHT_PASSES / teaching_stride(n, d, C, DEFAULT.residual)


def measure(problem: Problem) -> Costs:
    """Time each kind of pass on random rows of this width, or of one that is quick."""
    d, C = min(problem.columns, MAX_WIDTH), min(problem.classes, MAX_WIDTH)
    n = max(2 * C, min(CALIBRATION_ROWS, problem.rows, MAX_NUMBERS // max(d, C)))
    generator = np.random.default_rng(0)
    H = generator.normal(size=(n, d)).astype(np.float32)
    given = generator.integers(0, C, n)
    given[:C] = np.arange(C)
    everyone, nobody = np.ones(n, bool), np.zeros(n, bool)
    T = symmetric_transition(0.8, C)
    Y, engine = one_hot(given, C), Local()
    with single_blas_thread():
        start = time.perf_counter()
        path = RidgePath(H, everyone, engine=engine)
        first = time.perf_counter() - start
        codes = LabelCodes(given, nobody, C, engine)
        wide = LinearLogits(path.rows, codes, engine, offset=Y)
        small, one = ScaledLogits([Y], codes, engine), np.ones(1)
        weights = np.full((d, C), 1e-3)
        eigen = _time(lambda: np.linalg.eigh(H[:d].T @ H[:d])) if d < n else 0.0
        factor = min(first, _time(lambda: RidgePath(H, everyone, engine=engine)))
        wider, more = problem.columns / d, problem.classes / C
        return Costs(
            max(factor - eigen, 0.5 * factor) / n * wider**2,
            _time(lambda: path.fit(Y, given, strength=1.0)) / n * wider * more,
            _time(lambda: wide.sums(weights, T)) / n * wider * more,
            _time(lambda: small.sums(one, T)) / n * more,
            eigen * wider**3,
        )


def _time(function: Callable[[], object], budget: float = 0.25) -> float:
    """Seconds of one call, the best of those that the budget allows."""
    best, spent = np.inf, 0.0
    while spent < budget:
        start = time.perf_counter()
        function()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
    return float(best)


def _seconds(problem: Problem, costs: Costs) -> float:
    n = problem.rows
    once = costs.eigen + n * problem.decoding * _reads(problem)
    factor = costs.factor * MANY_ROWS_FACTOR
    C, settings = problem.classes, DEFAULT
    taught = TAUGHT_PASSES / teaching_stride(n, problem.columns, C, settings.residual)
    fits = FITS + (0.0 if is_kept(n, C) else COMPUTED_AGAIN)
    everywhere = (
        factor
        + fits * costs.ridge
        + (WIDE_PASSES + taught) * costs.wide
        + NARROW_PASSES * costs.narrow
    )
    sampled = min(n, sample_size(C, settings.calibration))
    return once + n * everywhere + SAMPLE_PASSES * sampled * costs.narrow


def _memory(problem: Problem, workers: int) -> float:
    """Bytes: values of rows, tiles in flight, and sorted rows where there are few."""
    n, d, C = problem[:3]
    sample = 6 * min(n, sample_size(C, DEFAULT.calibration)) * C
    if is_kept(n, C):
        kept = 6 * C
    else:  # scores and logits are computed again
        kept = 2 * TOP if C > MANY else 0 if _on_disk(problem) else C
    rows = n * (4 * (kept + 1) + 100) + 4 * sample
    tiles = 4 * workers * TILE * (d + 4 * C) * 4
    gram = 8 * (3 * d * d + 12 * d * C + 20 * C * C)
    sorted_rows = 4 * n * d if n * d <= MAX_SORTED else 0
    return float(rows + tiles + gram + sorted_rows)


def _on_disk(problem: Problem) -> bool:
    """Tell whether scores and probabilities wait in temporary files."""
    n, d, C = problem[:3]
    return n * d > MAX_SORTED and C <= MANY and 4 * n * C >= LEAST_ON_DISK


def available_memory() -> float:
    """Bytes that this machine could still give."""
    try:
        pages = os.sysconf("SC_AVPHYS_PAGES")
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable"):
                    return float(line.split()[1]) * 1024
        return float(pages * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return float("inf")
