"""Training from images: SimCLR, semi-supervised learning, Algorithm 1 (`stct[train]`).

Read `algorithm.py` first; it is the paper's Algorithm 1 on one screen.
"""

from stct.train.config import Config
from stct.train.model import STCT
from stct.train.presets import preset

__all__ = ["STCT", "Config", "preset"]
