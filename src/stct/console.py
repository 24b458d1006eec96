"""What the commands show to people: progress on stderr, a short table on stdout."""

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

_SHOW_AFTER = 2.0  # seconds
_PLAIN_EVERY = 10.0  # in a log file
_MOVES_SHOWN = 5
UNSEEN = (
    "errors that a rule, a model or annotators share where the features agree with "
    "them; to know, check 100 random rows by hand"
)
_LONGEST_LABEL = 40


# Of outside text: what moves the cursor or turns the direction of writing.
_UNSEEN_IN_JSON = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def printable(text: object, longest: int = 1000) -> str:
    """Give text from outside as one line for a terminal: escaped, and cut.

    Everything that people see and that may hold a name, a label or a file's content
    goes through here.
    """
    line = str(text)
    if len(line) > longest:
        line = f"{line[:longest]}... ({len(line):,} characters)"
    if line.isprintable():
        return line
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in line
    )


def say(text: str, file: TextIO | None = None) -> None:
    """Print one line that may hold text from outside."""
    print(printable(text), file=file)


def escape_json(text: str) -> str:
    """Escape in JSON what a terminal would obey; it stays the same JSON."""
    return _UNSEEN_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Show that something goes on, with the time left once a share done is known.

    Gives a function that takes the share. Nothing appears in the first two seconds.
    Where stderr is no terminal, a plain line every ten seconds takes the place of the
    bar, also while nothing is reported.
    """
    what = printable(what, 200)
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(what, total=None, left="")
    lines = _Lines(what)
    live = console.is_terminal and not quiet
    plain = not (console.is_terminal or quiet)

    def report(done: float) -> None:
        if not 0.0 < done < 1.0:
            return
        lines.done = done
        bar.update(task, total=1.0, completed=done, left=lines.left())
        if plain:
            lines.show()

    # A thread, since what goes on may be one long call that reports nothing.
    timer = threading.Timer(_SHOW_AFTER, bar.start)
    timer.daemon = True
    if live:
        timer.start()
    if plain:
        lines.start()
    try:
        yield report
    finally:
        lines.ended.set()
        if live:
            timer.cancel()
            timer.join()
            if bar.live.is_started:
                bar.stop()


class _Lines(threading.Thread):
    """Writes for a log file, every ten seconds, how far something is."""

    def __init__(self, what: str) -> None:
        super().__init__(daemon=True)
        self.what = what
        self.done: float | None = None  # share
        self.ended = threading.Event()
        self._start_time = time.monotonic()
        self._last: float | None = None
        self._lock = threading.Lock()

    def left(self) -> str:
        """Say the share that is done and the time left, or the time so far."""
        elapsed = time.monotonic() - self._start_time
        if self.done is None:
            return f"{elapsed:.0f} s so far"
        left = duration(round(elapsed * (1.0 - self.done) / self.done))
        return f"{self.done:.0%}, about {left} left"

    def show(self) -> None:
        """Write a line unless there was one a moment ago."""
        with self._lock:
            now = time.monotonic()
            since = now - (self._start_time if self._last is None else self._last)
            if since >= (_SHOW_AFTER if self._last is None else _PLAIN_EVERY):
                self._last = now
                print(f"{self.what}: {self.left()}", file=sys.stderr, flush=True)

    def run(self) -> None:
        """Write also while nothing is reported."""
        while not self.ended.wait(_PLAIN_EVERY):
            self.show()


@contextmanager
def training_progress(*, quiet: bool) -> Iterator[Callable[[Any], None]]:
    """Give a function that shows a `stct.train.training.Progress`.

    On a terminal one live line; elsewhere a plain line every half minute.
    """
    console = Console(stderr=True)
    bar = Progress(
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:.0f}% {task.description}"),
        console=console,
        transient=True,
    )
    last = time.monotonic() - _PLAIN_EVERY + _SHOW_AFTER

    def report(now: Any) -> None:
        nonlocal last
        first_process = os.environ.get("RANK", "0") == "0"
        if quiet or not first_process:
            return
        if console.is_terminal:
            if not bar.task_ids:
                bar.start()
                bar.add_task("", total=1.0)
            bar.update(
                bar.task_ids[0], completed=now.done, description=_training_line(now)
            )
        elif time.monotonic() - last >= _PLAIN_EVERY or now.step is None:
            last = time.monotonic()
            line = f"{now.done:.0%} {_training_line(now)}"
            print(line, file=sys.stderr, flush=True)

    try:
        yield report
    finally:
        if bar.task_ids:
            bar.stop()


def _training_line(now: Any) -> str:
    """Say phase, losses, speed, accuracy on noisy validation rows and time left."""
    parts = []
    if now.step is not None:
        name = "SimCLR" if now.step.phase == "pretrain" else f"round {now.step.round}"
        parts.append(f"{name} {now.step.step}/{now.step.num_steps}")
        parts += [f"{key} {value:.3f}" for key, value in now.losses.items()]
    parts.append(f"{now.rate:.0f} images/s")
    if now.noisy_accuracy is not None:
        parts.append(f"noisy validation {now.noisy_accuracy:.1%}")
    if now.test_accuracy is not None:
        parts.append(f"test {now.test_accuracy:.1%}")
    minutes, seconds = divmod(round(now.seconds_left), 60)
    parts.append(f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left")
    return ", ".join(parts)


def show_training(summary: Mapping[str, Any], folder: Path) -> None:
    """Print what a training run gave and where its files are."""
    training = summary["training"]
    last = training["rounds"][-1]
    facts = {
        "rounds": f"{len(training['rounds'])}, preset {training['preset']}",
    }
    if last["noisy_validation_accuracy"] is not None:
        facts["noisy validation accuracy"] = (
            f"{last['noisy_validation_accuracy']:.1%} (on given labels that training "
            "never saw)"
        )
    if training["test_accuracy"] is not None:
        facts["test accuracy"] = f"{training['test_accuracy']:.1%}"
    if "actions" in summary:
        accuracy, actions = summary["estimated_accuracy"], summary["actions"]
        facts |= {
            "estimated wrong before": _wrong("before", accuracy),
            "estimated wrong after": _wrong("after", accuracy),
            "relabelled": _share(actions["relabel"], summary["rows"]),
        }
    for i, note in enumerate(summary["notes"]):
        facts["note" if i == 0 else f"note {i + 1}"] = note
    facts["files"] = f"{folder}: {', '.join(summary['files'])}"
    title = f"Trained on {summary['rows']:,} images in {summary['seconds']:.0f} s"
    show_facts(title, facts)


def show_summary(summary: Mapping[str, Any], folder: Path, seconds: float) -> None:
    """Print what a correction found, its files, and the ``seconds`` of it all."""
    accuracy = summary["estimated_accuracy"]
    actions = summary["actions"]
    rows = summary["rows"]
    learnt = summary["termination_condition"] != "nothing_learnt"
    why = "too close" if learnt else "nothing to go by"
    facts = {
        "rows": f"{rows:,} in {summary['classes']:,} classes",
        "estimated wrong before": _wrong("before", accuracy) if learnt else "unknown",
        "estimated wrong after": _wrong("after", accuracy) if learnt else "unknown",
        "kept": _share(actions["keep"], rows),
        "relabelled": _share(actions["relabel"], rows),
        "abstained": f"{_share(actions['abstain'], rows)}: {why}, label unchanged",
    }
    if actions["fill"]:
        facts["filled"] = f"{_share(actions['fill'], rows)}: had no label"
    moves = summary["most_common_corrections"][:_MOVES_SHOWN]
    lines = [f"{show(m['from'])} -> {show(m['to'])}  {m['rows']:,}" for m in moves]
    if lines:
        facts["most common corrections"] = "\n".join(lines)
    since = summary.get("since")
    if since:
        facts["changed since"] = (
            f"{since['folder']}: {since['other_labels_changed']:,} labels of rows that "
            "nobody has checked, listed in changed.csv"
        )
    audit = summary.get("audit")
    if audit:
        facts["audit"] = describe_audit(audit)
    elif learnt:
        facts["cannot be seen"] = UNSEEN
    for i, note in enumerate(summary["notes"]):
        facts["note" if i == 0 else f"note {i + 1}"] = note
    facts["files"] = f"{folder}: {', '.join(summary['files'])}"
    facts["look at"] = str(folder / "report.html")
    own = f"Corrected in {summary['seconds']:.1f} s"
    show_facts(f"{own}, {seconds:.1f} s with reading and writing", facts)


def show_label_sets(summary: Mapping[str, Any], folder: Path, seconds: float) -> None:
    """Print what a correction of several labels for a row found."""
    accuracy = summary["estimated_accuracy"]
    entries = summary["rows"] * summary["labels"]
    learnt = accuracy["before"] is not None
    facts = {
        "rows": f"{summary['rows']:,} with {summary['labels']:,} labels",
        "estimated wrong before": _wrong("before", accuracy) if learnt else "unknown",
        "estimated wrong after": _wrong("after", accuracy) if learnt else "unknown",
        "labels added": _share(summary["added"], entries),
        "labels removed": _share(summary["removed"], entries),
        "rows changed": _share(summary["changed_rows"], summary["rows"]),
    }
    most = sorted(summary["per_label"], key=lambda row: -row["added"] - row["removed"])
    lines = [
        f"{show(row['label'])}  +{row['added']:,} -{row['removed']:,}"
        for row in most[:_MOVES_SHOWN]
        if row["added"] + row["removed"]
    ]
    if lines:
        facts["most changed labels"] = "\n".join(lines)
    _notes_and_files(facts, summary, folder)
    facts["look at"] = str(folder / "changes.csv")
    own = f"Corrected in {summary['seconds']:.1f} s"
    show_facts(f"{own}, {seconds:.1f} s with reading and writing", facts)


def show_numeric(summary: Mapping[str, Any], folder: Path, seconds: float) -> None:
    """Print which numeric labels do not fit."""
    facts = {
        "rows": f"{summary['rows']:,}",
        "predicted": f"{summary['explained_variance']:.1%} of the variance of the "
        "labels, each from the other rows",
        "suspects": f"{_share(summary['suspects'], summary['rows'])}; no label was "
        "changed",
    }
    lines = [
        f"{show(row['id'])}: {show(row['given'])}, usual here is {row['low']:.4g} to "
        f"{row['high']:.4g}"
        for row in summary["first_suspects"][:_MOVES_SHOWN]
    ]
    if lines:
        facts["least fitting"] = "\n".join(lines)
    _notes_and_files(facts, summary, folder)
    facts["look at"] = str(folder / summary["files"][1])
    own = f"Checked in {summary['seconds']:.1f} s"
    show_facts(f"{own}, {seconds:.1f} s with reading and writing", facts)


def _notes_and_files(
    facts: dict[str, str], summary: Mapping[str, Any], folder: Path
) -> None:
    for i, note in enumerate(summary["notes"]):
        facts["note" if i == 0 else f"note {i + 1}"] = note
    facts["files"] = f"{folder}: {', '.join(summary['files'])}"


def describe_audit(audit: Mapping[str, Any]) -> str:
    """Say where the estimates come from, and what a better one would cost."""
    more = audit["more_rows_to_halve_the_interval"]
    return (
        f"estimates and exact 95% intervals from {audit['rows']:,} verified rows; "
        f"{more:,} more would halve the intervals"
    )


def show_plan(problem: Any, plan: Any) -> None:
    """Print what a correction would cost."""
    facts = {
        "data": f"{problem.rows:,} rows x {problem.columns:,} columns, "
        f"{problem.classes:,} classes, {size(plan.input)}",
        "fit": f"about {duration(plan.seconds)} on {plan.workers:,} CPUs",
        "in all": f"about {duration(plan.command_seconds)} with table and report",
        "memory": f"about {size(plan.memory)}, and what the system caches of files",
        "disk": f"about {size(plan.disk)} will be written",
        "engine": f"{plan.engine}: {plan.reason}",
    }
    if plan.assumed:
        facts["assumed"] = plan.assumed
    show_facts("'stct correct' would take (within a factor of two)", facts)


def size(num_bytes: float) -> str:
    """Give bytes in a unit that people read."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.3g} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:,.3g} TB"


