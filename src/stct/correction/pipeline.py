"""Noisy meta correction in the limit of one sub-training row: the default method.

One row is the sub-training set and all others are its noisy validation set. Ridge makes
every such split closed-form, so one factorisation replaces all random splits. The
stages are those of docs/method.md, in the same order. Legend: n rows, d columns,
C classes; S leave-one-out scores (n, C), T[clean, given]. ``given`` is -1 for none.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from stct.correction.calibration import calibrate, prior_weight
from stct.correction.fit_record import record_fit
from stct.correction.given_labels import Labels, sample_rows, sample_size
from stct.correction.posterior import Posterior, final_posterior
from stct.correction.refit import refit
from stct.correction.residual import add_linear_residual
from stct.correction.result import Correction, nothing_learnt
from stct.correction.scores import Scores, leave_one_out_scores, take
from stct.correction.settings import DEFAULT, Settings
from stct.noise_model.theorems import is_learnable
from stct.numeric.engine import RowValues
from stct.numeric.models import Model, SoftmaxModel
from stct.numeric.types import Floats


class Prior(NamedTuple):
    """What is known beforehand."""

    transition: Floats | None = None  # (C, C) an earlier estimate
    features_fitted_to_labels: bool = False


NO_PRIOR = Prior()


def correct_by_leave_one_out(
    H: RowValues,
    labels: Labels,
    progress: Callable[[float], None],
    *,
    owned: bool = False,
    prior: Prior = NO_PRIOR,
    settings: Settings = DEFAULT,
) -> Correction:
    """Correct labels from embeddings; ``owned`` lets H (n, d) be overwritten."""
    scores = leave_one_out_scores(H, labels, settings.scores, progress, owned=owned)
    if scores is None:
        return nothing_learnt(labels.given, labels.num_classes)
    return correct_by_scores(scores, labels, progress, prior=prior, settings=settings)


def correct_by_scores(
    scores: Scores,
    labels: Labels,
    progress: Callable[[float], None],
    *,
    prior: Prior = NO_PRIOR,
    settings: Settings = DEFAULT,
) -> Correction:
    """Correct labels from leave-one-out scores."""
    index = sample_rows(labels, sample_size(labels.num_classes, settings.calibration))
    S = take(labels.engine, scores.ridge.scores, index)
    progress(0.4)
    calibration = calibrate(
        S,
        labels.some(index),
        settings.calibration,
        prior.transition,
        variance=scores.path.variance_of_scores(scores.ridge.strength),
    )
    progress(0.7)
    fitted = refit(
        scores,
        calibration,
        labels,
        index,
        settings,
        features_fitted_to_labels=prior.features_fitted_to_labels,
    )
    progress(0.85)
    residual = add_linear_residual(scores.path, fitted, labels, settings.residual)
    progress(0.95)
    if prior.transition is not None:  # it averages over instance-dependent noise
        weight = prior_weight(len(index), labels.num_classes, settings.calibration)
        share = (1.0 - weight) * settings.noise.share
        settings = replace(settings, noise=replace(settings.noise, share=share))
    found = final_posterior(residual.logits, fitted.transition, labels, index, settings)
    weights, intercept = fitted.linear()
    model = SoftmaxModel(
        found.sharpness * (weights + residual.weights),
        found.sharpness * (intercept + residual.intercept),
        scores.fourier,
    )
    result = as_correction(found, model, len(fitted.parts), scores.notes)
    return result._replace(fit=record_fit(scores.path, labels, found))


def as_correction(
    found: Posterior, model: Model | None, num_rounds: int, notes: tuple[str, ...]
) -> Correction:
    """Add Theorem 1's condition."""
    return Correction(
        found.probabilities,
        found.transition,
        is_learnable(found.transition),
        model,
        num_rounds,
        "max_rounds",
        notes,
        found.confusion,
        found.audit,
    )
