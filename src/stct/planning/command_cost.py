"""What ``stct correct`` costs beside the fit: table, files of results, report.

All of it is done by the process that was started, on a cluster too.
"""

import csv
import io
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stct.numeric.tiles import TILE

START = 1.5  # seconds until everything is imported
# Counted on a table of three columns, in times that a row of it is written as csv: to
# read the table, to write labels, patch and summary, and for the report to read them.
ROW_WORK = 8.0
REPORT_READS = 3  # times that rows are read: a check, neighbours, the map
REPORT_ROWS = 600  # of the report, whose neighbours are looked for among all rows
BASE_MEMORY = 250e6  # bytes of the interpreter and its libraries
READ_BYTES, WRITTEN_BYTES = 350, 950  # of a row: its table, and with the new one

_TIMED_ROWS = 4096


class Around(NamedTuple):
    """Seconds for each row."""

    row: float  # reading and writing it, in one thread
    near: float  # finding whose neighbour it is, in one thread


def measure_around(
    num_columns: int, time: Callable[[Callable[[], object]], float]
) -> Around:
    """Measure on this machine; ``time`` gives the seconds of a call."""
    generator = np.random.default_rng(0)
    H = generator.normal(size=(TILE, num_columns)).astype(np.float32)
    queries = H[:REPORT_ROWS]

    def near() -> object:
        distances = queries @ H.T
        return np.argpartition(distances, 9, axis=1)[:, :10]

    return Around(ROW_WORK * time(_write_rows) / _TIMED_ROWS, time(near) / TILE)


def _write_rows() -> None:
    writer = csv.writer(io.StringIO())
    for row in range(_TIMED_ROWS):
        writer.writerow([f"row {row}", "label", "label", 0.123456, "keep"])


def driver_memory(num_rows: int, num_kept: int) -> float:
    """Bytes of this process when it writes, for so many kept classes of a row."""
    return BASE_MEMORY + num_rows * (WRITTEN_BYTES + 8.0 * num_kept)
