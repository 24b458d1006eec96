"""Checkpoints: all of a `State` as one safetensors file, and where the run stood."""

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor

from stct.train import optimizers
from stct.train.config import Config
from stct.train.config_text import as_first_written
from stct.train.files import read_tensors, tensors_as_bytes
from stct.train.state import State
from stct.train.threshold import Threshold

CHECKPOINT = "checkpoint.safetensors"
# Arrays of a State, and their names in the file.
_ARRAYS = {
    "labels": "labels",
    "soft": "soft",
    "clean": "clean",
    "transition": "annotator",
}


def settings_hash(config: Config, seed: int) -> str:
    """Tell whether a checkpoint was made with these settings."""
    text = json.dumps([as_first_written(config), seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def as_bytes(state: State, notes: Mapping[str, str]) -> bytes:
    """Make the file in memory; ``notes`` are for whoever goes on."""
    place = {
        "phase": state.phase,
        "round": str(state.round),
        "step": str(state.step),
        **notes,
    }
    return tensors_as_bytes(_tensors(state), place)


def load_checkpoint(folder: Path, state: State, settings: str) -> dict[str, str]:
    """Bring the state to the last checkpoint and give its place; {}: there is none."""
    path = folder / CHECKPOINT
    if not path.exists():
        return {}
    tensors, place = read_tensors(path)
    if place.get("settings", settings) != settings:
        raise ValueError(
            f"{folder}: its settings or seed are not those of its checkpoint; put "
            "config.json back as it was, or start a new run"
        )
    try:
        _restore(state, tensors, place)
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[-1].strip()
        raise ValueError(f"{path}: not a checkpoint of this run ({reason})") from None
    return place


def _tensors(state: State) -> dict[str, Tensor]:
    tensors = {f"network.{k}": v for k, v in state.network.state_dict().items()}
    if state.frozen is not None:
        tensors |= {f"frozen.{k}": v for k, v in state.frozen.state_dict().items()}
    if state.optimizer is not None:
        tensors |= optimizers.memory(state.optimizer)
    if state.threshold is not None:
        tensors["threshold"] = state.threshold.values
    for field, name in _ARRAYS.items():
        if getattr(state, field) is not None:
            tensors[name] = torch.from_numpy(getattr(state, field))
    return tensors


def _restore(state: State, tensors: dict[str, Tensor], place: dict[str, str]) -> None:
    state.network.load_state_dict(_part(tensors, "network."))
    frozen = _part(tensors, "frozen.")
    if frozen:
        state.frozen = deepcopy(state.network)
        state.frozen.load_state_dict(frozen)
    if place["phase"] not in ("pretrain", "srl", "done"):
        raise ValueError("a phase that is none")
    state.phase = place["phase"]
    state.round, state.step = int(place["round"]), int(place["step"])
    if not (0 <= state.round < 10**6 and 0 <= state.step < 10**9):
        raise ValueError("a round or a step that is none")
    state.memory = optimizers.only_memory(tensors)
    if "threshold" in tensors:
        state.threshold = Threshold(tensors["threshold"])
    for field, name in _ARRAYS.items():
        setattr(state, field, tensors[name].numpy() if name in tensors else None)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
