"""Optimisers: groups of weights, layer-wise learning rates, and what is remembered."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

_FUSED = ("cpu", "cuda")  # where all weights can be changed by one kernel
# What an optimiser remembers of a weight, by the name that checkpoints use for it.
_NAMES = {
    "momentum_buffer": "momentum",
    "exp_avg": "exp_avg",
    "exp_avg_sq": "exp_avg_sq",
    "step": "steps",
}


def make_optimizer(
    kind: str,
    weights: Sequence[tuple[str, nn.Parameter]],
    *,
    rate: float,
    momentum: float,
    weight_decay: float,
    layer_decay: float = 1.0,
) -> torch.optim.Optimizer:
    """Make SGD with Nesterov momentum, or AdamW; biases and norms are not decayed.

    With ``layer_decay`` below 1 every layer of the encoder learns that much more
    slowly than the one above it; the heads learn at the full rate.
    """
    groups: list[dict[str, Any]] = []
    for scale, layer in _by_rate(weights, layer_decay):
        groups += [
            {"params": [p for p in layer if p.ndim > 1], "scale": scale},
            {
                "params": [p for p in layer if p.ndim <= 1],
                "scale": scale,
                "weight_decay": 0.0,
            },
        ]
    groups = [group for group in groups if group["params"]]
    fused = all(weight.device.type in _FUSED for _, weight in weights)
    if kind == "adamw":
        return torch.optim.AdamW(
            groups,
            lr=rate,
            betas=(momentum, 0.999),
            weight_decay=weight_decay,
            fused=fused,
        )
    return torch.optim.SGD(
        groups,
        lr=rate,
        momentum=momentum,
        weight_decay=weight_decay,
        nesterov=momentum > 0.0,
        fused=fused,
    )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use this learning rate from now on, layer by layer."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("scale", 1.0)


def memory(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Give what the optimiser remembers of each weight, by name and number."""
    return {
        f"{_NAMES[name]}.{i}": value
        for i, known in optimizer.state_dict()["state"].items()
        for name, value in known.items()
        if value is not None
    }


def only_memory(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give those tensors of a checkpoint that `memory` has given."""
    own = re.compile(rf"({'|'.join(_NAMES.values())})\.\d+")
    return {name: tensor for name, tensor in tensors.items() if own.fullmatch(name)}


def remind(optimizer: torch.optim.Optimizer, known: Mapping[str, Tensor]) -> None:
    """Give the optimiser back what `memory` has given."""
    weights = [p for group in optimizer.param_groups for p in group["params"]]
    names = {short: name for name, short in _NAMES.items()}
    for key, value in known.items():
        short, number = key.split(".")
        weight = weights[int(number)]
        if value.shape == weight.shape:  # in the order of the weight's own numbers
            value = torch.empty_like(weight, requires_grad=False).copy_(value)
        optimizer.state[weight][names[short]] = value.to(weight.device)


def _by_rate(
    weights: Sequence[tuple[str, nn.Parameter]], layer_decay: float
) -> list[tuple[float, list[nn.Parameter]]]:
    """Give the weights of each layer with its share of the learning rate.

    A layer is a numbered part of the encoder, such as ``blocks.3``; what comes before
    the first one is a layer of its own, and what follows belongs to the one before.
    """
    if layer_decay == 1.0:
        return [(1.0, [p for _, p in weights])]
    layers: dict[str, list[nn.Parameter]] = {}
    heads: list[nn.Parameter] = []
    current = "stem"
    for name, weight in weights:
        if not name.startswith("encoder."):
            heads.append(weight)
            continue
        numbered = re.match(r".*?\.\d+(?=\.)", name)
        current = numbered.group() if numbered else current
        layers.setdefault(current, []).append(weight)
    top = len(layers)
    scaled = [
        (layer_decay ** (top - i), layer) for i, layer in enumerate(layers.values())
    ]
    return [*scaled, (1.0, heads)]
