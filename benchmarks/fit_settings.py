"""Fit the constants of the default correction, each data set left out in turn.

    python benchmarks/fit_settings.py DATA [--seeds 1] [--out FOLDER]

GRID names the fitted fields of `stct.correction.settings` and the values that are
tried, one field at a time, the others at their defaults. Every value is judged by the
mean share of right labels: over the seeds and cells of a data set, then over the data
sets. Printed, and written to FOLDER/settings.md: what each value gives on each data
set, the value that is best without that data set, and what it then gains on it over
the default. The width of intervals is the smallest that holds the truth in 95% of the
cells of the other data sets; how often it holds on the one left out stands beside it.
Rows in FOLDER/settings.csv are not computed again.

True labels are for injecting noise and scoring only.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cells import Cell, make, names

from stct import LabelCorrector
from stct.correction.settings import DEFAULT, Settings
from stct.noise_model.theorems import hoeffding_interval

GRID: dict[str, tuple[Any, ...]] = {
    "calibration.usual_rows": (0.0, 10.0, 30.0, 100.0),
    "calibration.weight_precision": (3.0, 10.0, 30.0, 100.0),
    "noise.share": (0.0, 0.15, 0.3, 0.45),
    "noise.hidden": (1.0, 2.0, 3.0, 6.0),
    "noise.elasticity": ((0.1, 0.3), (0.1, 0.5), (0.1, 0.8)),
    "noise.known": ((-1.0, 0.0), (0.5, 0.6), (0.6, 0.7), (0.7, 0.8)),
}
CELLS = [
    *names("labelme", "majority", "one", "clean", "sym20", "idn30"),
    *names("sentiment", "majority", "one", "clean", "sym20"),
    *names("youtube", "majority", "clean", "sym20", "pair30"),
    *names("banking77", "clean", "sym20", "near40", "idn20", "hard20"),
    *names("digits", "clean", "sym50", "idn20", "hard20", "pair40"),
    *(n for t in ("iris", "wine", "cancer") for n in names(t, "clean", "sym50")),
    *(n for t in ("iris", "wine", "cancer") for n in names(t, "pair30", "sym20")),
    *names("diabetes", "clean", "sym20", "sym50", "pair30"),
    *names("cifar", "clean", "aggregate", "random1", "worst", "sym20", "asym20"),
    *names("cifar6c", "clean", "random1", "worst"),
    *names("cifar10c", "sym50", "aggregate", "random1", "worst"),
    *names("pixels", "clean", "sym20", "random1", "worst"),
]
WIDTHS = np.round(np.arange(0.0, 1.51, 0.05), 2)  # of intervals, for the confusion
HELD = 0.95
COLUMNS = ["field", "value", "cell", "seed", "right"]
ESTIMATES = ["error_before", "error_after", "sampling", "confusion"]


def data_set(cell: str) -> str:
    """Columns of the same rows are no data set of their own."""
    name = cell.split(":")[0]
    return "cifar" if name.startswith(("cifar", "pixels")) else name


def vary(field: str, value: Any) -> Settings:
    stage, name = field.split(".")
    changed = replace(getattr(DEFAULT, stage), **{name: value})
    return replace(DEFAULT, **{stage: changed})


def default_of(field: str) -> Any:
    stage, name = field.split(".")
    return getattr(getattr(DEFAULT, stage), name)


def measure(case: Cell, settings: Settings) -> list[float]:
    """Right labels, errors of the estimates, and what their intervals are made of."""
    m = LabelCorrector(settings=settings).fit(case.X, case.given)
    said, right = m.estimated_accuracy_, float((m.labels_ == case.truth).mean())
    given = float((case.given == case.truth).mean())
    sampling, width = hoeffding_interval(len(case.given)), settings.interval
    half = said.before - said.before_interval[0]
    confusion = (half - sampling - width.least) / width.confusion
    errors = said.before - given, said.after - right
    return [right, *errors, sampling, max(confusion, 0.0)]


def compute(data: Path, seeds: int, path: Path) -> pd.DataFrame:
    """Rows of every field, value, cell and seed; the default is the field "default"."""
    if not path.exists():
        path.write_text(",".join(COLUMNS + ESTIMATES) + "\n")
    done = pd.read_csv(path, dtype={"value": str})
    there = set(done[COLUMNS[:4]].itertuples(index=False, name=None))
    wanted = [(f, v) for f, values in GRID.items() for v in values]
    wanted = [(f, v) for f, v in wanted if v != default_of(f)]
    for cell in CELLS:
        for seed in range(seeds):
            todo: list[tuple[str, Any]] = [("default", "default"), *wanted]
            todo = [(f, v) for f, v in todo if (f, str(v), cell, seed) not in there]
            case = make(cell, data, seed) if todo else None
            if case is None:
                if todo:
                    print(f"{cell}: its data are not here")
                continue
            for field, value in todo:
                settings = DEFAULT if field == "default" else vary(field, value)
                row = [field, str(value), cell, seed, *measure(case, settings)]
                with path.open("a", newline="") as file:
                    csv.writer(file).writerow(row)
            print(f"{cell} {seed}", flush=True)
    return pd.read_csv(path, dtype={"value": str})


def report(rows: pd.DataFrame) -> str:
    """Make the tables that settings.py cites."""
    rows = rows.assign(data_set=rows.cell.map(data_set))
    return "\n".join([*field_tables(rows), *interval_table(rows)])


def field_tables(rows: pd.DataFrame) -> list[str]:
    """Right labels by field, value and data set."""
    default = rows[rows.field == "default"]
    lines = ["# Fitted settings: right labels in %, mean of the cells of a data set\n"]
    for field in GRID:
        same = default.assign(value=str(default_of(field)))
        some = pd.concat([rows[rows.field == field], same])
        cells = 100 * some.groupby(["value", "data_set", "cell"]).right.mean()
        table = cells.groupby(["value", "data_set"]).mean().unstack()
        table = table.reindex([str(v) for v in GRID[field]])
        ours = table.loc[str(default_of(field))]
        lines += [f"## {field}: default {default_of(field)}\n"]
        lines.append("| value | mean | " + " | ".join(table) + " |")
        lines.append("|" + "---|" * (2 + len(table.columns)))
        for value in table.index:
            numbers = " | ".join(f"{x:.2f}" for x in table.loc[value])
            lines.append(f"| {value} | {table.loc[value].mean():.2f} | {numbers} |")
        chosen = {d: table.drop(columns=d).mean(axis=1).idxmax() for d in table}
        gains = [f"{v} ({table.loc[v, d] - ours[d]:+.2f})" for d, v in chosen.items()]
        lines.append("| best without it (gain) | | " + " | ".join(gains) + " |\n")
    return lines


def interval_table(rows: pd.DataFrame) -> list[str]:
    """How wide intervals must be, and whether that holds on the data set left out.

    Labels that follow the features (``hard``) are left out: no width is enough, and the
    summary says that they cannot be seen.
    """
    rows = rows[(rows.field == "default") & ~rows.cell.str.contains(":hard")]

    def held(some: pd.DataFrame, width: float) -> float:
        half = some.sampling + DEFAULT.interval.least + width * some.confusion
        inside = [(some[f"error_{w}"].abs() <= half) for w in ("before", "after")]
        return float(np.mean(inside))

    def smallest(some: pd.DataFrame) -> float:
        return next((w for w in WIDTHS if held(some, w) >= HELD), WIDTHS[-1])

    lines = [f"## interval.confusion: 95% of the cells need {smallest(rows):.2f}\n"]
    lines += ["| left out | width | intervals that hold |", "|---|---|---|"]
    total = 0.0
    for name, mine in rows.groupby("data_set"):
        width = smallest(rows[rows.data_set != name])
        share = held(mine, width)
        total += share * len(mine)
        count = f"{100 * share:.0f}% of {2 * len(mine)}"
        lines.append(f"| {name} | {width:.2f} | {count} |")
    lines.append(f"| all | | {100 * total / len(rows):.1f}% of {2 * len(rows)} |\n")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of the data")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("battery-output"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = compute(args.data, args.seeds, args.out / "settings.csv")
    text = report(rows)
    (args.out / "settings.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
