"""Columns that are not linear: used where they help, left out where they do not."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from stct import LabelCorrector, noise
from stct.correction.fourier_features import (
    FourierFeatures,
    choose_fourier_features,
    cosines_and_sines,
    draw_frequencies,
)
from stct.correction.given_labels import Labels
from stct.correction.scores import leave_one_out_scores
from stct.correction.settings import DEFAULT
from stct.numeric.centring import CentredRows
from stct.numeric.engine import Local
from stct.numeric.ridge import RidgePath


def rings(n=2000, seed=0):
    """Two classes that no line can part: a ball inside a shell."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    radius = np.where(truth == 1, 3.0, 1.0)
    X *= (radius / np.linalg.norm(X, axis=1))[:, None]
    return X + 0.2 * rng.normal(size=X.shape), truth


def linear_scores(X, given, C):
    path = RidgePath(X.astype(np.float32), np.ones(len(X), bool))
    return path, path.fit(np.eye(C, dtype=np.float32)[given], given).scores


def choose(X, S, given, path):
    return choose_fourier_features(X, S, given, path, DEFAULT.scores)


def test_products_average_to_a_gaussian_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)).astype(np.float32)
    frequencies = draw_frequencies(X, np.ones(5, np.float32), 20_000)
    F = cosines_and_sines(X, frequencies)
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    one, other = np.random.default_rng(0).integers(0, len(X), (2, 512))
    median = np.median(distances[one, other])
    expected = np.exp(-0.5 * distances / median)
    np.testing.assert_allclose(F @ F.T / 20_000, expected, atol=0.03)


def test_chosen_where_a_line_fails_and_not_where_it_does():
    X, given = rings()
    path, S = linear_scores(X, given, 2)
    fourier = choose(path.rows[0 : len(X)], S, given, path)
    assert fourier is not None
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 2000)
    blobs = rng.normal(size=(2000, 6)) + 1.5 * rng.normal(size=(3, 6))[truth]
    path, S = linear_scores(blobs, truth, 3)
    assert choose(path.rows[0 : len(blobs)], S, truth, path) is None
    noise_only = rng.integers(0, 3, 2000)
    path, S = linear_scores(blobs, noise_only, 3)
    assert choose(path.rows[0 : len(blobs)], S, noise_only, path) is None


def test_same_columns_for_stored_and_for_new_rows():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(50, 4)) + 3.0
    rows = CentredRows(H, H.mean(axis=0), 0.5)
    fourier = FourierFeatures(
        rows.mean, rows.scale, rng.normal(size=(4, 7)).astype(np.float32)
    )
    assert fourier(H).shape == (50, 4 + 14)
    np.testing.assert_allclose(fourier(H), fourier.of_centred(rows[0:50]), rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_rings_are_corrected_and_predicted(scale):
    X, truth = rings()
    X[:, 0] *= scale  # columns in different units
    given = noise.symmetric(truth, 2, 0.4, np.random.default_rng(1)).labels
    corrector = LabelCorrector().fit(X, given)
    assert np.mean(corrector.labels_ == truth) > 0.97 > np.mean(given == truth) + 0.1
    fresh, answer = rings(seed=5)
    fresh[:, 0] *= scale
    assert np.mean(corrector.predict(fresh) == answer) > 0.95


def test_moons_with_names_for_labels():
    X, truth = make_moons(1500, noise=0.15, random_state=0)
    names = np.array(["left", "right"])
    given = noise.symmetric(truth, 2, 0.3, np.random.default_rng(0)).labels
    corrector = LabelCorrector().fit(X, names[given])
    assert np.mean(corrector.labels_ == names[truth]) > 0.97
    assert any("Fourier features" in note for note in corrector.notes_)


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_labels_by_chance_are_left_alone(n):
    """In three of four draws: several ridge strengths are tested at 5% each."""
    alone = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, given = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
        alone += (LabelCorrector().fit(X, given).labels_ == given).mean() > 0.98
    assert alone >= 15


def test_few_labels_among_very_many_rows_make_few_columns():
    rng = np.random.default_rng(0)
    given = np.full(400_000, -1)
    given[100:160] = np.arange(60) % 2
    X = rng.normal(size=(len(given), 2)).astype(np.float32)
    X[100:160, 0] += 3.0 * given[100:160]
    labels = Labels(given, np.zeros(len(given), dtype=bool), 2, Local())
    found = leave_one_out_scores(X, labels, DEFAULT.scores, lambda _: None, owned=False)
    assert found.path.rows.shape[1] <= 2 + 2 * 60 // 8
    known = found.ridge.scores[100:160].argmax(axis=1) == given[100:160]
    assert known.mean() > 0.85
