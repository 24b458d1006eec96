"""The model file: weights as safetensors, and what is needed to use them as texts."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from stct.data.files import parse_json, reading
from stct.data.schema import Field, check_fields, is_count, list_of
from stct.encoders.huggingface import HFBackbone, offline
from stct.train import networks
from stct.train.config import Encoder
from stct.train.files import read_tensors, tensors_as_bytes, write_whole

MODEL, PRETRAINED = "model.safetensors", "pretrained.safetensors"
_VERSION = 1
_LARGEST_IMAGE = 4096  # pixels of a side


class About(NamedTuple):
    """What a model is and what its outputs mean."""

    encoder: Encoder
    own_encoder: bool  # the caller's module: its code is not in the file
    classes: list[Any]  # labels by column of the classifier
    image_shape: tuple[int, int, int]  # c, h, w
    recipe: dict[str, Any] | None = None  # of an hf: encoder, as the file has it


def save_model(path: Path, network: networks.Network, about: About) -> None:
    """Write the file as a whole."""
    facts = {
        "stct_model": _VERSION,
        "encoder": asdict(about.encoder),
        "own_encoder": about.own_encoder,
        "classes": about.classes,
        "image_shape": list(about.image_shape),
    }
    if isinstance(network.encoder, HFBackbone):  # its folder may be gone one day
        facts["recipe"] = network.encoder.recipe
    tensors = {k: v.cpu() for k, v in network.state_dict().items()}
    write_whole(path, tensors_as_bytes(tensors, {"about": json.dumps(facts)}))


def load_model(
    path: Path, *, encoder: nn.Module | None = None
) -> tuple[networks.Network, About]:
    """Read a model, or the model of a run directory; nothing in it is ever run."""
    path = _model_in(path)
    tensors, about = _read(path)
    if about.own_encoder and encoder is None:
        raise ValueError(
            f"{path}: was trained with a network of its author's own; pass it: "
            "STCT.load(path, encoder=...)"
        )
    hub = about.encoder.name.startswith("hf:")  # the others are on this machine
    if hub and encoder is None and about.recipe is None:
        raise ValueError(
            f"{path}: names {about.encoder.name!r} and does not hold what is needed to "
            "build it; nothing is fetched for a model file"
        )
    with offline(), reading(path, "not a model of stct train"):
        network = networks.build(
            about.encoder,
            num_classes=len(about.classes),
            mean=tensors.get("mean", torch.zeros(1)).flatten().float(),
            std=tensors.get("std", torch.ones(1)).flatten().float(),
            generator=torch.Generator(),
            encoder=encoder,
            image_shape=about.image_shape,
            recipe=about.recipe,
        )
    _fill(network, tensors, path)
    return network.eval(), about


def start_from(network: networks.Network, path: Path) -> None:
    """Take encoder and projection head from a model file; the classifier stays new."""
    path = _model_in(path, PRETRAINED)
    tensors, _ = _read(path)
    fresh = {k: v for k, v in network.state_dict().items() if _is_classifier(k)}
    taken = {k: v for k, v in tensors.items() if not _is_classifier(k)}
    _fill(network, {**taken, **fresh}, path)


def _model_in(path: Path, *names: str) -> Path:
    if not path.is_dir():
        return path
    found = [path / name for name in (*names, MODEL) if (path / name).is_file()]
    if not found:
        raise ValueError(f"{path}: holds no {' or '.join((*names, MODEL))}")
    return found[0]


def _read(path: Path) -> tuple[dict[str, Tensor], About]:
    if not path.is_file():
        raise ValueError(f"{path}: there is no such model file")
    tensors, texts = read_tensors(path)
    with reading(path, "not a model of stct train"):
        facts = parse_json(texts["about"], path)
        if facts["stct_model"] != _VERSION:
            raise ValueError(f"version {facts['stct_model']}")
        check_fields(facts, _FACTS, path)
        channels, height, width = facts["image_shape"]
        return tensors, About(
            Encoder(**facts["encoder"]),
            bool(facts["own_encoder"]),
            list(facts["classes"]),
            (int(channels), int(height), int(width)),
            facts.get("recipe"),
        )


def _is_size(value: Any) -> bool:
    return is_count(value) and 1 <= value <= _LARGEST_IMAGE


def _is_label(value: Any) -> bool:
    return type(value) in (str, int, float, bool)


_FACTS = {
    "encoder": Field("an object", lambda v: isinstance(v, dict)),
    "own_encoder": Field("true or false", lambda v: isinstance(v, bool)),
    "classes": Field(
        "two labels or more",
        lambda v: list_of(_is_label)(v) and len(v) > 1,
    ),
    "image_shape": Field("channels, height, width", list_of(_is_size, 3)),
    "recipe": Field("an object", lambda v: isinstance(v, dict), required=False),
}


def _fill(network: networks.Network, tensors: dict[str, Tensor], path: Path) -> None:
    for name, own in network.state_dict().items():
        if name in tensors and tensors[name].dtype != own.dtype:
            raise ValueError(
                f"{path}: weights of another network: {name} is {tensors[name].dtype}"
            )
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise ValueError(f"{path}: weights of another network: {reason}") from None


def _is_classifier(name: str) -> bool:
    return name.startswith("classifier.")
