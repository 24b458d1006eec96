"""The noisy-label likelihood of one tile of rows.

Arrays are class-major (C, t): sums over few classes are then sums of long vectors.
Legend: t rows of a tile, C classes; P = Pr[clean | x], T[clean, given],
Q = Pr[clean | x, given].
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.numeric.engine import Engine, Index
from stct.numeric.tiles import Runs, find_runs
from stct.numeric.types import Floats, Ints


class LabelCodes:
    """Given labels of all rows as codes, and the likelihood of any tile of them.

    The code is the given class; C where there is no label; C + 1 + class where the
    label is locked, that is certain.
    """

    def __init__(
        self,
        given: Ints,
        locked: NDArray[np.bool_],
        num_classes: int,
        engine: Engine,
        pairs: Floats | None = None,
    ) -> None:
        code = np.where(given < 0, num_classes, given + locked * (num_classes + 1))
        self.codes: Any = engine.keep(code.astype(np.int32))
        # Rows of which both classes are known, clean and given, (C, C).
        self.pairs = np.zeros((num_classes, num_classes)) if pairs is None else pairs
        self.num_rows = len(given)
        self.num_classes = num_classes
        free = given[(given >= 0) & ~locked]
        self.sizes = np.bincount(free, minlength=num_classes)  # (C,)
        self.num_free = len(free)
        self._runs: dict[tuple[int, bool], tuple[Ints | None, Runs]] = {}  # of a tile

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a worker has no use for."""
        return {**self.__dict__, "_runs": {}}

    def table(self, T: Floats, *, locked: bool = True) -> Floats:
        """Pr[code | clean] beside a one, (2 C + 1, C, 2).

        Locked rows say nothing if not ``locked``.
        """
        C = self.num_classes
        certain = np.eye(C) if locked else np.ones((C, C))
        table = np.concatenate([T.T, np.ones((1, C)), certain])
        return np.stack([table, np.ones_like(table)], axis=2).astype(np.float32)

    def explain(
        self, logits: Floats, table: Floats, rows: slice, some: Index
    ) -> "TileLikelihood":
        """Give softmax and likelihood of a tile; its logits (C, t) are overwritten."""
        logits -= logits.max(axis=0)
        E = np.exp(logits, out=logits)
        which = rows.start, isinstance(some, slice)
        if which not in self._runs:
            self._runs[which] = find_runs(self.codes[rows][some])
        order, runs = self._runs[which]
        if order is not None:
            E = E[:, order]
        totals = np.empty((2, E.shape[1]), np.float32)
        for code, run in runs:
            np.matmul(table[code].T, E[:, run], out=totals[:, run])
        np.maximum(totals, np.float32(1e-30), out=totals)
        return TileLikelihood(E, totals[0], totals[1], table, order, runs)


class TileLikelihood(NamedTuple):
    """Softmax and likelihood of one tile; rows of the same code stand together.

    P = E / norm and Q = E Pr[code | clean] / joint, so that nothing but E has to be
    computed class by class.
    """

    E: Floats  # (C, t) exp of the logits
    joint: Floats  # (t,) sum of E Pr[code | clean]
    norm: Floats  # (t,) sum of E
    table: Floats  # (2 C + 1, C, 2)
    order: Ints | None
    runs: Runs

    def row_log_likelihood(self) -> Floats:
        """Give the log-likelihood of each label, in the order of the runs, (t,)."""
        return np.log(self.joint) - np.log(self.norm)

    def log_likelihood(self) -> float:
        """Add up that of all rows."""
        return float(self.row_log_likelihood().sum(dtype=np.float64))

    def gradient(self) -> Floats:
        """Differentiate in the logits: Q - P, in the order of the rows, (C, t)."""
        return self._times(1.0 / self.joint, -1.0 / self.norm)

    def _times(self, a: Floats, b: Floats) -> Floats:
        """E (a Pr[code | clean] + b), (C, t)."""
        out = np.empty_like(self.E)
        factors = np.stack([a, b])  # (2, t)
        for code, run in self.runs:
            np.matmul(self.table[code], factors[:, run], out=out[:, run])
        out *= self.E
        if self.order is None:
            return out
        back = np.empty_like(out)
        back[:, self.order] = out
        return back

    def counts(self, num_classes: int) -> Floats:
        """Sum of Q by clean and given class over rows that are not locked, (C, C)."""
        counts = np.zeros((num_classes, num_classes))
        inverse = 1.0 / self.joint
        for code, run in self.runs:
            if code < num_classes:
                total = self.E[:, run] @ inverse[run]
                counts[:, code] = self.table[code, :, 0] * total
        return counts
