"""Log-odds of the clean class as a function of the leave-one-out scores.

Least-squares scores rank classes well but are not log-odds. A softmax regression on
the whitened scores, linear or quadratic, gives them the right shape. How flexible it
may be is decided on a noisy validation set: Theorems 1 and 2 once more. Legend: n rows,
C classes, k columns; S scores (n, C), U features (n, k).
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.engine import Local
from stct.forward import ForwardModel
from stct.linear import Floats
from stct.transition import (
    Ints,
    anchor_transition,
    proven_transition,
    symmetric_transition,
)

PSEUDO_ROWS = 20.0  # of a symmetric annotator, for each class
SAMPLE = 8192  # rows for choosing, stratified
MAX_VALIDATION = 65_536  # rows that judge the choice
GLANCE, HOPELESS = 8192, 3.0  # rows, and standard errors below, that end a trial early
MAX_QUADRATIC = 10  # leading directions whose products are used
FREE_INTERCEPT = 1e-3
CAREFUL = 0.9  # right labels of a careful annotator
FIRST_STEPS, ALL_STEPS, PROVE_STEPS = 25, 150, 5


class ScoreSpace(NamedTuple):
    """How scores become features: 1, whitened scores, and maybe their products."""

    mean: Floats  # (C,)
    whiten: Floats  # (C, r)
    identity: Floats  # (k, C): U @ identity = S / std(S)
    quadratic: tuple[Floats, Floats] | None  # mean and whitening of the products

    def features(self, S: Floats) -> Floats:
        """Features U (n, k) of scores S (n, C)."""
        U = (S - self.mean) @ self.whiten
        columns = [np.ones((len(S), 1), U.dtype), U]
        if self.quadratic is not None:
            mean, whiten = self.quadratic
            columns.append((_products(U) - mean) @ whiten)
        return np.concatenate(columns, axis=1)


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


def make_space(S: Floats, *, quadratic: bool) -> ScoreSpace:
    """Whiten the scores, (n, C); directions without variance are left out."""
    mean, whiten, colour = _whitening(S)
    identity = np.vstack([mean, colour]) / max(float(S.std()), 1e-30)
    products = None
    if quadratic:
        products = _whitening(_products((S - mean) @ whiten))[:2]
        zeros = np.zeros((products[1].shape[1], S.shape[1]))
        identity = np.vstack([identity, zeros])
    return ScoreSpace(mean, whiten, identity, products)


def _whitening(A: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean (k,), whitening (k, r) and its inverse (r, k) of the rows of A (n, k)."""
    mean = A.mean(axis=0, dtype=np.float64).astype(A.dtype)
    centred = A - mean
    values, V = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(A))
    keep = values > max(values.max() * 1e-4, 1e-30)
    values, V = values[keep][::-1], V[:, keep][:, ::-1]
    root = np.sqrt(values)
    return mean, (V / root).astype(A.dtype), (V * root).T


def _products(U: Floats) -> Floats:
    i, j = np.triu_indices(min(MAX_QUADRATIC, U.shape[1]))
    return np.asarray(U[:, i] * U[:, j])


def sharpest(model: ForwardModel, space: ScoreSpace, T: Floats) -> Floats:
    """Weights (k, C) of plain scores, as sharp as the given labels make likely."""

    def likelihood(step: int) -> float:
        W = 2.0 ** (step / 2) * space.identity
        return model.sums(W, T, count=False).log_likelihood

    best = highest(likelihood, start=4, limit=8)
    return np.asarray(2.0 ** (best / 2) * space.identity)


def highest(function: Callable[[int], float], *, start: int, limit: int) -> int:
    """Walk uphill from ``start`` in whole steps, at most to -limit or limit."""
    known: dict[int, float] = {}

    def value(step: int) -> float:
        if step not in known:
            known[step] = function(step)
        return known[step]

    at = start
    for direction in (1, -1):
        while abs(at + direction) <= limit and value(at + direction) > value(at):
            at += direction
        if at != start:
            break
    return at


def prior_precision(space: ScoreSpace, family: Family) -> Floats:
    """Precision of the prior on each row of the weights, (k,)."""
    precision = np.full(len(space.identity), family.precision)
    precision[0] = FREE_INTERCEPT
    return precision


