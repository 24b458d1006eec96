"""Kill ``stct correct``, or ``train``, at random moments: the same final bytes.

    python tests/fuzz/kill.py --kills 100
    python tests/fuzz/kill.py --kills 20 --train

A forked child, in which everything is imported already, runs the command and is killed
(SIGKILL) after a random time. Then the next child runs it again, or goes on with the
run. ``correct`` runs to its end after each kill; ``train`` goes on through many.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from kinds import _table

CORRECT = ["correct", "t.csv", "--embeddings", "e.npy", "-o", "out", "--quiet"]
TRAIN = [
    *("--preset", "tiny", "--set", "pretrain.epochs=2", "--set", "srl.steps=8"),
    *("--set", "pretrain.batch_size=32", "--set", "num_rounds=2"),
    *("--set", "srl.batch_size=8", "--set", "srl.unlabeled_batch_size=16"),
    *("--set", "srl.num_anchors=8", "--set", "select.num_neighbors=10"),
    *("--quiet", "--save-every", "0"),
]
RESULTS = ["labels.csv", "soft_labels.npz", "patch.csv"]


def start(arguments):
    """Run a command in a child; give its number."""
    child = os.fork()
    if child:
        return child
    from stct import cli

    sys.argv = ["stct", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        os._exit(int(end.code or 0))
    finally:
        os._exit(1)


def finish(arguments):
    """Give the exit code and the seconds."""
    began = time.monotonic()
    _, status = os.waitpid(start(arguments), 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - began


def kill_after(arguments, seconds):
    """Run and kill; tell whether it was still running."""
    child = start(arguments)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def digests(folder, names):
    return [hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in names]


def correct(here, kills, chance):
    _table(here)
    assert finish(CORRECT)[0] == 0
    names = [*RESULTS, "report.html", "review.npz"]
    expected = digests(here / "out", names)
    seconds = finish([*CORRECT, "--overwrite"])[1]
    done = 0
    while done < kills:
        fresh = chance.random() < 0.5  # else an earlier output is replaced
        if fresh:
            shutil.rmtree(here / "out", ignore_errors=True)
        done += kill_after([*CORRECT, "--overwrite"], chance.uniform(0, seconds))
        if (here / "out").exists():  # labels are there whole, or not at all
            assert digests(here / "out", RESULTS) == expected[:3], done
        elif not fresh:  # between two renames: the old one comes back
            assert list(here.glob(".out.*.old")), done
        code, seconds = finish([*CORRECT, "--overwrite"])
        assert code == 0, done
        assert digests(here / "out", names) == expected, done
        print(f"correct: {done} kills so far", flush=True)
        left = {path.name for path in here.iterdir()}
        assert left == {"t.csv", "e.npy", "out"}, left
        assert not [p for p in (here / "out").iterdir() if p.name.startswith(".")]
    return done


def train(here, kills, chance):
    import stct.train.command  # noqa: F401

    draw = np.random.default_rng(0)
    labels = np.arange(60) % 3
    images = draw.integers(0, 60, (60, 8, 8), dtype=np.uint8)
    images[np.arange(60), labels] += 150
    np.savez(
        here / "i.npz", images=images, labels=(labels + (draw.random(60) < 0.2)) % 3
    )
    code, seconds = finish(["train", "i.npz", "-o", "whole", *TRAIN])
    assert code == 0
    names = [*RESULTS, "model.safetensors", "labels-round-01.csv"]
    expected = digests(here / "whole", names)
    done = 0
    while done < kills:
        shutil.rmtree(here / "run", ignore_errors=True)
        command = ["train", "i.npz", "-o", "run", *TRAIN]
        moments = []  # what the run had when it was killed
        for _ in range(6):
            done += kill_after(command, chance.uniform(0, seconds / 2))
            moments.append(sorted(p.name for p in here.glob("run/*")))
            if (here / "run" / "config.json").exists():
                command = ["train", "--resume", "run", "--quiet", "--save-every", "0"]
        assert finish(command)[0] == 0, done
        found = zip(names, digests(here / "run", names), expected, strict=True)
        other = [name for name, got, wanted in found if got != wanted]
        assert not other, (done, other, moments)
        print(f"train: {done} kills so far", flush=True)
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        kill = train if asked.train else correct
        done = kill(Path(folder), asked.kills, random.Random(asked.seed))
        os.chdir("/")
    print(f"{kill.__name__}: {done} kills, the same final bytes each time")


if __name__ == "__main__":
    main()
