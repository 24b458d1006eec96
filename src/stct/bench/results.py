"""The results of the battery as a table, a CSV file and a summary."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import stct
from stct.bench.averages import Mean, average
from stct.bench.battery import Score
from stct.bench.inputs import Subject
from stct.bench.methods import TITLES
from stct.bench.plot import plot
from stct.data.outputs import SUMMARY, WRITTEN_BY, sign
from stct.data.summary import as_json

CSV, PLOT = "bench.csv", "bench.png"


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
    sign(summary, folder)
    (folder / SUMMARY).write_text(as_json(summary), encoding="utf-8")
    return summary


def table_lines(means: Sequence[Mean]) -> list[str]:
    """Write the means as a table of text; the best accuracy of each noise has a *."""
    wide = max(18, *(len(m.noise) + 2 for m in means))  # of the first column
    head = f"{'noise':{wide}s}{'method':20s}{'right %':>15s}{'F1':>7s}{'AUROC':>7s}"
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
            f"{m.noise:{wide}s}{TITLES[m.method]:20s}{right:>15s}"
            f"{_shown(value['f1'], 3):>7s}{_shown(value['auroc'], 3):>7s}"
            f"{_shown(value['seconds'], 2):>8s}{_shown(value['peak_mb'], 0):>7s}"
        )
    return lines


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else round(value, 6)
    return value


def _shown(value: float, digits: int) -> str:
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)
