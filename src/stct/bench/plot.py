"""The plot of the battery: right labels for each noise, and what they cost."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stct.bench.averages import Mean
from stct.bench.methods import TITLES

_OURS, _OTHERS = "#1b6ca8", "#b8c4ce"
_BELOW = (
    ("f1", "F1 of finding wrong labels"),
    ("auroc", "AUROC of ranking them first"),
    ("seconds", "seconds"),
)
# Less is not drawn: doing nothing takes no time, and would stretch the axis.
_LEAST = {"f1": 0.0, "auroc": 0.0, "seconds": 1e-4}


def plot(means: Sequence[Mean], path: Path, what: str) -> None:
    """Draw right labels of every method, one panel for each kind of noise.

    Below them F1, AUROC and seconds: a dot for each kind of noise.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    noises = list(dict.fromkeys(mean.noise for mean in means))
    methods = list(dict.fromkeys(mean.method for mean in means))[::-1]
    columns = min(3, len(noises))
    rows = math.ceil(len(noises) / columns)
    height = 0.6 + 0.26 * len(methods)  # inches of a row of panels
    width = max(1.2 + 3.2 * columns, 7.6)
    size = (width, 0.9 + (rows + 1) * height)
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    ratios = [rows * height + 0.7, height + 0.2]
    parts: Any = figure.subfigures(2, 1, height_ratios=ratios)
    above, below = parts
    axes = above.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis in axes[len(noises) :]:
        axis.set_visible(False)
    for axis, noise in zip(axes, noises, strict=False):
        _right_labels(axis, noise, [m for m in means[::-1] if m.noise == noise])
    above.supxlabel("right labels after correction (%)", fontsize=9)
    above.suptitle(f"Label correction on {what}", fontsize=11)
    if len(noises) > 1:
        below.suptitle("One dot for each kind of noise", fontsize=9)
    small = below.subplots(1, len(_BELOW), sharey=True)
    for axis, (name, title) in zip(small, _BELOW, strict=True):
        _dots(axis, name, title, [[m for m in means if m.method == n] for n in methods])
    small[0].set_yticks(range(len(methods)), [TITLES[name] for name in methods])
    figure.savefig(path)


def _right_labels(axis: Any, noise: str, members: Sequence[Mean]) -> None:
    right = [100 * m.mean["label_accuracy"] if m.n else 0.0 for m in members]
    spread = [0.0 if math.isnan(m.spread) else 100 * m.spread for m in members]
    names = [TITLES[m.method] for m in members]
    colours = [_colour(m.method) for m in members]
    bars = axis.barh(names, right, xerr=spread, color=colours, ecolor="#444444")
    texts = [
        f"{v:.1f}" if m.n else "failed" for v, m in zip(right, members, strict=True)
    ]
    axis.bar_label(bars, texts, padding=4, fontsize=8)
    axis.set_xlim(0, 115)
    axis.set_xticks([0, 25, 50, 75, 100])
    most = max(m.n for m in members)
    axis.set_title(noise + (f", mean of {most} seeds" if most > 1 else ""), fontsize=10)
    _plain(axis)


def _dots(axis: Any, name: str, title: str, groups: Sequence[Sequence[Mean]]) -> None:
    """Draw one value for each kind of noise; the methods are at 0, 1, 2, ..."""
    for place, members in enumerate(groups):
        values = [m.mean[name] for m in members if m.mean[name] >= _LEAST[name]]
        colour = _colour(members[0].method)
        axis.plot(values, [place] * len(values), "o", color=colour, markersize=5)
    if name == "seconds":
        axis.set_xscale("log")
    else:
        axis.set_xlim(-0.03, 1.03)
    axis.set_ylim(-0.6, len(groups) - 0.4)
    axis.grid(axis="y", color="#eceff2")
    axis.set_title(title, fontsize=9)
    _plain(axis)


def _colour(method: str) -> str:
    return _OURS if method == "loo" else _OTHERS


def _plain(axis: Any) -> None:
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
