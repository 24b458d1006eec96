"""What the settings that only limit work or corner cases do.

Those that decide results are also in tests/reference.py, from docs/method.md.
"""

import numpy as np
import pytest
from scipy import stats

from stct.correction.calibration import AlternatingFit, find_start, prior_weight
from stct.correction.canonical import order_by_content
from stct.correction.decision import model_error
from stct.correction.design_based import clopper_pearson, stratified_variance
from stct.correction.fourier_features import least_gain
from stct.correction.given_labels import Labels, sample_size
from stct.correction.instance_noise import ambiguous_rows
from stct.correction.residual import self_influence, teaching_stride
from stct.correction.scores import describe_agreement
from stct.correction.settings import DEFAULT
from stct.noise_model.transition import symmetric_transition
from stct.numeric.engine import Local


def noisy_scores(n, C=4):
    """Scores of classes that are hard to tell, and labels with errors of one kind."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, C, n)
    S = rng.normal(size=(n, C)).astype(np.float32)
    S[np.arange(n), truth] += 1.5
    wrong = rng.random(n) < 0.3
    given = np.where(wrong, (truth + 1) % C, truth)
    return S, Labels(given, np.zeros(n, bool), C, Local(1))


def test_rows_that_fit_log_odds_and_transition_matrix():
    assert sample_size(10, DEFAULT.calibration) == 32_768
    assert sample_size(1_000, DEFAULT.calibration) == 64_000


def test_rows_that_teach_the_residual():
    settings = DEFAULT.residual
    assert teaching_stride(10 * 65_536, 8, 10, settings) == 10  # at least so many
    assert teaching_stride(10 * 32 * 500 * 10, 500, 10, settings) == 10  # a weight
    assert teaching_stride(8 * 2**26 // 4096, 2**16, 4096, settings) == 8  # memory


def test_starts_are_tried_on_some_rows(monkeypatch):
    seen = []
    whole = AlternatingFit.likelihood
    monkeypatch.setattr(
        AlternatingFit,
        "likelihood",
        lambda self, L: seen.append(len(L)) or whole(self, L),
    )
    S, labels = noisy_scores(8_192)
    find_start(S, labels, DEFAULT.calibration, None)
    assert seen == [2_048]


def test_rounds_of_the_transition_matrix_end(monkeypatch):
    rounds = []
    whole = AlternatingFit._count
    monkeypatch.setattr(
        AlternatingFit, "_count", lambda *a: rounds.append(1) or whole(*a)
    )
    S, labels = noisy_scores(400)
    for tolerance, number in ((0.0, 8), (1.0, 1)):
        rounds.clear()
        settings = DEFAULT.calibration.__class__(tolerance=tolerance)
        fit = AlternatingFit(labels, settings)
        fit.run(fit.likelihood(S), 1.0, symmetric_transition(0.9, 4))
        assert len(rounds) == number


def test_an_earlier_transition_matrix_is_worth_twenty_rows_an_entry():
    assert prior_weight(8_000, 10, DEFAULT.calibration) == pytest.approx(0.25)
    assert prior_weight(100, 10, DEFAULT.calibration) == 1.0


def test_duplicates_differ_by_rounding_only():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) @ np.ones((1, 3))  # projections differ as sums do
    step = np.full(3, float(X[:, 0].std()))
    for share, duplicates in ((0.8e-5, 1), (1.6e-5, 0)):
        both = np.vstack([X, X[:1] + share * step])
        given, locked = np.zeros(61, dtype=int), np.zeros(61, bool)
        original = order_by_content(both, given, locked, Local(1))[1]
        assert (original != np.arange(61)).sum() == duplicates


def test_labels_that_look_right_are_ambiguous_in_part():
    T = symmetric_transition(0.2, 3)
    assert ambiguous_rows(T, 0.3, DEFAULT.noise) == pytest.approx(0.18)
    assert ambiguous_rows(T, 0.1, DEFAULT.noise) == pytest.approx(0.1)


def test_a_row_is_not_taken_back_more_than_twenty_times():
    curvature = np.array([0.0, 0.5, 0.96, 3.0])
    found = self_influence(np.ones(4), curvature, DEFAULT.residual)
    assert found == pytest.approx([1.0, 2.0, 20.0, 20.0])


def test_fourier_features_must_gain_a_fiftieth():
    given = np.array([0, 1] * 50)
    assert least_gain(0.9, given, DEFAULT.scores) == pytest.approx(0.02 * 0.4)
    assert least_gain(0.4, given, DEFAULT.scores) == 0.0


def test_three_standard_errors_of_agreement_need_no_note():
    assert describe_agreement(2.9, DEFAULT.scores)
    assert not describe_agreement(3.1, DEFAULT.scores)


def test_few_verified_rows_that_are_all_right_leave_some_doubt():
    right, weight = np.ones(4, dtype=bool), np.full(4, 25.0)
    least = 0.25 / 5  # a quarter of one row more
    expected = (1.0 - 4 / 100) * least * (1.0 - least) / 4
    assert stratified_variance(right, weight, 100) == pytest.approx(expected)


def test_half_widths_of_intervals():
    assert model_error(0.0, DEFAULT.interval) == pytest.approx(0.02)
    assert model_error(0.5, DEFAULT.interval) == pytest.approx(0.22)
    assert model_error(None, DEFAULT.interval) == pytest.approx(0.25)


def test_exact_intervals_are_of_95_per_cent():
    low, high = clopper_pearson(0.3, 10)  # 3 of 10
    assert stats.binom.sf(2, 10, low) == pytest.approx(0.025)
    assert stats.binom.cdf(3, 10, high) == pytest.approx(0.025)
