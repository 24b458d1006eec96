"""When something was learnt at all, and who is to blame."""

import numpy as np
import pytest

from stct import LabelCorrector, noise
from stct.correction.choice import agreement_in_errors, is_better
from stct.correction.scores import agrees_more
from stct.noise_model.transition import symmetric_transition
from stct.numeric.engine import Local


def groups(n, gap, seed, classes=3, columns=8):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    X = rng.normal(size=(n, columns))
    X[np.arange(n), truth] += gap
    return X, truth, noise.symmetric(truth, classes, 0.3, rng).labels


@pytest.mark.parametrize("n", [30, 60, 120])
def test_few_rows_in_groups_far_apart_are_corrected(n):
    """Validation has a few dozen labels: too few for a likelihood, not for a count."""
    before, after = [], []
    for seed in range(6):
        X, truth, given = groups(n, gap=8.0, seed=seed)
        corrector = LabelCorrector().fit(X, given)
        assert corrector.termination_condition_ != "nothing_learnt"
        before.append((given == truth).mean())
        after.append((corrector.labels_ == truth).mean())
    assert np.mean(before) < 0.85
    assert np.mean(after) > 0.95


@pytest.mark.parametrize(("n", "d", "C"), [(60, 20, 3), (200, 10, 10), (300, 300, 5)])
def test_labels_drawn_by_lot_teach_nothing(n, d, C):
    """Or once in a while: two standard errors are one in forty."""
    learnt = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        corrector = LabelCorrector().fit(rng.normal(size=(n, d)), rng.integers(0, C, n))
        learnt += corrector.termination_condition_ != "nothing_learnt"
    assert learnt <= 1


def test_agreement_is_counted_beyond_chance():
    rng = np.random.default_rng(0)
    given = rng.choice(3, 4000, p=[0.8, 0.1, 0.1])
    always_the_largest = np.tile([1.0, 0.0, 0.0], (4000, 1))
    assert abs(agreement_in_errors(always_the_largest, given)) < 1e-6
    assert abs(agreement_in_errors(rng.normal(size=(4000, 3)), given)) < 4.0
    assert agreement_in_errors(np.eye(3)[given] + rng.normal(size=(4000, 3)), given) > 9


def test_better_means_by_standard_errors_of_the_difference():
    rng = np.random.default_rng(0)
    base = rng.normal(size=400)
    assert is_better(base + 0.1, base)  # the same rows: no error at all
    noisy = base + 0.1 + rng.normal(size=400)
    assert is_better(noisy, base, errors=1.0)
    assert not is_better(base, noisy)


def test_a_likely_accident_of_half_the_rows_does_not_turn_labels_round():
    """Much noise, few rows: one half alone prefers a wrong T now and then."""
    right = []
    for seed in range(40, 60):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 10, 600)
        X = rng.normal(size=(10, 32))[truth] + 0.55 * rng.normal(size=(600, 32))
        given = noise.symmetric(truth, 10, 0.8, rng).labels
        right.append((LabelCorrector().fit(X, given).labels_ == truth).mean())
    assert np.mean(right) > 0.95
    assert sum(share < 0.9 for share in right) <= 2


def test_scores_agree_more_by_standard_errors_of_the_difference():
    """Sixteen rows won and four lost are 12 / sqrt(20) = 2.7 standard errors."""
    given = np.zeros(100, dtype=int)
    old, new = np.tile([1.0, 0.0], (100, 1)), np.tile([1.0, 0.0], (100, 1))
    old[:16] = 0.0, 1.0
    new[16:20] = 0.0, 1.0
    engine = Local(1)
    assert agrees_more(new, old, given, engine, 0.0)
    assert agrees_more(new, old, given, engine, 2.6)
    assert not agrees_more(new, old, given, engine, 2.7)
    assert not agrees_more(old, new, given, engine, 0.0)
    assert not agrees_more(new, new, given, engine, 0.0)


