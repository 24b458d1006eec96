"""Validation sets made by rules against noisy ones, in one NMC (paper: Table VIII).

    python experiments/validation_sets.py FILE.npz

Only the validation set differs: random halves of the rows are corrected until every row
was (r, eta, delta, beta of the paper), validated by the other half (`noisy`) or by the
set that a rule made (`generated.py`), which then stays the same.

`right` is the share of right labels in the validation set. `bias` is how well a linear
classifier tells its rows from all rows, on rows it has not seen (AUROC; 0.5: not at
all, so the set is distributed like the data).
"""

from functools import cached_property
from pathlib import Path

import generated
import numpy as np
from frozen import (
    DATA,
    Floats,
    Ints,
    add_noise,
    correct,
    label_accuracy,
    load,
    percent,
    probe_accuracy,
    stream,
)
from generated import ValidationSet
from numpy.typing import NDArray
from runner import Cell, Experiment, main

RULES = ("noisy", "loss", "knn", "clustering")


class Rules:
    """The data, and what the rules need of it, made on first use."""

    def __init__(self, path: Path) -> None:
        self.data = load(path)
        self._clusters: dict[int, Floats] = {}

    @cached_property
    def _neighbours(self) -> NDArray[np.int32]:
        return generated.neighbours(self.data.H)

    def make(self, rule: str, given: Ints, seed: int) -> ValidationSet:
        """Apply a rule to the given labels."""
        H, C = self.data.H, self.data.num_classes
        if rule == "loss":
            return generated.by_loss(H, given, seed)
        if rule == "knn":
            return generated.by_neighbours(self._neighbours, given, C)
        if seed not in self._clusters:
            self._clusters[seed] = generated.fuzzy_clusters(H, C, seed)
        return generated.by_clusters(self._clusters[seed], given, C)


def bias(H: Floats, rows: Ints, seed: int) -> float:
    """AUROC of telling chosen rows from all rows; half of a sample trains."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    rng = stream(seed, 3)
    size = min(5000, len(rows))
    inside = rng.choice(rows, size, replace=False)
    anywhere = rng.choice(len(H), size, replace=False)
    X = np.concatenate([H[inside], H[anywhere]]) / H.std()
    y = np.repeat([1, 0], size)
    train = rng.permutation(2 * size) < size
    model = LogisticRegression(C=0.01, max_iter=200).fit(X[train], y[train])
    return round(float(roc_auc_score(y[~train], model.decision_function(X[~train]))), 3)


def measure(rules: Rules, cell: Cell) -> dict[str, float]:
    """Correct with one kind of validation set."""
    data, seed = rules.data, cell["seed"]
    given = add_noise(data, cell["noise"], seed).labels
    if cell["validation"] == "noisy":
        half = stream(seed, 2).permutation(len(given))[: len(given) // 2]
        chosen, validation = ValidationSet(half, given[half]), None
    else:
        chosen = rules.make(cell["validation"], given, seed)
        validation = data.H[chosen.rows], chosen.labels
    result = correct(
        data, given, method=cell["method"], seed=seed, validation=validation
    )
    labels = result.labels.argmax(axis=1)
    return {
        "label_accuracy": label_accuracy(data, labels),
        "test_accuracy": probe_accuracy(data, labels),
        "samplings": result.num_splits,
        "validation_rows": len(chosen.rows),
        "right": percent(np.mean(chosen.labels == data.truth[chosen.rows])),
        "bias": bias(data.H, chosen.rows, seed),
    }


EXPERIMENT = Experiment(
    name="validation_sets",
    title="Validation sets made by rules against noisy ones (Table VIII).",
    data=DATA,
    grids={
        "full": [
            {"noise": noise, "validation": rule, "method": method, "seed": seed}
            for noise in (
                "symmetric:0.5",
                "symmetric:0.8",
                "asymmetric:0.2",
                "asymmetric:0.4",
            )
            for rule in RULES
            for method in ("split", "paper")
            for seed in range(3)
        ]
    },
    metrics=(
        "label_accuracy",
        "test_accuracy",
        "samplings",
        "validation_rows",
        "right",
        "bias",
    ),
    load=Rules,
    measure=measure,
)

if __name__ == "__main__":
    main(EXPERIMENT)
