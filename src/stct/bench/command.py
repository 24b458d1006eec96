"""``stct bench`` from its options to its files."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from stct.bench import battery
from stct.bench.averages import average
from stct.bench.inputs import read_subject
from stct.bench.results import table_lines, write_bench
from stct.data.noising import read_flips
from stct.data.outputs import check_folder, whole_folder


class Options(NamedTuple):
    """What the command was asked for."""

    source: Path
    embeddings: Path | None
    embeddings_column: str | None
    label_column: str | None
    id_column: str | None
    noisy_columns: list[str]
    noise: str
    flips: str | None
    methods: str | None
    seeds: int
    output: Path
    overwrite: bool


def run_bench(
    options: Options, progress: Callable[[float], None]
) -> tuple[dict[str, Any], list[str]]:
    """Run the battery and write its folder; give the summary and the table's lines."""
    check_folder(options.output, overwrite=options.overwrite)
    noises = battery.parse_noise(options.noise)
    methods, notes = battery.parse_methods(options.methods)
    if not methods:
        raise ValueError(f"--methods: nothing to run: {notes[0]}")
    start = time.perf_counter()
    subject = read_subject(
        options.source,
        embeddings=options.embeddings,
        embeddings_column=options.embeddings_column,
        label_column=options.label_column,
        id_column=options.id_column,
        noisy_columns=options.noisy_columns,
    )
    flips = None
    if options.flips is not None:
        flips = read_flips(options.flips, subject.classes)
    elif any(name.startswith("asymmetric:") for name in noises):
        notes.append("asymmetric noise goes to the class with the nearest mean (--map)")
    cases = battery.make_cases(subject, noises, options.seeds, flips)
    if not cases:
        raise ValueError("--noise none needs a --noisy-column: there is nothing to do")
    scores = list(battery.run(subject, cases, methods, progress))
    facts = {
        "noise": noises,
        "methods": methods,
        "seeds": options.seeds,
        "seconds": round(time.perf_counter() - start, 3),
        "notes": notes,
    }
    with whole_folder(options.output, overwrite=options.overwrite) as folder:
        summary = write_bench(folder, subject, scores, facts)
    return summary, table_lines(average(scores))
