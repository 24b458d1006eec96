"""What to check next: the rows where one look puts the most labels right.

A look at a row makes its label right. So a row is worth the probability that its label
is wrong now, whether the correction changed it or not. Of near-duplicates one is
enough, and no class takes more than three times an even share of the places. Legend:
n rows, C classes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stct.data.corrected import Corrected
from stct.numeric.file_rows import take_rows
from stct.numeric.types import Floats, Ints
from stct.report.store import Review

NEAR = 0.05  # squared distance of near-duplicates, for that of two rows by chance 1
MOST_OF_CLASS = 3.0  # even shares
SPARE = 2  # candidates for each place
_SAMPLE = 2_000  # rows that say how far two rows are apart by chance


def expected_wrong(corrected: Corrected, checked: NDArray[np.bool_]) -> Floats:
    """Probability that the label of each row is wrong, (n,); 0 where it was checked."""
    wrong = 1.0 - corrected.confidence
    wrong[corrected.label < 0] = 1.0
    return np.where(checked, 0.0, wrong)


def check_order(wrong: Floats, checked: NDArray[np.bool_]) -> Ints:
    """Order all rows by what a look is worth, checked ones last, (n,)."""
    return np.argsort(np.where(checked, 1.0, -wrong), kind="stable")


def first_rows(review: Review) -> Ints:
    """Give the rows to check first, best first."""
    return review.detailed[: review.about.get("num_first", len(review.detailed))]


def choose_rows(
    wrong: Floats,
    checked: NDArray[np.bool_],
    label: Ints,
    embeddings: Any,
    count: int,
) -> Ints:
    """Choose up to ``count`` rows by the probability that their label is wrong."""
    return rows_to_check(check_order(wrong, checked), checked, label, embeddings, count)


def rows_to_check(
    order: Ints,
    checked: NDArray[np.bool_],
    label: Ints,
    embeddings: Any,
    count: int,
) -> Ints:
    """Choose up to ``count`` rows, best first, from all rows in ``check_order``.

    Parameters
    ----------
    order : ndarray of shape (n,)
    checked : ndarray of bool, shape (n,)
    label : ndarray of shape (n,)
        The label that each row has now, -1 for none.
    embeddings : array of shape (n, d) or None
        Without them near-duplicates are not known.
    """
    open_rows = order[: len(order) - int(checked.sum())]
    candidates = open_rows[: SPARE * count]
    duplicates = NearDuplicates(embeddings, candidates)
    num_classes = max(len(np.unique(label)), 1)
    taken: dict[int, int] = {}
    chosen: list[int] = []  # places among the candidates
    waiting: list[int] = []  # of classes that have their share for now

    def fits(i: int) -> bool:
        share = MOST_OF_CLASS * (len(chosen) / num_classes + 1.0)
        return taken.get(int(label[candidates[i]]), 0) < share

    def take(i: int) -> None:
        chosen.append(i)
        of_class = int(label[candidates[i]])
        taken[of_class] = taken.get(of_class, 0) + 1
        duplicates.leave_out(i)

    for i in range(len(candidates)):
        if len(chosen) == count:
            break
        for earlier in [j for j in waiting if fits(j)]:
            if duplicates.out[earlier]:
                waiting.remove(earlier)
            elif fits(earlier) and len(chosen) < count:
                waiting.remove(earlier)
                take(earlier)
        if duplicates.out[i] or len(chosen) == count:
            continue
        if fits(i):
            take(i)
        else:
            waiting.append(i)
    for i in [*waiting, *np.flatnonzero(duplicates.out).tolist()]:
        if len(chosen) < count and i not in chosen:
            chosen.append(i)
    return np.asarray(candidates[np.array(chosen, dtype=np.intp)])


class NearDuplicates:
    """Candidates that nearly repeat one that was taken."""

    def __init__(self, embeddings: Any, candidates: Ints) -> None:
        self.out = np.zeros(len(candidates), dtype=bool)
        self._X: Floats | None = None
        if embeddings is None or not embeddings.shape[1] or len(candidates) < 2:
            return
        n = embeddings.shape[0]
        sample = np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp)
        some = take_rows(embeddings, sample).astype(np.float64)
        spread = float(some.var(axis=0).sum())
        with np.errstate(over="ignore", under="ignore"):
            rows = take_rows(embeddings, candidates).astype(np.float64)
            centred = rows - some.mean(axis=0)
        if np.isfinite(spread) and spread > 0.0:
            # In units in which two rows are 1 apart by chance.
            self._X = (centred / np.sqrt(2.0 * spread)).astype(np.float32)
            self._squares = np.einsum("ij,ij->i", self._X, self._X)

    def leave_out(self, i: int) -> None:
        """Leave out what nearly repeats candidate i."""
        if self._X is None:
            return
        distance = self._squares + self._squares[i] - 2.0 * (self._X @ self._X[i])
        near = distance < NEAR
        near[i] = False
        self.out |= near
