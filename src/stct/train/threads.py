"""How many threads a network on processors is trained with.

A thread that waits for a processor which another program has holds up all others, at
every operation. Small networks have operations of microseconds: with two threads and a
busy machine they fall to a hundredth of their speed. So they get one thread, and larger
ones as many as there are processors free when the run begins.

Threads that wait must sleep and not spin; `stct.train` asks for that before it loads
torch. The number decides the order of sums and so the last bits of the weights: a run
keeps it when it is resumed.
"""

import os
import time

import torch

_SMALL = 5e9  # floating-point operations of a step that one thread does best
_LOOK = 0.2  # seconds


def use_threads(step_flops: float, before: int | None) -> int:
    """Set the number of threads and give it; ``before`` is that of a resumed run.

    OMP_NUM_THREADS has the last word.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(before or choose_threads(step_flops))
    return torch.get_num_threads()


def choose_threads(step_flops: float) -> int:
    """Give one thread for a small step, else one for each processor that is free."""
    most = torch.get_num_threads()
    if most == 1 or step_flops < _SMALL:
        return 1
    return max(1, min(most, round(free_processors())))


def free_processors() -> float:
    """How many processors had nothing to do, over a fifth of a second."""
    count = os.cpu_count() or 1
    try:
        idle, total = _ticks()
        time.sleep(_LOOK)
        later_idle, later_total = _ticks()
        return count * (later_idle - idle) / max(1, later_total - total)
    except (OSError, ValueError):  # no Linux
        pass
    try:
        return max(0.0, count - os.getloadavg()[0])
    except (OSError, AttributeError):  # Windows
        return float(count)


def _ticks() -> tuple[int, int]:
    """Ticks that all processors have idled since the start, and all ticks."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(number) for number in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)
