"""Draw every figure from the CSV files in results/ alone.

    python experiments/figures.py [NAME ...]

Figures whose CSV is not there yet are left out, and said so.
"""

import argparse
import difflib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from drawing import (
    BLUE,
    GREEN,
    GREY,
    NOISE_NAMES,
    ON,
    ORANGE,
    RED,
    black_lines,
    coloured_line,
    figure,
    legend_below,
    mean,
    spread,
    where,
    write_inside,
)
from runner import HERE, RESULTS, read_rows

FIGURES = HERE / "figures"


def label_accuracy(results: Path) -> Any:
    """Right labels of every method for every noise, and the paper's own numbers."""
    rows = read_rows(results / "label_accuracy.csv")
    noises = [n for n in NOISE_NAMES if where(rows, noise=n)]
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
            axis.bar_label(bars, [f"{v:.0f}" for v in values], fontsize=7, padding=1)
    printed = read_rows(HERE / "paper.csv")
    theirs = {
        r["noise"]: float(r["value"])
        for r in where(printed, item="Table III", dataset="CIFAR-10", method="STCT")
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
        range(len(noises)), [NOISE_NAMES[n].replace(" ", "\n", 1) for n in noises]
    )
    axis.set_ylabel("right labels after correction (%)", fontsize=9)
    axis.set_ylim(0, 118)
    axis.set_yticks(range(0, 101, 20))
    axis.set_title(f"Corrected labels, {ON}, default settings", fontsize=11)
    handles, _ = axis.get_legend_handles_labels()
    handles = [*handles[1:], handles[0]]  # the paper's diamonds last
    axis.legend(
        handles=handles, fontsize=7.5, ncols=3, loc="upper center", frameon=False
    )
    return made


def sampling_rate(results: Path) -> Any:
    """Label accuracy, test accuracy and samplings against r, for both counts."""
    rows = read_rows(results / "sampling_rate.csv")
    noises = [n for n in NOISE_NAMES if where(rows, noise=n)]
    made, axes = figure(2, 2, 9.0, 6.6)
    styles = {
        "covering": ("splits that cover the sub-training side", "-", "o"),
        "printed": ("splits of Eq. (33) as printed", "--", "s"),
    }
    panels = (
        ("label_accuracy", "right labels after correction (%)", "Corrected labels"),
        ("test_accuracy", "accuracy on the test split (%)", "Linear probe on them"),
        ("samplings", "splits", "Number of samplings"),
        ("corrections", "mean over rows", "Corrections of a row, by 20% each"),
    )
    for axis, (column, unit, title) in zip(axes.ravel(), panels, strict=True):
        for noise, colour in zip(noises, (BLUE, ORANGE, GREEN), strict=False):
            for count, (_, line, marker) in styles.items():
                chosen = where(
                    rows, noise=noise, count=count, method="split", step_size=0.2
                )
                rates = sorted({float(r["rate"]) for r in chosen})
                cells = [where(chosen, rate=r) for r in rates]
                axis.errorbar(
                    [100 * r for r in rates],
                    [mean(c, column) for c in cells],
                    yerr=[spread(c, column) for c in cells],
                    color=colour,
                    linestyle=line,
                    marker=marker,
                    markersize=3.5,
                    linewidth=1.4,
                )
        axis.set_xlabel("sampling rate r = validation rows / rows (%)", fontsize=9)
        axis.set_ylabel(unit, fontsize=9)
        axis.set_title(title, fontsize=10)
        axis.axvspan(90, 96, color="#f3f4f6", zorder=0)
    axes[1, 0].set_yscale("log")
    axes[1, 0].set_yticks(
        [5, 10, 20, 50, 100, 200], ["5", "10", "20", "50", "100", "200"]
    )
    axes[1, 0].minorticks_off()
    colours = zip(noises, (BLUE, ORANGE, GREEN), strict=False)
    handles = [coloured_line(c, NOISE_NAMES[n]) for n, c in colours]
    handles += black_lines(styles.values())
    legend_below(made, None, 3, handles=handles)
    made.suptitle(f"Sampling rate r: {ON}, method split", fontsize=11)
    return made


def validation_sets(results: Path) -> Any:
    """Right labels by kind of validation set, split beside the paper's numbers."""
    rows = read_rows(results / "validation_sets.csv")
    paper = read_rows(HERE / "paper.csv")
    noises = [n for n in NOISE_NAMES if where(rows, noise=n)]
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
        said = [
            where(paper, item="Table VIII", noise=n, method=theirs)[0] for n in noises
        ]
        numbers = [float(r["value"]) if r["value"] else 0.0 for r in said]
        write_inside(axes[1], axes[1].bar(x, numbers, width, color=colour), numbers)
    titles = ("Ours: frozen ImageNet features, split", "The paper: SimCLR features")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_xticks(
            range(len(noises)), [NOISE_NAMES[n].replace(" ", "\n") for n in noises]
        )
        axis.set_title(title, fontsize=10)
        axis.set_ylim(0, 105)
    before = read_rows(results / "label_accuracy.csv")
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


