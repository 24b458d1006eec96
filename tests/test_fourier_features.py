"""Columns that are not linear: used where they help, left out where they do not."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from stct import LabelCorrector, noise
from stct.correction.fourier_features import (
    choose_fourier_features,
    column_weights,
    gain_of_labels,
    gained,
    least_gain,
)
from stct.correction.given_labels import Labels
from stct.correction.scores import leave_one_out_scores
from stct.correction.settings import DEFAULT
from stct.numeric.centring import CentredRows
from stct.numeric.engine import Local
from stct.numeric.fourier import (
    FourierFeatures,
    cosines_and_sines,
    draw_frequencies,
)
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


def scores_of(X, given, C):
    labels = Labels(given, np.zeros(len(given), dtype=bool), C, Local())
    return leave_one_out_scores(X, labels, DEFAULT.scores, lambda _: None, owned=False)


def choose(X, S, given, path):
    return choose_fourier_features(X, S, given, path, DEFAULT.scores)


@pytest.mark.parametrize("bandwidth", [1.0, 1.5])
def test_products_average_to_a_gaussian_kernel(bandwidth):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)).astype(np.float32)
    weights = np.array([1.0, 2.0, 0.5, 1.0, 0.0], dtype=np.float32)
    frequencies = draw_frequencies(X, weights, 20_000, bandwidth)
    F = cosines_and_sines(X, frequencies)
    distances = (((X[:, None] - X) * weights) ** 2).sum(axis=2)
    one, other = np.random.default_rng(0).integers(0, len(X), (2, 512))
    median = np.median(distances[one, other])
    expected = np.exp(-0.5 * bandwidth**2 * distances / median)
    np.testing.assert_allclose(F @ F.T / 20_000, expected, atol=0.03)
    assert (frequencies[4] == 0).all()


def test_a_column_has_its_frequencies_wherever_it_stands():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6)) * np.array([1.0, 3.0, 0.1, 2.0, 1.1, 0.9])
    weights = rng.random(6)
    found = draw_frequencies(X, weights, 30, 1.5)
    assert found.shape == (6, 30)
    order = rng.permutation(6)
    moved = draw_frequencies(X[:, order], weights[order], 30, 1.5)
    np.testing.assert_allclose(moved, found[order], rtol=1e-6)
    apart = np.corrcoef(found)[np.triu_indices(6, 1)]
    assert np.abs(apart).max() < 0.6  # no two columns share theirs


def test_frequencies_fit_any_unit():
    X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    one = draw_frequencies(X, np.ones(3), 10, 1.5)
    np.testing.assert_allclose(
        draw_frequencies(1000 * X, np.ones(3), 10, 1.5), one / 1000, rtol=1e-5
    )


def test_columns_count_as_they_are_or_all_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * np.array([1.0, 100.0, 0.0])
    as_they_are, alike = column_weights(X - X.mean(axis=0))
    np.testing.assert_array_equal(as_they_are, [1.0, 1.0, 0.0])
    np.testing.assert_allclose(alike[:2] * X.std(axis=0)[:2], 1.0, rtol=1e-6)
    assert alike[2] == 0.0


def test_gain_is_the_share_of_labels_that_only_the_new_scores_predict():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(2, 400, 3))
    given = rng.integers(0, 3, 400)
    right = [(S.argmax(axis=1) == given).astype(float) for S in (new, old)]
    mean, error = gained(new, old, given)
    assert mean == pytest.approx(np.mean(right[0] - right[1]))
    assert error == pytest.approx(np.std(right[0] - right[1]) / 20.0)
    assert gained(old, old, given)[0] == 0.0


def test_more_must_be_gained_where_more_is_predicted():
    settings, given = DEFAULT.scores, np.repeat([0, 1], 50)
    assert least_gain(1.0, given, settings) == pytest.approx(0.5 * settings.least_gain)
    assert least_gain(0.6, given, settings) == pytest.approx(0.1 * settings.least_gain)
    assert least_gain(0.4, given, settings) == 0.0  # chance is a half


def test_columns_that_say_nothing_new_gain_nothing():
    X, given = rings(800)
    X = X.astype(np.float32)
    _, S = linear_scores(X, given, 2)
    frequencies = draw_frequencies(X - X.mean(axis=0), np.ones(3), 50, 1.5)
    gain, error = gain_of_labels(X, S, given, frequencies)
    assert gain > 0.3 > 10 * error
    noise_only = np.random.default_rng(0).normal(size=X.shape).astype(np.float32)
    gain, error = gain_of_labels(noise_only, S, given, frequencies)
    assert gain < 3 * error


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


@pytest.mark.parametrize(("n", "d", "classes"), [(2000, 6, 3), (300, 3, 2)])
def test_labels_by_chance_get_no_more_columns(n, d, classes):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, given = rng.normal(size=(n, d)), rng.integers(0, classes, n)
        found = scores_of(X, given, classes)
        assert found is None or found.fourier is None


def test_same_columns_for_stored_and_for_new_rows():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(50, 4)) + 3.0
    rows = CentredRows(H, H.mean(axis=0), 0.5)
    fourier = FourierFeatures(
        rows.mean, rows.scale, rng.normal(size=(4, 7)).astype(np.float32)
    )
    assert fourier(H).shape == (50, 4 + 14)
    np.testing.assert_allclose(fourier(H), fourier.of_centred(rows[0:50]), rtol=1e-6)


@pytest.mark.parametrize(
    "scale",
    [[1.0, 1.0, 1.0], [1000.0, 1.0, 1.0], [1e-3, 1e-3, 1e-3], [1000.0, 1000.0, 1000.0]],
)
def test_rings_are_corrected_and_predicted(scale):
    """Columns in different units, or all of them in another one."""
    X, truth = rings()
    X *= scale
    given = noise.symmetric(truth, 2, 0.4, np.random.default_rng(1)).labels
    corrector = LabelCorrector().fit(X, given)
    assert np.mean(corrector.labels_ == truth) > 0.97 > np.mean(given == truth) + 0.1
    fresh, answer = rings(seed=5)
    fresh *= scale
    assert np.mean(corrector.predict(fresh) == answer) > 0.95


def test_moons_with_names_for_labels():
    X, truth = make_moons(1500, noise=0.15, random_state=0)
    names = np.array(["left", "right"])
    given = noise.symmetric(truth, 2, 0.3, np.random.default_rng(0)).labels
    corrector = LabelCorrector().fit(X, names[given])
    assert np.mean(corrector.labels_ == names[truth]) > 0.97
    assert any("Fourier features" in note for note in corrector.notes_)


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_labels_by_chance_are_left_alone_or_said_to_look_like_chance(n):
    """Labels can follow the rows by chance: then nobody knows, and a note says so."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, given = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
        corrector = LabelCorrector().fit(X, given)
        if corrector.termination_condition_ == "nothing_learnt":
            np.testing.assert_array_equal(corrector.labels_, given)
            assert any("no better than chance" in note for note in corrector.notes_)
        else:
            assert any("hardly better than chance" in n for n in corrector.notes_)
        assert not any("Fourier" in note for note in corrector.notes_)


def test_few_labels_among_very_many_rows_make_few_columns():
    rng = np.random.default_rng(0)
    given = np.full(400_000, -1)
    given[100:160] = np.arange(60) % 2
    X = rng.normal(size=(len(given), 2)).astype(np.float32)
    X[100:160, 0] += 3.0 * given[100:160]
    found = scores_of(X, given, 2)
    assert found.path.rows.shape[1] <= 2 + 2 * 60 // 8
    known = found.ridge.scores[100:160].argmax(axis=1) == given[100:160]
    assert known.mean() > 0.85
