"""Print the paper's tables beside ours: paper / ours +- spread (n), empty if not run.

    python experiments/tables.py [--results DIR] [--output results/tables.md]

From `paper.csv` and `results/*.csv` alone. A doubtful cell of the paper has a `?`.
Results of other data or of another scale are tables of their own.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from drawing import where
from reading import DATASETS, SCALES, Results, Rows, check_folder, groups
from runner import HERE, RESULTS, one_line, read_rows
from sweeps import sweeps, value

from stct.data.outputs import whole_file

SYMMETRIC = ["symmetric:0.2", "symmetric:0.5", "symmetric:0.8", "symmetric:0.9"]
ASYMMETRIC = ["asymmetric:0.2", "asymmetric:0.4"]
LABELS = ["symmetric:0.5", "symmetric:0.8", "asymmetric:0.4"]
VALIDATED = ["symmetric:0.5", "symmetric:0.8", "asymmetric:0.2", "asymmetric:0.4"]
THREE_HUMAN = ["human:aggregate", "human:random1", "human:worst"]
HUMAN = [f"human:{n}" for n in ("aggregate", "random1", "random2", "random3", "worst")]
ABLATED = ["symmetric:0.5", "symmetric:0.8"]
RIGHT, TEST = "label_accuracy", "test_accuracy"
WORDS = {RIGHT: "right labels after correction (%)", TEST: "test accuracy (%)"}
SOURCES = (
    *("training", "label_accuracy", "validation_sets"),
    *("sampling_rate", "clean_validation"),
)
ORDER = [f"Table {n}" for n in ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")]
# What is trained on at a scale, and the paper's data sets of its tables.
TRAINED = {
    "paper": {
        "cifar10": ("CIFAR-10", "CIFAR-10N"),
        "cifar100": ("CIFAR-100", "CIFAR-100N"),
        "clothing1m": ("Clothing-1M", ""),
    },
    "cpu": {"cifar10-10k": ("CIFAR-10", "CIFAR-10N"), "digits": ("CIFAR-10", "")},
}
OURS = {"STCT split": "STCT"}  # our variant, and the paper's method beside it
TABLES = (
    ("Table I", SYMMETRIC, TEST),
    ("Table II", ASYMMETRIC, TEST),
    ("Table III", LABELS, RIGHT),
    ("Table IV", HUMAN, TEST),
    ("Table IV", ["human:noisy"], TEST),
    ("Table V", ["web"], TEST),
    ("Table VI", ABLATED, TEST),
    ("Table VI", ABLATED, RIGHT),
    ("Table VII", ABLATED, TEST),
    ("Table VII", ABLATED, RIGHT),
)


class Block(NamedTuple):
    """One table: which cells, and where ours are."""

    item: str
    on: str  # what ours ran on
    dataset: str  # of the paper
    metric: str
    noises: list[str]
    methods: list[str]  # our names
    ours: Rows
    names: Mapping[str, str] = {}  # our method to the paper's, where they differ


def blocks(results: Path, paper: Rows) -> list[Block]:
    """List all tables, ours empty where nothing was run."""
    made = [*trained(results, paper), *corrected(results), *validated(results)]
    return sorted(made, key=lambda block: ORDER.index(block.item))


def trained(results: Path, paper: Rows) -> Iterable[Block]:
    """Give the tables of networks: those of the paper's scale in any case."""
    found = groups(results, "training")
    if not any(part.scale == "paper" for part in found):
        found = [Results(results, "", "paper"), *found]
    for part in found:
        rows = [{**row, "method": row["variant"]} for row in part.rows("training")]
        oldest = next(other for other in found if other.scale == part.scale)
        for name, (dataset, people) in TRAINED.get(part.scale, {}).items():
            ran = where(rows, dataset=name)
            if not ran and part.scale != "paper":
                continue
            on = f"{DATASETS[name]}, {SCALES[part.scale]}"
            on += f" (paper: {dataset})" if name == "digits" else ""
            on += "" if part == oldest else f", data `{part.data}`"
            for item, noises, metric in TABLES:
                theirs = people if item == "Table IV" else dataset
                methods = _methods(paper, item, theirs, noises, part.scale)
                what = f"{on}, labels of {people}" if item == "Table IV" else on
                if methods:
                    yield Block(item, what, theirs, metric, noises, methods, ran, OURS)


