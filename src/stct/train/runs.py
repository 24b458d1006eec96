"""Run directories: what a run was told, how it went, where it stands, what it gave.

A directory holds ``config.json`` (settings, seed, data; written first),
``environment.json``, ``metrics.jsonl`` (one line for steps and rounds),
``labels-round-NN.csv``, ``checkpoint.safetensors`` (replaced as a whole), and at the
end the model, the labels and ``summary.json``. After a kill at any moment the last
checkpoint is whole, and going on from it repeats what was lost, bit for bit.
"""

import csv
import fcntl
import io
import json
import os
import platform
import secrets
import time
from collections.abc import Mapping
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

import stct
from stct.train.state import State

_NO_LOSSES = ("phase", "round", "step", "seconds")
CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.safetensors"
_VERSION = 1  # of the directory's layout


class Run:
    """A run directory that this process alone may write to."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self.folder = folder
        self.facts = facts  # of config.json
        self.ids: list[Any] = []  # of the rows, for the files of labels
        self._lock: IO[str] | None = None

    @classmethod
    def start(cls, folder: Path, facts: Mapping[str, Any]) -> Self:
        """Make a new directory; an existing one is never touched."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ValueError(
                f"{folder}: exists; a run never overwrites another: choose another "
                f"-o, or go on with it: stct train --resume {folder}"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.tmp")
        temporary.mkdir()
        run = cls(temporary, {"run_version": _VERSION, **facts})
        run._hold()
        run.write_json("environment.json", environment())
        run.write_json(CONFIG, run.facts)
        temporary.rename(folder)  # fails where another run was quicker
        run.folder = folder
        return run

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a directory that `start` has made."""
        path = folder / CONFIG
        if not path.is_file():
            raise ValueError(f"{folder}: not a run directory, it has no {CONFIG}")
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            version = facts["run_version"]
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: not written by stct train") from None
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
        """Let others have the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def write_json(self, name: str, value: Any) -> None:
        """Write a file as a whole."""
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file as a whole."""
        temporary = self.folder / f".{name}.tmp"
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.folder / name)

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
        return {f"{n}_loss": sum(e[n] for e in steps) / len(steps) for n in names}

    def _metrics(self) -> list[dict[str, Any]]:
        lines = (self.folder / METRICS).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def adopt(self, temporary: Path, *, last: str) -> None:
        """Move finished files to the top; ``last`` says that all are there."""
        for path in sorted(temporary.iterdir(), key=lambda path: path.name == last):
            with path.open("rb") as file:
                os.fsync(file.fileno())
            path.replace(self.folder / path.name)
        temporary.rmdir()

    def save(self, state: State) -> None:
        """Replace the checkpoint; a kill on the way leaves the old one."""
        metrics = self.folder / METRICS
        length = metrics.stat().st_size if metrics.exists() else 0
        place = {
            "phase": state.phase,
            "round": str(state.round),
            "step": str(state.step),
            "metrics_bytes": str(length),
        }
        # Made in memory and written by ourselves: a full disk is then an OSError.
        self.write_bytes(CHECKPOINT, save(_tensors(state), metadata=place))

    def cut_metrics(self, place: Mapping[str, str]) -> None:
        """Drop metrics that are younger than the checkpoint: they will come again."""
        if (self.folder / METRICS).exists():
            os.truncate(self.folder / METRICS, int(place.get("metrics_bytes", "0")))

    def _hold(self) -> None:
        lock = (self.folder / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise ValueError(f"{self.folder}: another process is at this run") from None
        self._lock = lock


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file and its texts; nothing in it is ever run."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path}: not a safetensors file ({error})") from None


def load_checkpoint(folder: Path, state: State) -> dict[str, str]:
    """Bring the state to the last checkpoint and give its place; {}: there is none."""
    path = folder / CHECKPOINT
    if not path.exists():
        return {}
    tensors, place = read_tensors(path)
    try:
        _restore(state, tensors, place)
    except (KeyError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ValueError(f"{path}: not a checkpoint of this run ({reason})") from None
    return place


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


_ARRAYS = ("labels", "soft", "clean", "annotator")  # of a State


def _tensors(state: State) -> dict[str, Tensor]:
    tensors = {f"network.{k}": v for k, v in state.network.state_dict().items()}
    if state.frozen is not None:
        tensors |= {f"frozen.{k}": v for k, v in state.frozen.state_dict().items()}
    if state.optimizer is not None:
        for i, memory in state.optimizer.state_dict()["state"].items():
            if memory["momentum_buffer"] is not None:
                tensors[f"momentum.{i}"] = memory["momentum_buffer"]
    for name in _ARRAYS:
        if getattr(state, name) is not None:
            tensors[name] = torch.from_numpy(getattr(state, name))
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _restore(state: State, tensors: dict[str, Tensor], place: dict[str, str]) -> None:
    state.network.load_state_dict(_part(tensors, "network."))
    frozen = _part(tensors, "frozen.")
    if frozen:
        state.frozen = deepcopy(state.network)
        state.frozen.load_state_dict(frozen)
    state.phase = place["phase"]
    state.round, state.step = int(place["round"]), int(place["step"])
    state.momentum = {int(i): t for i, t in _part(tensors, "momentum.").items()}
    for name in _ARRAYS:
        setattr(state, name, tensors[name].numpy() if name in tensors else None)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
