"""The experiments that train: Tables I to IV, VI, VII and the curves of Fig. 4.

    python experiments/training.py DATA --scale cpu    # digits, 10,000 of CIFAR-10
    python experiments/training.py DATA --scale paper  # CIFAR-10 and -100, for a GPU

DATA is a folder that holds `cifar-10-batches-py` and `cifar-100-python` as far as they
are needed, and for CIFAR-N its authors' `CIFAR-10_human.pt`, `CIFAR-100_human.pt` (the
digits need nothing). Every cell is one `stct train` by its command
line; a variant is a list of settings. SimCLR, which sees no label, runs once for each
set of images and seed and is shared through --init. Runs are kept in experiments/runs;
a killed one goes on where it was. The truth makes the noise and marks the result only.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from runner import HERE, Cell, Experiment, main

from stct import noise
from stct.data.cifar_n import with_human_labels
from stct.data.images import ImageSet, read_images
from stct.data.tables import read_table

RUNS = HERE / "runs"
PRESETS = {
    "digits": "tiny",
    "cifar10-10k": "cpu",
    "cifar10": "cifar10",
    "cifar100": "cifar100",
}
FLIPS = {"cifar100": noise.CIFAR100_FLIPS}  # the others: CIFAR-10's map

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
ABLATED = ["symmetric:0.5", "symmetric:0.8"]


class Task(NamedTuple):
    """Images (n, h, w, c) uint8, given and true labels (n,), and a clean test set."""

    images: NDArray[np.uint8]
    given: NDArray[np.intp]
    truth: NDArray[np.intp]
    test_images: NDArray[np.uint8]
    test_truth: NDArray[np.intp]


def load(path: Path) -> Path:
    """Leave reading to the cells: each needs one data set."""
    return path


def make_task(folder: Path, dataset: str, noise_name: str, seed: int) -> Task:
    """Read a data set and put noise into its training labels."""
    if dataset == "digits":
        images, truth, test_images, test_truth = _digits(seed)
    else:
        name = "cifar-100-python" if dataset == "cifar100" else "cifar-10-batches-py"
        most = 10_000 if dataset == "cifar10-10k" else None
        images, truth = _cifar(folder / name, "train", most)
        test_images, test_truth = _cifar(folder / name, "test", None)
    kind, rate = noise_name.split(":")
    if kind == "human":
        file = "CIFAR-100_human.pt" if dataset == "cifar100" else "CIFAR-10_human.pt"
        read = with_human_labels(read_images(folder / name), folder / file, rate)
        return Task(images, _codes(read, most), truth, test_images, test_truth)
    rng = np.random.default_rng(seed)
    if kind == "symmetric":
        noisy = noise.symmetric(truth, int(truth.max()) + 1, float(rate), rng)
    else:
        flips = FLIPS.get(dataset, noise.CIFAR10_FLIPS)
        noisy = noise.asymmetric(truth, float(rate), rng, flips)
    return Task(images, noisy.labels, truth, test_images, test_truth)


def _digits(seed: int) -> tuple[Any, ...]:
    """Four of five of scikit-learn's digits to train on, the others to test on."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 8, 8, 1) * (255 / 16)).astype(np.uint8)
    order = np.random.default_rng([seed, 1]).permutation(len(labels))
    images, truth = images[order], labels[order].astype(np.intp)
    n = len(truth) * 4 // 5
    return images[:n], truth[:n], images[n:], truth[n:]


def _cifar(path: Path, split: str, most: int | None) -> tuple[Any, NDArray[np.intp]]:
    """Images and class numbers; with ``most`` the first ones."""
    read = read_images(path, split=split)
    return read.images[:most], _codes(read, most)


def _codes(read: ImageSet, most: int | None) -> NDArray[np.intp]:
    number = {name: code for code, name in enumerate(read.classes or ())}
    assert read.labels is not None
    return np.array([number[label] for label in read.labels[:most]], dtype=np.intp)


