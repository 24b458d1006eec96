"""Log-odds of the clean class as a function of the leave-one-out scores.

Least-squares scores rank classes well but are not log-odds. A softmax regression on
the whitened scores, linear or quadratic, gives them the right shape. How flexible it
may be is decided on a noisy validation set: Theorems 1 and 2 once more. Legend: n rows,
C classes, k columns; S scores (n, C), U features (n, k).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.forward import ForwardModel
from stct.linear import Floats
from stct.transition import Ints, anchor_transition, symmetric_transition

PSEUDO_ROWS = 20.0  # of a symmetric annotator, for each class
SAMPLE = 8192  # rows for choosing, stratified; everything else uses all rows
SHARPNESS = 2.0 ** np.arange(-0.5, 4.1, 0.5)
MAX_QUADRATIC = 10  # leading directions whose products are used
ROWS_PER_WEIGHT = 10  # below this a richer family is not even tried
FREE_INTERCEPT = 1e-3


class ScoreSpace(NamedTuple):
    """How scores become features: 1, whitened scores, and maybe their products."""

    mean: Floats  # (C,)
    whiten: Floats  # (C, r)
    identity: Floats  # (k, C): U @ identity = S / std(S)
    quadratic: tuple[Floats, Floats] | None  # mean and 1 / std of the products

    def features(self, S: Floats) -> Floats:
        """Features U (n, k) of scores S (n, C)."""
        U = (S - self.mean) @ self.whiten
        columns = [np.ones((len(S), 1), U.dtype), U]
        if self.quadratic is not None:
            mean, scale = self.quadratic
            columns.append((_products(U) - mean) * scale)
        return np.concatenate(columns, axis=1)


class Family(NamedTuple):
    """One candidate: how flexible the log-odds may be."""

    quadratic: bool
    precision: float  # of the prior around plain sharpened scores


FAMILIES = (
    Family(quadratic=False, precision=1e4),  # one sharpness, for few rows
    Family(quadratic=False, precision=30.0),
    Family(quadratic=False, precision=1.0),
    Family(quadratic=True, precision=1.0),
)


class ScoreFit(NamedTuple):
    """The chosen family, as it was fitted on a part of the rows."""

    family: Family
    space: ScoreSpace
    weights: Floats  # (k, C)
    transition: Floats  # (C, C)
    beats_chance: bool  # do the features say anything about the labels?


def make_space(S: Floats, *, quadratic: bool) -> ScoreSpace:
    """Whiten the scores, (n, C); directions without variance are left out."""
    mean = S.mean(axis=0, dtype=np.float64)
    centred = S - mean.astype(S.dtype)
    values, V = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(S))
    keep = values > max(values.max() * 1e-4, 1e-30)
    values, V = values[keep][::-1], V[:, keep][:, ::-1]
    root = np.sqrt(values)
    spread = max(float(S.std()), 1e-30)
    identity = np.vstack([mean, (V * root).T]) / spread
    whiten = (V / root).astype(S.dtype)
    products = None
    if quadratic:
        U2 = _products(centred @ whiten)
        scale = 1.0 / np.maximum(U2.std(axis=0), 1e-6)
        products = U2.mean(axis=0), scale
        identity = np.vstack([identity, np.zeros((U2.shape[1], S.shape[1]))])
    return ScoreSpace(mean.astype(S.dtype), whiten, identity, products)


def _products(U: Floats) -> Floats:
    i, j = np.triu_indices(min(MAX_QUADRATIC, U.shape[1]))
    return np.asarray(U[:, i] * U[:, j])


def sharpest(model: ForwardModel, space: ScoreSpace, T: Floats) -> Floats:
    """Weights (k, C) of plain scores, as sharp as the given labels make likely."""
    likelihood = [
        model.sums(a * space.identity, T, count=False).log_likelihood for a in SHARPNESS
    ]
    return np.asarray(SHARPNESS[int(np.argmax(likelihood))] * space.identity)


def prior_precision(space: ScoreSpace, family: Family) -> Floats:
    """Precision of the prior on each row of the weights, (k,)."""
    precision = np.full(len(space.identity), family.precision)
    precision[0] = FREE_INTERCEPT
    return precision


def choose(
    S: Floats, given: Ints, locked: NDArray[np.bool_], num_threads: int | None
) -> ScoreFit:
    """Pick the family and T whose fit predicts a noisy validation set best.

    Both sets are strided out of the rows ordered by given class and score, so they are
    stratified and do not depend on the order of the rows.
    """
    C = S.shape[1]
    free = np.flatnonzero((given >= 0) & ~locked)
    order = free[np.lexsort((S[free, given[free]], given[free]))]
    stride = max(2, -(-len(order) // SAMPLE))
    train, val = order[::stride], order[stride // 2 :: stride]
    anchors = anchor_transition(S[free], given[free])
    starts = (anchors, symmetric_transition(0.9, C))
    spaces = {q: make_space(S, quadratic=q) for q in (False, True)}

    def model(rows: Ints, space: ScoreSpace) -> ForwardModel:
        nothing = np.zeros(len(rows), dtype=bool)
        U = space.features(S[rows])
        return ForwardModel(U, given[rows], nothing, C, num_threads=num_threads)

    best, best_likelihood = None, -np.inf
    for family in FAMILIES:
        space = spaces[family.quadratic]
        if family.quadratic and len(train) < ROWS_PER_WEIGHT * len(space.identity):
            continue
        W, T = _fit_from(starts, model(train, space), space, family)
        likelihood = model(val, space).sums(W, T, count=False).log_likelihood
        if likelihood > best_likelihood:
            best, best_likelihood = (family, space, W, T), likelihood
    assert best is not None
    share = np.bincount(given[val], minlength=C) / len(val)
    chance = len(val) * float((share * np.log(np.maximum(share, 1e-30))).sum())
    return ScoreFit(*best, best_likelihood > chance)


def _fit_from(
    starts: tuple[Floats, ...], model: ForwardModel, space: ScoreSpace, family: Family
) -> tuple[Floats, Floats]:
    """Fit W and T jointly from each T; keep the likelier end."""
    C = model.num_classes
    precision = prior_precision(space, family)
    ends = []
    for start in starts:
        diagonal = float(np.clip(np.diagonal(start).mean(), 1.0 / C, 0.999))
        pseudo = PSEUDO_ROWS * symmetric_transition(diagonal, C)
        W = sharpest(model, space, start)
        W, T = model.fit(
            W, start, precision=precision, pseudo_rows=pseudo, max_steps=25
        )
        ends.append((model.sums(W, T, count=False).log_likelihood, W, T))
    return max(ends, key=lambda end: end[0])[1:]
