"""Change what does not matter, and see how much the result changes.

    python benchmarks/stability.py [DATA] [--only CELL ...]

Fits `LabelCorrector()` on cells of benchmarks/cells.py as they are and with noise of a
millionth added, doubled, columns shuffled, as float64, without one row, with one row
locked to its given label, and with the matrix products of other processors (OpenBLAS,
in a process of its own). Prints the change of right labels (points), of their estimated
share before correction (points), and which share of the other labels changed (%).
Ends with 1 if a change is larger than its bound; that line is marked.

True labels are for injecting noise and scoring only.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cells import Cell, make
from numpy.typing import NDArray

from stct import LabelCorrector

Array = NDArray

CELLS = [
    *("iris:sym50", "wine:sym50", "cancer:sym80", "diabetes:sym20"),
    *("labelme:majority", "youtube:majority", "banking77:sym50"),
    *("cifar2000n:worst", "cifar6c:worst"),
]
FIRST_ROWS = {"cifar6c:worst": 5_000}
PROCESSORS = ("Haswell", "Sandybridge")
SMALL = 1_000  # rows
# Bounds: points of right labels, points of the estimate, % of labels.
RIGHT, RIGHT_OF_SMALL, ESTIMATE, CHANGED, CHANGED_BY_ROW = 0.2, 0.6, 1.0, 1.0, 0.5


class Result(NamedTuple):
    """Labels of some rows, and the estimate that came with them."""

    rows: Array  # which of the cell's rows
    labels: Array
    estimate: float


def fit(X: Array, given: Array, rows: Array, locked: Array | None = None) -> Result:
    m = LabelCorrector().fit(X, given, locked=locked)
    return Result(rows, m.labels_, float(m.estimated_accuracy_.before))


def perturbed(case: Cell, rng: np.random.Generator) -> Iterator[tuple[str, Result]]:
    """Every perturbation by name; ``row`` in the name: it is about one row."""
    X, given = case.X, case.given
    n, d = X.shape
    everything, one = np.arange(n), int(rng.integers(n))
    others = np.delete(everything, one)
    noisy = X * (1 + 1e-6 * rng.normal(size=X.shape).astype(np.float32))
    yield "noise of 1e-6", fit(noisy, given, everything)
    yield "doubled", fit(X * 2, given, everything)
    shuffled = np.ascontiguousarray(X[:, rng.permutation(d)])
    yield "columns shuffled", fit(shuffled, given, everything)
    yield "float64", fit(X.astype(np.float64), given, everything)
    yield "one row dropped", fit(X[others], given[others], others)
    locked = fit(X, given, everything, locked=everything == one)
    yield "one row locked", Result(others, locked.labels[others], locked.estimate)
    for processor in PROCESSORS:
        yield processor, fit_as_on(processor, case)


def fit_as_on(processor: str, case: Cell) -> Result:
    """Fit in another process, whose OpenBLAS takes this processor for its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.npz"
        np.savez(path, X=case.X, given=case.given)
        subprocess.run(
            [sys.executable, __file__, "--fit", path],
            env={**os.environ, "OPENBLAS_CORETYPE": processor},
            check=True,
        )
        with np.load(path) as file:
            rows = np.arange(len(case.X))
            return Result(rows, file["labels"], float(file["estimate"]))


def fit_file(path: Path) -> None:
    """Fit the case in a file and write the result over it."""
    with np.load(path) as file:
        X, given = file["X"], file["given"]
    result = fit(X, given, np.arange(len(X)))
    np.savez(path, labels=result.labels, estimate=result.estimate)


def check(cell: str, case: Cell) -> int:
    """Print the changes of a cell; return how many are too large."""
    rng = np.random.default_rng(zlib.crc32(cell.encode()))
    base = fit(case.X, case.given, np.arange(len(case.X)))
    right_bound = RIGHT_OF_SMALL if len(case.X) < SMALL else RIGHT
    num_broken = 0
    for name, result in perturbed(case, rng):
        rows, labels = result.rows, base.labels[result.rows]
        truth = case.truth[rows]
        more = (result.labels == truth).mean() - (labels == truth).mean()
        right = 100 * float(more)
        estimate = 100 * (result.estimate - base.estimate)
        changed = 100 * float((result.labels != labels).mean())
        most = CHANGED_BY_ROW if "row" in name else CHANGED
        broken = abs(right) > right_bound or abs(estimate) > ESTIMATE or changed > most
        num_broken += broken
        mark = "  too much" if broken else ""
        print(
            f"{cell:18s}{name:18s}{right:+8.2f}{estimate:+10.2f}{changed:9.2f}{mark}",
            flush=True,
        )
    return num_broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, help="folder of the data")
    parser.add_argument("--only", nargs="+", default=CELLS, metavar="CELL")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit:
        fit_file(args.fit)
        return
    print(f"{'cell':18s}{'perturbation':18s}{'right':>8s}{'estimate':>10s}", end="")
    print(f"{'labels %':>9s}")
    num_broken = 0
    for cell in args.only:
        case = make(cell, args.data, seed=0)
        if case is None:
            print(f"{cell}: its data are not here")
            continue
        first = FIRST_ROWS.get(cell)
        X, given, truth = (a[:first] for a in case[:3])
        num_broken += check(cell, Cell(X, given, truth, case.num_classes))
    if num_broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
