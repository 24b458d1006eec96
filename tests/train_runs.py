"""Small runs of ``stct train``: their settings, their files, their processes."""

import csv
import json
import os
import subprocess
import sys
import time

from command import stct

FAST = [
    *("--preset", "tiny", "--set", "pretrain.epochs=3", "--set", "srl.steps=15"),
    *("--set", "pretrain.batch_size=64", "--set", "num_rounds=2"),
    *("--set", "srl.batch_size=16", "--set", "srl.unlabeled_batch_size=32"),
    *("--set", "srl.num_anchors=16", "--set", "select.num_neighbors=15"),
]
RESULTS = ["model.safetensors", "labels.csv", "soft_labels.npz", "patch.csv"]


def succeed(*arguments):
    done = stct(*arguments, cwd=".")
    assert done.returncode == 0, done.stderr
    return done


def start_stct(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "stct", *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def torchrun(processes, *arguments):
    """Start several processes of a module or script and wait for them."""
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", processes),
        *("--master-port", 20000 + os.getpid() % 20000, *arguments),
    ]
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=240,
        check=False,
    )


def metrics(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def logged(folder):
    """The metrics without what a clock says."""
    return [
        {k: v for k, v in entry.items() if k != "seconds"} for entry in metrics(folder)
    ]


def read_csv(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def place_of(folder):
    """Where the last checkpoint stands: its texts."""
    from safetensors import safe_open

    with safe_open(folder / "checkpoint.safetensors", framework="np") as file:
        return file.metadata()


def reached(folder, number):
    """Is the last checkpoint in this round or a later one?"""
    if not (folder / "checkpoint.safetensors").exists():
        return False
    place = place_of(folder)
    return (int(place["round"]), int(place["step"])) >= (number, 1)


def wait_until(process, condition):
    for _ in range(6000):
        if condition() or process.poll() is not None:
            return
        time.sleep(0.02)
    raise AssertionError("nothing happened in two minutes")


def assert_same_results(folder, other, *more):
    for name in [*RESULTS, *more]:
        assert (folder / name).read_bytes() == (other / name).read_bytes(), name
