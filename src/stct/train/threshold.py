"""An adaptive confidence threshold in the place of lambda, after FreeMatch.

Soft targets keep a well calibrated network from ever being sure: with lambda = 0.95
next to no weak view passes. Here the threshold of class c is

    tau * p(c) / max_c p(c),

where tau is a running mean of the confidence of weak views, and p (C,) one of their
predictions: about half of the views pass from the first step, and classes that are
predicted less often pass more easily.
"""

from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

MOMENTUM = 0.99  # of the running means: about the last 100 steps


class Threshold:
    """The running means, (1 + C,): tau first, then p."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    @classmethod
    def start(cls, num_classes: int, device: torch.device) -> "Threshold":
        """Begin where nothing is known: all means at 1 / C."""
        return cls(torch.full((1 + num_classes,), 1.0 / num_classes, device=device))

    def follow(self, weak_logits: Tensor, fabric: Fabric) -> Tensor:
        """Take in the weak views of one step (b, C); give the thresholds (C,)."""
        p = weak_logits.detach().float().softmax(dim=1)
        seen = torch.cat([p.max(dim=1).values.mean().view(1), p.mean(dim=0)])
        if fabric.world_size > 1:
            mean: Any = fabric.all_reduce(seen, reduce_op="mean")
            seen = mean
        self.values = MOMENTUM * self.values.to(seen.device) + (1.0 - MOMENTUM) * seen
        tau, classes = self.values[0], self.values[1:]
        return tau * classes / classes.max()