def duration(seconds: float) -> str:
    """Give seconds in a unit that people read."""
    if seconds < 120.0:
        number = f"{seconds:.2g}" if seconds < 99.0 else f"{seconds:.0f}"
        return f"{number} second" if number == "1" else f"{number} seconds"
    if seconds < 7200.0:
        return f"{seconds / 60:.2g} minutes"
    return f"{seconds / 3600:.3g} hours"


def show_facts(title: str, facts: Mapping[str, str]) -> None:
    """Print a title and a two-column table."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        lines = [printable(line) for line in value.split("\n")]
        table.add_row(printable(name), "\n".join(lines))
    console = Console(markup=False, highlight=False, emoji=False)
    with console.capture() as shown:
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
    print(printable(title))
    for line in shown.get().splitlines():
        print(line.rstrip())


def show(label: Any) -> str:
    """Give a label as short printable text."""
    text = str(label)[: 2 * _LONGEST_LABEL]
    text = text if text.isprintable() and text.strip() == text else repr(text)
    long = len(text) > _LONGEST_LABEL
    return text[: _LONGEST_LABEL - 3] + "..." if long else text


def _share(count: int, rows: int) -> str:
    return f"{count:,} ({count / rows:.1%})"


def _wrong(when: str, accuracy: Mapping[str, Any]) -> str:
    """Turn an accuracy and its interval into a share of wrong labels."""
    low, high = accuracy[f"{when}_interval"]
    return f"{1 - accuracy[when]:.1%} (between {1 - high:.1%} and {1 - low:.1%})"
