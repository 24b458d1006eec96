"""Print the paper's tables beside ours: paper / ours +- spread (n), empty if not run.

    python experiments/tables.py [--results DIR] [--output results/tables.md]

From `paper.csv` and `results/*.csv` alone. A doubtful cell of the paper has a `?`.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runner import HERE, RESULTS, read_rows

from stct.data.outputs import whole_file

SYMMETRIC = ["symmetric:0.2", "symmetric:0.5", "symmetric:0.8", "symmetric:0.9"]
ASYMMETRIC = ["asymmetric:0.2", "asymmetric:0.4"]
LABELS = ["symmetric:0.5", "symmetric:0.8", "asymmetric:0.4"]
VALIDATED = ["symmetric:0.5", "symmetric:0.8", "asymmetric:0.2", "asymmetric:0.4"]
RANDOM = ["random1", "random2", "random3"]
HUMAN = ["human:aggregate", "human:random1", "human:worst"]
ABLATED = ["symmetric:0.5", "symmetric:0.8"]
EVERY_STEP = ["w/o NMC", "w/o SRL", "STCT"]
EVERY_LOSS = ["w/o L_L", "w/o L_U", "w/o L_Con", "STCT"]
RIGHT, TEST = "label_accuracy", "test_accuracy"
WORDS = {RIGHT: "right labels after correction (%)", TEST: "test accuracy (%)"}
# What we trained on, and the paper's data set of the same name.
TRAINED = {
    "cifar10": ("CIFAR-10, paper scale", "CIFAR-10"),
    "cifar100": ("CIFAR-100, paper scale", "CIFAR-100"),
    "cifar10-10k": ("10,000 CIFAR-10 images, CPU scale", "CIFAR-10"),
    "digits": ("1,437 digits, CPU scale (paper: CIFAR-10)", "CIFAR-10"),
}

Rows = Sequence[Mapping[str, str]]


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


def blocks(results: Path) -> list[Block]:
    """List all tables, ours empty where nothing was run."""
    training = read_rows(results / "training.csv")
    frozen = read_rows(results / "label_accuracy.csv")
    made = []
    for name, (on, dataset) in TRAINED.items():
        ran = [
            {**row, "method": row["variant"]}
            for row in training
            if row["dataset"] == name
        ]
        if not ran and name not in ("cifar10", "cifar100"):
            continue
        main = ["Cross-Entropy", "DivideMix", "DMLP", "STCT split", "STCT"]
        split = {"STCT split": "STCT"}
        for block in (
            Block("Table I", on, dataset, TEST, SYMMETRIC, main, ran, split),
            Block("Table II", on, dataset, TEST, ASYMMETRIC, main, ran, split),
            Block("Table III", on, dataset, RIGHT, LABELS, main[1:], ran, split),
            Block("Table VI", on, dataset, TEST, ABLATED, EVERY_STEP, ran),
            Block("Table VI", on, dataset, RIGHT, ABLATED, EVERY_STEP, ran),
            Block("Table VII", on, dataset, TEST, ABLATED, EVERY_LOSS, ran),
            Block("Table VII", on, dataset, RIGHT, ABLATED, EVERY_LOSS, ran),
        ):
            made.append(block)
    on = "50,000 frozen CIFAR-10 embeddings (no SRL)"
    methods = ["given", "paper", "split", "loo"]
    same = {"paper": "STCT", "split": "STCT", "loo": "STCT"}
    noises = [*SYMMETRIC, *ASYMMETRIC]
    made.append(
        Block("Table III", on, "CIFAR-10", RIGHT, noises, methods, frozen, same)
    )
    made.append(Block("Table IV", on, "", RIGHT, HUMAN, methods, frozen))
    people = [f"human:{n}" for n in ("aggregate", *RANDOM, "worst")]
    three = ["Cross-Entropy", "DivideMix", "STCT"]
    for where, source, noises in (
        ("CIFAR-10N", "cifar10", people),
        ("CIFAR-100N", "cifar100", ["human:noisy"]),
        ("Clothing-1M", "clothing1m", ["web"]),
    ):
        ran = [
            {**row, "method": row["variant"]}
            for row in training
            if row["dataset"] == source
        ]
        item = "Table V" if source == "clothing1m" else "Table IV"
        made.append(Block(item, where, where, TEST, noises, three, ran))
    rules = {"loss": "Loss", "clustering": "Clustering", "knn": "KNN", "noisy": "STCT"}
    for method in ("split", "paper"):
        ran = [
            {**row, "method": row["validation"]}
            for row in read_rows(results / "validation_sets.csv")
            if row["method"] == method
        ]
        where = f"{on}, method `{method}`"
        chosen = list(rules)
        made.append(
            Block("Table VIII", where, "CIFAR-10", RIGHT, VALIDATED, chosen, ran, rules)
        )
    order = [f"Table {n}" for n in ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")]
    return sorted(made, key=lambda block: order.index(block.item))


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
    theirs = [
        row
        for row in paper
        if (row["item"], row["dataset"], row["metric"], row["noise"])
        == (block.item, block.dataset, block.metric, noise)
        and row["method"] == block.names.get(method, method)
    ]
    said = theirs[0]["printed"] + ("?" if theirs[0]["doubt"] else "") if theirs else ""
    values = [
        float(row[block.metric])
        for row in block.ours
        if (row["method"], row["noise"]) == (method, noise) and row[block.metric]
    ]
    if not values:
        return f"{said} / "
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{said} / {statistics.mean(values):.1f}{spread} ({len(values)})"


def main() -> None:
    """Print all tables, or write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path, help="file to write instead")
    options = parser.parse_args()
    paper = read_rows(HERE / "paper.csv")
    text = [
        "# The paper's tables beside ours",
        "",
        "Made by `python experiments/tables.py`. Each cell: paper / ours ± standard "
        "deviation over seeds (n). `?`: doubtful in the paper, see `paper.csv`.",
        "",
    ]
    for block in blocks(options.results):
        text += lines(block, paper)
    if options.output is None:
        print("\n".join(text))
        return
    with whole_file(options.output, overwrite=True) as temporary:
        temporary.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