def test_features_that_repeat_a_correction_are_not_refitted_without_proof():
    """Tight clusters whose rows agree with their labels but for the noise."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(5), 60)
    X = 6.0 * np.eye(5)[truth] + rng.normal(size=(300, 5))
    given = noise.symmetric(truth, 5, 0.5, rng).labels
    first = LabelCorrector().fit(X, given)
    again = LabelCorrector().fit(X, given, annotator=first.transition_matrix_)
    assert again.n_iter_ == 1
    assert again.termination_condition_ == "agreement"
    assert (again.labels_ == truth).mean() > 0.95


def taught_features(seed):
    """Tight groups, some of whose rows lie with their given label: it was taught."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 10, 1200)
    given = noise.symmetric(truth, 10, 0.9, rng).labels
    seen = np.where(rng.random(1200) < 0.05, given, truth)
    X = 3.0 * np.eye(10)[seen] + 0.8 * rng.normal(size=(1200, 10))
    return X, truth, given


def test_noise_that_was_found_before_is_taken_over():
    """A new T, fitted to 1,200 labels most of which are wrong, can be nonsense."""
    T, right = symmetric_transition(0.19, 10), []
    for seed in range(8):
        X, truth, given = taught_features(seed)
        corrector = LabelCorrector().fit(X, given, annotator=T)
        np.testing.assert_allclose(corrector.transition_matrix_, T)
        right.append((corrector.labels_ == truth).mean())
    assert min(right) > 0.6


def test_rows_of_nonsense_in_a_remembered_annotator_give_way_to_one_error_rate():
    X, truth, given = taught_features(0)
    T = symmetric_transition(0.19, 10)
    T[:4] = np.roll(T[:4], 1, axis=0)  # four classes change places
    right = np.diagonal(T).mean()
    corrector = LabelCorrector().fit(X, given, annotator=T)
    expected = symmetric_transition(right, 10)
    np.testing.assert_allclose(corrector.transition_matrix_, expected)
    assert (corrector.labels_ == truth).mean() > 0.6


def test_a_remembered_shape_of_the_errors_stays_where_it_is_likelier():
    """Every class is called the next one as a rule: one rate would not say so."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 400)
    T = 0.44 * np.eye(5) + 0.36 * np.roll(np.eye(5), 1, axis=1) + 0.04
    given = (T[truth].cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    X = 4.0 * np.eye(5)[truth] + rng.normal(size=(400, 5))
    corrector = LabelCorrector().fit(X, given, annotator=T)
    np.testing.assert_allclose(corrector.transition_matrix_, T)
    assert (corrector.labels_ == truth).mean() > 0.95


def test_where_most_labels_are_right_the_annotator_is_seen_anew():
    """The first look may have taken the truth of two classes for one of them."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 400)
    T = np.eye(5)
    T[:2, :2] = [[0.65, 0.35], [0.35, 0.65]]
    given = (T[truth].cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    X = 4.0 * np.eye(5)[truth] + rng.normal(size=(400, 5))
    before = np.eye(5)  # the first class is called the second, never the reverse
    before[:2, :2] = [[0.5, 0.5], [0.0, 1.0]]
    before = 0.999 * before + 0.0002
    corrector = LabelCorrector().fit(X, given, annotator=before)
    assert (corrector.labels_ == truth).mean() > 0.95


def test_with_many_rows_the_annotator_is_seen_anew():
    """The first look may have blamed him for what weak features did not know."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 2000)
    X = 2.0 * np.eye(5)[truth] + rng.normal(size=(2000, 5))
    given = noise.symmetric(truth, 5, 0.5, rng).labels  # 60% are right
    before = symmetric_transition(0.4, 5)
    corrector = LabelCorrector().fit(X, given, annotator=before)
    assert abs(np.diagonal(corrector.transition_matrix_).mean() - 0.6) < 0.03


def test_labels_drawn_by_lot_teach_nothing_with_a_remembered_annotator():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 20)), rng.integers(0, 10, 400)
    corrector = LabelCorrector().fit(X, y, annotator=symmetric_transition(0.3, 10))
    assert corrector.termination_condition_ == "nothing_learnt"


def test_an_annotator_who_seemed_careful_is_not_taken_over():
    X, _, given = taught_features(0)
    before = symmetric_transition(0.95, 10)
    corrector = LabelCorrector().fit(X, given, annotator=before)
    assert np.diagonal(corrector.transition_matrix_).mean() < 0.5
