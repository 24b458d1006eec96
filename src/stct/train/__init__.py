"""Training from images: SimCLR, semi-supervised learning, Algorithm 1 (`stct[train]`).

Read `algorithm.py` first; it is the paper's Algorithm 1 on one screen.
"""

import os

# Threads that wait sleep: on a busy machine those that spin take the time of others.
# Torch looks at this once, when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from stct.train.config import Config  # noqa: E402
from stct.train.model import STCT  # noqa: E402
from stct.train.presets import preset  # noqa: E402

__all__ = ["STCT", "Config", "preset"]
