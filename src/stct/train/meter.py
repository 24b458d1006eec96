"""Losses that stay on the device until somebody reads them.

Reading makes the host wait for the device, so it happens every few steps. The first
step whose loss is not a number is noted on the device, at every step.
"""

from collections.abc import Callable

import torch
from torch import Tensor

READ_EVERY = 10  # steps

Read = Callable[[], dict[str, float]]


class Meter:
    """The losses of one phase, "pretrain" or "srl", and round."""

    def __init__(self, phase: str, round_number: int, device: torch.device) -> None:
        self.phase, self.round = phase, round_number
        self._first = torch.zeros((), dtype=torch.int32, device=device)  # 0: none
        self._bad: Tensor | None = None  # the losses of that step

    def note(self, losses: dict[str, Tensor], step: int, num_steps: int) -> Read:
        """Take the losses of a step, from 1; give a function that reads them.

        Every few steps, and at the last one, they are read at once. Reading raises
        when this loss or an earlier one is not a number.
        """
        values = torch.stack([loss.detach().float() for loss in losses.values()])
        found = ~values.isfinite().all() & (self._first == 0)
        self._first = self._first + found.to(torch.int32) * step
        bad = values if self._bad is None else self._bad
        self._bad = torch.where(found, values, bad)
        names = tuple(losses)

        def read() -> dict[str, float]:
            first = int(self._first)
            if first and self._bad is not None:
                wrong = dict(zip(names, self._bad.tolist(), strict=True))
                raise ValueError(self._message(first, wrong))
            return dict(zip(names, values.tolist(), strict=True))

        if step % READ_EVERY == 0 or step == num_steps:
            read()
        return read

    def _message(self, step: int, losses: dict[str, float]) -> str:
        """Say where it happened; the checkpoint is from before it."""
        where = f"step {step} of {self.phase}"
        where += f", round {self.round}" if self.round else ""
        keep = (
            "; --init DIR (of this run, or what it began with) spares SimCLR"
            if self.round
            else ""
        )
        return (
            f"the loss is not a number at {where}: "
            + ", ".join(f"{name} {value}" for name, value in losses.items())
            + "; start a new run with a lower learning rate, e.g. --set "
            f"{self.phase}.learning_rate=0.001{keep}"
        )
