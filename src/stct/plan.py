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

from stct.blocks import TILE, single_blas_thread
from stct.choice import MAX_VALIDATION
from stct.engine import Local
from stct.estimator import MAX_DENSE
from stct.forward import MOST_PARAMETERS, ForwardModel
from stct.given_labels import MAX_FITTED
from stct.log_odds import teaching_stride
from stct.many_classes import MANY, SAMPLED, TOP, Annotator, log_likelihood
from stct.nmc import MAX_SORTED
from stct.probabilities import one_hot
from stct.ridge import RidgePath, are_few
from stct.score_fit import SAMPLE
from stct.transition import symmetric_transition

CALIBRATION_ROWS = 2 * TILE
MAX_NUMBERS = 2**24  # of the calibration rows: few if they are wide
# Counted on the default method: passes over the rows themselves after the first two
# (Gram matrix and leverages), those of them over rows that teach, passes over (n, C),
# and evaluations that choose and fit.
FITS, WIDE_PASSES, TAUGHT_PASSES = 2.5, 2, 5
NARROW_PASSES, CHOOSE_STEPS = 10, 200
FIT_STEPS, SLOW_FIT_STEPS = 45, 85  # with curvature known, and without
MANY_ROWS_FACTOR = 0.7  # of many rows, leverages at one strength
# With many classes, fits, and passes over the sample: of the likelihood, and wide ones.
MANY_FITS, MANY_STEPS, MANY_WIDE = 1.0, 50, 8
READS = 11  # times that every row is read; rows that teach are read more often
LONG = 3600.0  # seconds from which more machines are worth their trouble


class Problem(NamedTuple):
    """How large the data is."""

    rows: int
    columns: int
    classes: int
    bytes_per_number: int = 4


class Plan(NamedTuple):
    """What to expect."""

    seconds: float
    memory: float  # bytes, beyond what the system caches of files
    input: float  # bytes of the embeddings
    disk: float  # bytes that will be written
    engine: str
    workers: int
    reason: str


class Costs(NamedTuple):
    """Seconds for each row of one pass of each kind."""

    factor: float  # Gram matrix, eigenvectors, leverages
    ridge: float  # one fit with its scores
    wide: float  # likelihood and gradient in all columns
    narrow: float  # the same in the score space; with many classes without gradient


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
        Bytes a second that files are read with; taken into account where the data does
        not fit into memory, and so is read again in every pass.
    """
    cores = os.cpu_count() or 1
    total = workers or cores
    n, d, C, size = problem
    work = _seconds(problem, measure(problem)) * cores / total
    data = float(n) * d * size
    if read_rate and data > 0.7 * available_memory() * max(1.0, total / cores):
        reads = READS + TAUGHT_PASSES / teaching_stride(n, d * C)
        work = max(work, reads * data / read_rate * cores / total)
    local = total <= cores
    seconds_here = work * total / cores
    if not local:
        engine, reason = "ray", f"{total} CPUs instead of the {cores} of this machine"
    elif seconds_here > LONG:
        engine = "ray"
        reason = "more than an hour on this machine: a cluster shares the passes"
    else:
        engine, reason = "local", "this machine is enough"
    disk = 90.0 * n + 4.0 * n * (C if n * C <= MAX_DENSE else 2 * TOP)
    return Plan(
        work,
        _memory(problem, total),
        data,
        disk,
        engine,
        total,
        reason,
    )


def measure(problem: Problem) -> Costs:
    """Time each kind of pass on random rows of this width."""
    d, C = problem.columns, problem.classes
    n = max(2 * C, min(CALIBRATION_ROWS, problem.rows, MAX_NUMBERS // max(d, C)))
    generator = np.random.default_rng(0)
    H = generator.normal(size=(n, d)).astype(np.float32)
    given = generator.integers(0, C, n)
    given[:C] = np.arange(C)
    everyone, nobody = np.ones(n, bool), np.zeros(n, bool)
    T = symmetric_transition(0.8, C)
    Y, engine = one_hot(given, C), Local()
    with single_blas_thread():
        path = RidgePath(H, everyone, engine=engine)
        wide = ForwardModel(path.rows, given, nobody, C, offset=Y, engine=engine)
        small = ForwardModel(Y, given, nobody, C, engine=engine)
        zero, identity = np.zeros((d, C)), np.eye(C)

        def narrow() -> object:
            if C > MANY:
                return log_likelihood(Y, given, Annotator(1.0, T))
            return small.sums(identity, T)

        eigen = _time(lambda: np.linalg.eigh(H[:d].T @ H[:d])) if d < n else 0.0
        factor = _time(lambda: RidgePath(H, everyone, engine=engine))
        return Costs(
            max(factor - eigen, 0.5 * factor) / n,
            _time(lambda: path.fit(Y, given, strength=1.0)) / n,
            _time(lambda: wide.sums(zero, T, count=False)) / n,
            _time(narrow) / n,
        )


def _time(function: Callable[[], object], budget: float = 0.4) -> float:
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
    few = are_few(n, problem.columns)
    factor = costs.factor * (1.0 if few else MANY_ROWS_FACTOR)
    if problem.classes > MANY:
        everywhere = factor + MANY_FITS * costs.ridge + 2 * costs.narrow
        in_sample = MANY_WIDE * costs.wide + MANY_STEPS * costs.narrow
        return n * everywhere + min(n, SAMPLED // problem.classes) * in_sample
    taught = TAUGHT_PASSES / teaching_stride(n, problem.columns * problem.classes)
    everywhere = (
        factor
        + FITS * costs.ridge
        + (WIDE_PASSES + taught) * costs.wide
        + NARROW_PASSES * costs.narrow
    )
    chosen = CHOOSE_STEPS * min(n, SAMPLE) + 10 * min(n, MAX_VALIDATION)
    C = problem.classes
    known = C * (2 * C + 1) <= MOST_PARAMETERS
    fitted = (FIT_STEPS if known else SLOW_FIT_STEPS) * min(n, MAX_FITTED)
    return n * everywhere + (chosen + fitted) * costs.narrow


def _memory(problem: Problem, workers: int) -> float:
    """Bytes: values of rows, tiles in flight, and sorted rows where there are few."""
    n, d, C, _ = problem
    kept, sample = (6 * C, 0) if C <= MANY else (6 * TOP, 6 * SAMPLED)
    leverages = 7 if are_few(n, d) else 1
    rows = n * (4 * (kept + leverages) + 100) + 4 * sample
    tiles = 4 * workers * TILE * (d + 4 * C) * 4
    gram = 8 * (3 * d * d + 12 * d * C + 20 * C * C)
    sorted_rows = 4 * n * d if n * d <= MAX_SORTED else 0
    return float(rows + tiles + gram + sorted_rows)


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
