"""Run a grid of cells: rows that are present are skipped, new ones are written whole.

An experiment is a value: a name, grids of cells, a function that measures one cell.
Everything else (which cells, resuming, the CSV, errors in one line) is here, once.
"""

import argparse
import csv
import difflib
import fcntl
import fnmatch
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stct.data.outputs import whole_file

HERE = Path(__file__).parent
RESULTS = HERE / "results"
Cell = Mapping[str, Any]
FACTS = ("seconds", "machine", "commit")
OTHER_SCALES = ("cpu", "paper")  # of experiments that need no GPU: the same as full


@dataclass(frozen=True)
class Experiment:
    """One table or figure: what is varied, what is measured, and how."""

    name: str  # of its CSV file
    title: str
    data: str  # what DATA is, for the help
    grids: Mapping[str, Sequence[Cell]]  # by scale; the first is the default
    metrics: Sequence[str]
    load: Callable[[Path], Any]
    # Gives one row, or several; what it says of FACTS counts more than what we see.
    measure: Callable[[Any, Cell], Mapping[str, Any] | Sequence[Mapping[str, Any]]]

    @property
    def keys(self) -> list[str]:
        """What names a cell."""
        return list(dict.fromkeys(k for g in self.grids.values() for c in g for k in c))

    @property
    def columns(self) -> list[str]:
        """Columns of the CSV file."""
        return ["data", "scale", *self.keys, *self.metrics, *FACTS]

    @property
    def scales(self) -> dict[str, str]:
        """What --scale may be, and the grid of it; full runs in full everywhere."""
        names = {name: name for name in self.grids}
        if "full" in names:
            names = {**names, **{n: "full" for n in OTHER_SCALES if n not in names}}
        return names


def name_of(cell: Cell) -> str:
    """Give the name of a cell: its values, such as ``symmetric:0.5/split/0``."""
    return "/".join(str(value) for value in cell.values())


def choose(cells: Sequence[Cell], patterns: Sequence[str]) -> list[Cell]:
    """Give the cells that match any pattern; an unknown name lists its neighbours."""
    names = [name_of(cell) for cell in cells]
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names):
            near = difflib.get_close_matches(pattern, names, n=4, cutoff=0.0)
            raise ValueError(
                f"no cell {pattern!r}; near: {', '.join(near)} (--list shows all "
                f"{len(names)}; * and ? match)"
            )
    pairs = zip(names, cells, strict=True)
    return [
        cell
        for name, cell in pairs
        if not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns)
    ]


