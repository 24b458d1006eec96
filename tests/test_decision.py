"""How right the labels are said to be, and how sure that is."""

import numpy as np
import pytest
from noisy_rows import half_known
from sklearn.datasets import load_digits

from stct import LabelCorrector, noise
from stct.correction.decision import interval
from stct.noise_model.theorems import hoeffding_interval


def test_intervals_allow_for_rows_other_shares_and_the_model():
    sampling = hoeffding_interval(1000)
    low, high = interval(0.5, 1000, (0.0, 0.0), 0.0)
    assert (low, high) == pytest.approx((0.5 - sampling, 0.5 + sampling))
    low, high = interval(0.5, 1000, (-0.2, 0.1), 0.03)
    assert low == pytest.approx(0.3 - sampling - 0.03)
    assert high == pytest.approx(0.6 + sampling + 0.03)
    assert interval(0.99, 1000, (0.0, 0.1), 0.0)[1] == 1.0
    assert interval(0.01, 1000, (-0.1, 0.0), 0.0)[0] == 0.0


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
