"""Log-odds of the clean class as a function of the scores, fitted together with T.

By the likelihood of the labels that were given. Legend: n rows, C classes, k columns of
features; W weights (k, C), T[clean, given].
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import root

from stct.correction.score_space import ScoreSpace
from stct.noise_model.likelihood import ForwardModel
from stct.noise_model.transition import proven_transition, symmetric_transition
from stct.numeric.types import Floats

PSEUDO_ROWS = 20.0  # of a symmetric annotator, for each class
SAMPLE = 8192  # rows for choosing a family
FREE_INTERCEPT = 1e-3
ALL_STEPS, PROVE_STEPS, BALANCE_STEPS = 150, 5, 20
FARTHEST = 5.0  # that a logarithm may go in a balance
SAME = 0.005  # entries of T that differ by less
FIRST_STEP, DIFFERENCE, TOLERANCE = 0.5, 1e-3, 1e-4  # of logarithms, for a balance


class Family(NamedTuple):
    """One candidate: how flexible the log-odds may be."""

    quadratic: bool
    precision: float  # of the prior around plain sharpened scores
    min_rows: float = 0.0  # rows per weight: with fewer it is not even tried


FAMILIES = (  # from careful to bold
    Family(quadratic=False, precision=1e4),  # one sharpness
    Family(quadratic=False, precision=30.0),
    Family(quadratic=False, precision=1.0),
    Family(quadratic=True, precision=1.0, min_rows=1.0),
)


class ScoreFit(NamedTuple):
    """The chosen family, as it was fitted on a part of the rows."""

    family: Family
    space: ScoreSpace
    weights: Floats  # (k, C)
    transition: Floats  # (C, C)
    known: bool = False  # T, from an earlier look at the same labels


def sharpest(model: ForwardModel, space: ScoreSpace, T: Floats) -> Floats:
    """Weights (k, C) of plain scores, as sharp as the given labels make likely."""

    def likelihood(step: int) -> float:
        rows = model.log_likelihood(2.0 ** (step / 2) * space.identity, T)
        return float(rows.sum(dtype=np.float64))

    best = highest(likelihood, start=4, limit=8)
    return np.asarray(2.0 ** (best / 2) * space.identity)


def highest(function: Callable[[int], float], *, start: int, limit: int) -> int:
    """Walk uphill from ``start`` in whole steps, at most to -limit or limit."""
    function = cache(function)
    at = start
    for direction in (1, -1):
        while abs(at + direction) <= limit and function(at + direction) > function(at):
            at += direction
        if at != start:
            break
    return at


def beside(function: Callable[[int], float], at: int) -> float:
    """Give the top of the parabola through ``at``, the highest step, and those beside.

    To a quarter: what differs in the last digits must not end apart.
    """
    low, top, high = (function(at + step) for step in (-1, 0, 1))
    bend = 2.0 * top - low - high
    return at + round(2.0 * (high - low) / bend) / 4.0 if bend > 0.0 else float(at)


def prior_precision(space: ScoreSpace, family: Family) -> Floats:
    """Precision of the prior on each row of the weights, (k,)."""
    precision = np.full(len(space.identity), family.precision)
    precision[0] = FREE_INTERCEPT
    return precision


def fit_all(model: ForwardModel, chosen: ScoreFit) -> tuple[Floats, Floats]:
    """Weights (k, C) and T (C, C) on all rows, from what a part of them has chosen.

    The prior that was right for the part weighs less against all. A T that was known
    before stays, and plain scores with it.
    """
    if chosen.known:
        return chosen.weights, chosen.transition
    weaker = chosen.family.precision * min(1.0, SAMPLE / max(model.num_free, 1))
    start = chosen._replace(family=chosen.family._replace(precision=weaker))
    end = _prove(model, climb(model, start, ALL_STEPS))
    return end.weights, end.transition


def _prove(model: ForwardModel, start: ScoreFit) -> ScoreFit:
    """Reduce T to what the rows prove and let W follow; again, if T moves then."""
    W, T = start.weights, start.transition
    precision = prior_precision(start.space, start.family)
    for again in (False, True):
        before, T = T, proven_transition(model.sums(W, T).counts, model.num_free)
        if again and np.abs(T - before).max() < SAME:
            break
        W, T = balance(model, W, T)
        W, _ = model.fit(W, T, precision=precision, max_steps=PROVE_STEPS)
    return start._replace(weights=W, transition=T)


def balance(model: ForwardModel, W: Floats, T: Floats) -> tuple[Floats, Floats]:
    """Fit one sharpness of W and one error rate of T, both at once.

    They trade against each other: soft log-odds and a careful annotator explain the
    labels almost as well as sharp ones and a careless annotator. In turn, or beside
    many other weights, both would creep. And a T with all its entries free fits the
    noise too: its diagonal comes out too high where it has few rows for an entry.
    They move if that is worth two units of log-likelihood, one for each (Akaike), to
    labels that are not locked: a few certain ones that the features contradict are
    explained by nothing but very soft log-odds.
    """
    diagonal, num_rows = np.eye(len(T)), max(model.num_free, 1)

    def unpack(sharper: float, surer: float) -> tuple[Floats, Floats]:
        # Around 1: the tolerance is relative. Clean labels of groups far apart have no
        # top: the way there must not lead out of the numbers.
        sharper, surer = np.clip((sharper - 1.0, surer - 1.0), -FARTHEST, FARTHEST)
        rows = T * np.exp(surer * diagonal)
        return np.exp(sharper) * W, rows / rows.sum(axis=1, keepdims=True)

    @cache
    def look(sharper: float, surer: float) -> tuple[float, Floats]:
        weights, rows = unpack(sharper, surer)
        sums = model.sums(weights, rows, locked=False)
        expected = sums.counts.sum(axis=1) @ np.diagonal(rows)
        right = np.trace(sums.counts) - expected
        slopes = np.array([(sums.gradient * weights).sum(), right]) / num_rows
        return sums.log_likelihood, slopes

    def slopes(theta: Floats) -> Floats:
        return look(*theta)[1]

    def bend(theta: Floats) -> Floats:
        beyond = [slopes(theta + DIFFERENCE * axis) for axis in np.eye(2)]
        return (np.column_stack(beyond) - slopes(theta)[:, None]) / DIFFERENCE

    start = np.ones(2)
    if num_rows * promise(slopes(start), bend(start)) < 0.5 * len(start):
        return W, T
    # Where both slopes are 0: float32 knows that place better than the highest value.
    options = {"maxfev": BALANCE_STEPS, "factor": FIRST_STEP}
    best = root(slopes, start, jac=bend, tol=TOLERANCE, options=options)
    gain = look(*best.x)[0] - look(*start)[0]
    return unpack(*best.x) if gain > len(start) else (W, T)


def promise(slope: Floats, bend: Floats) -> float:
    """Give what the top of a parabola is above here; infinite, if it has none."""
    values, axes = np.linalg.eigh(0.5 * (bend + bend.T))
    if values[-1] >= 0.0:
        return np.inf
    return float(-0.5 * ((axes.T @ slope) ** 2 / values).sum())


def climb(
    model: ForwardModel, start: ScoreFit, max_steps: int, tolerance: float = 1e-5
) -> ScoreFit:
    """Improve W and T together from where they are."""
    T = start.transition
    diagonal = float(np.clip(np.diagonal(T).mean(), 1.0 / len(T), 0.999))
    W, T = model.fit(
        start.weights,
        T,
        precision=prior_precision(start.space, start.family),
        pseudo_rows=PSEUDO_ROWS * symmetric_transition(diagonal, len(T)),
        max_steps=max_steps,
        tolerance=tolerance,
    )
    return start._replace(weights=W, transition=T)
