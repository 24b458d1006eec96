"""The figures that are curves: over the rate r, clean rows, and rounds of training."""

from itertools import chain, zip_longest
from typing import Any

import numpy as np
from drawing import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    around,
    black_lines,
    coloured_line,
    figure,
    legend_below,
    mean,
    noise_name,
    noises_of,
    spread,
    where,
)
from reading import DATA, DATASETS, SCALES, Results, Rows

COLOURS = (BLUE, ORANGE, GREEN, RED, "#7d5ba6", "#555555")


def sampling_rate(results: Results) -> Any:
    """Label accuracy, test accuracy and samplings against r, for both counts."""
    rows = where(results.rows("sampling_rate"), step_size=0.2)
    noises = noises_of(rows)
    made, axes = figure(2, 2, 9.0, 6.6)
    styles = {
        ("split", "covering"): ("split, splits that cover", "-", "o"),
        ("split", "printed"): ("split, splits of Eq. (33)", "--", "s"),
        ("paper", "printed"): ("paper: Eq. (9) and (33) as printed", ":", "x"),
    }
    panels = (
        ("label_accuracy", "right labels after correction (%)", "Corrected labels"),
        ("test_accuracy", "accuracy on the test split (%)", "Linear probe on them"),
        ("samplings", "splits", "Number of samplings"),
        ("corrections", "mean over rows", "Corrections of a row, by 20% each"),
    )
    for axis, (column, unit, title) in zip(axes.ravel(), panels, strict=True):
        for noise, colour in zip(noises, COLOURS, strict=False):
            for (method, count), (_, line, marker) in styles.items():
                chosen = where(rows, noise=noise, count=count, method=method)
                _against_rate(
                    axis, chosen, column, color=colour, linestyle=line, marker=marker
                )
        axis.set_xlabel("sampling rate r = validation rows / rows (%)", fontsize=9)
        axis.set_ylabel(unit, fontsize=9)
        axis.set_title(title, fontsize=10)
        axis.axvspan(90, 96, color="#f3f4f6", zorder=0)
    axes[1, 0].set_yscale("log")
    ticks = [5, 10, 20, 50, 100, 200]
    axes[1, 0].set_yticks(ticks, [str(tick) for tick in ticks])
    axes[1, 0].minorticks_off()
    colours = zip(noises, COLOURS, strict=False)
    # Legends are filled column by column: colours above, styles below.
    both = zip_longest(
        [coloured_line(c, noise_name(n)) for n, c in colours],
        black_lines(styles.values()),
    )
    handles = [handle for handle in chain(*both) if handle is not None]
    legend_below(made, None, 3, handles=handles)
    made.suptitle(
        f"Sampling rate r: {results.on}; bars: smallest and largest of the seeds",
        fontsize=11,
    )
    return made


def _against_rate(axis: Any, rows: Rows, column: str, **style: Any) -> None:
    rates = sorted({float(r["rate"]) for r in rows})
    values = [[float(r[column]) for r in where(rows, rate=rate)] for rate in rates]
    axis.errorbar(
        [100 * rate for rate in rates],
        [np.mean(v) for v in values],
        yerr=around(values),
        markersize=3.5,
        linewidth=1.4,
        **style,
    )


