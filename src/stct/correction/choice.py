"""How flexible the log-odds may be: decided on a noisy validation set.

Theorems 1 and 2 once more: what predicts noisy labels better on rows that were held out
is better. Legend: n rows, C classes; S scores (n, C), T[clean, given].
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.correction.score_fit import (
    FAMILIES,
    SAMPLE,
    Family,
    ScoreFit,
    climb,
    sharpest,
)
from stct.correction.score_space import make_space
from stct.correction.views import beyond_chance
from stct.noise_model.likelihood import ForwardModel
from stct.noise_model.transition import (
    anchor_transition,
    proven_transition,
    symmetric_transition,
)
from stct.numeric.engine import Local
from stct.numeric.types import Floats, Ints

MAX_VALIDATION = 65_536  # rows that judge the choice
GLANCE = 8192  # of these rows are enough to tell what is far off
HOPELESS = 3.0  # standard errors below, that end a trial early
CAREFUL = 0.9  # right labels of a careful annotator
FIRST_STEPS = 25
# Standard errors of agreement beyond chance that are asked for where the likelihood of
# the labels is beyond chance too, and where few rows leave it undecided.
LIKELY, SURE = 2.0, 4.0
# Standard errors by which a richer family must be better, and where rows are few again
# with the halves exchanged.
BETTER, AGAIN = 2.0, 1.0
FEW = 20  # rows for each entry of T: with more, T is found anew
MOSTLY_WRONG = 0.5  # right labels: with more, another T may be found


class Climbed(NamedTuple):
    """The best end, its test, and the starts from which it is worth to climb again."""

    best: ScoreFit
    likelihood: Floats
    hopeful: list[ScoreFit]


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

    @cached_property
    def _glimpsed(self) -> ForwardModel:
        """A few rows of the validation set."""
        return self._model(self._val[:: self._every])

    @property
    def _every(self) -> int:
        return max(1, len(self._val) // GLANCE)

    def settled(self, fit: ScoreFit) -> ScoreFit:
        """Give it T as it is or as far as it is proven, whichever foretells more.

        Free in all entries, T fits the noise of some thousand rows too. What that costs
        on other rows would hide what richer log-odds gain there. For tests only: with
        all rows more of T may be proven.
        """
        counts = self.fitted.sums(fit.weights, fit.transition).counts
        T = proven_transition(counts, self.fitted.num_free)
        both = fit, fit._replace(transition=T)
        return max(both, key=lambda one: self._glimpse(one).mean())

    def _glimpse(self, fit: ScoreFit) -> Floats:
        return self._glimpsed.log_likelihood(fit.weights, fit.transition)

    def test(self, fit: ScoreFit) -> Floats:
        """Log-likelihood of each validation label."""
        return self.tested.log_likelihood(fit.weights, fit.transition)

    def glance(self, fit: ScoreFit, to_beat: Floats) -> bool:
        """Tell from a few validation labels whether it is worth a test."""
        few = to_beat[:: self._every]
        return not is_better(few, self._glimpse(fit), errors=HOPELESS)

    def climb(
        self, starts: list[ScoreFit], family: Family, to_beat: Floats
    ) -> Climbed | None:
        """Climb from every start.

        None, if the first end is hopeless: it is so from elsewhere too.
        """
        first, *others = (start._replace(family=family) for start in starts)
        best = climb(self.fitted, first, FIRST_STEPS)
        shown = self.settled(best)
        if not self.glance(shown, to_beat):
            return None
        reached = likelihood = self.test(shown)
        if is_better(to_beat, likelihood, errors=HOPELESS):
            return None
        hopeful = [first]
        for other in others:
            end = climb(self.fitted, other, FIRST_STEPS)
            candidate = self.test(self.settled(end))
            # Anchors, the first start, see the noise. That it is the features' fault
            # must be likely: under much noise both explain the labels almost alike.
            if is_better(candidate, likelihood, errors=1.0):
                best, likelihood = end, candidate
            if not is_better(reached, candidate, errors=HOPELESS):
                hopeful.append(other)
        return Climbed(best, likelihood, hopeful)


def choose(
    S: Floats,
    given: Ints,
    locked: NDArray[np.bool_],
    annotator: Floats | None = None,
) -> ScoreFit | None:
    """Pick the family and T whose fit predicts a noisy validation set best.

    A richer family must be better by two standard errors, and where rows are few by one
    again with the halves exchanged: a handful of them can make a T likely that turns
    the truth round. If plain scores do not beat the frequencies of the labels, by
    likelihood and by agreement, or by far by agreement alone, there is nothing to learn
    and None is returned.
    ``annotator`` is a T from an earlier look at the same labels, by which the features
    were learnt. If it found noise and rows are few it is remembered, unless most labels
    are right and another T makes plain scores explain them better. Else it is tried
    where anchors do not beat chance, and if it found noise there is no careful start:
    what was proven once is not put down to the features.
    """
    free = np.flatnonzero((given >= 0) & ~locked)
    if len(free) < 4:
        return None
    few = len(free) < FEW * S.shape[1] ** 2
    if annotator is None or not few or _right(annotator) >= CAREFUL:
        return _look(S, given, free, annotator)
    anew = None
    if _right(annotator) >= MOSTLY_WRONG:
        anew = _look(S, given, free, annotator)
    return _remember(S, given, free, annotator, anew)


def _look(
    S: Floats, given: Ints, free: Ints, annotator: Floats | None
) -> ScoreFit | None:
    """Choose by halves of the rows, one of which is fitted and the other decides."""
    first, *exchanged = halves(S, given, free)
    best = _choose(S, given, free, first, annotator, BETTER)
    if best is None or best.family == FAMILIES[0] or not exchanged:
        return best
    other = _choose(S, given, free, exchanged[0], annotator, AGAIN) or best
    return min(best, other, key=lambda fit: FAMILIES.index(fit.family))


def _choose(
    S: Floats,
    given: Ints,
    free: Ints,
    halves: tuple[Ints, Ints],
    annotator: Floats | None,
    errors: float,
) -> ScoreFit | None:
    """Fit on the first half; the second decides, by so many standard errors."""
    train, val = halves
    anchors = anchor_transition(S[free], given[free])
    careful = symmetric_transition(CAREFUL, S.shape[1])
    trial = Trial(S, given, train, val, quadratic=False)
    agreed = agreement_in_errors(S[free], given[free])
    share = np.bincount(given[val], minlength=S.shape[1]) / len(val)
    chance = np.log(share[given[val]])
    for first in (anchors, annotator):
        if first is None:
            return None
        noisy_before = annotator is not None and _right(annotator) < CAREFUL
        starts = (first,) if noisy_before else (first, careful)
        plain = [trial.start(T) for T in starts]
        # Only plain scores are up against chance: fitted weights could also learn that
        # a row's own label is missing from its score.
        tests = [trial.test(trial.settled(start)) for start in plain]
        best, likelihood = plain[0], tests[0]
        surest = max(tests, key=np.mean)
        if agreed > (LIKELY if is_better(surest, chance) else SURE):
            break
    else:
        return None
    for family in FAMILIES[1:]:  # the first is what they start from
        if family.quadratic:
            trial = Trial(S, given, train, val, quadratic=True)
            if len(train) < family.min_rows * trial.space.identity.size:
                break
            plain = [trial.widen(start) for start in plain]
        end = trial.climb(plain, family, likelihood)
        if end is None:
            continue
        plain = end.hopeful
        if is_better(end.likelihood, likelihood, errors):
            best, likelihood = end.best, end.likelihood
    return best


def halves(S: Floats, given: Ints, rows: Ints) -> list[tuple[Ints, Ints]]:
    """Rows to fit and to test on; where rows are few also with places exchanged."""
    train, val = _stratified_split(S, given, rows)
    return [(train, val), (val, train)] if len(rows) <= 2 * SAMPLE else [(train, val)]


def _right(T: Floats) -> float:
    return float(np.diagonal(T).mean())


def _remember(
    S: Floats, given: Ints, free: Ints, annotator: Floats, anew: ScoreFit | None
) -> ScoreFit | None:
    """Plain scores, and the annotator as he was known before.

    Each new look could err anew: a thousand labels, most of them wrong, like rich
    log-odds and a T in which classes change places in one fit of three, and the next
    features are taught that. The annotator has not changed, and features that were
    taught classes need no richer log-odds. What was known must still make the labels
    likelier than one error rate does, and than the T of a new look where there was one.
    """
    trial = Trial(S, given, free, free, quadratic=False)
    one_rate = symmetric_transition(_right(annotator), S.shape[1])
    fits = [trial.start(T)._replace(known=True) for T in (annotator, one_rate)]
    best = max(fits, key=lambda fit: trial.test(fit).mean())
    if anew is not None:
        other = trial.start(anew.transition)
        if trial.test(other).mean() > trial.test(best).mean():
            return anew
    share = np.bincount(given[free], minlength=S.shape[1]) / len(free)
    likely = is_better(trial.test(best), np.log(share[given[free]]))
    agreed = agreement_in_errors(S[free], given[free])
    return best if agreed > (LIKELY if likely else SURE) else None


def _stratified_split(S: Floats, given: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Rows to fit and to test on, each class in proportion, whatever their order."""
    # Low digits of a score shuffle the rows of a class.
    shuffle = (S[rows, given[rows]] * 4096.0) % 1.0
    order = rows[np.argsort(given[rows] + shuffle, kind="stable")]
    stride = max(2, -(-len(order) // SAMPLE))
    in_train = np.arange(len(order)) % stride == 0
    val = order[~in_train]
    return order[in_train], val[:: -(-len(val) // MAX_VALIDATION)]


def agreement_in_errors(S: Floats, given: Ints) -> float:
    """Agreement of best scores and given labels beyond chance, in standard errors."""
    agreed, error = beyond_chance(S.argmax(axis=1), given, S.shape[1])
    return agreed / error


def is_better(candidate: Floats, current: Floats, errors: float = 2.0) -> bool:
    """Higher mean log-likelihood, by standard errors of the paired difference."""
    gain = (candidate - current).astype(np.float64)
    return bool(gain.mean() > errors * gain.std() / np.sqrt(len(gain)))
