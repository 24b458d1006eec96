"""Where a run stands: everything that a checkpoint must hold, and nothing else.

Randomness is not part of it. Each step draws from a generator seeded by its own
place in the run (`generator_at`), so a step can be repeated from its number alone.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning_fabric import Fabric
from numpy.typing import NDArray
from torch import Tensor

from stct.train.networks import Network


@dataclass
class State:
    """A network, and how far it has come."""

    network: Network
    module: Any  # the network as Fabric wraps it: gradients are shared over processes
    phase: str = "pretrain"  # "pretrain", "srl" or "done"
    round: int = 0  # of Algorithm 1, from 1; 0 before the first
    step: int = 0  # steps done in this phase and round
    optimizer: torch.optim.Optimizer | None = None
    momentum: dict[int, Tensor] = field(default_factory=dict)  # read for the optimizer
    labels: NDArray[np.intp] | None = None  # (n,) of this round, corrected
    soft: NDArray[np.float32] | None = None  # (n, C) their distributions, if used
    clean: NDArray[np.bool_] | None = None  # (n,) selected in this round
    transition: NDArray[np.floating] | None = None  # T (C, C) of the last correction
    frozen: Network | None = None  # without SRL: the network that NMC sees

    def enter(self, phase: str, round_number: int) -> None:
        """Begin a phase; it brings its own optimizer."""
        self.phase, self.round, self.step = phase, round_number, 0
        self.optimizer = None

    def sgd(
        self, rate: float, momentum: float, weight_decay: float, fabric: Fabric
    ) -> Any:
        """Give this phase's optimizer, with what a checkpoint remembers of it.

        SGD with Nesterov momentum; biases and norms are not decayed.
        """
        if self.optimizer is None:
            weights = [p for p in self.network.parameters() if p.requires_grad]
            groups: list[dict[str, Any]] = [
                {"params": [p for p in weights if p.ndim > 1]},
                {"params": [p for p in weights if p.ndim <= 1], "weight_decay": 0.0},
            ]
            self.optimizer = torch.optim.SGD(
                groups,
                lr=rate,
                momentum=momentum,
                weight_decay=weight_decay,
                nesterov=momentum > 0.0,
            )
            everything = [p for group in groups for p in group["params"]]
            for i, buffer in self.momentum.items():
                memory = {"momentum_buffer": buffer.to(everything[i].device)}
                self.optimizer.state[everything[i]] = memory
            self.momentum = {}
        return fabric.setup_optimizers(self.optimizer)


class Step(NamedTuple):
    """One optimisation step, for whoever watches."""

    phase: str
    round: int
    step: int  # from 1
    num_steps: int
    images: int  # that went forward and backward in this step
    losses: dict[str, float]


Watch = Callable[[Step], None]


def generator_at(seed: int, *place: object) -> torch.Generator:
    """Give the generator of one place in a run, such as ``"srl", 2, 117``."""
    return torch.Generator().manual_seed(_number_at(seed, *place))


@contextmanager
def seeded_at(fabric: Fabric, seed: int, *place: object) -> Iterator[None]:
    """Let layers that ask torch's own generator draw from this place in the run.

    Each process draws for its own images; the caller's generator is left alone.
    """
    gpu = [fabric.device] if fabric.device.type == "cuda" else []
    with torch.random.fork_rng(gpu):
        torch.manual_seed(_number_at(seed, *place, fabric.global_rank))
        yield


def _number_at(seed: int, *place: object) -> int:
    text = repr((seed, *place)).encode()
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    return number % 2**63


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Use this learning rate from now on."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def own_slice(fabric: Fabric, count: int) -> slice:
    """Give this process's part of ``count`` rows of a global batch."""
    start = count * fabric.global_rank // fabric.world_size
    stop = count * (fabric.global_rank + 1) // fabric.world_size
    return slice(start, stop)


def shared_batch(fabric: Fabric, count: int, name: str) -> int:
    """Round a global batch down so that every process gets as many rows."""
    processes = fabric.world_size
    if count < processes:
        raise ValueError(
            f"{name}: a batch of {count} is too small for {processes} processes; "
            "it must be as many or more"
        )
    return count - count % processes


def share_buffers(network: Network, fabric: Fabric) -> None:
    """Give all processes the normalisation statistics of the first.

    Each has updated them with its own part of the last batch; what they embed or
    predict together must come from one network.
    """
    if fabric.world_size > 1:
        for buffer in network.buffers():
            torch.distributed.broadcast(buffer, 0)


def check_loss(losses: dict[str, float], state: State) -> None:
    """Stop at a loss that is not a number; the checkpoint is from before it."""
    if not all(np.isfinite(value) for value in losses.values()):
        where = f"step {state.step + 1} of {state.phase}"
        where += f", round {state.round}" if state.round else ""
        keep = (
            "; --init DIR (of this run, or what it began with) spares SimCLR"
            if state.round
            else ""
        )
        raise ValueError(
            f"the loss is not a number at {where}: "
            + ", ".join(f"{name} {value}" for name, value in losses.items())
            + "; start a new run with a lower learning rate, e.g. --set "
            f"{state.phase}.learning_rate=0.001{keep}"
        )
