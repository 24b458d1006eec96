"""What the figures share: colours, names, rows of a CSV, an empty figure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from reading import Rows

BLUE, ORANGE, GREEN, RED, GREY = "#1b6ca8", "#e07b39", "#3a9a6c", "#c0392b", "#9aa5b1"
NOISE_NAMES = {
    "symmetric:0.2": "symmetric 20%",
    "symmetric:0.5": "symmetric 50%",
    "symmetric:0.8": "symmetric 80%",
    "symmetric:0.9": "symmetric 90%",
    "asymmetric:0.2": "asymmetric 20%",
    "asymmetric:0.4": "asymmetric 40%",
    "human:aggregate": "people: aggregate",
    "human:random1": "people: random 1",
    "human:worst": "people: worst",
}


def where(rows: Rows, **values: Any) -> list[Mapping[str, str]]:
    """Give the rows with these values."""
    return [r for r in rows if all(r[k] == str(v) for k, v in values.items())]


def mean(rows: Iterable[Mapping[str, str]], column: str) -> float:
    """Give the mean of a column, NaN without rows."""
    values = [float(row[column]) for row in rows]
    return statistics.mean(values) if values else float("nan")


def spread(rows: Iterable[Mapping[str, str]], column: str) -> float:
    """Give the standard deviation of a column, 0 for one row."""
    values = [float(row[column]) for row in rows]
    return statistics.stdev(values) if len(values) > 1 else 0.0


def around(values: Iterable[Sequence[float]]) -> Any:
    """Give how far smallest and largest values are from their means, (2, k).

    Unlike a standard deviation it never reaches where no value can be.
    """
    pairs = [(np.mean(v) - min(v), max(v) - np.mean(v)) for v in values]
    return np.maximum(np.reshape(pairs, (-1, 2)).T, 0.0)  # rounding may be below 0


def noises_of(rows: Rows) -> list[str]:
    """Give the kinds of noise that rows are of: those we know first, in our order."""
    found = dict.fromkeys(row["noise"] for row in rows)
    return [n for n in NOISE_NAMES if n in found] + [
        n for n in found if n not in NOISE_NAMES
    ]


def noise_name(noise: str) -> str:
    """Name a noise for people."""
    return NOISE_NAMES.get(noise, noise)


def figure(rows: int, columns: int, width: float, height: float, **more: Any) -> Any:
    """Give a figure and its axes, in our style."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(made)
    axes = np.atleast_1d(made.subplots(rows, columns, **more))
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
        axis.grid(axis="y", color="#e6e9ec", linewidth=0.8)
        axis.set_axisbelow(True)
    return made, axes


def legend_below(made: Any, axis: Any, columns: int, **more: Any) -> None:
    """Put the legend of one axis under the whole figure."""
    handles = more.pop("handles", None) or axis.get_legend_handles_labels()[0]
    made.legend(
        handles=handles,
        ncols=columns,
        fontsize=8,
        loc="outside lower center",
        frameon=False,
        **more,
    )


def coloured_line(colour: str, label: str) -> Any:
    """Give the legend of a colour."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, label=label)


def black_lines(styles: Iterable[tuple[str, str, str]]) -> list[Any]:
    """Give the legends of line styles: label, style, marker."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color="black", ls=line, marker=mark, markersize=4, label=label)
        for label, line, mark in styles
    ]


def write_inside(axis: Any, bars: Any, values: Sequence[float]) -> None:
    """Write each value into its bar; 0 is a method that fails, NaN was not run."""
    for bar, value in zip(bars, values, strict=True):
        x = bar.get_x() + bar.get_width() / 2
        if np.isnan(value):
            continue
        if value:
            style = {"color": "white", "fontsize": 7, "ha": "center"}
            axis.text(x, 4, f"{value:.0f}", **style)
        else:
            axis.text(x, 3, "fails", rotation=90, fontsize=7, ha="center")
