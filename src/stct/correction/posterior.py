"""What each row's label should be, given its features, its label and the noise model.

Legend: n rows, m sampled rows, C classes; P = Pr[clean | x], T[clean, given],
Q = Pr[clean | x, given].
"""

from typing import Any, NamedTuple

import numpy as np

from stct.correction.audit import (
    AuditCalibration,
    AuditedPosterior,
    audit_posterior,
)
from stct.correction.given_labels import Labels
from stct.correction.instance_noise import (
    ambiguity_share,
    ambiguous_rows,
    class_average_transition,
    instance_posterior,
    probability_of_errors,
    sharpened,
)
from stct.correction.scores import take
from stct.correction.settings import Settings
from stct.noise_model.likelihood import ScaledLogits
from stct.noise_model.priors import SharpnessPrior
from stct.noise_model.transition import curvature, posterior
from stct.numeric.engine import RowValues
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.top_classes import MANY, TOP, TopClasses, keep_top
from stct.numeric.types import Floats, Ints


class Posterior(NamedTuple):
    """What the given labels are worth, row by row."""

    probabilities: Any  # (n, C), or `TopClasses`
    transition: Floats  # (C, C), on the average of a class's rows
    sharpness: float  # of the logits
    confusion: float  # share of the rows whose class the features do not know
    noise: "NoiseModel"  # for rows of later batches
    sample: "SampleFacts"
    audit: AuditedPosterior | None = None


class SampleFacts(NamedTuple):
    """What the sampled rows say of later ones."""

    agreement: tuple[int, int]  # rows with the given label predicted, of how many
    clean_shares: Floats  # (C,)
    curvature: float  # information of a given label about the log-odds, mean


class NoiseModel(NamedTuple):
    """Everything that turns logits into a posterior."""

    annotators: float  # sharpness of what ambiguous labels are drawn from
    features: float  # sharpness of Pr[clean | x]
    transition: Floats  # (C, C)
    ambiguous: Floats  # (C,) share of the rows of each class
    errors: float  # probability that there are wrong labels at all

    def posterior(self, logits: Floats, given: Ints) -> Floats:
        """Pr[clean | x, given] of some rows, (n, C)."""
        P = softmax(np.float32(self.annotators) * logits)
        clean = P
        if self.features != self.annotators:
            clean = softmax(np.float32(self.features) * logits)
        Q = instance_posterior(clean, P, self.transition, self.ambiguous, given)
        if self.errors < 1.0:  # else all given labels are right
            rows = np.flatnonzero(given >= 0)
            Q[rows] *= np.float32(self.errors)
            Q[rows, given[rows]] += np.float32(1.0 - self.errors)
        return Q

    def of_model(self) -> "NoiseModel":
        """Give the same for logits that are multiplied by the features' sharpness."""
        return self._replace(annotators=self.annotators / self.features, features=1.0)

    def reordered(self, order: Ints) -> "NoiseModel":
        """Give the same with class ``order[c]`` as class c."""
        return self._replace(
            transition=self.transition[np.ix_(order, order)],
            ambiguous=self.ambiguous[order],
        )

    def average_transition(self, K: Floats) -> Floats:
        """Pr[given | clean] on the average of a class's rows, (C, C)."""
        T = class_average_transition(self.transition, K, self.ambiguous)
        return self.errors * T + (1.0 - self.errors) * np.eye(len(T))


def final_posterior(
    logits: RowValues,
    T: Floats,
    labels: Labels,
    index: Ints,
    settings: Settings,
) -> Posterior:
    """Sharpen the logits, estimate the ambiguity share, and apply Bayes' rule to all.

    The steps that made the logits were few, so their sharpness is fitted once more,
    with a prior. Rows ``index`` say how sharp, and how much is ambiguous.
    """
    engine, n, C = labels.engine, len(labels.given), labels.num_classes
    noise = settings.noise
    sample, some = labels.some(index), take(engine, logits, index)
    prior = SharpnessPrior(1.0, settings.residual.sharpness_precision)
    likelihood = ScaledLogits([some], sample.codes(), sample.engine)
    sharpness, _ = likelihood.fit_sharpness(1.0, T, prior=prior)
    free = ~sample.locked | sample.locked.all()
    P = softmax(np.float32(sharpness) * some[free])
    m, K = ambiguity_share(P, T, sample.given[free], noise)
    model = NoiseModel(
        sharpness,
        sharpened(sharpness, m, noise),
        T,
        ambiguous_rows(T, m, noise),
        probability_of_errors(P, noise),
    )
    audited = None
    calibration = AuditCalibration()
    if labels.verified is not None:
        seen = model.posterior(
            take(engine, logits, labels.verified.rows), labels.verified.given
        )
        audited = audit_posterior(seen, labels.verified, settings.audit)
        calibration = audited.calibration
    given, locked = (engine.keep(v) for v in (labels.given, labels.locked))

    def decide(rows: slice) -> Floats:
        label, fixed = given[rows], locked[rows]
        Q = model.posterior(np.asarray(logits[rows], np.float32), label)
        Q = calibration.apply(Q, label)
        Q[fixed] = one_hot(label[fixed], C)
        return Q if C <= MANY else keep_top(Q, label)

    Q: Any = engine.take(engine.rows(decide, n), None)
    if C > MANY:
        Q = TopClasses(Q[:, :TOP], Q[:, TOP:].astype(np.int32), C)
    confusion = 1.0 - float(P.max(axis=1).mean())
    said = sample.given[free]
    facts = SampleFacts(
        (int((P.argmax(axis=1) == said).sum()), len(said)),
        posterior(P, T, said).mean(axis=0, dtype=np.float64),
        float(curvature(P, T).mean(dtype=np.float64)),
    )
    return Posterior(
        Q,
        model.average_transition(K),
        model.features,
        confusion,
        model.of_model(),
        facts,
        audited,
    )
