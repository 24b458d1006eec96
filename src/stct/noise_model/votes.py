"""Several labels per row: who gave which label to which row, as sparse sums.

A vote is one label that one annotator gave to one row. All votes of one annotator with
one label are a pair, so that what a vote says of the clean class is one row of a table
by pair: (q, C), never n x annotators. Legend: n rows, t rows of a tile, v votes,
a annotators, q pairs, C classes; Q = Pr[clean | x, votes].
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from stct.numeric.engine import RowValues
from stct.numeric.tiles import TILE
from stct.numeric.types import Floats, Ints

FEW_PAIRS = 8 * TILE  # of which a tile may as well count all
MAX_TABLE = 2**26  # numbers in a table by pair; 512 MB of float64


class Votes:
    """Votes of all rows.

    Parameters
    ----------
    rows, annotators, labels : ndarray of int, shape (v,)
        Who gave which label to which row, in any order. The same vote counts once.
    num_rows, num_annotators, num_classes : int

    Attributes
    ----------
    rows, pairs : ndarray of shape (v,)
        Row and pair of each vote, in the order of the rows.
    pair_annotator, pair_label : ndarray of shape (q,)
        What the pairs are.
    """

    def __init__(
        self,
        rows: Ints,
        annotators: Ints,
        labels: Ints,
        num_rows: int,
        num_annotators: int,
        num_classes: int,
    ) -> None:
        self.num_rows, self.num_classes = num_rows, num_classes
        self.num_annotators = num_annotators
        codes = annotators.astype(np.int64) * num_classes + labels
        present = np.zeros(num_annotators * num_classes, dtype=bool)
        present[codes] = True
        distinct = np.flatnonzero(present)
        if len(distinct) * num_classes > MAX_TABLE:
            raise ValueError(
                f"{num_annotators} annotators with {len(distinct)} different labels "
                f"between them are too many for {num_classes} classes: annotators x "
                f"their labels x classes must be at most {MAX_TABLE}"
            )
        self.pair_annotator, self.pair_label = np.divmod(distinct, num_classes)
        pair = np.cumsum(present) - 1
        size = max(len(distinct), 1)
        # Sorted, because what is distinct is found more slowly by hashing.
        key = np.sort(rows.astype(np.int64) * size + pair[codes])
        key = key[np.diff(key, prepend=-1) > 0]
        self.rows = (key // size).astype(np.int32)
        self.pairs = (key - self.rows.astype(np.int64) * size).astype(np.int32)
        self.starts = np.searchsorted(self.rows, np.arange(num_rows + 1))

    @property
    def counts_of_rows(self) -> Ints:
        """How many votes each row has, (n,)."""
        return np.diff(self.starts)

    @property
    def votes_of_pairs(self) -> Ints:
        """How many votes each pair has, (q,)."""
        return np.bincount(self.pairs, minlength=len(self.pair_label))

    def some(self, index: Ints) -> "Votes":
        """Votes of some rows, the i-th of them as row i; pairs stay what they are."""
        few = object.__new__(Votes)
        few.__dict__.update(self.__dict__)
        counts = self.counts_of_rows[index]
        few.starts = np.concatenate([[0], np.cumsum(counts)])
        few.rows = np.repeat(np.arange(len(index), dtype=np.int32), counts)
        offset = np.arange(len(few.rows)) - few.starts[few.rows]
        few.pairs = self.pairs[self.starts[index][few.rows] + offset]
        few.num_rows = len(index)
        return few

    def matrix(self, rows: slice) -> Any:
        """Give which pairs the rows of a tile have, (t, q) of zeros and ones."""
        first, last = self.starts[rows.start], self.starts[rows.stop]
        ones = np.ones(last - first, np.float32)
        edges = self.starts[rows.start : rows.stop + 1] - first
        shape = (rows.stop - rows.start, len(self.pair_label))
        return csr_array((ones, self.pairs[first:last], edges), shape=shape)

    def log_evidence(self, table: Floats, rows: slice) -> Floats:
        """Give the log-probability of the votes of a tile by clean class, (t, C).

        Parameters
        ----------
        table : ndarray of shape (q, C)
            Logarithm of Pr[vote | clean] by pair.
        """
        return np.asarray(self.matrix(rows) @ table.astype(np.float32, copy=False))

    def count_labels(self, rows: slice) -> Floats:
        """How often each label was given to the rows of a tile, (t, C) float32."""
        one_hot = np.eye(self.num_classes, dtype=np.float32)[self.pair_label]
        return np.asarray(self.matrix(rows) @ one_hot)

    def count_clean(self, Q: RowValues) -> Floats:
        """Count the expected votes by pair and clean class, (q, C)."""
        counts = np.zeros((len(self.pair_label), self.num_classes))
        for start in range(0, self.num_rows, TILE):
            rows = slice(start, min(start + TILE, self.num_rows))
            if len(counts) <= FEW_PAIRS:
                counts += self.matrix(rows).T @ np.asarray(Q[rows], dtype=np.float64)
                continue
            here, place = np.unique(
                self.pairs[self.starts[start] : self.starts[rows.stop]],
                return_inverse=True,
            )
            shape = (rows.stop - rows.start, len(here))
            edges = self.starts[start : rows.stop + 1] - self.starts[start]
            given = csr_array((np.ones(len(place)), place, edges), shape=shape)
            counts[here] += given.T @ np.asarray(Q[rows], dtype=np.float64)
        return counts

    def majority(self) -> Ints:
        """Give the most common label of each row, (n,); -1 without votes.

        Of labels that are equally common in a row the one that is most common over all
        rows is taken, and of those the first.
        """
        sizes = np.bincount(
            self.pair_label, weights=self.votes_of_pairs, minlength=self.num_classes
        )
        order = np.argsort(-sizes, kind="stable")
        best = np.full(self.num_rows, -1, dtype=np.intp)
        for start in range(0, self.num_rows, TILE):
            rows = slice(start, min(start + TILE, self.num_rows))
            best[rows] = order[self.count_labels(rows)[:, order].argmax(axis=1)]
        best[self.counts_of_rows == 0] = -1
        return best
