"""How right the labels are said to be, and how sure that is."""

import numpy as np
import pytest
from noisy_rows import half_known
from sklearn.datasets import load_digits

from stct import LabelCorrector, noise
from stct.correction.decision import interval
from stct.noise_model.transition import hoeffding_interval


def test_intervals_allow_for_rows_and_for_what_the_features_do_not_know():
    def width(n, known):
        low, high = interval(0.5, n, known)
        assert low == pytest.approx(1.0 - high)
        return high - low

    assert width(100, 0.9) - width(10**8, 0.9) == pytest.approx(
        2 * (hoeffding_interval(100) - hoeffding_interval(10**8))
    )
    assert width(10**8, 0.9) == width(10**8, 0.8) > 0.04
    assert width(1000, 0.3) > width(1000, 0.5) > width(1000, 0.8)
    assert interval(0.99, 1000, 0.2)[1] == 1.0
    assert interval(0.01, 1000, 0.2)[0] == 0.0
    sampling = hoeffding_interval(1000)
    assert interval(0.5, 1000, 0.2, open_to_doubt=0.0)[1] == pytest.approx(
        0.5 + sampling
    )


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
    assert weak[1] - weak[0] > high - low + 0.05


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