def read_rows(path: Path, columns: Sequence[str] | None = None) -> list[dict[str, str]]:
    """Read the rows of a results file; no file, no rows."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
        found = list(reader.fieldnames or [])
    if columns is not None and found != list(columns):
        raise ValueError(
            f"{path}: has the columns {', '.join(found)}; expected "
            f"{', '.join(columns)} (move the old file away)"
        )
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise ValueError(f"{path}: row {number} does not have {len(found)} cells")
    return rows


def append_rows(
    path: Path, experiment: Experiment, new: Sequence[Mapping[str, Any]]
) -> None:
    """Add rows where the grid has them, whichever cell was run first.

    The file is replaced at once, so it never holds half of a cell.
    """
    columns = experiment.columns
    with _locked(path):
        rows: list[Mapping[str, Any]] = [*read_rows(path, columns), *new]
        rows = in_order_of_the_grid(experiment, rows)
        with (
            whole_file(path, overwrite=True) as temporary,
            temporary.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def in_order_of_the_grid(
    experiment: Experiment, rows: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Sort rows by data and scale, as they came first, and by the place of the cell.

    Rows of cells that the grid no longer has come last.
    """
    names = experiment.keys
    places: dict[tuple[str, ...], int] = {}
    for scale, cells in experiment.grids.items():
        for cell in cells:
            where = (scale, *(str(cell.get(name, "")) for name in names))
            places.setdefault(where, len(places))
    sources = {source: None for source in ((r["data"], r["scale"]) for r in rows)}
    ranks = {source: rank for rank, source in enumerate(sources)}

    def place(row: Mapping[str, Any]) -> tuple[int, int]:
        where = (row["scale"], *(str(row.get(name, "")) for name in names))
        return ranks[row["data"], row["scale"]], places.get(where, len(places))

    return sorted(rows, key=place)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time change a file."""
    with path.with_name(f".{path.stem}.rows{path.suffix}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(
    experiment: Experiment,
    cells: Sequence[Cell],
    *,
    scale: str,
    data: Path,
    results: Path,
) -> int:
    """Measure the cells that the results lack; give how many were run."""
    path = results / f"{experiment.name}.csv"
    columns = experiment.columns
    label = name_of_data(data)
    rows = read_rows(path, columns)
    missing = missing_cells(experiment, cells, rows, data=label, scale=scale)
    print(f"{experiment.name}: {len(cells) - len(missing)} cells present, ", end="")
    print(f"{len(missing)} to run", flush=True)
    if not missing:
        return 0
    loaded = experiment.load(data)
    facts = {"machine": machine(), "commit": commit()}
    began = time.perf_counter()
    for number, cell in enumerate(missing, start=1):
        start = time.perf_counter()
        measured = experiment.measure(loaded, cell)
        seconds = round(time.perf_counter() - start, 2)
        several = [measured] if isinstance(measured, Mapping) else measured
        known = {"data": label, "scale": scale, **cell, "seconds": seconds, **facts}
        append_rows(path, experiment, [{**known, **one} for one in several])
        left = (time.perf_counter() - began) / number * (len(missing) - number)
        print(
            f"[{number}/{len(missing)}] {name_of(cell)}: {_shown(several)} "
            f"({seconds:.1f} s; about {left / 60:.0f} min left)",
            flush=True,
        )
    return len(missing)


def _shown(rows: Sequence[Mapping[str, Any]]) -> str:
    if len(rows) > 1:
        return f"{len(rows)} rows"
    return ", ".join(f"{k} {v}" for k, v in rows[0].items() if v != "")


def name_of_data(path: Path) -> str:
    """Give the name by which rows tell their data: that of the file or folder."""
    return path.absolute().stem


def missing_cells(
    experiment: Experiment,
    cells: Sequence[Cell],
    rows: Sequence[Mapping[str, str]],
    *,
    data: str,
    scale: str,
) -> list[Cell]:
    """Give the cells that no row of this data and scale is of."""
    names = ["data", "scale", *experiment.keys]
    done = {tuple(row[name] for name in names) for row in rows}
    return [
        cell
        for cell in cells
        if tuple(
            str({"data": data, "scale": scale, **cell}.get(name, "")) for name in names
        )
        not in done
    ]


def machine() -> str:
    """Name the processor and the number of cores."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass  # not Linux
    return f"{name} x{os.cpu_count()}"


def commit() -> str:
    """Name the commit, with a + if the code differs from it."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False
        )

    head = git("rev-parse", "--short=10", "HEAD")
    if head.returncode:
        return "unknown"
    code = ["--", "../src", "*.py"]
    changed = git("diff", "--quiet", "HEAD", *code).returncode
    return head.stdout.strip() + ("+" if changed else "")


def parse(experiment: Experiment, arguments: Sequence[str] | None) -> Any:
    """Read the command line that all experiments share."""
    parser = argparse.ArgumentParser(description=experiment.title)
    parser.add_argument("data", metavar="DATA", type=Path, help=experiment.data)
    first = next(iter(experiment.grids))
    same = "; all the same: it runs in full on a CPU" if first == "full" else ""
    parser.add_argument(
        "--scale",
        choices=experiment.scales,
        default=first,
        help=f"default: {first}{same}",
    )
    parser.add_argument("--cells", nargs="*", default=[], help="names or patterns")
    parser.add_argument("--list", action="store_true", help="show the cells and stop")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    options = parser.parse_args(arguments)
    options.scale = experiment.scales[options.scale]
    return options


@contextmanager
def one_line(program: str) -> Iterator[None]:
    """End with one line and exit code 2 where a user's error stops the work."""
    try:
        yield
    except (ValueError, OSError) as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        sys.exit(2)


def main(experiment: Experiment, arguments: Sequence[str] | None = None) -> None:
    """Run an experiment from the command line; a user's error is one line, exit 2."""
    options = parse(experiment, arguments)
    with one_line(experiment.name):
        cells = choose(experiment.grids[options.scale], options.cells)
        if options.list:
            print("\n".join(name_of(cell) for cell in cells))
            return
        if not options.data.exists():
            raise ValueError(f"{options.data}: no such file or folder")
        if not options.results.is_dir():
            raise ValueError(f"{options.results}: no such folder for the results")
        try:
            run(
                experiment,
                cells,
                scale=options.scale,
                data=options.data,
                results=options.results,
            )
        except KeyboardInterrupt:
            print("\nstopped; rows so far are kept, the same command goes on")
            sys.exit(130)
