"""Where validation sets lie in the embedding space, by t-SNE (paper: Fig. 5).

    python experiments/distribution.py FILE.npz

A sample of 3,000 rows at 50% symmetric noise, one CSV row each: its place on the map,
its true class, and which of the validation sets of `validation_sets.py` (made on all
rows) hold it.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from frozen import DATA, add_noise, stream
from runner import RESULTS
from validation_sets import RULES, Rules

from stct.data.outputs import whole_file

SAMPLE = 3000
NOISE, SEED = "symmetric:0.5", 0


def main() -> None:
    """Make the map and write it as a whole."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", metavar="DATA", type=Path, help=DATA)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    options = parser.parse_args()
    rules = Rules(options.data)
    data = rules.data
    given = add_noise(data, NOISE, SEED).labels
    half = stream(SEED, 2).permutation(len(given))[: len(given) // 2]
    inside = {"noisy": set(half)}
    for rule in RULES[1:]:
        inside[rule] = set(rules.make(rule, given, SEED).rows)
    rows = np.sort(stream(SEED, 3).permutation(len(given))[:SAMPLE])
    places = embed(data.H[rows])  # (SAMPLE, 2)
    path = options.results / "distribution.csv"
    with (
        whole_file(path, overwrite=True) as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "x", "y", "class", *RULES])
        for row, (x, y) in zip(rows, places, strict=True):
            held = [int(row in inside[rule]) for rule in RULES]
            writer.writerow([row, f"{x:.2f}", f"{y:.2f}", data.truth[row], *held])
    print(f"{path}: {len(rows)} rows")


def embed(H: np.ndarray) -> np.ndarray:
    """Place rows in the plane: t-SNE of unit rows, from their principal axes."""
    from sklearn.manifold import TSNE

    unit = H / np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-12)
    return TSNE(perplexity=30, init="pca", random_state=0).fit_transform(unit)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        print(f"distribution: error: {error}", file=sys.stderr)
        sys.exit(2)
