"""Noisy meta correction in the limit of one sub-training row: the default method.

One row is the sub-training set and all others are its noisy validation set. Ridge makes
every such split closed-form, so one factorisation replaces all random splits. The
stages are those of docs/method.md, in the same order. Legend: n rows, d columns,
C classes; S leave-one-out scores (n, C), T[clean, given]. ``given`` is -1 for none.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from stct.correction.calibration import calibrate, prior_weight
from stct.correction.fit_record import record_fit
from stct.correction.given_labels import Labels, sample_rows, sample_size
from stct.correction.posterior import Posterior, final_posterior
from stct.correction.refit import refit
from stct.correction.residual import add_linear_residual
from stct.correction.result import Correction, nothing_learnt
from stct.correction.scores import leave_one_out_scores, take
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
    index = sample_rows(labels, sample_size(labels.num_classes, settings.calibration))
    sample = labels.some(index)

    scores = leave_one_out_scores(H, labels, settings.scores, progress, owned=owned)
    if scores is None:
        return nothing_learnt(labels.given, labels.num_classes)
    S = take(labels.engine, scores.ridge.scores, index)
    progress(0.4)
    variance = scores.path.variance_of_scores(scores.ridge.strength)
    calibration = calibrate(
        S, sample, settings.calibration, prior.transition, variance=variance
    )
    progress(0.7)
    fitted = refit(
        scores,
        calibration,
        labels,
        index,
        (settings.refit, settings.calibration),
        features_fitted_to_labels=prior.features_fitted_to_labels,
    )
    progress(0.85)
    residual = add_linear_residual(scores.path, fitted, labels, settings.residual)
    progress(0.95)
    noise = settings.noise
    if prior.transition is not None:  # it averages over instance-dependent noise
        weight = prior_weight(len(index), labels.num_classes, settings.calibration)
        noise = replace(noise, share=(1.0 - weight) * noise.share)
    found = final_posterior(
        residual.logits,
        fitted.transition,
        labels,
        index,
        settings.residual,
        noise,
        settings.audit,
    )
    weights, intercept = fitted.linear()
    model = SoftmaxModel(
        found.sharpness * (weights + residual.weights),
        found.sharpness * (intercept + residual.intercept),
        scores.fourier,
    )
    record = record_fit(scores.path, labels, found)
    result = as_correction(found, model, len(fitted.parts), scores.notes)
    return result._replace(fit=record)


def correct_probabilities(
    P: Floats, labels: Labels, settings: Settings = DEFAULT
) -> Correction:
    """Apply the same noise model to somebody's own probabilities (n, C).

    They must be out-of-fold, as leave-one-out scores are.
    """
    S = np.log(np.maximum(P, 1e-6)).astype(np.float32)
    index = sample_rows(labels, sample_size(labels.num_classes, settings.calibration))
    odds, T = calibrate(S[index], labels.some(index), settings.calibration)
    found = final_posterior(
        odds.logits(S),
        T,
        labels,
        index,
        settings.residual,
        settings.noise,
        settings.audit,
    )
    return as_correction(found, None, 1, ())


def as_correction(
    found: Posterior, model: Model | None, num_rounds: int, notes: tuple[str, ...]
) -> Correction:
    """Add Theorem 1's condition."""
    T, learnable = found.transition, is_learnable(found.transition)
    return Correction(
        found.probabilities,
        T,
        learnable,
        model,
        num_rounds,
        "max_rounds",
        notes,
        found.confusion,
        found.audit,
    )
