"""Draw every figure from the CSV files in results/ alone.

    python experiments/figures.py [NAME ...]

What was not run is left out, and said so. Results of other data or of another scale
are figures of their own: NAME-DATA-SCALE.png.
"""

import argparse
import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from curves import clean_validation, sampling_rate, training_curves
from drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    figure,
    legend_below,
    mean,
    noise_name,
    noises_of,
    spread,
    where,
    write_inside,
)
from reading import Results, check_folder, groups
from runner import HERE, RESULTS, one_line, read_rows

FIGURES = HERE / "figures"


def label_accuracy(results: Results) -> Any:
    """Right labels of every method for every noise, and the paper's own numbers."""
    rows = results.rows("label_accuracy")
    noises = noises_of(rows)
    made, (axis,) = figure(1, 1, 9.0, 3.9)
    methods = {
        "given": ("given labels", GREY),
        "paper": ("Eq. (9) as printed (paper)", RED),
        "split": ("minimum-norm step (split)", ORANGE),
        "loo": ("leave-one-out (loo, default)", BLUE),
    }
    width = 0.2
    for i, (method, (label, colour)) in enumerate(methods.items()):
        cells = [where(rows, noise=n, method=method) for n in noises]
        x = np.arange(len(noises)) + (i - 1.5) * width
        values = [mean(c, "label_accuracy") for c in cells]
        errors = [spread(c, "label_accuracy") for c in cells]
        bars = axis.bar(x, values, width, yerr=errors, color=colour, label=label)
        if method == "loo":
            texts = ["" if np.isnan(v) else f"{v:.0f}" for v in values]
            axis.bar_label(bars, texts, fontsize=7, padding=1)
    printed = read_rows(HERE / "paper.csv")
    theirs = {
        r["noise"]: float(r["value"])
        for r in where(printed, item="Table III", dataset="CIFAR-10", method="STCT")
        if r["noise"] in noises
    }
    places = [noises.index(n) for n in theirs]
    axis.scatter(
        places,
        list(theirs.values()),
        marker="D",
        s=26,
        color="black",
        label="the paper, Table III (with representation learning)",
        zorder=3,
    )
    axis.set_xticks(
        range(len(noises)), [noise_name(n).replace(" ", "\n", 1) for n in noises]
    )
    axis.set_ylabel("right labels after correction (%)", fontsize=9)
    axis.set_ylim(0, 118)
    axis.set_yticks(range(0, 101, 20))
    axis.set_title(f"Corrected labels, {results.on}, default settings", fontsize=11)
    handles, _ = axis.get_legend_handles_labels()
    handles = [*handles[1:], handles[0]]  # the paper's diamonds last
    axis.legend(
        handles=handles, fontsize=7.5, ncols=3, loc="upper center", frameon=False
    )
    return made


def validation_sets(results: Results) -> Any:
    """Right labels by kind of validation set, split beside the paper's numbers."""
    rows = results.rows("validation_sets")
    paper = where(read_rows(HERE / "paper.csv"), item="Table VIII")
    noises = noises_of(rows)
    rules = {
        "noisy": ("noisy half (STCT)", "STCT", BLUE),
        "loss": ("small loss", "Loss", ORANGE),
        "knn": ("k-NN", "KNN", GREEN),
        "clustering": ("fuzzy c-means", "Clustering", RED),
    }
    made, axes = figure(1, 2, 9.0, 3.6, sharey=True)
    width = 0.2
    for i, (rule, (label, theirs, colour)) in enumerate(rules.items()):
        x = np.arange(len(noises)) + (i - 1.5) * width
        cells = [where(rows, noise=n, validation=rule, method="split") for n in noises]
        values = [mean(c, "label_accuracy") for c in cells]
        errors = [spread(c, "label_accuracy") for c in cells]
        bars = axes[0].bar(x, values, width, yerr=errors, color=colour, label=label)
        write_inside(axes[0], bars, values)
        said = {r["noise"]: r["value"] for r in where(paper, method=theirs)}
        numbers = [float(said.get(n, "nan") or 0.0) for n in noises]
        write_inside(axes[1], axes[1].bar(x, numbers, width, color=colour), numbers)
    titles = (f"Ours: {results.on}, split", "The paper: SimCLR features")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_xticks(
            range(len(noises)), [noise_name(n).replace(" ", "\n") for n in noises]
        )
        axis.set_title(title, fontsize=10)
        axis.set_ylim(0, 105)
    before = results.rows("label_accuracy")
    for place, noise in enumerate(noises):
        given = mean(where(before, noise=noise, method="given"), "label_accuracy")
        for axis in axes:
            first = place == 0 and axis is axes[0]
            axis.hlines(
                given,
                place - 0.45,
                place + 0.45,
                color="black",
                linestyle=":",
                linewidth=1.2,
                label="given labels" if first else None,
            )
    axes[0].set_ylabel("right labels after correction (%)", fontsize=9)
    legend_below(made, axes[0], 5)
    made.suptitle(
        "Which validation set? All inside the same NMC (Table VIII)", fontsize=11
    )
    return made


