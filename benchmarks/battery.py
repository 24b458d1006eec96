"""One table of all cells: `LabelCorrector()` against its peers, and its estimates.

    python benchmarks/battery.py [DATA] [--only NAME ...] [--seeds 3] [--out FOLDER]
        [--methods NAME ...] [--no-peers] [--fresh] [--ablate]

The cells are those of benchmarks/cells.py, the peers those of benchmarks/peers.py;
without the folder DATA only the cells that come with the install. --only takes names
of cells, of features (`labelme`), or patterns (`cifar*:sym*`).

Every cell, seed and method is one row of FOLDER/battery.csv, written when it is done;
rows that are there are not computed again. `--methods stct --fresh` computes those of
one method again. At the end: the table, worst cells first, on the screen and in
FOLDER/battery.md and battery.png, also of rows that were there (other methods too).
--ablate computes variants of the default instead (benchmarks/ablate.py), kept in
FOLDER/ablations.csv.

True labels are for injecting noise and scoring only.
"""

import argparse
import csv
import io
import os
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import numpy as np
from battery_table import draw, read, report
from cells import INJECTED, REAL, Cell, make, seeds_of
from numpy.typing import NDArray
from peers import PEERS, correct

from stct import LabelCorrector
from stct.bench.methods import is_installed

Array = NDArray
Measure = Callable[[Cell], dict[str, float]]

COLUMNS = [
    *("cell", "features", "seed", "method", "n", "C", "given", "right", "seconds"),
    *("estimate_before", "before_low", "before_high", "before_held"),
    *("estimate_after", "after_low", "after_high", "after_held"),
    *("calibration_error", "abstained", "relabelled"),
]


def measure_labels(fit: Callable[[Cell], Array], case: Cell) -> dict[str, float]:
    """Share of right labels, and seconds."""
    start = time.perf_counter()
    labels = fit(case)
    seconds = time.perf_counter() - start
    return {"right": float((labels == case.truth).mean()), "seconds": seconds}


def measure_stct(case: Cell) -> dict[str, float]:
    """Add what the corrector says of itself."""
    start = time.perf_counter()
    m = LabelCorrector().fit(case.X, case.given)
    seconds = time.perf_counter() - start
    right = m.labels_ == case.truth
    given, after = float((case.given == case.truth).mean()), float(right.mean())
    e = m.estimated_accuracy_
    return {
        "right": after,
        "seconds": seconds,
        "estimate_before": e.before,
        "before_low": e.before_interval[0],
        "before_high": e.before_interval[1],
        "before_held": e.before_interval[0] <= given <= e.before_interval[1],
        "estimate_after": e.after,
        "after_low": e.after_interval[0],
        "after_high": e.after_interval[1],
        "after_held": e.after_interval[0] <= after <= e.after_interval[1],
        "calibration_error": calibration_error(m.confidence_, right),
        "abstained": float((m.action_ == "abstain").mean()),
        "relabelled": float((m.action_ == "relabel").mean()),
    }


def calibration_error(confidence: Array, right: Array, bins: int = 15) -> float:
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(confidence[index == b].sum() - right[index == b].sum()) for b in range(bins)
    ]
    return float(sum(gaps) / len(right))


def all_measures() -> dict[str, Measure]:
    """Give the methods by name; the default of the package comes last."""
    measures: dict[str, Measure] = {
        name: partial(measure_labels, partial(by_peer, name)) for name in PEERS
    }
    return measures | {"stct": measure_stct}


def by_peer(name: str, case: Cell) -> Array:
    return correct(PEERS[name], case.X, case.given)


def by_variant(variant: Callable[[Array, Array, int], Array], case: Cell) -> Array:
    return variant(case.X, case.given, case.num_classes)


def run(
    cells: Sequence[str],
    num_seeds: int,
    data: Path | None,
    measures: dict[str, Measure],
    path: Path,
) -> list[str]:
    """Add the rows that are missing; return what failed."""
    failed, done = [], present(path)
    for cell in cells:
        for seed in seeds_of(cell, num_seeds):
            todo = [m for m in measures if (cell, str(seed), m) not in done]
            case = make(cell, data, seed) if todo else None
            if case is None:
                if todo:
                    print(f"{cell}: its data are not here", flush=True)
                    break
                continue
            for method in todo:
                try:
                    values = measures[method](case)
                except Exception as error:  # the other rows are worth having
                    failed.append(f"{cell} {seed} {method}: {error!r}")
                    print(failed[-1], flush=True)
                    continue
                add_row(path, cell, seed, method, case, values)
    return failed


