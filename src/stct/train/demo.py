"""The demonstration with training: 1,797 digits, half of the labels drawn at random.

Run it with ``stct demo``. Four of five digits are trained on; the others, with their
true labels, only measure the result. The truth of the training digits makes the noise
and marks the result; neither correction nor training has an argument for it.
"""

import shlex
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct import noise
from stct.data.outputs import SUMMARY, WRITTEN_BY, sign, whole_folder
from stct.data.summary import as_json
from stct.data.tables import read_table
from stct.demo import EMBEDDINGS, TABLE, Demo, write_inputs
from stct.train.command import new_request, run_training
from stct.train.watching import Show

RATE = 0.5
PRESET = "tiny"
TRAIN, TEST = "digits.npz", "digits-test.npz"
RUN, BASELINE = "run", "cross-entropy"
# The same network and as many steps after SimCLR, which needs no labels and which
# cross-entropy goes without; taught the given labels as they are.
CROSS_ENTROPY = ("pretrain.epochs=0", "correct.enabled=false", "srl.enabled=false")


class Digits(NamedTuple):
    """Noisy digits to train on, clean ones to test on; images (n, 8, 8) uint8."""

    images: NDArray[np.uint8]
    given: NDArray[np.intp]
    truth: NDArray[np.intp]
    test_images: NDArray[np.uint8]
    test_truth: NDArray[np.intp]


def noisy_digits(rate: float, seed: int) -> Digits:
    """Shuffle the digits of scikit-learn, keep a fifth for testing, add noise."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = (pixels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    images, truth = images[order], labels[order].astype(np.intp)
    n = len(truth) * 4 // 5
    given = noise.symmetric(truth[:n], 10, rate, rng).labels
    return Digits(images[:n], given, truth[:n], images[n:], truth[n:])


def run_training_demo(
    folder: Path,
    *,
    overwrite: bool,
    seed: int,
    show: Show,
    assignments: Sequence[str] = (),
) -> Demo:
    """Train with and without the method."""
    digits = noisy_digits(RATE, seed)
    with whole_folder(folder, overwrite=overwrite) as temporary:
        write_digits(temporary, digits)
        files = [TRAIN, TEST, TABLE, EMBEDDINGS, RUN, BASELINE, SUMMARY]
        summary: dict[str, Any] = {"written_by": WRITTEN_BY, "files": files}
        sign(summary, temporary)
        (temporary / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    started = time.perf_counter()
    ours = _run(folder, RUN, assignments, seed, show)
    seconds = time.perf_counter() - started
    plain = _run(folder, BASELINE, [*assignments, *CROSS_ENTROPY], seed, show)
    numbers = {
        "right_before": float(np.mean(digits.given == digits.truth)),
        "right_after": label_accuracy(folder / RUN, digits.truth),
        "estimated_after": ours["estimated_accuracy"]["after"],
        "test_accuracy": ours["training"]["test_accuracy"],
        "cross_entropy_test_accuracy": plain["training"]["test_accuracy"],
        "seconds": round(seconds, 3),
        "cross_entropy_seconds": round(time.perf_counter() - started - seconds, 3),
    }
    command = (
        f"stct train {shlex.quote(str(folder / TRAIN))} --preset {PRESET} "
        f"--test {shlex.quote(str(folder / TEST))}"
    )
    title = "1,797 digits, half of the training labels drawn at random:"
    facts = {**_facts(numbers), "look at": f"{folder / RUN / 'report.html'}"}
    return Demo(title, numbers, facts, [], command)


def _facts(numbers: dict[str, float]) -> dict[str, str]:
    n = numbers
    return {
        "right labels before": f"{n['right_before']:.1%}",
        "right labels after": f"{n['right_after']:.1%} (estimated without the truth: "
        f"{n['estimated_after']:.1%})",
        "test accuracy": f"{n['test_accuracy']:.1%}",
        "cross-entropy's": f"{n['cross_entropy_test_accuracy']:.1%} (same network "
        "and steps, no SimCLR, labels as given)",
        "time": f"{n['seconds']:.0f} s, and {n['cross_entropy_seconds']:.0f} s for "
        "cross-entropy",
    }


def write_digits(folder: Path, digits: Digits) -> None:
    """Write what ``stct train`` reads, and the same rows for ``stct correct``."""
    np.savez(folder / TRAIN, images=digits.images, labels=digits.given)
    np.savez(folder / TEST, images=digits.test_images, labels=digits.test_truth)
    pixels = digits.images.reshape(len(digits.images), -1)
    write_inputs(folder, pixels, digits.given, digits.truth)


def label_accuracy(run: Path, truth: NDArray[np.intp]) -> float:
    """Share of right labels in the labels file of a run."""
    labels = np.array(read_table(run / "labels.csv").values("label"))
    return float(np.mean(labels == truth.astype(str)))


def _run(
    folder: Path, name: str, assignments: Sequence[str], seed: int, show: Show
) -> dict[str, Any]:
    request = new_request(
        folder / TRAIN,
        preset_name=PRESET,
        assignments=assignments,
        seed=seed,
        test=folder / TEST,
        init=None,
    )
    shutil.rmtree(folder / name, ignore_errors=True)
    return run_training(folder / name, request, show=show, save_every=60.0)
