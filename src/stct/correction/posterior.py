"""What each row's label should be, given its features, its label and the noise model.

Legend: n rows, m sampled rows, C classes; P = Pr[clean | x], T[clean, given],
Q = Pr[clean | x, given].
"""

from typing import Any, NamedTuple

import numpy as np

from stct.correction.given_labels import Labels
from stct.correction.instance_noise import (
    ambiguity_share,
    ambiguous,
    class_average_transition,
    instance_posterior,
    sharpening,
    trust_in_errors,
)
from stct.correction.result import MANY, TOP, AccuracyRange, TopClasses, keep_top
from stct.correction.scores import take
from stct.correction.settings import NoiseSettings, ResidualSettings
from stct.noise_model.likelihood import ScaledLogits
from stct.numeric.engine import RowValues
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.types import Floats, Ints


class Posterior(NamedTuple):
    """What the given labels are worth, row by row."""

    probabilities: Any  # (n, C), or `TopClasses`
    transition: Floats  # (C, C), on the average of a class's rows
    sharpness: float  # of the logits
    accuracy: AccuracyRange


class NoiseModel(NamedTuple):
    """Everything that turns logits into a posterior."""

    sharpness: float
    transition: Floats  # (C, C)
    share: float  # ambiguity share
    most_of_right: float
    trust: float  # probability that T's errors are those of the labels

    def posterior(self, logits: Floats, given: Ints) -> Floats:
        """Pr[clean | x, given] of some rows, (n, C)."""
        P = softmax(np.float32(self.sharpness) * logits)
        clean = P
        if self.share > 0.0:
            sharper = np.float32(self.sharpness * sharpening(self.share))
            clean = softmax(sharper * logits)
        m = ambiguous(self.transition, self.share, self.most_of_right)
        Q = instance_posterior(clean, P, self.transition, m, given)
        if self.trust < 1.0:
            rows = np.flatnonzero(given >= 0)
            Q[rows] *= np.float32(self.trust)
            Q[rows, given[rows]] += np.float32(1.0 - self.trust)
        return Q


def final_posterior(
    logits: RowValues,
    T: Floats,
    labels: Labels,
    index: Ints,
    residual: ResidualSettings,
    noise: NoiseSettings,
) -> Posterior:
    """Sharpen the logits, estimate the ambiguity share, and apply Bayes' rule to all.

    The steps that made the logits were few, so their sharpness is fitted once more,
    with a prior. Rows ``index`` say how sharp, and how much is ambiguous.
    """
    engine, n, C = labels.engine, len(labels.given), labels.num_classes
    sample, some = labels.some(index), take(engine, logits, index)
    likelihood = ScaledLogits([some], sample.codes(), sample.engine)
    sharpness, _ = likelihood.fit_sharpness(
        1.0, T, diagonal=False, precision=residual.sharpness_precision
    )
    free = ~sample.locked
    P = softmax(np.float32(sharpness) * some[free])
    trust = trust_in_errors(P, noise)
    shares, K = ambiguity_share(P, T, sample.given[free], noise)
    models = [NoiseModel(sharpness, T, m, noise.most_of_right, trust) for m in shares]
    accuracy = accuracy_range(models, some, sample)
    model = models[1]
    given, locked = (engine.keep(v) for v in (labels.given, labels.locked))

    def decide(rows: slice) -> Floats:
        label, fixed = given[rows], locked[rows]
        Q = model.posterior(np.asarray(logits[rows], np.float32), label)
        Q[fixed] = one_hot(label[fixed], C)
        return Q if C <= MANY else keep_top(Q, label)

    Q: Any = engine.take(engine.rows(decide, n), None)
    if C > MANY:
        Q = TopClasses(Q[:, :TOP], Q[:, TOP:].astype(np.int32), C)
    m = ambiguous(T, model.share, noise.most_of_right)
    average = class_average_transition(T, K, m)
    average = trust * average + (1.0 - trust) * np.eye(C)
    return Posterior(Q, average, sharpness * sharpening(model.share), accuracy)


def accuracy_range(
    models: list[NoiseModel], logits: Floats, labels: Labels
) -> AccuracyRange:
    """How far estimates of the share of right labels move over the ambiguity shares.

    The labels are those of the middle model; each model says how probable they are.
    """
    given, rows = labels.given, np.arange(len(logits))
    Qs = [model.posterior(logits, given) for model in models]
    for Q in Qs:
        Q[labels.locked] = one_hot(given[labels.locked], Q.shape[1])
    best = Qs[1].argmax(axis=1)
    before, after = ([float(Q[rows, c].mean()) for Q in Qs] for c in (given, best))
    return AccuracyRange(
        (min(before) - before[1], max(before) - before[1]),
        (min(after) - after[1], max(after) - after[1]),
    )
