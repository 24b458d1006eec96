"""Training from images: SimCLR, semi-supervised learning, Algorithm 1 (`stct[train]`).

Read `algorithm.py` first; it is the paper's Algorithm 1 on one screen.
"""

from stct.train.config import Config, preset
from stct.train.model import STCT

__all__ = ["STCT", "Config", "preset"]
