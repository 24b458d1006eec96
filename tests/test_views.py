"""Two views as witnesses: the moments, and the bound on data with a known truth."""

import itertools

import numpy as np
import pytest

from stct import LabelCorrector, noise
from stct.correction import views
from stct.correction.views import (
    annotator_quality,
    beyond_chance,
    hear_views,
    least_quality,
    within_class_axes,
)
from stct.noise_model.transition import quality, raise_quality, symmetric_transition


def independent_observers(n=40_000, C=4, right=(0.6, 0.5, 0.7), seed=0):
    """Labels of observers who err evenly and know nothing of each other."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, n)
    said = []
    for share in right:
        wrong = (truth + rng.integers(1, C, n)) % C
        said.append(np.where(rng.random(n) < share, truth, wrong))
    return truth, said


def weak_features(n=6000, C=4, d=12, gap=0.7, seed=0):
    """Classes that overlap so much that no view knows much about them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, n)
    X = rng.normal(size=(n, d)) + gap * rng.normal(size=(C, d))[truth]
    return (X - X.mean(axis=0)).astype(np.float32), truth


def evenly(C):
    """Where the errors of an annotator go who errs evenly."""
    return (np.ones((C, C)) - np.eye(C)) / (C - 1)


def test_kappa_by_hand():
    one, other = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    # 3 of 4 alike; by chance 1/2 * 1/4 + 1/2 * 3/4.
    assert beyond_chance(one, other, 2)[0] == pytest.approx((0.75 - 0.5) / 0.5)
    assert beyond_chance(one, one, 2)[0] == pytest.approx(1.0)


@pytest.mark.parametrize("even", [True, False])
def test_three_witnesses_tell_how_good_one_of_them_is(even):
    truth, (a, b, given) = independent_observers()
    true_quality = beyond_chance(given, truth, 4)[0]
    estimate = annotator_quality(a, b, given, 4, evenly(4) if even else None)
    assert estimate == pytest.approx(true_quality, abs=0.03)


def test_observers_who_each_confuse_other_classes():
    """One view knows 0 1 from 2 3, the other 0 2 from 1 3: kappas do not multiply."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 40_000)
    coin = rng.integers(0, 2, (2, len(truth)))
    a, b = truth // 2 * 2 + coin[0], truth % 2 + 2 * coin[1]
    given = noise.symmetric(truth, 4, 0.4, rng).labels
    true_quality = beyond_chance(given, truth, 4)[0]
    estimate = annotator_quality(a, b, given, 4, evenly(4))
    assert estimate == pytest.approx(true_quality, abs=0.03)


def test_likelihood_of_three_observers_by_loops():
    """EM must end where no nearby annotator explains what was said better."""
    _, (a, b, given) = independent_observers(n=3000, C=3, right=(0.8, 0.7, 0.75))
    best = annotator_quality(a, b, given, 3, evenly(3))

    def likelihood(beyond):
        def even(k):
            return symmetric_transition(k + (1 - k) / 3, 3)

        observers = [
            even(beyond_chance(a, given, 3)[0] / beyond),
            even(beyond_chance(b, given, 3)[0] / beyond),
            even(beyond),
        ]
        table = np.zeros((3, 3, 3))
        for i, j, k in itertools.product(range(3), repeat=3):
            for clean in range(3):
                said = zip(observers, (i, j, k), strict=True)
                table[i, j, k] += np.prod([T[clean, s] for T, s in said]) / 3
        return np.log(table[a, b, given]).mean()

    tried = np.linspace(best - 0.15, best + 0.15, 31)
    likeliest = tried[np.argmax([likelihood(q) for q in tried])]
    assert likeliest == pytest.approx(best, abs=0.04)


def test_views_that_know_nothing_bound_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8)).astype(np.float32)
    heard = hear_views(X, rng.integers(0, 3, 2000), 3)
    assert least_quality(heard, symmetric_transition(0.8, 3)) == 0.0


def test_axes_leave_no_correlation_within_a_class():
    X, truth = weak_features()
    Z = X @ within_class_axes(X, truth, 4)
    residual = Z - np.stack([Z[truth == c].mean(axis=0) for c in range(4)])[truth]
    covariance = residual.T @ residual / len(Z)
    np.testing.assert_allclose(covariance, np.diag(np.diagonal(covariance)), atol=1e-3)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.6])
def test_bound_is_near_the_truth_and_not_far_above(rate):
    X, truth = weak_features()
    given = noise.symmetric(truth, 4, rate, np.random.default_rng(1)).labels
    true_quality = beyond_chance(given, truth, 4)[0]
    T = symmetric_transition(0.8, 4)
    for weak in (0.0, 0.5, 1.0):
        bound = least_quality(hear_views(X, given, 4), T, weak)
        assert 0.6 * true_quality < bound < true_quality + 0.05


def test_errors_towards_look_alikes_are_not_blamed_on_views_that_confuse_them_too():
    """Both views take 0 for 1 and 2 for 3 now and then; so does the annotator."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 40_000)
    T = np.kron(np.eye(2), [[0.7, 0.3], [0.3, 0.7]])
    blurred = 0.7 * np.kron(np.eye(2), [[0.65, 0.35], [0.35, 0.65]]) + 0.3 / 4
    a, b, given = (
        noise.from_matrix(truth, M, rng).labels for M in (blurred, blurred, T)
    )
    heard = views.Testimony(
        (a, b, given),
        low=annotator_quality(a, b, given, 4),
        even=annotator_quality(a, b, given, 4, evenly(4)),
        agreement=beyond_chance(a, b, 4)[0],
        error=0.0,
        association=0.0,
    )
    true_quality = beyond_chance(given, truth, 4)[0]
    assert least_quality(heard, T, weak=0.0) < true_quality + 0.06
    assert least_quality(heard, T, weak=1.0) > true_quality + 0.2


