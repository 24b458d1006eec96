"""Training: what it adds to the network's own cost. Ratios in one run.

    python benchmarks/train.py [--rows 50000] [--repeats 5]

1. SRL step: draw, augment, losses, optimizer, against the bare forward and backward
   of as many images through the same network (limit 1.15).
2. Augmentation: its share of an SRL step on the `cpu` preset (limit 0.15).
3. k-NN selection: Y_p of Eq. (10) for 50,000 x 128 and k = 2,000 against
   scikit-learn's exact neighbours and a vote (limit 0.5), and its extra memory (limit
   1 GB).

The least of several repeats is reported: on a shared machine the rest is other work.
"""

import argparse
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from lightning_fabric import Fabric

from stct.train import networks, srl
from stct.train.images import Images
from stct.train.presets import preset
from stct.train.selection import neighbor_labels
from stct.train.state import State, generator_at

NUM_NEIGHBORS = 2000
COLUMNS, CLASSES = 128, 10


def least(function: Callable[[], object], repeats: int) -> float:
    """Give the seconds of the fastest call."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def srl_step(repeats: int) -> None:
    config = preset("cpu")
    settings = config.srl
    fabric = Fabric(accelerator="cpu", devices=1)
    rng = np.random.default_rng(0)
    images = Images(
        rng.integers(0, 256, (4096, 32, 32, 3), dtype=np.uint8), fabric.device
    )
    mean, std = images.mean_and_std()
    network = networks.build(
        config.encoder,
        num_classes=CLASSES,
        mean=mean,
        std=std,
        generator=generator_at(0, "weights"),
        image_shape=images.chw,
    )
    state = State(network, fabric.setup_module(network), phase="srl", round=1)
    state.labels = rng.integers(0, CLASSES, len(images))
    state.clean = rng.random(len(images)) < 0.3
    rows = srl.Rows.of(state)
    optimizer = state.sgd(0.01, 0.9, 5e-4, fabric)
    network.train()

    def draw() -> srl.Batch:
        generator = generator_at(0, "batch")
        return srl.draw_batch(images, rows, settings, config.augment, generator, fabric)

    def step() -> None:
        loss = srl.forward(state.module, draw(), settings)
        optimizer.zero_grad()
        fabric.backward(loss.total)
        optimizer.step()

    # As many images as the step sends through the network: some with a gradient,
    # the targets and anchors without.
    taught = torch.rand(settings.batch_size + settings.unlabeled_batch_size, 3, 32, 32)
    seen = torch.rand(settings.unlabeled_batch_size + settings.num_anchors, 3, 32, 32)
    labels = torch.randint(0, CLASSES, (len(taught),))

    def bare() -> None:
        with torch.no_grad():
            network(seen, classify=True, project=True)
        F.cross_entropy(network(taught, classify=True).logits, labels).backward()

    def everything_taught() -> None:
        both = torch.cat([taught, seen])
        logits = network(both, classify=True).logits
        F.cross_entropy(logits, torch.zeros(len(both), dtype=torch.long)).backward()

    steps, bares = least(step, repeats), least(bare, repeats)
    full, draws = least(everything_taught, repeats), least(draw, repeats)
    print(f"SRL step                       {steps * 1e3:8.1f} ms")
    print(
        f"bare passes, same gradients    {bares * 1e3:8.1f} ms  {steps / bares:.2f} x"
    )
    print(f"bare passes, all with gradient {full * 1e3:8.1f} ms  {steps / full:.2f} x")
    print(f"drawing and augmenting         {draws * 1e3:8.1f} ms  {draws / steps:.1%}")


def selection(which: str, rows: int) -> None:
    """Run one side in this process and print its seconds and its peak memory."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CLASSES, COLUMNS))
    labels = rng.integers(0, CLASSES, rows)
    H = (centres[labels] + rng.normal(size=(rows, COLUMNS))).astype(np.float32)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    start = time.perf_counter()
    if which == "ours":
        Y_p = neighbor_labels(H, labels, CLASSES, NUM_NEIGHBORS)
    else:
        Y_p = scikit_learn_neighbors(H, labels)
    seconds = time.perf_counter() - start
    extra = memory("VmHWM") - before
    digest = float(Y_p[np.arange(rows), labels].sum())
    print(f"{seconds} {extra} {digest}")


def memory(name: str) -> float:
    """Give a number of this process's memory in MB, Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(name)]
    return int(line.split()[1]) / 2**10


def scikit_learn_neighbors(H: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Exact neighbours by cosine in blocks, and their vote."""
    from sklearn.neighbors import NearestNeighbors

    unit = H / np.linalg.norm(H, axis=1, keepdims=True)
    search = NearestNeighbors(n_neighbors=NUM_NEIGHBORS, algorithm="brute").fit(unit)
    Y_p = np.zeros((len(H), CLASSES), dtype=np.float32)
    for start in range(0, len(H), 1000):
        near = search.kneighbors(
            unit[start : start + 1000], NUM_NEIGHBORS + 1, return_distance=False
        )[:, 1:]
        votes = labels[near]
        for label in range(CLASSES):
            Y_p[start : start + 1000, label] = (votes == label).mean(axis=1)
    return Y_p


def compare_selection(rows: int) -> None:
    results = {}
    for which in ("ours", "scikit-learn"):
        done = subprocess.run(
            [sys.executable, __file__, "--selection", which, "--rows", str(rows)],
            check=True,
            capture_output=True,
            text=True,
        )
        results[which] = [float(number) for number in done.stdout.split()]
    (ours, memory, mine), (theirs, their_memory, check) = results.values()
    print(
        f"Y_p of {rows:,} x {COLUMNS}, k = {NUM_NEIGHBORS:,}: {ours:.1f} s, "
        f"{memory:.0f} MB extra"
    )
    print(
        f"scikit-learn               {theirs:.1f} s, {their_memory:.0f} MB extra; "
        f"ratio {ours / theirs:.2f}"
    )
    print(f"mean agreement {mine / rows:.5f} and {check / rows:.5f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--selection", choices=["ours", "scikit-learn"], help="inner")
    arguments = parser.parse_args()
    if arguments.selection:
        selection(arguments.selection, arguments.rows)
        return
    print(f"{platform.machine()}, {torch.get_num_threads()} threads")
    srl_step(arguments.repeats)
    compare_selection(arguments.rows)


if __name__ == "__main__":
    main()
