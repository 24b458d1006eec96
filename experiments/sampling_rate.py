"""Label and test accuracy and samplings against the sampling rate r (paper: Figs. 6-8).

    python experiments/sampling_rate.py FILE.npz

`count` is the largest number of splits: Eq. (33) as `printed`, or the one that covers
the sub-training side (`covering`). `covered` is the share of rows that were corrected
at least once, `corrections` how often a row was, on average. `step_size` is eta: 0.2 as
in the paper; 1.0 tells whether a failure is one of coverage or of too few small steps.
"""

from frozen import (
    DATA,
    Frozen,
    add_noise,
    correct,
    label_accuracy,
    load,
    percent,
    probe_accuracy,
)
from runner import Cell, Experiment, main

RATES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
NOISES = ("symmetric:0.5", "symmetric:0.8", "asymmetric:0.4")


def measure(data: Frozen, cell: Cell) -> dict[str, float]:
    """Correct with one sampling rate and one number of splits."""
    given = add_noise(data, cell["noise"], cell["seed"]).labels
    result = correct(
        data,
        given,
        method=cell["method"],
        seed=cell["seed"],
        count=cell["count"],
        val_ratio=cell["rate"],
        step_size=cell["step_size"],
    )
    labels = result.labels.argmax(axis=1)
    return {
        "label_accuracy": label_accuracy(data, labels),
        "test_accuracy": probe_accuracy(data, labels),
        "samplings": result.num_splits,
        "covered": percent((result.times > 0).mean()),
        "corrections": round(float(result.times.mean()), 2),
    }


def cells() -> list[Cell]:
    """Three seeds for `split`; one for `paper` and for the large step, at large r."""
    return [
        {
            "noise": noise,
            "method": method,
            "count": count,
            "step_size": step_size,
            "rate": rate,
            "seed": seed,
        }
        for method, step_size, rates, seeds in (
            ("split", 0.2, RATES, [0]),
            ("paper", 0.2, RATES, [0]),
            ("split", 1.0, RATES[5:], [0]),
            ("split", 0.2, RATES, [1, 2]),
        )
        for seed in seeds
        for noise in NOISES
        for count in ("printed", "covering")
        for rate in rates
    ]


EXPERIMENT = Experiment(
    name="sampling_rate",
    title="Accuracy and samplings against the sampling rate r (Figs. 6-8).",
    data=DATA,
    grids={"full": cells()},
    metrics=(
        "label_accuracy",
        "test_accuracy",
        "samplings",
        "covered",
        "corrections",
    ),
    load=load,
    measure=measure,
)

if __name__ == "__main__":
    main(EXPERIMENT)
