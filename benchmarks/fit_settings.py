"""Fit the constants of the default correction, each data set left out in turn.

    python benchmarks/fit_settings.py DATA [--seeds 1] [--out FOLDER]

GRID names the fitted fields of `stct.correction.settings` and the values that are
tried, one field at a time, the others at their defaults. Every value is judged by the
mean share of right labels: over the seeds and cells of a data set, then over the data
sets. Printed, and written to FOLDER/settings.md: the value that all data sets choose,
the values that are chosen without each of them, and what the data set that was left
out gains by its choice over the default. Rows in FOLDER/settings.csv are not computed
again.

True labels are for injecting noise and scoring only.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from cells import make, names

from stct import LabelCorrector
from stct.correction.settings import Settings

GRID: dict[str, tuple[float, ...]] = {
    "calibration.weight_precision": (3.0, 10.0, 30.0, 100.0, 1000.0),
    "calibration.error_cost": (0.0, 0.003, 0.01, 0.03),
    "noise.share": (0.0, 0.1, 0.2, 0.3, 0.4),
    "noise.hidden": (0.0, 1.0, 2.0, 4.0),
    "noise.unseen": (0.0, 0.01, 0.03, 0.1, 0.2),
    "noise.pooled_rows": (30.0, 100.0, 300.0, 1000.0),
    "noise.median_rows": (1.0, 5.0, 20.0, 100.0),
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
    *names("cifar10c", "sym50", "worst"),
]
COLUMNS = ["field", "value", "cell", "seed", "right"]


def data_set(cell: str) -> str:
    """Columns of the same rows are no data set of their own."""
    name = cell.split(":")[0]
    return "cifar" if name.startswith("cifar") else name


def vary(field: str, value: float) -> Settings:
    default: Any = Settings()
    stage, name = field.split(".")
    return replace(
        default, **{stage: replace(getattr(default, stage), **{name: value})}
    )


def default_of(field: str) -> float:
    stage, name = field.split(".")
    return float(getattr(getattr(Settings(), stage), name))


def compute(data: Path, seeds: int, path: Path) -> pd.DataFrame:
    """Right labels of every field, value, cell and seed."""
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    done = pd.read_csv(path)
    there = set(done[COLUMNS[:4]].itertuples(index=False, name=None))
    for cell in CELLS:
        for seed in range(seeds):
            wanted = [(f, v) for f, values in GRID.items() for v in values]
            if all((f, v, cell, seed) in there for f, v in wanted):
                continue
            case = make(cell, data, seed)
            if case is None:
                print(f"{cell}: its data are not here")
                continue
            default: float | None = None
            for field, value in wanted:
                if (field, value, cell, seed) in there:
                    continue
                if default is not None and value == default_of(field):
                    right = default
                else:
                    model = LabelCorrector(settings=vary(field, value))
                    labels = model.fit(case.X, case.given).labels_
                    right = float((labels == case.truth).mean())
                if value == default_of(field):
                    default = right
                with path.open("a", newline="") as file:
                    csv.writer(file).writerow([field, value, cell, seed, right])
            print(f"{cell} {seed} {default}", flush=True)
    return pd.read_csv(path)


def report(rows: pd.DataFrame) -> str:
    """Make the table that settings.py cites."""
    rows = rows.assign(data_set=rows.cell.map(data_set), right=100 * rows.right)
    cells = rows.groupby(["field", "value", "data_set", "cell"]).right.mean()
    means = cells.groupby(["field", "value", "data_set"]).mean().unstack()
    lines = []
    for field in GRID:
        table, default = means.loc[field], default_of(field)
        chosen = {d: float(table.drop(columns=d).mean(axis=1).idxmax()) for d in table}
        gains = {d: table.loc[v, d] - table.loc[default, d] for d, v in chosen.items()}
        both = table.mean(axis=1)
        lines.append(f"## {field}: default {default:g}, all choose {both.idxmax():g}\n")
        lines.append("| value | mean | " + " | ".join(table) + " |")
        lines.append("|" + "---|" * (2 + len(table.columns)))
        for value in table.index:
            numbers = " | ".join(f"{x:.2f}" for x in table.loc[value])
            lines.append(f"| {value:g} | {both[value]:.2f} | {numbers} |")
        row = " | ".join(f"{v:g} ({gains[d]:+.2f})" for d, v in chosen.items())
        lines.append(f"| chosen without it | | {row} |\n")
    return "\n".join(lines)


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
