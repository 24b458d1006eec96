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

from stct.train import optimizers
from stct.train.meter import Read
from stct.train.networks import Network
from stct.train.threshold import Threshold


@dataclass
class State:
    """A network, and how far it has come."""

    network: Network
    module: Any  # the network as Fabric wraps it: gradients are shared over processes
    phase: str = "pretrain"  # "pretrain", "srl" or "done"
    round: int = 0  # of Algorithm 1, from 1; 0 before the first
    step: int = 0  # steps done in this phase and round
    optimizer: torch.optim.Optimizer | None = None
    memory: dict[str, Tensor] = field(default_factory=dict)  # read for the optimizer
    labels: NDArray[np.intp] | None = None  # (n,) of this round, corrected
    soft: NDArray[np.float32] | None = None  # (n, C) their distributions, if used
    clean: NDArray[np.bool_] | None = None  # (n,) selected in this round
    transition: NDArray[np.floating] | None = None  # T (C, C) of the last correction
    frozen: Network | None = None  # without SRL: the network that NMC sees
    threshold: Threshold | None = None  # of Eq. (12), where it is adaptive
    resting: set[str] = field(default_factory=set)  # weights without a part in a phase

    def enter(self, phase: str, round_number: int) -> None:
        """Begin a phase; it brings its own optimizer."""
        self.phase, self.round, self.step = phase, round_number, 0
        self.optimizer = None

    def optimizer_for(self, kind: str, fabric: Fabric, **settings: Any) -> Any:
        """Give this phase's optimizer, with what a checkpoint remembers of it."""
        if self.optimizer is None:
            named = [
                (name, weight)
                for name, weight in self.network.named_parameters()
                if weight.requires_grad or name in self.resting
            ]
            self.optimizer = optimizers.make_optimizer(kind, named, **settings)
            optimizers.remind(self.optimizer, self.memory)
            self.memory = {}
        return fabric.setup_optimizers(self.optimizer)

    def share_gradients(
        self, fabric: Fabric, shape: tuple[int, ...], *, classify: bool, project: bool
    ) -> None:
        """Let several processes take the mean of the gradients of this phase.

        They wait for the gradient of every weight, so weights that get none here, such
        as a head that is not asked for, must not be waited for. Two images (c, h, w)
        of zeros tell which these are.
        """
        if fabric.world_size == 1:
            return
        weights = dict(self.network.named_parameters())
        for name in self.resting:
            weights[name].requires_grad_(True)
        self.network.eval()
        out = self.network(
            torch.zeros(2, *shape, device=fabric.device),
            classify=classify,
            project=project,
        )
        sum(part.sum() for part in out[1:] if part is not None).backward()
        self.resting = {
            name for name, p in weights.items() if p.requires_grad and p.grad is None
        }
        for name, weight in weights.items():
            weight.grad = None
            weight.requires_grad_(weight.requires_grad and name not in self.resting)
        self.module = fabric.setup_module(self.network)


class Step(NamedTuple):
    """One optimisation step, for whoever watches."""

    phase: str
    round: int
    step: int  # from 1
    num_steps: int
    images: int  # that went forward and backward in this step
    read: Read  # waits for the device

    @property
    def losses(self) -> dict[str, float]:
        """The losses of this step; raises where this or an earlier one was none."""
        return self.read()


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
