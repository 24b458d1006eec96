"""Several labels per row: `LabelCorrector` against the tools of the field.

    python benchmarks/crowd.py [DATA] [--only NAME ...] [--seeds 3] [--out FOLDER]

Without the folder DATA only crowds that are made on scikit-learn's digits; with it also
those of people: LabelMe, Sentiment, the rules of YouTube, CIFAR-10N. Peers, in the same
run: majority vote (ties at random), crowd-kit's Dawid-Skene, cleanlab's CROWDLAB with
logistic regression out of fold, as its documentation has it. Each runs in a process of
its own, whose largest memory beyond the data is measured. The share of right labels is
that of rows which somebody has labelled, since some peers label no others.

True labels are for making votes and for scoring only. FOLDER gets crowd.csv, one row
for each cell, seed and method, and crowd.md.
"""

import argparse
import csv
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stct import LabelCorrector
from stct.data.cifar_n import read_cifar_n

Array = NDArray
RANDOM = ("random1", "random2", "random3")
PAIRS = np.array([0, 9, 2, 5, 4, 3, 6, 7, 8, 1])  # who is taken for whom
INJECTED = ("spammers", "pair", "few")
COLUMNS = [
    *("cell", "seed", "method", "rows", "classes", "votes_per_row", "right"),
    *("seconds", "megabytes", "estimate", "low", "high", "held"),
]


class Crowd(NamedTuple):
    """Rows with several labels each; the truth is for scoring only."""

    X: Array  # (n, d)
    votes: Array  # (n, a), -1 for none
    truth: Array  # (n,)

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return int(max(self.truth.max(), self.votes.max())) + 1

    @property
    def labelled(self) -> Array:
        """Which rows somebody has labelled."""
        return (self.votes >= 0).any(axis=1)


def people(data: Path) -> dict[str, Callable[[], Crowd]]:
    """Crowds of people and rules."""

    def battery(name: str) -> Crowd:
        with np.load(data / "battery" / f"{name}.npz", allow_pickle=False) as file:
            X = file["X"].astype(np.float32)
            return Crowd(X, file["votes"].astype(int), file["truth"].astype(int))

    def cifar(columns: int = 256, rows: int = 50_000) -> Crowd:
        with np.load(data / "cifar10_embeddings.npz", allow_pickle=False) as file:
            X = file["train"][:rows, :columns].astype(np.float32)
        found = read_cifar_n(data / "CIFAR-10_human.pt")
        votes = np.stack([found[name].labels for name in RANDOM], axis=1)
        return Crowd(X, votes[:rows], found[RANDOM[0]].clean[:rows])

    return {
        "labelme": lambda: battery("labelme"),
        "sentiment": lambda: battery("sentiment"),
        "youtube rules": lambda: battery("youtube"),
        "cifar10n": cifar,
        "cifar10n, 10 columns": lambda: cifar(columns=10),
        "cifar10n, 2000 rows": lambda: cifar(rows=2000),
    }