def measure(folder: Path, cell: Cell) -> dict[str, Any]:
    """Train one variant and mark its labels and its classifier."""
    dataset, seed = cell["dataset"], cell["seed"]
    task = make_task(folder, dataset, cell["noise"], seed)
    words = [str(v).replace("/", "").replace(" ", "-") for v in cell.values()]
    place = RUNS / "-".join(words)
    place.mkdir(parents=True, exist_ok=True)
    _write(place / "train.npz", task.images, task.given)
    _write(place / "test.npz", task.test_images, task.test_truth)
    settings = VARIANTS[cell["variant"]]
    init, pretrain_seconds = None, 0.0
    if "pretrain.epochs=0" not in settings:
        init, pretrain_seconds = pretrained(place, dataset, seed)
    summary = train(place, dataset, seed, settings, init)
    rounds = summary["training"]["rounds"]
    files = [place / "run" / f"labels-round-{r['round']:02d}.csv" for r in rounds]
    right = [_right(file, task) for file in files]
    final = _right(place / "run" / "labels.csv", task)
    return {
        "images": len(task.images),
        "actual_noise": _percent(np.mean(task.given != task.truth)),
        "label_accuracy": final if "correct.enabled=false" not in settings else "",
        "test_accuracy": _percent(rounds[-1]["test_accuracy"]),
        "label_curve": " ".join(map(str, right)),
        "test_curve": " ".join(str(_percent(r["test_accuracy"])) for r in rounds),
        "loss_curve": " ".join(map(str, _losses(place / "run", len(rounds)))),
        "pretrain_seconds": round(pretrain_seconds, 1),
    }


def pretrained(place: Path, dataset: str, seed: int) -> tuple[Path, float]:
    """Give SimCLR's encoder for these images and this seed, made on first use."""
    shared = RUNS / f"{dataset}-pretrained-{seed}"
    if not (shared / "run" / "summary.json").exists():
        shared.mkdir(parents=True, exist_ok=True)
        for name in ("train.npz", "test.npz"):
            (shared / name).write_bytes((place / name).read_bytes())
        train(shared, dataset, seed, SIMCLR, None)
    summary = json.loads((shared / "run" / "summary.json").read_text("utf-8"))
    return shared / "run" / "pretrained.safetensors", float(summary["seconds"])


def train(
    place: Path,
    dataset: str,
    seed: int,
    settings: list[str],
    init: Path | None,
) -> dict[str, Any]:
    """Run ``stct train``, or go on with a run that was stopped; give its summary."""
    run = place / "run"
    if not (run / "summary.json").exists():
        command = [sys.executable, "-m", "stct", "train", "--quiet"]
        if (run / "checkpoint.safetensors").exists():
            command += ["--resume", str(run)]
        else:
            _discard(run)
            command += [str(place / "train.npz"), "--test", str(place / "test.npz")]
            command += ["--preset", PRESETS[dataset], "--seed", str(seed)]
            command += ["-o", str(run)]
            command += ["--init", str(init)] if init else []
            for text in settings:
                command += ["--set", text]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise ValueError(f"{run}: stct train failed: {lines[-1]}")
    return dict(json.loads((run / "summary.json").read_text("utf-8")))


def _discard(run: Path) -> None:
    """Put a run that was stopped before its first checkpoint out of the way."""
    if run.exists():
        run.rename(run.with_name(f"{run.name}-stopped-{int(time.time())}"))


def _write(path: Path, images: NDArray[Any], labels: NDArray[Any]) -> None:
    if not path.exists():
        temporary = path.with_name(f".{path.name}")
        np.savez(temporary, images=images, labels=labels)
        temporary.rename(path)


def _right(path: Path, task: Task) -> float:
    """Share of right labels in a labels file, in per cent."""
    labels = np.array(read_table(path).values("label"))
    return _percent(np.mean(labels == task.truth.astype(str)))


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
    title="Everything that trains: Tables I to IV, VI, VII and Fig. 4.",
    data="folder with cifar-10-batches-py, cifar-100-python",
    grids={
        "cpu": [
            *grid(["digits"], [*SYMMETRIC, *ASYMMETRIC], MAIN, 3),
            *grid(["digits"], ABLATED, STEPS | LOSSES, 3),
            *grid(["cifar10-10k"], ABLATED, VARIANTS, 1),
        ],
        "paper": [
            *grid(["cifar10", "cifar100"], [*SYMMETRIC, *ASYMMETRIC], MAIN, 3),
            *grid(["cifar10", "cifar100"], ABLATED, STEPS | LOSSES, 3),
            *grid(["cifar10"], HUMAN, MAIN, 3),
            *grid(["cifar100"], ["human:noisy"], MAIN, 3),
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
