"""How right the labels are said to be, and how sure that is."""

import numpy as np
import pytest
from noisy_rows import half_known
from sklearn.datasets import load_digits

from stct import LabelCorrector, noise
from stct.correction.decision import estimate_accuracy, interval, model_error
from stct.correction.result import Correction
from stct.correction.settings import DEFAULT, IntervalSettings
from stct.noise_model.theorems import hoeffding_interval

INTERVAL = DEFAULT.interval


def test_intervals_are_of_a_share():
    assert interval(0.5, 0.1) == pytest.approx((0.4, 0.6))
    assert interval(0.99, 0.1) == pytest.approx((0.89, 1.0))
    assert interval(0.01, 0.1) == pytest.approx((0.0, 0.11))


def test_the_model_is_in_doubt_the_more_the_less_the_features_know():
    assert model_error(0.0, INTERVAL) == INTERVAL.least
    known = [model_error(confusion, INTERVAL) for confusion in (0.0, 0.2, 0.9)]
    assert known == pytest.approx(
        [INTERVAL.least + INTERVAL.confusion * c for c in (0.0, 0.2, 0.9)]
    )
    assert model_error(None, INTERVAL) == INTERVAL.uncalibrated


def correction(Q, confusion):
    C = Q.shape[1]
    learnable = np.ones(C, dtype=bool)
    return Correction(
        Q, np.eye(C), learnable, None, 1, "max_rounds", confusion=confusion
    )


@pytest.mark.parametrize("confusion", [0.0, 0.3, None])
def test_intervals_allow_for_rows_that_were_drawn_and_for_the_model(confusion):
    rng = np.random.default_rng(0)
    Q = rng.dirichlet(np.full(3, 2.0), size=1000)
    given, locked = rng.integers(-1, 3, 1000), np.arange(1000) < 400
    known = given >= 0
    before = Q[known, given[known]].mean()
    after = Q.max(axis=1).mean()
    unsure = {0.0: 0.02, 0.3: 0.02 + 0.5 * 0.3, None: 0.25}[confusion]
    settings = IntervalSettings(least=0.02, confusion=0.5, uncalibrated=0.25)
    for fixed, doubt in ((np.zeros(1000, bool), unsure), (locked, 0.6 * unsure)):
        said = estimate_accuracy(
            correction(Q, confusion), given, Q.max(axis=1), fixed, settings
        )
        assert said.before == pytest.approx(before)
        assert said.after == pytest.approx(after)
        half = hoeffding_interval(int(known.sum())) + doubt
        assert said.before_interval == pytest.approx(interval(before, half))
        half = hoeffding_interval(1000) + doubt
        assert said.after_interval == pytest.approx(interval(after, half))


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5])
def test_intervals_hold_the_truth_where_features_are_strong(rate):
    X, truth = load_digits(return_X_y=True)
    y = noise.symmetric(truth, 10, rate, np.random.default_rng(1)).labels
    corrector = LabelCorrector().fit(X, y)
    said = corrector.estimated_accuracy_
    for labels, (low, high) in (
        (y, said.before_interval),
        (corrector.labels_, said.after_interval),
    ):
        assert low <= np.mean(labels == truth) <= high
        assert high - low < 0.15


def test_weak_features_make_wide_intervals():
    X, truth, _ = half_known(0, n=1400)
    weak = LabelCorrector().fit(X, truth).estimated_accuracy_.before_interval
    X, truth = load_digits(return_X_y=True)
    strong = LabelCorrector().fit(X[:1500], truth[:1500])
    low, high = strong.estimated_accuracy_.before_interval
    assert weak[1] - weak[0] > high - low + 0.02


def test_rows_that_a_person_has_checked_are_not_in_doubt():
    X, truth, _ = half_known(0, n=1400)
    locked = np.ones(len(truth), dtype=bool)
    for checked in (locked, np.arange(len(truth)) % 10 > 0):
        corrector = LabelCorrector().fit(X, truth, locked=checked)
        low, high = corrector.estimated_accuracy_.after_interval
        assert high - low < 2 * hoeffding_interval(len(truth)) + 0.05


def test_scores_that_are_no_probabilities_have_wide_intervals():
    X, truth = load_digits(return_X_y=True)
    said = LabelCorrector("split").fit(X[:, 20:23], truth).estimated_accuracy_
    assert np.diff(said.before_interval) > 0.3
