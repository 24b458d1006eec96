"""The default method and a plain second implementation of it say the same."""

import numpy as np
import pytest
from reference import correct
from scipy.special import softmax
from sklearn import datasets

from stct import LabelCorrector, noise

pytestmark = pytest.mark.slow


def standard(X):
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def iris():
    """Some rows are there twice, with the same label or with another one."""
    X, truth = datasets.load_iris(return_X_y=True)
    y = noise.symmetric(truth, 3, 0.3, np.random.default_rng(0)).labels
    X = np.concatenate([standard(X), standard(X)[::3], standard(X)[::5]])
    return X, np.concatenate([y, y[::3], (y[::5] + 1) % 3])


def wine():
    X, truth = datasets.load_wine(return_X_y=True)
    return standard(X), noise.symmetric(truth, 3, 0.2, np.random.default_rng(0)).labels


def cancer():
    """Two classes, each with an error rate of its own."""
    X, truth = datasets.load_breast_cancer(return_X_y=True)
    X, truth = standard(X)[:160], truth[:160]
    return X, noise.symmetric(truth, 2, 0.3, np.random.default_rng(0)).labels


def annotators(seed, n, C, distance, temperature):
    """Half of the labels are drawn from what can be seen: errors follow confusion."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(C, 8))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    truth = rng.integers(0, C, n)
    X = centres[truth] + rng.normal(size=(n, 8))
    odds = -((X[:, None] - centres) ** 2).sum(axis=2) / 2
    drawn = [
        rng.choice(C, p=p) if rng.random() < 0.5 else y
        for p, y in zip(softmax(odds * temperature, axis=1), truth, strict=True)
    ]
    return X, np.array(drawn)


def digits():
    X, truth = datasets.load_digits(return_X_y=True)
    y = noise.pair(truth[:400], 10, 0.3, np.random.default_rng(0)).labels
    return standard(X[:400]), y


def wide():
    """More columns than rows."""
    X, truth = annotators(2, 120, 3, 8.0, 50.0)
    more = np.random.default_rng(0).normal(size=(120, 150))
    y = noise.symmetric(truth, 3, 0.3, np.random.default_rng(0)).labels
    return np.concatenate([X, 0.5 * more], axis=1), y


CASES = {
    "digits": digits,
    "wide": wide,
    "iris": iris,
    "wine": wine,
    "cancer": cancer,
    "two classes, weak": lambda: annotators(0, 160, 2, 1.0, 0.3),
    "three classes, weak": lambda: annotators(0, 160, 3, 1.0, 1.0),
    "five classes": lambda: annotators(0, 160, 5, 2.0, 0.3),
}


@pytest.mark.parametrize("case", CASES)
def test_the_package_says_what_the_page_says(case):
    X, given = CASES[case]()
    fitted = LabelCorrector().fit(X, given)
    assert not any("Fourier" in note for note in fitted.notes_)
    Q, T, accuracy = correct(X, np.searchsorted(fitted.classes_, given))
    np.testing.assert_allclose(fitted.label_distributions_, Q, atol=0.003)
    np.testing.assert_allclose(fitted.transition_matrix_, T, atol=0.001)
    assert fitted.estimated_accuracy_.before == pytest.approx(accuracy, abs=0.001)
