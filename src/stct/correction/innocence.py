"""How good the annotator may be, where few rows leave it open.

Features that know little of a class explain labels that disagree with them as well as
an annotator who errs does: a few hundred rows of a table can be read either way, and
the T that fits them best is then a guess. So its quality is not taken as it was fitted
but averaged over all that lies between T and labels without an error. Each is given the
log-odds that suit it best, on one half of the rows, and counts in proportion to how
probable it makes the labels of the other half. Legend: n rows, C classes; S scores
(n, C), T[clean, given].
"""

import numpy as np

from stct.correction.choice import Trial, halves
from stct.correction.given_labels import Labels
from stct.correction.score_fit import FAMILIES, SAMPLE, prior_precision
from stct.noise_model.transition import quality, raise_quality
from stct.numeric.types import Floats, Ints

WORSE = (0.7, 0.85)  # of the quality as it was fitted
BETTER = (0.25, 0.5, 0.75, 0.99)  # of the way from there to no errors
STEPS = 25
CERTAIN = 12.0  # units of log-likelihood that leave no doubt
GRID = 200
LEAST_SHIFT = 0.02  # of quality; less is not worth fitting all log-odds again


def expected_quality(
    S: Floats, labels: Labels, T: Floats, shares: Floats, association: float = 0.0
) -> float:
    """Mean quality of the annotator over what the labels leave open, 0 if little.

    ``shares`` (C,) are those of the clean classes. ``association`` of two views among
    rows of one label, in standard errors, speaks of errors, too: it is there as T has
    it, and gone where no label is wrong (`views.association`).
    """
    free = np.flatnonzero((labels.given >= 0) & ~labels.locked)
    if len(free) > 2 * SAMPLE:
        return 0.0
    tests = [_Test(S, labels.given, *half) for half in halves(S, labels.given, free)]
    fitted = quality(T, shares)
    at = [fitted + way * (1.0 - fitted) for way in BETTER]
    better = [raise_quality(T, shares, one) for one in at]
    first = tests[0].likelihood(T)
    if _evidence([tests[0].likelihood(better[0])], [first]) < -CERTAIN:
        return 0.0
    random = np.tile(shares / shares.sum(), (len(T), 1))  # quality 0
    worse = [part * T + (1.0 - part) * random for part in WORSE]
    annotators = [*worse, T, *better]  # from bad to good
    qualities = np.array([quality(one, shares) for one in annotators])
    said = [[test.likelihood(one) for test in tests] for one in annotators]
    logs = np.array([_evidence(one, said[len(worse)]) for one in said])
    way = np.clip((qualities - fitted) / max(1.0 - fitted, 1e-9), 0.0, 1.0)
    logs -= 0.5 * (max(association, 0.0) * way) ** 2
    between = np.linspace(qualities[0], qualities[-1], GRID)
    weights = np.interp(between, qualities, logs)
    mean = float(np.average(between, weights=np.exp(weights - weights.max())))
    return mean if mean > fitted + LEAST_SHIFT else 0.0


class _Test:
    """Log-odds fitted to any annotator on some rows, and tested on others."""

    def __init__(self, S: Floats, given: Ints, train: Ints, val: Ints) -> None:
        self._linear = Trial(S, given, train, val, quadratic=False)
        self._trials = [self._linear]
        quadratic = Trial(S, given, train, val, quadratic=True)
        if len(train) >= FAMILIES[-1].min_rows * quadratic.space.identity.size:
            self._trials.append(quadratic)

    def likelihood(self, T: Floats) -> Floats:
        """Log-likelihood of each label held out, for the family that is best there."""
        plain = self._linear.start(T)
        tests = [self._linear.test(plain)]
        for family in FAMILIES[1:]:
            if family.quadratic and len(self._trials) == 1:
                continue
            trial = self._trials[int(family.quadratic)]
            start = trial.widen(plain)
            precision = prior_precision(trial.space, family)
            W, _ = trial.fitted.fit(
                start.weights, T, precision=precision, max_steps=STEPS
            )
            tests.append(trial.test(start._replace(weights=W)))
        return max(tests, key=np.mean)


def _evidence(likelihood: list[Floats], fitted: list[Floats]) -> float:
    """Log-odds of an annotator against the fitted one, from all labels held out.

    Those of pseudo Bayesian model averaging (Yao et al., 2018): the likelihood ratio,
    nearer to even the less the rows agree about it.
    """
    gain = (np.concatenate(likelihood) - np.concatenate(fitted)).astype(np.float64)
    return float(gain.sum() / np.sqrt(1.0 + np.pi / 8.0 * len(gain) * gain.var()))