def _methods(
    paper: Rows, item: str, dataset: str, noises: list[str], scale: str
) -> list[str]:
    """Give all methods of a table at the paper's scale, else those that we train."""
    rows = [r for r in where(paper, item=item, dataset=dataset) if r["noise"] in noises]
    names = list(dict.fromkeys(row["method"] for row in rows))
    if scale != "paper":
        names = [n for n in names if n.startswith(("STCT", "w/o", "Cross-Entropy"))]
    if "STCT" in names and item in ORDER[:5]:
        names.insert(names.index("STCT"), "STCT split")
    return names


def corrected(results: Path) -> Iterable[Block]:
    """Give the tables of labels corrected on frozen embeddings."""
    methods = ["given", "paper", "split", "loo"]
    same = {"paper": "STCT", "split": "STCT", "loo": "STCT"}
    for part in _any(results, "label_accuracy"):
        rows, on = part.rows("label_accuracy"), f"{part.on} (no SRL)"
        noises = [*SYMMETRIC, *ASYMMETRIC]
        yield Block("Table III", on, "CIFAR-10", RIGHT, noises, methods, rows, same)
        yield Block("Table IV", on, "", RIGHT, THREE_HUMAN, methods, rows)


def validated(results: Path) -> Iterable[Block]:
    """Give the tables of validation sets by rules."""
    rules = {"loss": "Loss", "clustering": "Clustering", "knn": "KNN", "noisy": "STCT"}
    for part in _any(results, "validation_sets"):
        rows = part.rows("validation_sets")
        for method in ("split", "paper"):
            ran = [
                {**row, "method": row["validation"]}
                for row in where(rows, method=method)
            ]
            yield Block(
                "Table VIII",
                f"{part.on} (no SRL), method `{method}`",
                "CIFAR-10",
                RIGHT,
                VALIDATED,
                list(rules),
                ran,
                rules,
            )


def _any(results: Path, name: str) -> list[Results]:
    """Give the groups of an experiment; an empty one if it has not been run."""
    return groups(results, name) or [Results(results, "cifar10_embeddings", "full")]


def lines(block: Block, paper: Rows) -> list[str]:
    """Write one table in Markdown."""
    head = f"### {block.item}, {WORDS[block.metric]}: {block.on}"
    made = [head, "", f"| paper / ours (n) | {' | '.join(block.noises)} |"]
    made.append("|" + "---|" * (len(block.noises) + 1))
    for method in block.methods:
        cells = [cell(block, paper, method, noise) for noise in block.noises]
        made.append(f"| {method} | {' | '.join(cells)} |")
    return [*made, ""]


def cell(block: Block, paper: Rows, method: str, noise: str) -> str:
    """Write ``paper / ours +- spread (n)``."""
    theirs = where(
        paper,
        item=block.item,
        dataset=block.dataset,
        metric=block.metric,
        noise=noise,
        method=block.names.get(method, method),
    )
    said = theirs[0]["printed"] + ("?" if theirs[0]["doubt"] else "") if theirs else ""
    ours = where(block.ours, method=method, noise=noise)
    return f"{said} / {value(ours, block.metric)}"


def main() -> None:
    """Print all tables, or write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path, help="file to write instead")
    options = parser.parse_args()
    with one_line("tables"):
        check_folder(options.results)
        absent = [f"{n}.csv" for n in SOURCES if not groups(options.results, n)]
        if absent:
            said = f"tables: no rows yet, so empty cells: {', '.join(absent)}"
            print(said, file=sys.stderr)
        text = write(options.results)
        if options.output is None:
            print(text)
            return
        with whole_file(options.output, overwrite=True) as temporary:
            temporary.write_text(text, encoding="utf-8")


def write(results: Path) -> str:
    """Write all tables."""
    paper = read_rows(HERE / "paper.csv")
    text = [
        "# The paper's tables beside ours",
        "",
        "Made by `python experiments/tables.py`. Each cell: paper / ours ± standard "
        "deviation over seeds (n). `?`: doubtful in the paper, see `paper.csv`.",
        "",
    ]
    for block in blocks(results, paper):
        text += lines(block, paper)
    return "\n".join([*text, *sweeps(results)])


if __name__ == "__main__":
    main()