class Trial:
    """Log-odds of one shape, fitted on some rows and tested on others."""

    def __init__(
        self,
        S: Floats,
        given: Ints,
        train: Ints,
        val: Ints,
        *,
        quadratic: bool,
    ) -> None:
        self._S, self._given, self._val = S, given, val
        self.space = make_space(S[train], quadratic=quadratic)
        self.fitted = self._model(train)

    def _model(self, rows: Ints) -> ForwardModel:
        S, given = self._S[rows], self._given[rows]
        nothing = np.zeros(len(rows), dtype=bool)
        U, engine = self.space.features(S), Local(1)
        return ForwardModel(U, given, nothing, S.shape[1], engine=engine)

    @cached_property
    def tested(self) -> ForwardModel:
        """The validation set."""
        return self._model(self._val)

    def start(self, T: Floats) -> ScoreFit:
        """Plain scores, as sharp as the labels make likely."""
        W = sharpest(self.fitted, self.space, T)
        return ScoreFit(FAMILIES[0], self.space, W, T)

    def widen(self, start: ScoreFit) -> ScoreFit:
        """Give a start of fewer features in these; the others count for nothing."""
        more = len(self.space.identity) - len(start.weights)
        weights = np.pad(start.weights, ((0, more), (0, 0)))
        return start._replace(space=self.space, weights=weights)

    def test(self, fit: ScoreFit) -> Floats:
        """Log-likelihood of each validation label."""
        return self.tested.log_likelihood(fit.weights, fit.transition)

    def glance(self, fit: ScoreFit, to_beat: Floats) -> bool:
        """Tell from a few validation labels whether it is worth a test."""
        step = max(1, len(to_beat) // GLANCE)
        few = self._model(self._val[::step])
        likelihood = few.log_likelihood(fit.weights, fit.transition)
        return not is_better(to_beat[::step], likelihood, errors=HOPELESS)

    def climb(
        self, starts: list[ScoreFit], family: Family, to_beat: Floats
    ) -> tuple[ScoreFit, Floats] | None:
        """Climb from every start and give the better end, with its test.

        None, if the first end is hopeless: it is so from elsewhere too.
        """
        first, *others = (start._replace(family=family) for start in starts)
        best = _climb(self.fitted, first, FIRST_STEPS)
        if not self.glance(best, to_beat):
            return None
        likelihood = self.test(best)
        if is_better(to_beat, likelihood, errors=HOPELESS):
            return None
        for other in others:
            end = _climb(self.fitted, other, FIRST_STEPS)
            candidate = self.test(end)
            # Anchors, the first start, see the noise. That it is the features' fault
            # must be proven: under much noise both explain the labels almost alike.
            if is_better(candidate, likelihood):
                best, likelihood = end, candidate
        return best, likelihood


def choose(
    S: Floats,
    given: Ints,
    locked: NDArray[np.bool_],
    annotator: Floats | None = None,
) -> ScoreFit | None:
    """Pick the family and T whose fit predicts a noisy validation set best.

    A richer family must be better by two standard errors. If plain scores do not beat
    the frequencies of the labels, there is nothing to learn and None is returned.
    ``annotator``, a T from an earlier look at the same labels, is tried if anchors do
    not beat chance. If it was not careful, there is no careful start: noise that was
    proven once is not put down to the features again.
    """
    free = np.flatnonzero((given >= 0) & ~locked)
    if len(free) < 4:
        return None
    train, val = _stratified_split(S, given, free)
    anchors = anchor_transition(S[free], given[free])
    careful = symmetric_transition(CAREFUL, S.shape[1])
    noisy_before = annotator is not None and np.diagonal(annotator).mean() < CAREFUL
    trial = Trial(S, given, train, val, quadratic=False)
    share = np.bincount(given[val], minlength=S.shape[1]) / len(val)
    chance = np.log(share[given[val]])
    for first in (anchors, annotator):
        if first is None:
            return None
        starts = (first,) if noisy_before else (first, careful)
        plain = [trial.start(T) for T in starts]
        # Only plain scores are up against chance: fitted weights could also learn that
        # a row's own label is missing from its score.
        best, likelihood = plain[0], trial.test(plain[0])
        for start in plain[1:]:
            other = trial.test(start)
            if is_better(other, likelihood):
                best, likelihood = start, other
        if is_better(likelihood, chance):
            break
    else:
        return None
    for family in FAMILIES:
        if family.quadratic:
            trial = Trial(S, given, train, val, quadratic=True)
            if len(train) < family.min_rows * trial.space.identity.size:
                break
            plain = [trial.widen(start) for start in plain]
        end = trial.climb(plain, family, likelihood)
        if end is not None and is_better(end[1], likelihood):
            best, likelihood = end
    return best


def _stratified_split(S: Floats, given: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Rows to fit and to test on, each class in proportion, whatever their order."""
    # Low digits of a score shuffle the rows of a class.
    shuffle = (S[rows, given[rows]] * 4096.0) % 1.0
    order = rows[np.lexsort((shuffle, given[rows]))]
    stride = max(2, -(-len(order) // SAMPLE))
    in_train = np.arange(len(order)) % stride == 0
    val = order[~in_train]
    return order[in_train], val[:: -(-len(val) // MAX_VALIDATION)]


def fit_all(model: ForwardModel, chosen: ScoreFit) -> tuple[Floats, Floats]:
    """Weights (k, C) and T (C, C) on all rows, from what a part of them has chosen.

    The prior that was right for the part weighs less against all.
    """
    weaker = chosen.family.precision * min(1.0, SAMPLE / max(model.num_free, 1))
    start = chosen._replace(family=chosen.family._replace(precision=weaker))
    end = _prove(model, _climb(model, start, ALL_STEPS))
    return end.weights, end.transition


def _prove(model: ForwardModel, start: ScoreFit) -> ScoreFit:
    """Reduce T to what the rows prove and let W follow, twice in turn."""
    W, T = start.weights, start.transition
    precision = prior_precision(start.space, start.family)
    for _ in range(2):
        T = proven_transition(model.sums(W, T).counts, model.num_free)
        W, _ = model.fit(W, T, precision=precision, max_steps=PROVE_STEPS)
    return start._replace(weights=W, transition=T)


def is_better(candidate: Floats, current: Floats, errors: float = 2.0) -> bool:
    """Higher mean log-likelihood, by standard errors of the paired difference."""
    gain = (candidate - current).astype(np.float64)
    return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))


def _climb(
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