def clean_validation(results: Results) -> Any:
    """Right labels against the size of an extra clean validation set."""
    rows = results.rows("clean_validation")
    loo = where(results.rows("label_accuracy"), method="loo")
    made, axes = figure(1, 2, 9.0, 4.4, sharey=True)
    for axis, kind in zip(axes, ("symmetric", "asymmetric"), strict=True):
        _clean_rows_axis(axis, f"{kind.capitalize()} noise")
        noises = [n for n in noises_of(rows) if n.startswith(kind)]
        colours = (GREEN, BLUE, ORANGE, RED, *COLOURS[4:])
        for noise, colour in zip(noises, colours, strict=False):
            split, paper = (
                where(rows, noise=noise, method=name) for name in ("split", "paper")
            )
            label = noise_name(noise)
            _against_size(axis, split, color=colour, marker="o", label=label)
            _against_size(axis, paper, color=colour, marker="x", linestyle="-.")
            half = mean(where(split, size=0), "label_accuracy")
            axis.axhline(half, color=colour, linestyle="--", linewidth=1.2)
            best = mean(where(loo, noise=noise), "label_accuracy")
            axis.axhline(best, color=colour, linestyle=":", linewidth=1.4)
        handles, _ = axis.get_legend_handles_labels()
        axis.legend(handles=handles, fontsize=7.5, loc=(0.68, 0.29), frameon=False)
        if results.data in DATA:  # other data may have other columns
            _note(axis, 270, "257 columns,\nno ridge")
    axes[0].set_ylabel("right labels after correction (%)", fontsize=9)
    axes[0].set_ylim(0, 101)
    styles = (
        ("clean rows (split)", "-", "o"),
        ("clean rows, Eq. (9) as printed (paper)", "-.", "x"),
        ("no clean rows: the noisy half (split)", "--", ""),
        ("no clean rows: leave-one-out (loo)", ":", ""),
    )
    legend_below(made, None, 2, handles=black_lines(styles))
    made.suptitle(
        f"Noisy against extra clean validation sets: {results.on}", fontsize=11
    )
    return made


def _against_size(axis: Any, rows: Rows, **style: Any) -> None:
    sizes = sorted({int(r["size"]) for r in rows} - {0})
    cells = [where(rows, size=size) for size in sizes]
    axis.errorbar(
        sizes,
        [mean(c, "label_accuracy") for c in cells],
        yerr=[spread(c, "label_accuracy") for c in cells],
        markersize=3.5,
        linewidth=1.4,
        **style,
    )


def _clean_rows_axis(axis: Any, title: str) -> None:
    axis.set_xscale("log")
    axis.set_xlim(80, 12_600)
    axis.axvline(1000, color="#b0b7bf", linewidth=1.0, zorder=0)
    _note(axis, 1040, "usual size")
    ticks = [100, 250, 500, 1000, 2000, 5000, 10000]
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel("rows of the extra clean validation set", fontsize=9)
    axis.set_title(title, fontsize=10)


def _note(axis: Any, x: float, text: str) -> None:
    place = {"transform": axis.get_xaxis_transform(), "fontsize": 7}
    axis.text(x, 0.02, text, color="#6b7480", **place)


def training_curves(results: Results) -> Any:
    """Label accuracy of NMC and test accuracy and loss of SRL, round by round."""
    rows = where(results.rows("training"), variant="STCT")
    rows = [r for r in rows if r["noise"] in ("symmetric:0.5", "symmetric:0.8")]
    if not rows:
        return None
    made, axes = figure(1, 3, 9.0, 3.4)
    panels = (
        ("label_curve", "right labels (%)", "NMC: corrected labels"),
        ("test_curve", "test accuracy (%)", "SRL: classifier"),
        ("loss_curve", "training loss", "SRL: loss"),
    )
    names = list(dict.fromkeys((r["dataset"], r["noise"]) for r in rows))
    for axis, (column, unit, title) in zip(axes, panels, strict=True):
        for (dataset, noise), colour in zip(names, COLOURS, strict=False):
            runs = where(rows, dataset=dataset, noise=noise)
            curves = [[float(v) for v in r[column].split()] for r in runs]
            # Rounds that only some runs have had are means of those.
            values = [[v for v in at if v is not None] for at in zip_longest(*curves)]
            name = DATASETS.get(dataset, dataset)
            axis.errorbar(
                range(1, len(values) + 1),
                [np.mean(v) for v in values],
                yerr=around(values),
                capsize=2,
                marker="o",
                markersize=3.5,
                color=colour,
                label=f"{name}, {noise_name(noise)} (n = {len(runs)})",
            )
        axis.set_xlabel("round", fontsize=9)
        axis.set_xticks(range(1, 1 + max(len(r[column].split()) for r in rows)))
        axis.set_ylabel(unit, fontsize=9)
        axis.set_title(title, fontsize=10)
    legend_below(made, axes[0], 2)
    made.suptitle(
        f"Algorithm 1, round by round ({SCALES.get(results.scale, results.scale)}); "
        "bars: smallest and largest of the seeds",
        fontsize=11,
    )
    return made
