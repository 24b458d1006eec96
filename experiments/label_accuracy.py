"""Corrected label accuracy on frozen embeddings (paper: Table III, Fig. 2).

    python experiments/label_accuracy.py FILE.npz

The paper's table is for the whole of Algorithm 1; on frozen embeddings there is no
representation learning, which is the paper's "w/o SRL" (Table VI).
"""

from frozen import (
    ASYMMETRIC,
    DATA,
    HUMAN,
    SYMMETRIC,
    Frozen,
    add_noise,
    label_accuracy,
    load,
    percent,
    probe_accuracy,
    seeds_of,
)
from runner import Cell, Experiment, main

from stct import LabelCorrector


def measure(data: Frozen, cell: Cell) -> dict[str, float]:
    """Correct with one method, defaults for all noise."""
    given, _, actual = add_noise(data, cell["noise"], cell["seed"])
    labels = given
    if cell["method"] != "given":
        corrector = LabelCorrector(cell["method"], random_state=cell["seed"])
        labels = corrector.fit_correct(data.H, given)
    return {
        "actual_noise": percent(actual),
        "label_accuracy": label_accuracy(data, labels),
        "test_accuracy": probe_accuracy(data, labels),
    }


EXPERIMENT = Experiment(
    name="label_accuracy",
    title="Corrected label accuracy on frozen embeddings (Table III, Fig. 2).",
    data=DATA,
    grids={
        "full": [
            {"noise": noise, "method": method, "seed": seed}
            for noise in [*SYMMETRIC, *ASYMMETRIC, *HUMAN]
            for method in ("given", "paper", "split", "loo")
            for seed in seeds_of(noise)
        ]
    },
    metrics=("actual_noise", "label_accuracy", "test_accuracy"),
    load=load,
    measure=measure,
)

if __name__ == "__main__":
    main(EXPERIMENT)
