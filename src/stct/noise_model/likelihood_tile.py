"""Some rows seen through an annotator: softmax, likelihood and posterior of a tile.

Arrays are class-major (C, t): sums over few classes are then sums of long vectors.
Legend: t rows of a tile, C classes; P = Pr[clean | x], Q = Pr[clean | x, given].
"""

from typing import NamedTuple

import numpy as np

from stct.numeric.types import Floats, Ints

Runs = list[tuple[int, slice]]  # what was said, and where


class Seen(NamedTuple):
    """One tile through the annotator; rows that were said the same stand together.

    P = E / norm and Q = E Pr[said | clean] / explained, so that nothing but E has to be
    computed class by class.
    """

    E: Floats  # (C, t) exp of the logits
    explained: Floats  # (t,) sum of E Pr[said | clean]
    norm: Floats  # (t,) sum of E
    said: Floats  # (2 C + 1, C, 2)
    order: Ints | None
    runs: Runs

    def row_log_likelihood(self) -> Floats:
        """Log-likelihood of what was said, in the order of the runs."""
        return np.log(self.explained) - np.log(self.norm)  # (t,)

    def log_likelihood(self) -> float:
        """Add up that of all rows."""
        return float(self.row_log_likelihood().sum(dtype=np.float64))

    def pull(self) -> Floats:
        """Q - P in the order of the rows, (C, t)."""
        return self._times(1.0 / self.explained, -1.0 / self.norm)

    def posterior(self) -> Floats:
        """Q in the order of the rows, (C, t)."""
        return self._times(1.0 / self.explained, np.zeros_like(self.norm))

    def _times(self, a: Floats, b: Floats) -> Floats:
        """E (a Pr[said | clean] + b), (C, t)."""
        out = np.empty_like(self.E)
        factors = np.stack([a, b])  # (2, t)
        for value, run in self.runs:
            np.matmul(self.said[value], factors[:, run], out=out[:, run])
        out *= self.E
        return self.in_row_order(out)

    def counts(self, num_classes: int) -> Floats:
        """Sum of Q by given class over the free rows, (C, C)."""
        counts = np.zeros((num_classes, num_classes))
        inverse = 1.0 / self.explained
        for value, run in self.runs:
            if value < num_classes:
                total = self.E[:, run] @ inverse[run]
                counts[:, value] = self.said[value, :, 0] * total
        return counts

    def in_row_order(self, values: Floats) -> Floats:
        """Put columns, or entries, back where the rows are."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[..., self.order] = values
        return out


def find_runs(said: Ints) -> tuple[Ints | None, Runs]:
    """Order of a tile by what was said, None if it is so already, and its runs."""
    order = None
    if not (said[1:] >= said[:-1]).all():
        order = np.argsort(said, kind="stable")
        said = said[order]
    starts = np.flatnonzero(np.diff(said, prepend=-1))
    stops = np.append(starts[1:], len(said))[: len(starts)]
    runs = [
        (int(said[start]), slice(int(start), int(stop)))
        for start, stop in zip(starts, stops, strict=True)
    ]
    return order, runs
