"""Sharpness and error rate, which trade against each other."""

import numpy as np
import pytest

from stct import LabelCorrector, noise
from stct.correction.score_fit import (
    FAMILIES,
    ScoreFit,
    balance,
    beside,
    fit_all,
    highest,
)
from stct.correction.score_space import make_space
from stct.noise_model.likelihood import ForwardModel
from stct.noise_model.transition import symmetric_transition


def test_highest_walks_to_the_top_and_stops_at_the_limit():
    assert highest(lambda step: -((step - 5) ** 2), start=0, limit=8) == 5
    assert highest(lambda step: -((step + 3) ** 2), start=0, limit=8) == -3
    assert highest(lambda step: step, start=0, limit=8) == 8


def test_the_top_is_beside_the_highest_step():
    assert beside(lambda step: -((step - 4.3) ** 2), 4) == 4.25
    assert beside(lambda step: -((step + 2.4) ** 2), -2) == -2.5
    assert beside(lambda _: 0.0, 2) == 2


def labels_through_an_annotator(T, n, seed=0):
    """Log-odds U of which P is the softmax, and labels given through T."""
    rng = np.random.default_rng(seed)
    U = 2.0 * rng.normal(size=(n, len(T)))
    P = np.exp(U) / np.exp(U).sum(axis=1, keepdims=True)
    truth = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    given = (T[truth].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return U.astype(np.float32), given


def log_likelihood(U, given, sharpness, T):
    total = 0.0
    for u, g in zip(sharpness * U.astype(np.float64), given, strict=True):
        p = np.exp(u - u.max())
        total += np.log((p / p.sum()) @ T[:, g])
    return total


def test_balance_beats_every_sharpness_and_rate_by_loops():
    U, given = labels_through_an_annotator(symmetric_transition(0.5, 4), 2000)
    model = ForwardModel(U, given, np.zeros(len(U), bool), 4)
    W, T = balance(model, 0.5 * np.eye(4), symmetric_transition(0.55, 4))
    best = log_likelihood(U, given, W[0, 0], T)
    for sharpness in W[0, 0] * np.array([0.5, 0.8, 0.95, 1.05, 1.25, 2.0]):
        for right in T[0, 0] + np.array([-0.1, -0.03, 0.0, 0.03, 0.1]):
            other = symmetric_transition(right, 4)
            assert log_likelihood(U, given, sharpness, other) <= best + 0.02


def test_balance_finds_both_and_keeps_the_shape_of_the_errors():
    true_T = symmetric_transition(0.5, 4)
    true_T[0, 1:] = [0.3, 0.15, 0.05]
    U, given = labels_through_an_annotator(true_T, 40_000)
    model = ForwardModel(U, given, np.zeros(len(U), bool), 4)
    cleaner = true_T + 0.25 * np.eye(4)
    W, T = balance(model, 0.6 * np.eye(4), cleaner / 1.25)
    assert W[0, 0] == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(T, true_T, atol=0.02)
    np.testing.assert_allclose(T[0, 1:] / T[0, 1], [1.0, 1 / 2, 1 / 6])
    np.testing.assert_allclose(T.sum(axis=1), 1.0)


def test_balance_leaves_alone_what_is_as_good():
    U, given = labels_through_an_annotator(symmetric_transition(0.8, 4), 60)
    model = ForwardModel(U, given, np.zeros(len(U), bool), 4)
    W, T = 0.9 * np.eye(4), symmetric_transition(0.85, 4)
    moved = balance(model, W, T)
    assert moved[0] is W
    assert moved[1] is T


def test_balance_does_not_ask_locked_rows():
    """Certain labels that the features contradict would make all log-odds soft."""
    U, given = labels_through_an_annotator(symmetric_transition(0.8, 4), 2000)
    locked = np.arange(2000) < 20
    contrary = np.where(locked, U.argmin(axis=1), given)
    with_them, without = (
        balance(model, 0.8 * np.eye(4), symmetric_transition(0.9, 4))
        for model in (
            ForwardModel(U, contrary, locked, 4),
            ForwardModel(U[~locked], given[~locked], locked[20:] & False, 4),
        )
    )
    np.testing.assert_allclose(with_them[1], without[1], atol=1e-4)
    np.testing.assert_allclose(with_them[0], without[0], atol=1e-3)


def test_all_rows_correct_a_start_that_is_too_soft_and_too_clean():
    """T has 100 entries for 1,500 rows: what they fit of the noise must not stay."""
    off = []
    for seed in range(8):
        true_T = symmetric_transition(0.3, 10)
        U, given = labels_through_an_annotator(true_T, 1500, seed)
        space = make_space(U, quadratic=False)
        W = 0.6 * float(U.std()) * space.identity
        start = ScoreFit(FAMILIES[0], space, W, symmetric_transition(0.36, 10))
        model = ForwardModel(space.features(U), given, np.zeros(1500, bool), 10)
        off.append(np.diagonal(fit_all(model, start)[1]).mean() - 0.3)
    assert abs(np.mean(off)) < 0.03


def test_much_noise_in_few_rows_of_many_classes_is_not_flattered():
    """T has 400 entries for 2,000 rows: all free, they would fit the noise."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 20, 2000)
    X = rng.normal(size=(2000, 40)) + 1.2 * rng.normal(size=(20, 40))[truth]
    y = noise.symmetric(truth, 20, 0.7, rng).labels
    estimate = LabelCorrector().fit(X, y).estimated_accuracy_.before
    assert estimate == pytest.approx((y == truth).mean(), abs=0.04)


def test_clean_labels_of_groups_far_apart_lead_nowhere():
    """No sharpness is sharp enough for them; that ends without a warning."""
    for n, classes, seed in [(60, 4, 1), (120, 3, 3), (60, 4, 0), (120, 3, 0)]:
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, classes, n)
        X = rng.normal(size=(n, 16)) + 3.0 * rng.normal(size=(classes, 16))[truth]
        labels = LabelCorrector().fit(X.astype(np.float32), truth).labels_
        np.testing.assert_array_equal(labels, truth)