def distribution(results: Results) -> Any:
    """Draw validation sets over all rows of a sample, by t-SNE."""
    rows = results.rows("distribution")
    first = {name: rows[0][name] for name in ("noise", "seed")}
    rows = where(rows, **first)
    xy = np.array([[float(r["x"]), float(r["y"])] for r in rows])
    titles = {
        "noisy": "Noisy: a random half",
        "loss": "Small loss",
        "knn": "k-NN agreement",
        "clustering": "Fuzzy c-means",
    }
    made, axes = figure(1, 4, 9.0, 2.75)
    for axis, (rule, title) in zip(axes, titles.items(), strict=True):
        inside = np.array([r[rule] == "1" for r in rows])
        axis.scatter(*xy.T, s=2.0, color="#8fb8de", linewidths=0, label="all rows")
        axis.scatter(
            *xy[inside].T, s=2.0, color=RED, linewidths=0, label="validation set"
        )
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set_visible(False)
        axis.set_title(f"{title} ({inside.mean():.0%})", fontsize=9)
    legend_below(made, axes[0], 2, markerscale=3)
    made.suptitle(
        f"t-SNE of {len(rows):,} of {results.on}, {noise_name(first['noise'])}: "
        "which rows validate",
        fontsize=10,
    )
    return made


DRAW: dict[str, Callable[[Results], Any]] = {
    "label_accuracy": label_accuracy,
    "sampling_rate": sampling_rate,
    "validation_sets": validation_sets,
    "clean_validation": clean_validation,
    "distribution": distribution,
    "training_curves": training_curves,
}
# The experiments that a figure shows and which of their cells, if not its namesake.
SOURCES: dict[str, dict[str, list[str]]] = {
    "validation_sets": {
        "validation_sets": ["*/split/*"],
        "label_accuracy": ["*/given/*"],
    },
    "clean_validation": {"clean_validation": [], "label_accuracy": ["*/loo/*"]},
    "training_curves": {"training": ["*/symmetric:0.[58]/STCT/*"]},
}


def draw(name: str, results: Path, output: Path) -> None:
    """Draw a figure for all data and scales that there are, and say what is missing."""
    sources = SOURCES.get(name, {name: []})
    found = groups(results, next(iter(sources)))
    if not found:
        print(f"{name}: not drawn, {next(iter(sources))}.csv has no rows yet")
    for number, part in enumerate(found):
        path = output / f"{name}{f'-{part.data}-{part.scale}' if number else ''}.png"
        made = DRAW[name](part)
        if made is None:
            print(f"{path.stem}: not drawn, there are no rows for it yet")
            continue
        made.savefig(path)
        print(path)
        lacks = [part.lacks(source, cells) for source, cells in sources.items()]
        if any(lacks):
            print(f"{path.stem}: drawn without some: {'; '.join(filter(None, lacks))}")


def main() -> None:
    """Draw the figures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(DRAW))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path, default=FIGURES)
    options = parser.parse_args()
    with one_line("figures"):
        for name in options.names:
            if name not in DRAW:
                near = difflib.get_close_matches(name, DRAW, n=3, cutoff=0.0)
                raise ValueError(f"no figure {name!r}; near: {', '.join(near)}")
        check_folder(options.results)
        options.output.mkdir(parents=True, exist_ok=True)
        for name in options.names or DRAW:
            draw(name, options.results, options.output)


if __name__ == "__main__":
    main()