def test_quality_of_an_annotator():
    shares = np.array([3.0, 1.0, 1.0])
    assert quality(np.eye(3), shares) == pytest.approx(1.0)
    assert quality(np.full((3, 3), 1 / 3), shares) == pytest.approx(0.0)
    even = symmetric_transition(0.8, 3)
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 200_000, p=shares / shares.sum())
    given = (rng.random(200_000)[:, None] > even.cumsum(axis=1)[truth]).sum(axis=1)
    kappa = beyond_chance(given, truth, 3)[0]
    assert quality(even, shares) == pytest.approx(kappa, abs=0.01)


def test_raised_to_a_quality_and_never_lowered():
    T = symmetric_transition(0.4, 5)
    shares = np.array([1.0, 2.0, 3.0, 2.0, 1.0])
    raised = raise_quality(T, shares, 0.6)
    assert quality(raised, shares) == pytest.approx(0.6)
    np.testing.assert_allclose(raised.sum(axis=1), 1.0)
    assert raise_quality(raised, shares, 0.3) is raised
    assert quality(raise_quality(T, shares, 1.0), shares) == pytest.approx(1, abs=1e-4)


def clusters_of_mixed_classes(seed):
    """Half of the clusters of a class lie in the midst of another: lines fail."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(24, 30)) * 0.9
    cluster = rng.integers(0, 24, 5000)
    return (rng.normal(size=(5000, 30)) + centres[cluster]), cluster % 4


@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_features_that_fool_a_line_do_little_harm(rate):
    for seed in range(2):
        X, truth = clusters_of_mixed_classes(seed)
        given = noise.symmetric(truth, 4, rate, np.random.default_rng(seed)).labels
        right = np.mean(LabelCorrector().fit(X, given).labels_ == truth)
        assert right > np.mean(given == truth) - 0.02


def test_it_is_said_when_the_views_were_believed():
    X, truth = clusters_of_mixed_classes(0)
    given = noise.symmetric(truth, 4, 0.5, np.random.default_rng(0)).labels
    notes = LabelCorrector().fit(X, given).notes_
    assert any("separate views" in note for note in notes)


def test_axes_of_few_rows_are_those_of_their_scatter():
    """More columns than rows: the same directions without a d x d matrix."""
    rng = np.random.default_rng(0)
    X, given = rng.normal(size=(30, 50)).astype(np.float32), np.arange(30) % 3
    axes = within_class_axes(X, given, 3)
    within = X - np.stack([X[given == c].mean(axis=0) for c in range(3)])[given]
    scatter = within.T @ within
    assert axes.shape == (50, 27)  # three means are gone
    np.testing.assert_allclose(axes.T @ axes, np.eye(27), atol=1e-5)
    along = axes.T @ scatter @ axes
    expected = np.linalg.eigvalsh(scatter)[::-1][:27]
    np.testing.assert_allclose(np.diagonal(along), expected, rtol=1e-3)
    np.testing.assert_allclose(along, np.diag(np.diagonal(along)), atol=1e-2)
