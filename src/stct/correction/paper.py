"""Noisy meta correction as the paper has it: Eqs. (8), (9), (33), random splits.

Legend: n rows, n_t sub-training rows, n_v validation rows, d columns, C classes.
H embeddings, Y soft labels, W weights; r = n_v / n is ``val_ratio``, eta ``step_size``,
delta ``agreement``, beta ``coverage``. ``given`` holds integer labels, -1 for none.
"""

from collections.abc import Callable
from math import ceil, expm1, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.result import Correction, Progress
from stct.noise_model.theorems import is_learnable
from stct.noise_model.transition import count_transition
from stct.numeric import linear
from stct.numeric.models import LinearModel
from stct.numeric.probabilities import one_hot
from stct.numeric.types import Floats, Ints


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


class SplitSettings(NamedTuple):
    """The paper's r, eta, delta and beta."""

    val_ratio: float = 0.5
    step_size: float = 0.2
    agreement: float = 0.998
    coverage: float = 0.9999


THE_PAPERS = SplitSettings()


def correct_by_random_splits(
    H: Floats,
    given: Ints,
    num_classes: int,
    locked: NDArray[np.bool_],
    settings: SplitSettings,
    generator: np.random.Generator,
    progress: Progress,
    *,
    to_the_letter: bool,
) -> Correction:
    """Correct noisy labels (n,) from embeddings (n, d) by Algorithm 1's inner loop.

    Eq. (9) if ``to_the_letter``, else the step to the minimum-norm minimiser.
    """
    H = np.asarray(H[0 : len(H)])  # random splits need all rows at hand
    known = np.flatnonzero(given >= 0)
    count = num_splits if to_the_letter else num_splits_to_cover
    dtype = np.result_type(H.dtype, np.float32)
    mean = H[known].mean(axis=0, dtype=np.float64)
    centred = linear.add_constant((H - mean).astype(dtype))  # (n, d + 1)
    splits = correct_by_splits(
        centred[known],
        one_hot(given[known], num_classes).astype(dtype),
        step=correct_step if to_the_letter else move_to_minimiser,
        val_ratio=settings.val_ratio,
        step_size=settings.step_size,
        agreement=settings.agreement,
        max_splits=count(len(known), settings.val_ratio, settings.coverage),
        movable=~locked[known],
        # A stream of its own: noise made with the same seed must not meet its own draws
        # again as the first split.
        generator=generator.spawn(1)[0],
        progress=progress,
    )
    W = linear.fit(centred[known], splits.labels)  # (d + 1, C)
    Y = linear.predict(centred, W)
    Y[known] = splits.labels
    Q = linear.to_simplex(Y)
    T = count_transition(Q, given)
    model = LinearModel(W[:-1], W[-1] - mean @ W[:-1])
    return Correction(
        Q,
        T,
        is_learnable(T),
        model,
        splits.num_splits,
        splits.stop,
    )
