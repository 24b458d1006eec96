"""Noisy meta correction (NMC): Eqs. (8), (9), (33), and the three methods.

Legend: n rows, n_t sub-training rows, n_v validation rows, d columns, C classes.
H embeddings, Y soft labels, W weights; r = n_v / n is ``val_ratio``, eta ``step_size``,
delta ``agreement``, beta ``coverage``. ``given`` holds integer labels, -1 for none.
"""

from collections.abc import Callable
from math import ceil, expm1, log
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stct.numeric import linear
from stct.numeric.tiles import TILE
from stct.numeric.types import Floats, Ints

Progress = Callable[[float], None]


class Model(Protocol):
    """Predicts new rows."""

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, d) -> (n, C)."""


class LinearModel(NamedTuple):
    """Eq. (7) for new rows, as probabilities."""

    weights: Floats  # (d, C)
    intercept: Floats  # (C,)

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, d) -> (n, C)."""
        return linear.to_simplex(linear.predict(X, self.weights) + self.intercept)


class ConstantModel(NamedTuple):
    """The same probabilities for every row, when nothing was learnt."""

    shares: Floats  # (C,)

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean], (n, d) -> (n, C)."""
        return np.tile(self.shares, (len(X), 1))


class ReorderedModel(NamedTuple):
    """A model whose class ``order[c]`` is our class c."""

    model: Model
    order: Ints  # (C,)

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, d) -> (n, C)."""
        return self.model.probabilities(X)[:, self.order]


class TopClasses(NamedTuple):
    """The most probable classes of each row, most probable first, and the given one."""

    probabilities: Floats  # (n, k)
    classes: NDArray[np.int32]  # (n, k)
    num_classes: int

    def dense(self) -> Floats:
        """All classes, (n, C): what was not kept is spread evenly over the others."""
        n, k = self.probabilities.shape
        rest = np.maximum(1.0 - self.probabilities.sum(axis=1, keepdims=True), 0.0)
        Q = np.repeat(rest / (self.num_classes - k), self.num_classes, axis=1)
        np.put_along_axis(Q, self.classes.astype(np.intp), self.probabilities, axis=1)
        return np.asarray(Q, dtype=np.float32)

    def sparse(self) -> csr_array:
        """Give the kept entries only, (n, C)."""
        n, k = self.probabilities.shape
        places = self.classes.ravel(), np.arange(0, n * k + 1, k)
        shape = (n, self.num_classes)
        return csr_array((self.probabilities.ravel(), *places), shape=shape)


class Correction(NamedTuple):
    """What the features and the given labels together say, by any method."""

    posterior: Any  # (n, C) Pr[clean | x, given], or `TopClasses` of it
    transition: Floats  # (C, C) T[clean, given]
    learnable: NDArray[np.bool_]  # (C,) Theorem 1's condition
    model: Model | None  # for new rows
    num_rounds: int  # splits, or refits
    stop: str  # why it ended, see `LabelCorrector.termination_condition_`
    notes: tuple[str, ...] = ()  # what a person should know of how it was found
    asked: Floats | None = None  # (C, C) odds of a new label, by given and new one
    known: float = 0.0  # share of the rows whose class the features surely know

    def reordered(self, order: Ints) -> "Correction":
        """Give the same with class ``order[c]`` as class c; the posterior is moved."""
        model = None if self.model is None else ReorderedModel(self.model, order)
        Q = self.posterior
        if isinstance(Q, TopClasses):
            ours = np.argsort(order).astype(np.int32)
            Q = Q._replace(classes=ours[Q.classes])
        else:
            for start in range(0, len(Q), TILE):  # no second copy of n x C
                Q[start : start + TILE] = Q[start : start + TILE, order]
        both = np.ix_(order, order)
        return self._replace(
            posterior=Q,
            transition=self.transition[both],
            learnable=self.learnable[order],
            model=model,
            asked=None if self.asked is None else self.asked[both],
        )


class SplitCorrection(NamedTuple):
    """Soft labels after the random splits, and why they stopped."""

    labels: Floats  # (n, C), not clipped
    num_splits: int
    stop: str  # "agreement" or "coverage"
    times: Ints  # (n,) how often each row was in the sub-training set


def validation_loss(Y_v: Floats, Y_v_hat: Floats) -> float:
    """Eq. (8): squared error of the predictions on the noisy validation set."""
    return float(((Y_v - Y_v_hat) ** 2).sum())


