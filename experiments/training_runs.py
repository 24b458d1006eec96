"""Runs of ``stct train`` that are kept: reused if nothing changed, else made anew.

A folder holds what the run reads, the run, and `made.json`: what it depends on, and the
commit and machine that made it. While anybody is at a folder, or a training that has
lost its parent, others wait.
"""

import fcntl
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

from runner import commit, machine
from training_data import Task

MADE, SUMMARY = "made.json", "summary.json"
COMMAND = [sys.executable, "-m", "stct", "train", "--quiet"]


@dataclass(frozen=True)
class Wanted:
    """What a run is told."""

    task: Task
    preset: str
    seed: int
    settings: list[str]
    init: Path | None = None
    labels: bool = True  # whether they matter: SimCLR sees none

    def config(self) -> Any:
        """Give all settings that follow; the preset may be another one tomorrow."""
        from stct.train.config_text import override
        from stct.train.presets import preset

        return override(preset(self.preset), self.settings)

    def key(self) -> dict[str, Any]:
        """Give all that the run depends on, but for the code."""
        init = self.init and hashlib.sha256(self.init.read_bytes()).hexdigest()
        key = {
            "content": self.task.digest(labels=self.labels),
            "config": asdict(self.config()),
            "seed": self.seed,
            "init": init,
        }
        return dict(json.loads(json.dumps(key)))  # as it will be read again


class Made(NamedTuple):
    """A finished run, and how it was made."""

    run: Path
    summary: dict[str, Any]
    seconds: float
    commit: str
    machine: str


def make(place: Path, wanted: Wanted) -> Made:
    """Give the run of a folder: as it is, gone on with, or made anew."""
    place.mkdir(parents=True, exist_ok=True)
    run, made = place / "run", place / MADE
    with _alone(place) as lock:
        key = wanted.key()
        if _read(made).get("key") != key:
            _discard(run)
            wanted.task.write(place)
            _write(made, {"key": key, "commit": "", "machine": machine()})
        if not (run / SUMMARY).exists():
            _train(place, wanted, lock)
        facts, summary = _read(made), _read(run / SUMMARY)
    seconds = _seconds(run, summary["seconds"])
    return Made(run, summary, seconds, facts["commit"], facts["machine"])


def _train(place: Path, wanted: Wanted, lock: IO[str]) -> None:
    """Run ``stct train``, or go on with a run that was stopped."""
    run, made = place / "run", place / MADE
    facts, now = _read(made), commit()
    if (run / "checkpoint.safetensors").exists():
        command = [*COMMAND, "--resume", str(run)]
        if now not in facts["commit"].split():
            now = f"{facts['commit']} {now}"  # one began it, one went on
        else:
            now = facts["commit"]
    else:
        _discard(run)
        train, test = wanted.task.sources(place)
        command = [*COMMAND, str(train), "--test", str(test), "-o", str(run)]
        command += ["--preset", wanted.preset, "--seed", str(wanted.seed)]
        command += ["--init", str(wanted.init)] if wanted.init else []
        for text in wanted.settings:
            command += ["--set", text]
    _write(made, {**facts, "commit": now})
    # It inherits the lock: if we are killed, the folder is still its own.
    done = subprocess.run(
        command,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        pass_fds=[lock.fileno()],
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise ValueError(f"{run}: stct train failed: {lines[-1]}")


@contextmanager
def _alone(place: Path) -> Iterator[IO[str]]:
    """Hold a folder; wait for whoever has it."""
    with (place / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{place}: another process trains here; waiting for it", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _discard(run: Path) -> None:
    """Put a run that is of no use out of the way."""
    if run.exists():
        run.rename(run.with_name(f"{run.name}-old-{time.time_ns()}"))


def _seconds(run: Path, last: float) -> float:
    """Add up the times of a run and its resumptions, each of which counts from 0."""
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    times = [*(json.loads(line)["seconds"] for line in lines), last]
    return round(last + sum(a for a, b in pairwise(times) if b < a), 2)


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def _write(path: Path, value: Any) -> None:
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    temporary.rename(path)
