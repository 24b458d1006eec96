"""The results of the battery as a table, a CSV file, a summary and a plot."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stct
from stct.bench.battery import Score
from stct.bench.inputs import Subject
from stct.bench.methods import TITLES
from stct.data.outputs import SUMMARY, WRITTEN_BY
from stct.data.summary import as_json

CSV, PLOT = "bench.csv", "bench.png"
_NUMBERS = ("actual_noise", "label_accuracy", "f1", "auroc", "seconds", "peak_mb")


class Mean(NamedTuple):
    """A method on one kind of noise, over its seeds."""

    noise: str
    method: str
    n: int
    mean: dict[str, float]
    spread: float  # standard deviation of label_accuracy
    failure: str


def average(scores: Sequence[Score]) -> list[Mean]:
    """Mean over seeds, in the order of the first; failed runs do not count."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.noise, score.method), []).append(score)
    result = []
    for (noise, method), members in groups.items():
        good = [score for score in members if not score.failure]
        failure = next((score.failure for score in members if score.failure), "")
        values = {
            name: float(np.mean([getattr(s, name) for s in good])) if good else math.nan
            for name in _NUMBERS
        }
        right = [score.label_accuracy for score in good]
        spread = float(np.std(right, ddof=1)) if len(right) > 1 else math.nan
        result.append(Mean(noise, method, len(good), values, spread, failure))
    return result


def write_bench(
    folder: Path, subject: Subject, scores: Sequence[Score], facts: dict[str, Any]
) -> dict[str, Any]:
    """Write CSV, plot (where matplotlib is installed) and summary; give the summary."""
    means = average(scores)
    notes = [*subject.notes, *facts.pop("notes")]
    with (folder / CSV).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Score._fields)
        for score in scores:
            writer.writerow([_cell(value) for value in score])
    files = [CSV]
    try:
        plot(means, folder / PLOT, f"{len(subject.H):,} rows")
        files.append(PLOT)
    except ImportError:
        notes.append("no plot: matplotlib is not installed; pip install 'stct[bench]'")
    failures = {f"{m.method} on {m.noise}: {m.failure}" for m in means if m.failure}
    summary = {
        "written_by": WRITTEN_BY,
        "rows": len(subject.H),
        "embedding_columns": subject.H.shape[1],
        "classes": len(subject.classes),
        **facts,
        "results": [
            {
                "noise": mean.noise,
                "method": mean.method,
                "n": mean.n,
                **{name: _number(value) for name, value in mean.mean.items()},
                "label_accuracy_std": _number(mean.spread),
            }
            for mean in means
        ],
        "version": stct.__version__,
        "notes": [*notes, *sorted(failures)],
        "files": [*files, SUMMARY],
    }
    (folder / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    return summary


def table_lines(means: Sequence[Mean]) -> list[str]:
    """Write the means as a table of text; the best accuracy of each noise has a *."""
    head = f"{'noise':18s}{'method':20s}{'right %':>15s}{'F1':>7s}{'AUROC':>7s}"
    lines = [f"{head}{'s':>8s}{'MB':>7s}"]
    best = {
        m.noise: max(
            (o.mean["label_accuracy"] for o in means if o.noise == m.noise and o.n),
            default=math.nan,
        )
        for m in means
    }
    for m in means:
        value = m.mean
        right = "failed"
        if m.n:
            star = "*" if value["label_accuracy"] == best[m.noise] else " "
            spread = "" if math.isnan(m.spread) else f" +-{100 * m.spread:.2f}"
            right = f"{100 * value['label_accuracy']:.2f}{spread}{star}"
        lines.append(
            f"{m.noise:18s}{TITLES[m.method]:20s}{right:>15s}"
            f"{_shown(value['f1'], 3):>7s}{_shown(value['auroc'], 3):>7s}"
            f"{_shown(value['seconds'], 2):>8s}{_shown(value['peak_mb'], 0):>7s}"
        )
    return lines


def plot(means: Sequence[Mean], path: Path, what: str) -> None:
    """Draw right labels of every method, one panel for each kind of noise."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    noises = list(dict.fromkeys(mean.noise for mean in means))
    columns = min(3, len(noises))
    rows = math.ceil(len(noises) / columns)
    most = max(sum(m.noise == noise for m in means) for noise in noises)
    size = (1.2 + 3.2 * columns, 0.6 + rows * (0.6 + 0.26 * most))
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis in axes[len(noises) :]:
        axis.set_visible(False)
    for axis, noise in zip(axes, noises, strict=False):
        members = [m for m in means if m.noise == noise][::-1]
        right = [100 * m.mean["label_accuracy"] if m.n else 0.0 for m in members]
        spread = [0.0 if math.isnan(m.spread) else 100 * m.spread for m in members]
        colours = ["#1b6ca8" if m.method == "loo" else "#b8c4ce" for m in members]
        names = [TITLES[m.method] for m in members]
        bars = axis.barh(names, right, xerr=spread, color=colours, ecolor="#444444")
        texts = [
            f"{v:.1f}" if m.n else "failed" for v, m in zip(right, members, strict=True)
        ]
        axis.bar_label(bars, texts, padding=4, fontsize=8)
        axis.set_xlim(0, 115)
        axis.set_xticks([0, 25, 50, 75, 100])
        axis.set_title(noise, fontsize=10)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    seeds = max(m.n for m in means)
    figure.supxlabel("right labels after correction (%)", fontsize=9)
    figure.suptitle(
        f"Label correction on {what}" + (f", mean of {seeds} seeds" * (seeds > 1)),
        fontsize=11,
    )
    figure.savefig(path)


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else round(value, 6)
    return value


def _shown(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)
