"""Columns that are not linear: used where they help, left out where they do not."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from stct import LabelCorrector, noise
from stct.correction.fourier_features import Lift, choose_lift, draw_frequencies, waves
from stct.correction.given_labels import Labels
from stct.correction.scores import score
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


def test_waves_average_to_a_gaussian_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)).astype(np.float32)
    frequencies = draw_frequencies(X, np.ones(5, np.float32), 20_000)
    F = waves(X, frequencies)
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    one, other = np.random.default_rng(0).integers(0, len(X), (2, 512))
    median = np.median(distances[one, other])
    expected = np.exp(-0.5 * distances / median)
    np.testing.assert_allclose(F @ F.T / 20_000, expected, atol=0.03)


def test_chosen_where_a_line_fails_and_not_where_it_does():
    X, given = rings()
    path, S = linear_scores(X, given, 2)
    lift = choose_lift(path.rows[0 : len(X)], S, given, path)
    assert lift is not None
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 2000)
    blobs = rng.normal(size=(2000, 6)) + 1.5 * rng.normal(size=(3, 6))[truth]
    path, S = linear_scores(blobs, truth, 3)
    assert choose_lift(path.rows[0 : len(blobs)], S, truth, path) is None
    noise_only = rng.integers(0, 3, 2000)
    path, S = linear_scores(blobs, noise_only, 3)
    assert choose_lift(path.rows[0 : len(blobs)], S, noise_only, path) is None


def test_same_columns_for_stored_and_for_new_rows():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(50, 4)) + 3.0
    rows = CentredRows(H, H.mean(axis=0), 0.5)
    lift = Lift(rows.mean, rows.scale, rng.normal(size=(4, 7)).astype(np.float32))
    assert lift(H).shape == (50, 4 + 14)
    np.testing.assert_allclose(lift(H), lift.of_centred(rows[0:50]), rtol=1e-6)


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
    assert any("not linear" in note for note in corrector.notes_)


def test_labels_by_chance_are_left_alone_with_few_rows_and_many():
    for n in (30, 300, 3000):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X, given = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
            labels = LabelCorrector().fit(X, given).labels_
            assert np.mean(labels != given) < 0.02


def test_few_labels_among_very_many_rows_all_bear_witness():
    rng = np.random.default_rng(0)
    given = np.full(400_000, -1)
    given[100:130] = np.arange(30) % 2
    X = rng.normal(size=(len(given), 2)).astype(np.float32)
    labels = Labels(given, np.zeros(len(given), dtype=bool), 2, Local())
    scored = score(X, labels, lambda _: None, owned=False)
    rows, said, _ = scored.witnesses
    np.testing.assert_array_equal(said, given[100:130])
    known = X[100:130]
    np.testing.assert_allclose(rows, known - known.mean(axis=0), atol=1e-5)
    assert scored.path.rows.shape[1] <= 2 + 2 * 30 // 8  # few labels, few columns
