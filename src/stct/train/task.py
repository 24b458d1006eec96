"""What a training run works on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from stct.train.config import Config
from stct.train.networks import Network


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to train on, and how."""

    images: Any  # uint8 (n, h, w, c), or a reader of such
    given: NDArray[np.intp]  # (n,) noisy labels 0 .. C - 1, -1: none
    num_classes: int
    config: Config
    seed: int
    encoder: nn.Module | None = None  # the caller's own
    init: Callable[[Network], None] | None = None  # a start other than SimCLR
    test: tuple[Any, NDArray[np.intp]] | None = (
        None  # for reporting, never for choosing
    )
