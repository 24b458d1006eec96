"""Label correction against its peers: same embeddings, same noise, one table.

    python benchmarks/correct.py                          # digits, raw pixels
    python benchmarks/correct.py --embeddings FILE.npz    # e.g. 50,000 CIFAR-10 images

FILE.npz holds `train` (n, d) and `y_train` (n,), made by benchmarks/embed_cifar.py, and
optionally arrays named `human_*` (n,): labels as people gave them. True labels are used
for injecting noise and for scoring, never by a method.

This is `stct bench` (how it measures: `stct.bench.measure`) with CIFAR-10's map for
asymmetric noise, and one float32 `H.T @ H`, best and mean of seven, timed beside every
cell.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stct import noise
from stct.bench.averages import average
from stct.bench.battery import make_cases, run
from stct.bench.inputs import Subject, read_subject
from stct.bench.methods import METHODS
from stct.bench.results import table_lines

NOISES = [f"symmetric:{rate}" for rate in (0.2, 0.5, 0.8, 0.9)]
NOISES += ["asymmetric:0.2", "asymmetric:0.4"]


def load(path: Path | None, columns: int | None) -> Subject:
    if path is None:
        from sklearn.datasets import load_digits

        H, truth = load_digits(return_X_y=True)
        subject = Subject(H, truth.astype(np.intp), list(range(10)), {}, [])
    else:
        subject = read_subject(
            path,
            embeddings=None,
            embeddings_column=None,
            label_column=None,
            id_column=None,
            noisy_columns=[],
        )
    H = np.ascontiguousarray(subject.H[:, :columns], dtype=np.float32)
    return subject._replace(H=H)


def gram_seconds(H: NDArray, repeats: int = 7) -> tuple[float, float]:
    """One float32 H.T @ H with all cores, the physical limit: best and mean of several.

    A fit takes as long as thirty of them and meets every mood of a shared machine.
    """
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        H.T @ H
        seconds.append(time.perf_counter() - start)
    return min(seconds), float(np.mean(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--embeddings", type=Path, help="npz: train, y_train, human_*")
    parser.add_argument("--noise", nargs="*", default=NOISES)
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--columns", type=int, help="use the first columns only")
    args = parser.parse_args()
    subject = load(args.embeddings, args.columns)
    rows, columns = subject.H.shape
    print(f"{rows} rows, {columns} columns, {len(subject.classes)} classes, ", end="")
    print(f"seeds {args.seeds}")
    cases = make_cases(subject, args.noise, args.seeds, noise.CIFAR10_FLIPS)
    cells = list(dict.fromkeys(case.noise for case in cases))
    gram, means = np.zeros(2), []
    for cell in cells:
        gram += gram_seconds(subject.H)
        chosen = [case for case in cases if case.noise == cell]
        scores = list(run(subject, chosen, args.methods, lambda share: None))
        means += average(scores)
        lines = table_lines(average(scores))
        print("\n".join(lines if cell == cells[0] else lines[1:]), flush=True)
    best, usual = gram / len(cells)
    print(f"\none float32 H.T @ H: {best:.4f} s, the best of seven; mean {usual:.4f} s")
    total = {
        name: sum(m.mean["seconds"] for m in means if m.method == name)
        for name in args.methods
    }
    for name, seconds in total.items():
        print(f"{name:10s}{seconds:8.1f} s over {len(cells)} cells, ", end="")
        print(f"{seconds / gram[0]:7.1f} x H.T @ H at its best, ", end="")
        print(f"{seconds / gram[1]:.1f} x its mean")
    if {"loo", "cleanlab"} <= total.keys():
        print(f"loo / cleanlab: {total['loo'] / total['cleanlab']:.3f} of the time")


if __name__ == "__main__":
    main()
