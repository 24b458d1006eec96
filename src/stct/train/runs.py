"""Run directories: what a run was told, how it went, where it stands, what it gave.

A directory holds ``config.json`` (settings, seed, data; written first),
``environment.json``, ``metrics.jsonl`` (one line for steps and rounds),
``labels-round-NN.csv``, ``checkpoint.safetensors`` (replaced as a whole), and at the
end the model, the labels and ``summary.json``. After a kill at any moment the last
checkpoint is whole, and going on from it repeats what was lost, bit for bit.
"""

import csv
import io
import json
import os
import platform
import secrets
import shutil
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

import stct
from stct.data.files import parse_json, read_json, read_text
from stct.data.locks import lock_file
from stct.data.outputs import flush
from stct.data.schema import Field, check_fields, is_count, is_text
from stct.train.checkpoint import CHECKPOINT, as_bytes
from stct.train.files import write_whole
from stct.train.state import State

_NO_LOSSES = ("phase", "round", "step", "seconds")
CONFIG, METRICS = "config.json", "metrics.jsonl"
_SCRATCH = ".results.tmp"
_VERSION = 1  # of the directory's layout
_ENTRY = {
    "phase": Field("text", is_text),
    "round": Field("a whole number", is_count),
}


class Run:
    """A run directory that this process alone may write to."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self.folder = folder
        self.facts = facts  # of config.json
        self.ids: list[Any] = []  # of the rows, for the files of labels
        self.software = [_software()]  # all that this run was trained with
        self._taken: bytes | None = None  # a checkpoint that waits for a good loss
        self._lock: IO[str] | None = None

    @classmethod
    def start(cls, folder: Path, facts: Mapping[str, Any]) -> Self:
        """Make a new directory; an existing one is never touched."""
        check_free(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.tmp")
        try:
            temporary.mkdir()
            run = cls(temporary, {"run_version": _VERSION, **facts})
            run._hold()
            run.write_json("environment.json", environment())
            run.write_json(CONFIG, run.facts)
            if sys.platform == "win32":  # Windows renames no folder with an open file
                run._release()
            temporary.rename(folder)  # fails where another run was quicker
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        run.folder = folder
        if run._lock is None:
            run._hold()
        return run

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a directory that `start` has made."""
        path = folder / CONFIG
        if not path.is_file():
            raise ValueError(f"{folder}: not a run directory, it has no {CONFIG}")
        facts = read_json(path)
        if not isinstance(facts, dict) or "run_version" not in facts:
            raise ValueError(f"{path}: not written by stct train")
        version = facts["run_version"]
        if version != _VERSION:
            raise ValueError(
                f"{folder}: a run of another version of stct ({version}, this one is "
                f"{_VERSION}); start a new run"
            )
        run = cls(folder, facts)
        run._hold()
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let others have the directory, without what is half-written."""
        shutil.rmtree(self.folder / _SCRATCH, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def write_json(self, name: str, value: Any) -> None:
        """Write a file as a whole."""
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file as a whole."""
        write_whole(self.folder / name, data)

    def log(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the metrics."""
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def write_round(
        self, number: int, labels: NDArray[np.intp], clean: NDArray[np.bool_]
    ) -> None:
        """Write the labels that a round was taught from, and which it trusted."""
        names, ids = self.facts["classes"], self.ids
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["id", "label", "selected"])
        for name, label, trusted in zip(ids, labels, clean, strict=True):
            writer.writerow([name, "" if label < 0 else names[label], int(trusted)])
        self.write_bytes(f"labels-round-{number:02d}.csv", text.getvalue().encode())

    def read_rounds(self) -> list[dict[str, Any]]:
        """Give the metrics of all rounds, those before a resume too."""
        return [entry for entry in self._metrics() if entry["phase"] == "round"]

    def read_losses(self, number: int) -> dict[str, float]:
        """Give the mean of every loss over the steps of a round that were logged."""
        steps = [
            e for e in self._metrics() if (e["phase"], e["round"]) == ("srl", number)
        ]
        names = [n for n in (steps or [{}])[0] if n not in _NO_LOSSES]
        means = {n: sum(e[n] for e in steps) / len(steps) for n in names}
        return {
            "confident_share" if n == "confident" else f"{n}_loss": mean
            for n, mean in means.items()
        }

    def _metrics(self) -> list[dict[str, Any]]:
        path = self.folder / METRICS
        entries = [parse_json(line, path) for line in read_text(path).splitlines()]
        for entry in entries:
            check_fields(entry, _ENTRY, path)
        return entries

    def scratch(self) -> Path:
        """Give an empty folder for `adopt`."""
        temporary = self.folder / _SCRATCH
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        return temporary

    def adopt(self, temporary: Path, *, last: str) -> None:
        """Move finished files to the top; ``last`` says that all are there."""
        for path in sorted(temporary.iterdir(), key=lambda path: path.name == last):
            flush(path)
            path.replace(self.folder / path.name)
        temporary.rmdir()

    def save(self, state: State, settings: str, seconds: float) -> None:
        """Take a checkpoint, to be written by `confirm`."""
        metrics = self.folder / METRICS
        length = metrics.stat().st_size if metrics.exists() else 0
        notes = {
            "settings": settings,
            "software": json.dumps(self.software),
            "seconds": f"{seconds:.3f}",
            "metrics_bytes": str(length),
        }
        # Made in memory and written by ourselves: a full disk is then an OSError.
        self._taken = as_bytes(state, notes)

    @property
    def waiting(self) -> bool:
        """Whether there is a checkpoint that `confirm` has not written yet."""
        return self._taken is not None

    def confirm(self) -> None:
        """Replace the checkpoint by the one taken last: its weights were good.

        Only the next loss shows whether a step has ruined them, so until then the
        older one stays. A kill on the way leaves it too.
        """
        if self._taken is not None:
            self.write_bytes(CHECKPOINT, self._taken)
            self._taken = None

    def go_on(self, place: Mapping[str, str]) -> None:
        """Take up where the checkpoint stands; {}: from the beginning.

        Metrics that are younger are dropped: they will come again.
        """
        metrics = self.folder / METRICS
        if metrics.exists():
            known = int(place.get("metrics_bytes", "0"))
            os.truncate(metrics, min(known, metrics.stat().st_size))
        before = json.loads(place.get("software", "[]"))
        self.software = [*before, *(s for s in self.software if s not in before)]

    def _hold(self) -> None:
        lock = (self.folder / ".lock").open("w")
        try:
            lock_file(lock)
        except OSError:
            lock.close()
            raise ValueError(f"{self.folder}: another process is at this run") from None
        self._lock = lock

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def check_free(folder: Path) -> None:
    """Refuse a place where no new run can begin; meant to be called early."""
    if folder.resolve() == Path.cwd():
        raise ValueError(
            f"-o {folder}: a run makes a folder of its own; give it a name, e.g. -o run"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(
            f"{folder}: exists; a run never overwrites another: choose another "
            f"-o, or go on with it: stct train --resume {folder}"
        )


def _software() -> str:
    return f"stct {stct.__version__}, torch {torch.__version__}"


def environment() -> dict[str, Any]:
    """Say what the run ran on."""
    return {
        "stct": stct.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "lightning-fabric": version("lightning-fabric"),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