def inject(X: Array, truth: Array, kind: str, seed: int) -> Crowd:
    """Make a crowd of one of three kinds.

    Few good annotators among spammers; the same pair of classes confused by everybody;
    or 1.2 votes a row.
    """
    rng, n, C = np.random.default_rng(seed), len(truth), int(truth.max()) + 1
    a, least, most = {"spammers": (40, 5, 5), "pair": (30, 3, 3), "few": (50, 1, 2)}[
        kind
    ]
    accuracy = rng.beta(4, 2, a)
    if kind == "spammers":
        accuracy = np.where(np.arange(a) < a // 5, 0.9, 0.0)
    number = np.where(rng.random(n) < 0.2, most, least)
    chosen = rng.random((n, a)).argsort(axis=1).argsort(axis=1) < number[:, None]
    votes = np.full((n, a), -1)
    rows, who = np.nonzero(chosen)
    clean, guess = truth[rows], rng.integers(0, C, len(rows))
    label = np.where(rng.random(len(rows)) < accuracy[who], clean, guess)
    if kind == "pair":
        other, u = PAIRS[clean], rng.random(len(rows))
        label = np.where(u < 0.35, other, np.where(u > 0.93, guess, clean))
    votes[rows, who] = label
    return Crowd(X, votes, truth)


def crowds(data: Path | None, seeds: int) -> Iterator[tuple[str, int, Callable]]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    sources = {"digits": (X.astype(np.float32), y)}
    if data is not None:
        for name, make in people(data).items():
            yield name, 0, make
        whole = people(data)["cifar10n"]()
        sources["cifar10"] = (whole.X[:10_000], whole.truth[:10_000])
    for name, (features, truth) in sources.items():
        for kind in INJECTED:
            for seed in range(seeds):
                yield (
                    f"{name}: {kind}",
                    seed,
                    lambda f=features, t=truth, k=kind, s=seed: inject(f, t, k, s),
                )


def majority(case: Crowd) -> Array:
    counts = (case.votes[:, :, None] == np.arange(case.num_classes)).sum(axis=1)
    ties = np.random.default_rng(0).random(counts.shape)
    return np.asarray((counts + 0.5 * ties).argmax(axis=1))


def dawid_skene(case: Crowd) -> Array:
    from crowdkit.aggregation import DawidSkene

    rows, who = np.nonzero(case.votes >= 0)
    table = pd.DataFrame({"task": rows, "worker": who, "label": case.votes[rows, who]})
    found, labels = DawidSkene(100).fit_predict(table), majority(case)
    labels[found.index.to_numpy()] = found.to_numpy()
    return labels


def crowdlab(case: Crowd) -> Array:
    from cleanlab.multiannotator import get_label_quality_multiannotator
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    known, labels = case.labelled, majority(case)
    votes = pd.DataFrame(np.where(case.votes >= 0, case.votes, np.nan)[known])
    votes = votes.loc[:, votes.notna().any()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged
        P = cross_val_predict(
            LogisticRegression(max_iter=100),
            case.X[known],
            labels[known],
            cv=5,
            method="predict_proba",
        )
        found = get_label_quality_multiannotator(votes, P, verbose=False)
    labels[known] = found["label_quality"]["consensus_label"].to_numpy()
    return labels


def ours(case: Crowd, X: Array | None) -> tuple[Array, dict[str, float]]:
    known = case.labelled if X is None else slice(None)
    rows, who = np.nonzero(case.votes[known] >= 0)
    votes = (rows, who, case.votes[known][rows, who])
    m = LabelCorrector().fit(X, annotations=votes)
    labels = np.full(len(case.truth), -1)
    labels[known] = m.labels_
    e = m.estimated_accuracy_
    low, high = e.after_interval
    return labels, {"estimate": e.after, "low": low, "high": high}


METHODS: dict[str, Callable[[Crowd], Array | tuple[Array, dict[str, float]]]] = {
    "majority": majority,
    "dawid-skene": dawid_skene,
    "crowdlab": crowdlab,
    "stct, no features": lambda case: ours(case, None),
    "stct": lambda case: ours(case, case.X),
}


def measure(case: Crowd, method: str) -> dict[str, float]:
    """Run one method in a process of its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(case, method, there))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        raise RuntimeError(f"{method} failed") from None
    finally:
        process.join()


def run(case: Crowd, method: str, answer) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = METHODS[method](case)
    seconds = time.perf_counter() - start
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    labels, values = found if isinstance(found, tuple) else (found, {})
    right = labels == case.truth
    values["right"] = float(right[case.labelled].mean())
    if "low" in values:
        everywhere = float(right[labels >= 0].mean())
        values["held"] = float(values["low"] <= everywhere <= values["high"])
    answer.send(values | {"seconds": seconds, "megabytes": more / 1024})


def report(path: Path) -> str:
    """Make the table: means over seeds, in percent."""
    rows = pd.read_csv(path)
    right = rows.pivot_table("right", "cell", "method", sort=False)[list(METHODS)]
    lines = [
        "# Several labels per row",
        "",
        "`python benchmarks/crowd.py DATA`. Right labels in %, of the rows that "
        "somebody has labelled; mean of the seeds. *Best peer*: stct minus the best of "
        "the first three.",
        "",
        f"| crowd | votes | {' | '.join(METHODS)} | best peer | estimate | held |",
        "|---" * (len(METHODS) + 5) + "|",
    ]
    for cell, values in right.iterrows():
        mine = rows[(rows.cell == cell) & (rows.method == "stct")]
        shares = [f"{100 * v:.1f}" for v in values]
        gain = 100 * (values["stct"] - values.iloc[:3].max())
        estimate, low, high = 100 * mine[["estimate", "low", "high"]].mean()
        interval = f"{estimate:.1f} ({low:.0f} to {high:.0f})"
        lines.append(
            f"| {cell} | {mine.votes_per_row.mean():.1f} | {' | '.join(shares)} | "
            f"{gain:+.1f} | {interval} | {mine.held.sum():.0f} of {len(mine)} |"
        )
    cost = rows.pivot_table(["seconds", "megabytes"], "cell", "method", sort=False)
    lines += ["", "Seconds, and megabytes beyond the data:", ""]
    lines += [f"| crowd | {' | '.join(METHODS)} |", "|---" * (len(METHODS) + 1) + "|"]
    for cell in right.index:
        cells = [
            f"{cost.loc[cell, ('seconds', m)]:.1f} s, "
            f"{cost.loc[cell, ('megabytes', m)]:.0f} MB"
            for m in METHODS
        ]
        lines.append(f"| {cell} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path)
    parser.add_argument("--only", nargs="*", default=["*"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / "crowd.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, restval="")
        table.writeheader()
        for cell, seed, make in crowds(arguments.data, arguments.seeds):
            if not any(fnmatchcase(cell, name) for name in arguments.only):
                continue
            case = make()
            about = {
                "cell": cell,
                "seed": seed,
                "rows": len(case.truth),
                "classes": case.num_classes,
                "votes_per_row": round(float((case.votes >= 0).sum() / len(case.X)), 2),
            }
            for method in METHODS:
                values = {k: round(v, 5) for k, v in measure(case, method).items()}
                table.writerow(about | {"method": method} | values)
                file.flush()
                print(f"{cell} {seed} {method}: {values}", flush=True)
    text = report(path)
    (arguments.out / "crowd.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
