"""Scores of the battery, averaged over seeds."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stct.bench.battery import Score

_NUMBERS = ("actual_noise", "label_accuracy", "f1", "auroc", "seconds", "peak_mb")


class Mean(NamedTuple):
    """A method on one kind of noise, over its seeds."""

    noise: str
    method: str
    n: int
    mean: dict[str, float]
    spread: float  # standard deviation of label_accuracy
    failure: str


def average(scores: Sequence[Score]) -> list[Mean]:
    """Mean over seeds, in the order of the first; failed runs do not count."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.noise, score.method), []).append(score)
    result = []
    for (noise, method), members in groups.items():
        good = [score for score in members if not score.failure]
        failure = next((score.failure for score in members if score.failure), "")
        values = {
            name: float(np.mean([getattr(s, name) for s in good])) if good else math.nan
            for name in _NUMBERS
        }
        right = [score.label_accuracy for score in good]
        spread = float(np.std(right, ddof=1)) if len(right) > 1 else math.nan
        result.append(Mean(noise, method, len(good), values, spread, failure))
    return result