def clean_validation(results: Path) -> Any:
    """Right labels against the size of an extra clean validation set."""
    rows = where(read_rows(results / "clean_validation.csv"), method="split")
    loo = where(read_rows(results / "label_accuracy.csv"), method="loo")
    made, axes = figure(1, 2, 9.0, 4.2, sharey=True)
    for axis, kind in zip(axes, ("symmetric", "asymmetric"), strict=True):
        noises = [n for n in NOISE_NAMES if n.startswith(kind) and where(rows, noise=n)]
        for noise, colour in zip(noises, (GREEN, BLUE, ORANGE, RED), strict=False):
            chosen = where(rows, noise=noise)
            sizes = sorted({int(r["size"]) for r in chosen} - {0})
            cells = [where(chosen, size=s) for s in sizes]
            axis.errorbar(
                sizes,
                [mean(c, "label_accuracy") for c in cells],
                yerr=[spread(c, "label_accuracy") for c in cells],
                color=colour,
                marker="o",
                markersize=3.5,
                label=NOISE_NAMES[noise],
            )
            half = mean(where(chosen, size=0), "label_accuracy")
            axis.axhline(half, color=colour, linestyle="--", linewidth=1.2)
            best = mean(where(loo, noise=noise), "label_accuracy")
            axis.axhline(best, color=colour, linestyle=":", linewidth=1.4)
        axis.axvline(1000, color="#b0b7bf", linewidth=1.0, zorder=0)
        place = {"transform": axis.get_xaxis_transform(), "fontsize": 7}
        axis.text(1040, 0.03, "usual size", color="#6b7480", **place)
        axis.text(270, 0.03, "257 columns,\nno ridge", color="#6b7480", **place)
        axis.set_xscale("log")
        ticks = [100, 250, 500, 1000, 2000, 5000, 10000]
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.minorticks_off()
        axis.set_xlabel("rows of the extra clean validation set", fontsize=9)
        axis.set_title(f"{kind.capitalize()} noise", fontsize=10)
        handles, _ = axis.get_legend_handles_labels()
        axis.legend(handles=handles, fontsize=7.5, loc=(0.66, 0.12), frameon=False)
    axes[0].set_ylabel("right labels after correction (%)", fontsize=9)
    styles = (
        ("clean rows (split)", "-", "o"),
        ("no clean rows: the noisy half (split)", "--", ""),
        ("no clean rows: leave-one-out (loo)", ":", ""),
    )
    legend_below(made, None, 3, handles=black_lines(styles))
    made.suptitle(f"Noisy against extra clean validation sets: {ON}", fontsize=11)
    return made


def distribution(results: Path) -> Any:
    """Draw validation sets over all rows of a sample, by t-SNE."""
    rows = read_rows(results / "distribution.csv")
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
        "t-SNE of 3,000 of 50,000 embeddings, symmetric noise 50%: which rows validate",
        fontsize=10,
    )
    return made


def training_curves(results: Path) -> Any:
    """Label accuracy of NMC and test accuracy and loss of SRL, round by round."""
    rows = where(read_rows(results / "training.csv"), variant="STCT")
    rows = [r for r in rows if r["noise"] in ("symmetric:0.5", "symmetric:0.8")]
    made, axes = figure(1, 3, 9.0, 3.4)
    panels = (
        ("label_curve", "right labels (%)", "NMC: corrected labels"),
        ("test_curve", "test accuracy (%)", "SRL: classifier"),
        ("loss_curve", "training loss", "SRL: loss"),
    )
    names = list(dict.fromkeys((r["dataset"], r["noise"]) for r in rows))
    for axis, (column, unit, title) in zip(axes, panels, strict=True):
        for (dataset, noise), colour in zip(
            names, (BLUE, ORANGE, GREEN, RED), strict=False
        ):
            runs = where(rows, dataset=dataset, noise=noise)
            curves = np.array([[float(v) for v in r[column].split()] for r in runs])
            x = np.arange(1, curves.shape[1] + 1)
            label = f"{dataset}, {NOISE_NAMES[noise]} (n = {len(runs)})"
            axis.plot(
                x,
                curves.mean(axis=0),
                marker="o",
                markersize=3.5,
                color=colour,
                label=label,
            )
        axis.set_xlabel("round", fontsize=9)
        axis.set_xticks(range(1, 1 + max(len(r[column].split()) for r in rows)))
        axis.set_ylabel(unit, fontsize=9)
        axis.set_title(title, fontsize=10)
    legend_below(made, axes[0], 2)
    made.suptitle("Algorithm 1, round by round (CPU scale)", fontsize=11)
    return made


DRAW: dict[str, Callable[[Path], Any]] = {
    "label_accuracy": label_accuracy,
    "sampling_rate": sampling_rate,
    "validation_sets": validation_sets,
    "clean_validation": clean_validation,
    "distribution": distribution,
    "training_curves": training_curves,
}
SOURCES = {"training_curves": "training"}


def main() -> None:
    """Draw the figures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(DRAW))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path, default=FIGURES)
    options = parser.parse_args()
    for name in options.names:
        if name not in DRAW:
            near = difflib.get_close_matches(name, DRAW, n=3, cutoff=0.0)
            print(
                f"figures: error: no figure {name!r}; near: {', '.join(near)}",
                file=sys.stderr,
            )
            sys.exit(2)
    for name in options.names or DRAW:
        source = options.results / f"{SOURCES.get(name, name)}.csv"
        if not source.exists():
            print(f"{name}: not drawn, there is no {source.name} yet")
            continue
        path = options.output / f"{name}.png"
        DRAW[name](options.results).savefig(path)
        print(path)


if __name__ == "__main__":
    main()
