"""What is known of each annotator after a correction.

Legend: n rows, v votes, a annotators, q pairs of annotator and label, C classes;
Q = Pr[clean | x, votes] (n, C).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from stct.correction.settings import DEFAULT
from stct.noise_model.votes import Votes
from stct.numeric.engine import Computed, RowValues
from stct.numeric.tiles import TILE
from stct.numeric.top_classes import TopClasses
from stct.numeric.types import Floats, Ints

FEWEST = 10  # labels that can be told from random ones


class Annotator(NamedTuple):
    """One annotator, as estimated.

    Attributes
    ----------
    name : object
    labels : int
        How many labels they gave.
    accuracy : float
        Estimated share of right ones.
    interval : tuple of float
        95% interval of that, with the least error of the model.
    chance : float
        Accuracy of the same labels, given to rows at random.
    agreement : float
        With the other labels of the same rows; NaN where there are none.
    confusion : list of tuple
        (clean class, given class, expected labels), errors only, the most common ones
        first; less than half a label is left out.
    """

    name: Any
    labels: int
    accuracy: float
    interval: tuple[float, float]
    chance: float
    agreement: float
    confusion: list[tuple[Any, Any, float]]

    @property
    def at_random(self) -> bool:
        """Whether they may as well have given their labels at random."""
        return self.labels >= FEWEST and self.interval[0] <= self.chance


def dense_rows(Q: Floats | TopClasses) -> RowValues:
    """Give probabilities that are read as Q[i:j], whatever was kept of them."""
    if not isinstance(Q, TopClasses):
        return Q

    def tile(rows: slice) -> Floats:
        kept = (Q.probabilities[rows], Q.classes[rows])
        return TopClasses(*kept, Q.num_classes).dense()

    return Computed(tile, (len(Q.classes), Q.num_classes), np.float32)


def describe_annotators(
    Q: Floats | TopClasses, votes: Votes, names: NDArray[Any], classes: NDArray[Any]
) -> list[Annotator]:
    """Estimate each annotator from the posterior of the rows they labelled."""
    dense = dense_rows(Q)
    N = votes.count_clean(dense)  # (q, C)
    who, label, a = votes.pair_annotator, votes.pair_label, votes.num_annotators
    given = votes.votes_of_pairs
    number = np.bincount(who, given, a)
    at = np.arange(len(label))
    right = np.bincount(who, N[at, label], a)
    shares = N.sum(axis=0) / max(float(N.sum()), 1e-30)
    chance = np.bincount(who, given * shares[label], a) / np.maximum(number, 1.0)
    agreement = agreement_with_others(votes)
    order = np.argsort(who, kind="stable")
    edges = np.searchsorted(who[order], np.arange(a + 1))
    found = []
    for i, name in enumerate(names):
        pairs = order[edges[i] : edges[i + 1]]
        low, high = share_interval(float(right[i]), float(number[i]))
        model = DEFAULT.interval.least
        found.append(
            Annotator(
                name,
                int(number[i]),
                float(right[i] / max(number[i], 1.0)),
                (max(0.0, low - model), min(1.0, high + model)),
                float(chance[i]),
                float(agreement[i]),
                common_errors(N[pairs], label[pairs], classes),
            )
        )
    return found


def share_interval(right: float, number: float) -> tuple[float, float]:
    """Clopper and Pearson's 95% interval of a share, of an expected count."""
    low, high, tail = 0.0, 1.0, (1.0 - DEFAULT.interval.level) / 2.0
    if right > 0.0:
        low = float(betaincinv(right, number - right + 1.0, tail))
    if right < number:
        high = float(betaincinv(right + 1.0, number - right, 1.0 - tail))
    return low, high


def common_errors(
    N: Floats, label: Ints, classes: NDArray[Any]
) -> list[tuple[Any, Any, float]]:
    """List wrong labels by clean and given class, most common first, from N (k, C)."""
    wrong = N.copy()
    wrong[np.arange(len(label)), label] = 0.0
    pair, clean = np.nonzero(wrong >= 0.5)
    order = np.lexsort((label[pair], clean, -wrong[pair, clean]))
    return [
        (classes[clean[i]], classes[label[pair[i]]], float(wrong[pair[i], clean[i]]))
        for i in order
    ]


def agreement_with_others(votes: Votes) -> Floats:
    """Share of the other labels of the same rows that are the same, (a,)."""
    same, others = np.zeros((2, votes.num_annotators))
    for start in range(0, votes.num_rows, TILE):
        rows = slice(start, min(start + TILE, votes.num_rows))
        counts = votes.count_labels(rows)
        first, last = votes.starts[rows.start], votes.starts[rows.stop]
        row, pair = votes.rows[first:last] - start, votes.pairs[first:last]
        who, total = votes.pair_annotator[pair], counts.sum(axis=1)[row] - 1.0
        equal = counts[row, votes.pair_label[pair]] - 1.0
        same += np.bincount(who, equal, votes.num_annotators)
        others += np.bincount(who, total, votes.num_annotators)
    with np.errstate(invalid="ignore"):
        return np.asarray(same / others)


def majority_and_accuracy(
    votes: Votes, Q: Floats | TopClasses, fixed: Ints
) -> tuple[Ints, float]:
    """Most common label of each row (n,), and the estimated share of right ones.

    Of labels that are equally common the most probable one is taken, so that no row
    changes for a tie; in the estimate each of them counts in part. Rows that are -1 in
    neither have the label ``fixed`` (n,). Rows without votes have no label: -1.
    """
    n, dense = votes.num_rows, dense_rows(Q)
    given, total = fixed.copy(), 0.0
    for start in range(0, n, TILE):
        rows = slice(start, min(start + TILE, n))
        counts, here = votes.count_labels(rows), np.asarray(dense[rows])
        top = counts == counts.max(axis=1, keepdims=True)
        free = (fixed[rows] < 0) & (counts.max(axis=1) > 0)
        best = np.where(top, here, -1.0).argmax(axis=1)
        given[rows] = np.where(free, best, fixed[rows])
        part = (top * here).sum(axis=1, dtype=np.float64) / top.sum(axis=1)
        total += float(part[free].sum())
    known = given >= 0
    return given, (total + float((fixed >= 0).sum())) / max(int(known.sum()), 1)
