"""Where validation sets lie in the embedding space, by t-SNE (paper: Fig. 5).

    python experiments/distribution.py FILE.npz

A sample of 3,000 rows at 50% symmetric noise, one CSV row each: its place on the map,
its true class, and which of the validation sets of `validation_sets.py` (made on all
rows) hold it.
"""

from typing import Any

import numpy as np
from frozen import DATA, Floats, add_noise, stream
from runner import Cell, Experiment, main
from validation_sets import RULES, Rules

SAMPLE = 3000


def measure(rules: Rules, cell: Cell) -> list[dict[str, Any]]:
    """Make the map: one row for each row of the sample."""
    data, seed = rules.data, cell["seed"]
    given = add_noise(data, cell["noise"], seed).labels
    half = stream(seed, 2).permutation(len(given))[: len(given) // 2]
    inside = {"noisy": set(half)}
    for rule in RULES[1:]:
        inside[rule] = set(rules.make(rule, given, seed).rows)
    rows = np.sort(stream(seed, 3).permutation(len(given))[:SAMPLE])
    places = embed(data.H[rows])  # (SAMPLE, 2)
    return [
        {
            "row": row,
            "x": f"{x:.2f}",
            "y": f"{y:.2f}",
            "class": data.truth[row],
            **{rule: int(row in inside[rule]) for rule in RULES},
        }
        for row, (x, y) in zip(rows, places, strict=True)
    ]


def embed(H: Floats) -> Floats:
    """Place rows in the plane: t-SNE of unit rows, from their principal axes."""
    from sklearn.manifold import TSNE

    unit = H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-12)
    return TSNE(perplexity=30, init="pca", random_state=0).fit_transform(unit)


EXPERIMENT = Experiment(
    name="distribution",
    title="Where validation sets lie in the embedding space, by t-SNE (Fig. 5).",
    data=DATA,
    grids={"full": [{"noise": "symmetric:0.5", "seed": 0}]},
    metrics=("row", "x", "y", "class", *RULES),
    load=Rules,
    measure=measure,
)

if __name__ == "__main__":
    main(EXPERIMENT)
