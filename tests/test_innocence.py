"""Where few rows leave open who errs, labels get the benefit of the doubt."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from stct import LabelCorrector, noise
from stct.correction.given_labels import Labels
from stct.correction.innocence import expected_quality
from stct.correction.views import association
from stct.noise_model.transition import quality, symmetric_transition
from stct.numeric.engine import Local


def thirds_of_a_measurement():
    """442 patients, a measurement cut in three: features know little of its class."""
    X, measured = load_diabetes(return_X_y=True)
    return X, np.digitize(measured, np.quantile(measured, [0.33, 0.66]))


def noisy(truth, rate, seed, classes=3):
    return noise.symmetric(truth, classes, rate, np.random.default_rng(seed)).labels


def scores_of(truth, sharpness, seed):
    """Scores that know the clean class as well as their sharpness says."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(len(truth), 3))
    S[np.arange(len(truth)), truth] += sharpness
    return S.astype(np.float32)


def labels_of(given):
    return Labels(given, np.zeros(len(given), dtype=bool), 3, Local(1))


def test_clean_labels_of_weak_features_are_left_alone():
    """88% of them were, when the T that fits best was taken for granted."""
    X, truth = thirds_of_a_measurement()
    corrector = LabelCorrector().fit(X, truth)
    assert np.mean(corrector.labels_ == truth) > 0.97
    assert corrector.estimated_accuracy_.before > 0.88
    assert any("leave open" in note for note in corrector.notes_)


def test_weak_features_do_little_harm_to_noisy_labels():
    X, truth = thirds_of_a_measurement()
    gained = []
    for seed in range(12):
        given = noisy(truth, 0.4, seed)
        right = np.mean(LabelCorrector().fit(X, given).labels_ == truth)
        gained.append(right - np.mean(given == truth))
    assert np.mean(gained) > -0.04  # -0.07 without the benefit of the doubt


def test_strong_features_are_still_believed():
    X, truth = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for seed in range(3):
        given = noisy(truth, 0.4, seed, classes=2)
        corrector = LabelCorrector().fit(X, given)
        assert np.mean(corrector.labels_ == truth) > 0.93
        assert not any("leave open" in note for note in corrector.notes_)


@pytest.mark.parametrize("wrong", [0.5, 0.7])
def test_a_guess_that_blames_the_annotator_moves_towards_the_truth(wrong):
    """Labels are clean and scores soft; T says that many are wrong."""
    truth = np.random.default_rng(0).integers(0, 3, 400)
    S = scores_of(truth, 1.0, seed=1)
    shares = np.bincount(truth).astype(float)
    T = symmetric_transition(wrong, 3)
    expected = expected_quality(S, labels_of(truth), T, shares)
    assert expected > quality(T, shares) + 0.15


def test_a_right_annotator_stays():
    truth = np.random.default_rng(0).integers(0, 3, 2000)
    given = noisy(truth, 0.45, 2)
    T, shares = symmetric_transition(0.7, 3), np.bincount(truth).astype(float)
    S = scores_of(truth, 5.0, seed=1)
    assert expected_quality(S, labels_of(given), T, shares) < quality(T, shares) + 0.03


def test_views_that_go_together_under_one_label_speak_of_errors():
    truth = np.random.default_rng(0).integers(0, 3, 300)
    given = noisy(truth, 0.4, 3)
    T, shares = symmetric_transition(0.73, 3), np.bincount(truth).astype(float)
    S = scores_of(truth, 1.0, seed=1)
    asked = [expected_quality(S, labels_of(given), T, shares, z) for z in (0.0, 3, 9)]
    assert asked[0] > asked[1] > asked[2]


def test_many_rows_decide_it_themselves():
    truth = np.random.default_rng(0).integers(0, 3, 17_000)
    S, shares = scores_of(truth, 1.0, seed=1), np.bincount(truth).astype(float)
    T = symmetric_transition(0.6, 3)
    assert expected_quality(S, labels_of(truth), T, shares) == 0.0


def test_association_is_that_of_shuffled_votes():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    given = noisy(truth, 0.5, 4)
    a, b = (np.where(rng.random(600) < 0.7, truth, given) for _ in range(2))
    agreed = []
    for _ in range(4000):
        shuffled = b.copy()
        for label in range(3):
            rows = np.flatnonzero(given == label)
            shuffled[rows] = b[rng.permutation(rows)]
        agreed.append((a == shuffled).sum())
    naive = ((a == b).sum() - np.mean(agreed)) / np.std(agreed)
    assert association(a, b, given, 3) == pytest.approx(naive, rel=0.05)
    assert naive > 5.0


def test_views_of_right_labels_have_nothing_in_common_within_one():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 3000)
    a, b = (
        np.where(rng.random(3000) < 0.6, truth, rng.integers(0, 3, 3000))
        for _ in range(2)
    )
    assert abs(association(a, b, truth, 3)) < 3.0
