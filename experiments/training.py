"""The experiments that train: Tables I to VII and the curves of Fig. 4.

    python experiments/training.py DATA --scale cpu    # digits, 10,000 of CIFAR-10
    python experiments/training.py DATA --scale paper  # the paper's data, for a GPU

DATA is a folder that holds `cifar-10-batches-py`, `cifar-100-python` and `clothing1m`
as far as they are needed, and for CIFAR-N its authors' `CIFAR-10_human.pt`,
`CIFAR-100_human.pt` (the digits need nothing). Every cell is one `stct train` by its
command line; a variant is a list of settings. SimCLR, which sees no label, runs once
for each set of images and seed and is shared through --init. Runs are kept in
experiments/runs (`training_runs.py`); a killed one goes on where it was. `seconds`,
machine and commit of a row are those of its run, SimCLR apart.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from runner import HERE, Cell, Experiment, main, name_of_data
from training_data import Ints, Task, make_task
from training_runs import Wanted, make

from stct.cli.extras import TRAINING, require
from stct.data.tables import read_table

RUNS = HERE / "runs"
PRESETS = {
    "digits": "tiny",
    "cifar10-10k": "cpu",
    "cifar10": "cifar10",
    "cifar100": "cifar100",
    "clothing1m": "clothing1m",
}

STEPS = {
    "w/o NMC": ["correct.enabled=false"],
    "w/o SRL": ["srl.enabled=false"],
}
LOSSES = {
    "w/o L_L": ["srl.labeled_weight=0"],
    "w/o L_U": ["srl.unlabeled_weight=0"],
    "w/o L_Con": ["srl.consistency_weight=0"],
}
MAIN = {
    "STCT": [],
    "STCT split": ["correct.method=split"],  # the paper's own loop
    # The same network and as many images, taught the given labels as they are.
    "Cross-Entropy": [
        "pretrain.epochs=0",
        "correct.enabled=false",
        "srl.enabled=false",
    ],
}
VARIANTS = MAIN | STEPS | LOSSES

SIMCLR = ["num_rounds=1", "srl.steps=1"]  # and its encoder is all that is used

SYMMETRIC = [f"symmetric:{rate}" for rate in (0.2, 0.5, 0.8, 0.9)]
ASYMMETRIC = [f"asymmetric:{rate}" for rate in (0.2, 0.4)]
HUMAN = [f"human:{n}" for n in ("aggregate", "random1", "random2", "random3", "worst")]
THREE_HUMAN = ["human:aggregate", "human:random1", "human:worst"]  # as on embeddings
ABLATED = ["symmetric:0.5", "symmetric:0.8"]


def load(path: Path) -> Path:
    """Leave reading to the cells: each needs one data set."""
    require(*TRAINING, extra="train")
    return path


def measure(folder: Path, cell: Cell) -> dict[str, Any]:
    """Train one variant and mark its labels and its classifier."""
    dataset, seed = cell["dataset"], cell["seed"]
    task = make_task(folder, dataset, cell["noise"], seed)
    place = RUNS / name_of_data(folder)
    settings = VARIANTS[cell["variant"]]
    wanted = Wanted(task, PRESETS[dataset], seed, settings)
    pretrain_seconds = 0.0
    if wanted.config().pretrain.epochs:
        simclr = replace(wanted, settings=SIMCLR, labels=False)
        shared = make(place / f"{dataset}-pretrained-{seed}", simclr)
        wanted = replace(wanted, init=shared.run / "pretrained.safetensors")
        pretrain_seconds = shared.seconds
    words = [str(v).replace("/", "").replace(" ", "-") for v in cell.values()]
    made = make(place / "-".join(words), wanted)
    rounds = made.summary["training"]["rounds"]
    return {
        "images": made.summary["rows"],
        **marks(made.run, len(rounds), task, corrected=wanted.config().correct.enabled),
        "test_accuracy": _percent(rounds[-1]["test_accuracy"]),
        "test_curve": " ".join(str(_percent(r["test_accuracy"])) for r in rounds),
        "loss_curve": " ".join(map(str, _losses(made.run, len(rounds)))),
        "pretrain_seconds": round(pretrain_seconds, 1),
        "seconds": made.seconds,
        "machine": made.machine,
        "commit": made.commit,
    }


def marks(run: Path, num_rounds: int, task: Task, *, corrected: bool) -> dict[str, Any]:
    """Mark the labels of a run; empty where nobody knows the true ones."""
    if task.truth is None:
        return {"actual_noise": "", "label_accuracy": "", "label_curve": ""}
    files = [run / f"labels-round-{r:02d}.csv" for r in range(1, num_rounds + 1)]
    return {
        "actual_noise": _percent(np.mean(task.given != task.truth)),
        "label_accuracy": _right(run / "labels.csv", task.truth) if corrected else "",
        "label_curve": " ".join(str(_right(file, task.truth)) for file in files),
    }


def _right(path: Path, truth: Ints) -> float:
    """Share of right labels in a labels file, in per cent."""
    labels = np.array(read_table(path).values("label"))
    return _percent(np.mean(labels == truth.astype(str)))


def _losses(run: Path, num_rounds: int) -> list[float]:
    """Mean training loss of SRL in every round."""
    sums: dict[int, list[float]] = {r: [] for r in range(1, num_rounds + 1)}
    for line in (run / "metrics.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        if entry["phase"] == "srl":
            sums[entry["round"]].append(entry["total"])
    return [round(float(np.mean(v)), 4) if v else float("nan") for v in sums.values()]


def _percent(share: Any) -> float:
    return round(100.0 * float(share), 2)


def grid(
    datasets: list[str], noises: list[str], variants: dict[str, Any], seeds: int
) -> list[Cell]:
    """Give all combinations."""
    return [
        {"dataset": dataset, "noise": name, "variant": variant, "seed": seed}
        for dataset in datasets
        for name in noises
        for variant in variants
        for seed in range(seeds)
    ]


EXPERIMENT = Experiment(
    name="training",
    title="Everything that trains: Tables I to VII and Fig. 4.",
    data="folder with cifar-10-batches-py, cifar-100-python, clothing1m",
    grids={
        "cpu": [
            *grid(["digits"], [*SYMMETRIC, *ASYMMETRIC], MAIN, 3),
            *grid(["digits"], ABLATED, STEPS | LOSSES, 3),
            *grid(["cifar10-10k"], ABLATED, VARIANTS, 1),
            *grid(["cifar10-10k"], THREE_HUMAN, MAIN, 1),
        ],
        "paper": [
            *grid(["cifar10", "cifar100"], [*SYMMETRIC, *ASYMMETRIC], MAIN, 3),
            *grid(["cifar10", "cifar100"], ABLATED, STEPS | LOSSES, 3),
            *grid(["cifar10"], HUMAN, MAIN, 3),
            *grid(["cifar100"], ["human:noisy"], MAIN, 3),
            *grid(["clothing1m"], ["web"], MAIN, 1),
        ],
    },
    metrics=(
        "images",
        "actual_noise",
        "label_accuracy",
        "test_accuracy",
        "label_curve",
        "test_curve",
        "loss_curve",
        "pretrain_seconds",
    ),
    load=load,
    measure=measure,
)

if __name__ == "__main__":
    main(EXPERIMENT)