def add_row(
    path: Path,
    cell: str,
    seed: int,
    method: str,
    case: Cell,
    values: dict[str, float],
) -> None:
    """Append one line in one write, and say so."""
    given = float((case.given == case.truth).mean())
    names = {"cell": cell, "features": cell.split(":")[0], "seed": seed}
    numbers = {"n": len(case.X), "C": case.num_classes, "given": given} | values
    row = names | {"method": method} | {k: short(v) for k, v in numbers.items()}
    append(path, [row.get(c, "") for c in COLUMNS])
    print(
        f"{cell:20s} {seed:2d}  {method:10s}{100 * given:7.2f} ->"
        f"{100 * values['right']:7.2f}{values['seconds']:9.2f} s",
        flush=True,
    )


def short(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(int(value))


def append(path: Path, fields: Sequence[object]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, text.getvalue().encode())
        os.fsync(file)
    finally:
        os.close(file)


def prepare(path: Path, cells: Sequence[str], again: Sequence[str]) -> None:
    """Write the header; drop half a line, and rows of these cells and methods."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        append(path, COLUMNS)
    text = path.read_text()
    lines = text[: text.rfind("\n") + 1].splitlines(keepends=True)
    fields = csv.reader(lines)
    kept = [
        line
        for line, (cell, _, _, method, *_) in zip(lines, fields, strict=True)
        if cell not in cells or method not in again
    ]
    if "".join(kept) != text:
        beside = path.with_suffix(".part")
        beside.write_text("".join(kept))
        beside.replace(path)


def present(path: Path) -> set[tuple[str, str, str]]:
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        return {(row["cell"], row["seed"], row["method"]) for row in rows}


def choose(patterns: Sequence[str] | None) -> list[str]:
    """Give the cells that a pattern names, in the order of the battery."""
    everything = [*REAL, *INJECTED]
    if patterns is None:
        return everything

    def named(cell: str, pattern: str) -> bool:
        return cell.split(":")[0] == pattern or fnmatchcase(cell, pattern)

    for pattern in patterns:
        if not any(named(cell, pattern) for cell in everything):
            raise SystemExit(f"no cell is named {pattern!r}")
    return [c for c in everything if any(named(c, p) for p in patterns)]


def parse() -> argparse.Namespace:
    names = [*PEERS, "stct"]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="?", type=Path, help="folder of the data")
    parser.add_argument("--only", nargs="+", help="cells, features or patterns")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("battery-output"))
    parser.add_argument("--methods", "--method", nargs="+", choices=names)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--fresh", action="store_true", help="compute rows again")
    parser.add_argument("--ablate", action="store_true", help="variants of the default")
    args = parser.parse_args()
    args.methods = args.methods or (names if args.peers else ["given", "stct"])
    return args


def main() -> None:
    args = parse()
    cells = choose(args.only)
    if args.ablate:
        from ablate import ablations, compare

        measures: dict[str, Measure] = {
            name: partial(measure_labels, partial(by_variant, variant))
            for name, variant in ablations().items()
        }
        path = args.out / "ablations.csv"
    else:
        measures = {k: v for k, v in all_measures().items() if k in args.methods}
        path = args.out / "battery.csv"
        if "cleanlab" in measures and not is_installed("cleanlab"):
            print("cleanlab is not installed: left out")
            del measures["cleanlab"]
    prepare(path, cells, list(measures) if args.fresh else [])
    failed = run(cells, args.seeds, args.data, measures, path)
    rows = read(path, cells, args.seeds)
    if args.ablate:
        print("\n" + compare(rows))
    else:
        text, markdown, lines = report(rows)
        print("\n" + text)
        (args.out / "battery.md").write_text(markdown)
        draw(lines, args.out / "battery.png")
    if failed:
        raise SystemExit("failed:\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
