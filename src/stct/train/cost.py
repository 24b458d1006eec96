"""What a step costs in arithmetic and memory, found without running it.

The network is run on the meta device, where tensors have shapes and no numbers.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from stct.train.config import Config

_SLACK = 1.25  # for what the allocator and the kernels need beside it
_HALF = 0.6  # of the activations with bf16: not all of them are


class Cost(NamedTuple):
    """Of one optimisation step of one phase, on one device."""

    phase: str  # "pretrain" or "srl"
    images: int  # that go forward and backward
    side: tuple[int, int]  # height and width of these
    flops: float
    memory: float  # bytes


def step_costs(
    network: nn.Module,
    config: Config,
    shape: tuple[int, int, int],
    *,
    num_images: int,
    num_processes: int = 1,
    half: bool = False,
) -> list[Cost]:
    """Cost of a step of each phase that the settings have, or [] where unknown.

    ``shape`` is (c, h, w); ``half`` says that passes are in bf16. Unknown is the cost
    of a network that needs numbers and not only shapes.
    """
    try:
        twin = deepcopy(network).to("meta").train()
        return _step_costs(twin, config, shape, num_images, num_processes, half)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return []


def _step_costs(
    twin: nn.Module,
    config: Config,
    shape: tuple[int, int, int],
    num_images: int,
    num_processes: int,
    half: bool,
) -> list[Cost]:
    channels, height, width = shape
    costs = []

    def images(count: int, size: float = 1.0) -> Tensor:
        side = (max(8, round(height * size)), max(8, round(width * size)))
        return torch.empty(
            max(1, count // num_processes), channels, *side, device="meta"
        )

    if config.pretrain.epochs:
        count = min(config.pretrain.batch_size, num_images)
        views = images(2 * count, config.pretrain.size)

        def contrast() -> Any:
            return twin(views, project=True).projection.square().sum()

        costs.append(_cost("pretrain", twin, views, contrast, 1, half))
    learn = config.srl
    seen = images(learn.batch_size + learn.unlabeled_batch_size)
    targets = images(learn.unlabeled_batch_size + learn.num_anchors)

    def srl() -> Any:
        if learn.enabled:
            with torch.no_grad():
                twin(targets, classify=True, project=True)
        out = twin(seen, classify=True, project=True)
        return out.logits.square().sum() + out.projection.square().sum()

    moments = 2 if learn.optimizer == "adamw" else 1
    costs.append(_cost("srl", twin, seen, srl, moments, half))
    return costs


def _cost(
    phase: str,
    twin: nn.Module,
    x: Tensor,
    loss: Callable[[], Any],
    moments: int,
    half: bool,
) -> Cost:
    """Run one step on the meta device; what waits for the backward pass is counted."""
    weights = {p.untyped_storage()._cdata for p in twin.parameters()}
    waiting: dict[int, Any] = {}  # storages, kept alive so that each has its own number

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in weights:
            waiting[storage._cdata] = storage
        return tensor

    twin.zero_grad(set_to_none=True)
    counter = FlopCounterMode(display=False)
    with counter:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            total = loss()
        total.backward()
    activations = sum(storage.nbytes() for storage in waiting.values())
    size = sum(p.numel() * p.element_size() for p in twin.parameters())
    memory = (2 + moments) * size + 3 * x.numel() * x.element_size()
    memory += activations * (_HALF if half else 1.0)
    height, width = x.shape[2:]
    return Cost(
        phase,
        len(x),
        (height, width),
        float(counter.get_total_flops()),
        _SLACK * memory,
    )


def check_memory(costs: list[Cost], free: float, *, flexible: bool) -> None:
    """Refuse what cannot fit; ``flexible`` says that the size of images may change."""
    for cost in costs:
        if cost.memory > free:
            height, width = cost.side
            batch = f"{cost.phase}.batch_size"
            if cost.phase == "srl":
                batch += " and srl.unlabeled_batch_size"
            smaller = " or a smaller image_size" if flexible else ""
            raise ValueError(
                f"a step of {cost.phase} with {cost.images:,} images of {width} x "
                f"{height} needs about {_gigabytes(cost.memory)} of memory, and "
                f"{_gigabytes(free)} are free; --set a smaller {batch}{smaller}"
            )


def describe(costs: list[Cost], free: float) -> str:
    """Say in a line what the largest step needs."""
    largest = max(costs, key=lambda cost: cost.memory)
    height, width = largest.side
    return (
        f"{largest.images:,} images of {width} x {height} a step, about "
        f"{_gigabytes(largest.memory)} of memory; {_gigabytes(free)} are free"
    )


def _gigabytes(num_bytes: float) -> str:
    return (
        f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e8 else f"{num_bytes / 1e6:.0f} MB"
    )
