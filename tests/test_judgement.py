"""Whether annotators err on hard rows is asked of log-odds of every linear shape."""

import numpy as np
import pytest

from stct import noise
from stct.correction import instance_noise
from stct.correction.given_labels import Labels
from stct.correction.posterior import judge, trend_of_free_log_odds
from stct.noise_model.transition import (
    count_given,
    posterior,
    quality,
    symmetric_transition,
)
from stct.numeric.engine import Local
from stct.numeric.probabilities import softmax

C, PAIR = 8, 2.5  # classes; how much too sure the log-odds of look-alikes are


@pytest.fixture(scope="module")
def look_alikes():
    """Log-odds of eight classes in look-alike pairs, too sure within a pair."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, C, 8000)
    within = rng.normal(size=(8000, C // 2)) * 0.7  # one or the other of each pair
    between = rng.normal(size=(8000, C // 2))
    between[np.arange(8000), truth // 2] += 3.0
    within[np.arange(8000), truth // 2] += np.where(truth % 2, -0.5, 0.5)
    # Gaussian classes: these are their log-odds, but for the factor PAIR.
    mine = 3.0 * np.repeat(between, 2, axis=1)
    theirs = PAIR * (0.5 / 0.7**2) * np.repeat(within, 2, axis=1)
    theirs[:, 1::2] *= -1.0
    given = noise.symmetric(truth, C, 0.4, rng).labels
    labels = Labels(given, np.zeros(8000, dtype=bool), C, Local())
    return (mine + theirs).astype(np.float32), labels, truth


def plain_trend(logits, T, given):
    P = softmax(logits.copy())
    Q = posterior(P, T, given)
    K = instance_noise.mean_confusion(Q.T @ P, Q.sum(axis=0))
    return instance_noise.error_trend(count_given(Q, given), K)


def test_log_odds_too_sure_of_look_alikes_are_no_annotator_who_errs(look_alikes):
    logits, labels, _ = look_alikes
    T = symmetric_transition(0.6 + 0.4 / C, C)
    assert plain_trend(logits, T, labels.given).least > instance_noise.PROVEN[0]
    assert trend_of_free_log_odds(logits, T, labels).least < 0.005


def test_symmetric_noise_is_not_blamed_on_hard_rows(look_alikes):
    logits, labels, truth = look_alikes
    T = symmetric_transition(0.6 + 0.4 / C, C)
    judged = judge(logits, T, labels)
    np.testing.assert_allclose(judged.transition, T, atol=0.01)
    believed = judged.posterior[np.arange(8000), labels.given].mean()
    assert believed == pytest.approx((labels.given == truth).mean(), abs=0.03)


def graded_classes(n=20_000, num_classes=8):
    """True log-odds of Gaussian classes, some of them more alike than others."""
    rng = np.random.default_rng(2)
    means = 1.3 * rng.normal(size=(num_classes, 4))
    truth = rng.integers(0, num_classes, n)
    X = means[truth] + rng.normal(size=(n, 4))
    logits = X @ means.T - 0.5 * (means**2).sum(axis=1)
    return logits.astype(np.float32), truth, rng


def judged_quality(logits, truth, given, T):
    num_classes = len(T)
    labels = Labels(given, np.zeros(len(given), dtype=bool), num_classes, Local())
    judged = judge(logits, T, labels)
    shares = np.bincount(truth, minlength=num_classes)
    return quality(judged.transition, shares), quality(T, shares)


def test_errors_towards_look_alikes_are_not_blamed_on_hard_rows_again():
    """An annotator who errs in proportion to the confusion, on rows by lot."""
    logits, truth, rng = graded_classes()
    P = softmax(logits.copy())
    K = instance_noise.mean_confusion(P.T @ P, P.sum(axis=0, dtype=np.float64))
    T = np.eye(len(K)) + 0.5 * (K - np.eye(len(K)))
    given = noise.from_matrix(truth, T, rng).labels
    judged, true = judged_quality(logits, truth, given, T)
    assert judged == pytest.approx(true, abs=0.02)


def test_people_who_guess_in_hard_rows_are_found():
    """Their T, as it is fitted, shows even errors and a part of the others."""
    logits, truth, rng = graded_classes()
    C, n = logits.shape[1], len(truth)
    P = softmax(logits.copy())
    K = instance_noise.mean_confusion(P.T @ P, P.sum(axis=0, dtype=np.float64))
    visible = np.eye(C) + 0.25 * (K - np.eye(C))
    visible = 0.85 * visible + 0.15 / C
    share = 0.25  # of the labels are guessed from what P says
    own = P * np.float32(share)
    own[np.arange(n), truth] -= np.float32(share)
    edges = (visible[truth] + own).cumsum(axis=1)
    given = (rng.random(n)[:, None] > edges).sum(axis=1).clip(max=C - 1)
    average = visible + share * (K - np.eye(C))
    # What was guessed, P takes up: the labels are as likely with T and P as they are.
    judged, fitted = judged_quality(logits, truth, given, visible)
    true = quality(average, np.bincount(truth, minlength=C))
    assert fitted - true > 0.05
    assert abs(judged - true) < 0.6 * (fitted - true)
