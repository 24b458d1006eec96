"""Noisy validation sets against extra clean ones of growing size (paper: Figs. 9, 10).

    python experiments/clean_validation.py FILE.npz

The extra rows come from the test split with their true labels, so the 50,000 rows to
correct are the same in all cells; only label accuracy on these is scored. `size` 0 is
the noisy validation set. 1,000 is the usual size of an extra clean set.
"""

from frozen import (
    ASYMMETRIC,
    DATA,
    SYMMETRIC,
    Frozen,
    add_noise,
    correct,
    label_accuracy,
    load,
    stream,
)
from runner import Cell, Experiment, main

SIZES = (0, 100, 250, 500, 1000, 1500, 2000, 3000, 5000, 10000)


def measure(data: Frozen, cell: Cell) -> dict[str, float]:
    """Correct with the noisy validation set, or with so many clean rows."""
    given = add_noise(data, cell["noise"], cell["seed"]).labels
    validation = None
    if cell["size"]:
        if cell["size"] > len(data.H_test):
            raise ValueError(f"there are only {len(data.H_test)} test rows")
        rng = stream(cell["seed"], 2)
        rows = rng.choice(len(data.H_test), cell["size"], replace=False)
        validation = data.H_test[rows], data.y_test[rows]
    result = correct(
        data, given, method=cell["method"], seed=cell["seed"], validation=validation
    )
    return {
        "label_accuracy": label_accuracy(data, result.labels.argmax(axis=1)),
        "samplings": result.num_splits,
    }


EXPERIMENT = Experiment(
    name="clean_validation",
    title="Noisy validation sets against extra clean ones (Figs. 9, 10).",
    data=DATA,
    grids={
        "full": [
            {"noise": noise, "size": size, "method": method, "seed": seed}
            for noise in [*SYMMETRIC, *ASYMMETRIC]
            for size in SIZES
            for method, seeds in (("split", range(3)), ("paper", range(1)))
            for seed in seeds
        ]
    },
    metrics=("label_accuracy", "samplings"),
    load=load,
    measure=measure,
)

if __name__ == "__main__":
    main(EXPERIMENT)
