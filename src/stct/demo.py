"""The demonstration: 1,797 digits, half of the labels drawn at random, corrected.

Run it with ``stct demo``. The digits come with scikit-learn; the features are the 64
raw pixels. The truth is used to make the noise and to mark the result, never by the
correction.
"""

import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct import noise
from stct.data.inputs import read_inputs
from stct.data.outputs import whole_folder
from stct.data.results import corrected_labels, write_results
from stct.data.summary import ACTIONS
from stct.data.tables import Table, write_table
from stct.estimator import LabelCorrector
from stct.report import REPORT_FILES, write_report

TABLE = "digits.csv"
EMBEDDINGS = "digits.npy"
RATE = 0.5
_EXAMPLES_SHOWN = 5


class Demo(NamedTuple):
    """What the demonstration found: numbers, and the same in words."""

    title: str
    numbers: dict[str, float]
    facts: dict[str, str]
    examples: list[str]
    command: str  # to do the same


def run_demo(folder: Path, *, overwrite: bool, seed: int) -> Demo:
    """Make the noisy digits, correct them, and write everything to ``folder``."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)  # (1797, 64), (1797,)
    truth = digits.astype(np.intp)
    noisy = noise.symmetric(truth, 10, RATE, np.random.default_rng(seed))
    with whole_folder(folder, overwrite=overwrite) as temporary:
        start = time.perf_counter()
        write_inputs(temporary, pixels, noisy.labels, truth)
        inputs = read_inputs(temporary / TABLE, embeddings=temporary / EMBEDDINGS)
        corrector = LabelCorrector(random_state=seed)
        corrector.fit(inputs.embeddings, inputs.targets)
        seconds = time.perf_counter() - start
        write_results(
            temporary,
            inputs,
            corrector,
            seconds=seconds,
            more_files=[TABLE, EMBEDDINGS, *REPORT_FILES],
        )
        images = (pixels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
        write_report(temporary, embeddings=inputs.embeddings, images=images)
    labels = np.array(corrected_labels(inputs, corrector), dtype=int)
    numbers = _numbers(truth, noisy.labels, labels, corrector)
    numbers["seconds"] = round(seconds, 3)
    return Demo(
        "1,797 digits, half of the labels drawn at random:",
        numbers,
        {**_facts(numbers), "look at": str(folder / REPORT_FILES[0])},
        _examples(truth, noisy.labels, labels),
        f"stct correct {shlex.quote(str(folder / TABLE))} "
        f"--embeddings {shlex.quote(str(folder / EMBEDDINGS))}",
    )


def write_inputs(
    folder: Path, pixels: NDArray[Any], given: NDArray[Any], truth: NDArray[Any]
) -> None:
    """Write the noisy table, with the truth in a column, and its embeddings."""
    columns = {
        "id": [f"digit-{i:04d}" for i in range(len(truth))],
        "label": [str(label) for label in given],
        "truth": [str(label) for label in truth],
    }
    write_table(folder / TABLE, Table("csv", columns, len(truth)))
    np.save(folder / EMBEDDINGS, pixels.astype(np.float32))


def _numbers(
    truth: NDArray[Any],
    given: NDArray[Any],
    labels: NDArray[Any],
    corrector: LabelCorrector,
) -> dict[str, float]:
    wrong, moved, right = given != truth, labels != given, labels == truth
    estimate = corrector.estimated_accuracy_
    return {
        "right_before": float(np.mean(~wrong)),
        "right_after": float(np.mean(right)),
        "estimated_before": float(estimate.before),
        "estimated_after": float(estimate.after),
        "wrong": int(np.sum(wrong)),
        "wrong_found": int(np.sum(wrong & moved)),
        "wrong_put_right": int(np.sum(wrong & right)),
        "right": int(np.sum(~wrong)),
        "right_moved": int(np.sum(moved & ~wrong)),
        **{a: int(np.sum(corrector.action_ == a)) for a in ACTIONS[:3]},
    }


def _facts(numbers: dict[str, float]) -> dict[str, str]:
    n = numbers
    return {
        **{
            f"right labels {when}": f"{n[f'right_{when}']:.1%} (estimated without the "
            f"truth: {n[f'estimated_{when}']:.1%})"
            for when in ("before", "after")
        },
        "wrong labels found": f"{n['wrong_found']:,} of {n['wrong']:,}, "
        f"{n['wrong_put_right']:,} of them put right",
        "right labels moved": f"{n['right_moved']:,} of {n['right']:,}",
        "kept": f"{n['keep']:,}",
        "relabelled": f"{n['relabel']:,}",
        "abstained": f"{n['abstain']:,}",
        "time": f"{n['seconds']:.1f} s",
    }


def _examples(
    truth: NDArray[Any], given: NDArray[Any], labels: NDArray[Any]
) -> list[str]:
    """Say what happened to a few moved rows, a mistake of ours among them."""
    moved = np.flatnonzero(labels != given)
    mistakes = moved[labels[moved] != truth[moved]][:1]
    good = moved[labels[moved] == truth[moved]][: _EXAMPLES_SHOWN - len(mistakes)]
    return [
        f"row {i}: said {given[i]}, we say {labels[i]}, truth {truth[i]}"
        + ("" if labels[i] == truth[i] else " (our mistake)")
        for i in [*good, *mistakes]
    ]