def correct_step(
    H_t: Floats, Y_t: Floats, H_v: Floats, Y_v: Floats, step_size: float
) -> Floats:
    """Eq. (9): one gradient step on Y_t down the validation loss, (n_t, C).

    Equal to ``Y_t - step_size / n_v * d Eq.(8) / d Y_t``. Read from right to left it
    needs two solves with ``H_t'H_t`` and no n_t x n_v matrix.
    """
    residual = Y_v - linear.predict(H_v, linear.fit(H_t, Y_t))  # (n_v, C)
    direction = linear.solve(H_t.T @ H_t, H_v.T @ residual)  # (d, C)
    return np.asarray(Y_t + 2.0 * step_size / len(H_v) * (H_t @ direction))


def move_to_minimiser(
    H_t: Floats, Y_t: Floats, H_v: Floats, Y_v: Floats, step_size: float
) -> Floats:
    """Go a share ``step_size`` of the way to the minimum-norm minimiser of Eq. (8).

    Any Y_t whose fit predicts as W_v does is a minimiser; the one of minimum norm is
    ``H_t W_v`` (for H_t and H_v of full column rank). Eq. (9) never leaves
    ``Y_t + span(H_t)`` and so keeps the part of Y_t that the linear model cannot
    explain, which is where nearly all label noise is; this step shrinks that part.
    """
    target = linear.predict(H_t, linear.fit(H_v, Y_v))  # (n_t, C)
    return np.asarray((1.0 - step_size) * Y_t + step_size * target)


def num_splits(n: int, val_ratio: float, coverage: float) -> int:
    """Eq. (33) as printed: ``ln(1 - exp(ln(beta) / n)) / ln(1 - r)``, rounded up.

    Appendix B derives it with r = n_t / n, the text uses r = n_v / n: they agree at
    0.5 only. See `num_splits_to_cover` for the count that does what is claimed.
    """
    return ceil(log(-expm1(log(coverage) / n)) / log(1.0 - val_ratio))


def num_splits_to_cover(n: int, val_ratio: float, coverage: float) -> int:
    """Eq. (33) for r = n_v / n: every row is sub-training once with chance beta.

    A row stays out of the sub-training set of one split with probability r, so the
    denominator is ``ln(r)``: 191 splits at r = 0.9, n = 50,000, where Eq. (33) gives 9.
    """
    return num_splits(n, 1.0 - val_ratio, coverage)


def correct_by_splits(
    H: Floats,
    Y: Floats,
    *,
    step: Callable[[Floats, Floats, Floats, Floats, float], Floats],
    val_ratio: float,
    step_size: float,
    agreement: float,
    max_splits: int,
    movable: NDArray[np.bool_],
    generator: np.random.Generator,
    progress: Progress,
    validation: tuple[Floats, Floats] | None = None,
) -> SplitCorrection:
    """Run the inner loop of Algorithm 1: split at random, correct, repeat.

    ``step`` is `correct_step` (the paper's) or `move_to_minimiser`. Rows that are not
    ``movable`` serve in both sets but keep their labels. Successive argmax labels are
    compared only once every row has been corrected: the first soft steps move labels a
    lot and flip none, which would stop the loop before anything has happened.

    ``validation`` (n_v, d), (n_v, C) takes the place of the rows that a split leaves
    out: a set that was made in another way, the same in every split.
    """
    n = len(H)
    n_v = min(max(round(val_ratio * n), 1), n - 1)
    Y = Y.copy()
    times = np.zeros(n, dtype=np.intp)
    before = Y.argmax(axis=1)
    for split in range(1, max_splits + 1):
        order = generator.permutation(n)
        v, t = order[:n_v], order[n_v:]
        H_v, Y_v = validation or (H[v], Y[v])
        moved = step(H[t], Y[t], H_v, Y_v, step_size)  # (n_t, C)
        free = movable[t]
        Y[t[free]] = moved[free]
        times[t] += 1
        after = Y.argmax(axis=1)
        progress(split / max_splits)
        covered = ((times > 0) | ~movable).all()
        if covered and (before == after).mean() >= agreement:
            return SplitCorrection(Y, split, "agreement", times)
        before = after
    return SplitCorrection(Y, max_splits, "coverage", times)
