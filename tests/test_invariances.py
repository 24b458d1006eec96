"""What must not change the result: order, names, scale, shift, rotation, threads."""

import numpy as np
import pytest
from noisy_rows import blobs, noisy_digits

from stct import LabelCorrector, noise
from stct.numeric.tiles import TILE

METHODS = ["loo", "split", "paper"]


@pytest.fixture(scope="module")
def weak():
    """Overlapping groups: rows near the border are there to flip."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 4, 3 * TILE)
    X = rng.normal(size=(len(truth), 12)) + 1.5 * rng.normal(size=(4, 12))[truth]
    given = noise.symmetric(truth, 4, 0.3, rng).labels
    return X, given


def test_order_of_rows_does_not_matter(weak):
    X, y = weak
    order = np.random.default_rng(0).permutation(len(X))
    a, b = LabelCorrector().fit(X, y), LabelCorrector().fit(X[order], y[order])
    np.testing.assert_array_equal(a.labels_[order], b.labels_)
    np.testing.assert_array_equal(a.action_[order], b.action_)


def test_order_of_rows_does_not_change_a_bit_even_in_float32():
    X, y, _ = blobs(n=2000, classes=5, d=8, rate=0.5, seed=4)
    X = (X * 0.4).astype(np.float32)
    order = np.random.default_rng(1).permutation(len(X))
    a, b = LabelCorrector().fit(X, y), LabelCorrector().fit(X[order], y[order])
    np.testing.assert_array_equal(a.label_distributions_[order], b.label_distributions_)


def test_order_of_rows_with_equal_first_columns():
    X, y, _ = noisy_digits()
    order = np.random.default_rng(2).permutation(len(X))
    a, b = LabelCorrector().fit(X, y), LabelCorrector().fit(X[order], y[order])
    np.testing.assert_array_equal(a.label_distributions_[order], b.label_distributions_)


def test_names_of_classes_do_not_matter(weak):
    X, y = weak
    names = np.array(["d", "a", "c", "b"])
    a, b = LabelCorrector().fit(X, y), LabelCorrector().fit(X, names[y])
    np.testing.assert_array_equal(names[a.labels_], b.labels_)
    np.testing.assert_array_equal(a.action_, b.action_)


@pytest.mark.parametrize("scale", [1e-12, 0.1, 1e12])
def test_scale_does_not_matter(weak, scale):
    X, y = weak
    a, b = LabelCorrector().fit(X, y), LabelCorrector().fit(X * scale, y)
    np.testing.assert_array_equal(a.labels_, b.labels_)


def test_extreme_scales_survive_in_float32(weak):
    X, y = weak
    a = LabelCorrector().fit(X.astype(np.float32), y)
    for scale in (1e-30, 1e30):
        b = LabelCorrector().fit((X * scale).astype(np.float32), y)
        assert (a.labels_ == b.labels_).mean() > 0.999


@pytest.fixture(scope="module")
def curved():
    """Digits: Fourier features help there."""
    X, given, _ = noisy_digits()
    corrector = LabelCorrector().fit(X, given)
    assert any("Fourier features" in note for note in corrector.notes_)
    return X, given, corrector


@pytest.mark.parametrize("scale", [1e-3, 2.0, 1000.0])
def test_scale_does_not_matter_to_fourier_features(curved, scale):
    X, y, a = curved
    b = LabelCorrector().fit(X * scale, y)
    assert (a.labels_ == b.labels_).mean() > 0.999


@pytest.mark.parametrize("kind", ["noise", "float32", "columns"])
def test_rounding_and_the_order_of_columns_hardly_matter(curved, kind):
    X, y, a = curved
    rng = np.random.default_rng(0)
    other = {
        "noise": X + 1e-6 * X.std() * rng.normal(size=X.shape),
        "float32": X.astype(np.float32),
        "columns": X[:, rng.permutation(X.shape[1])],
    }[kind]
    b = LabelCorrector().fit(other, y)
    assert (a.labels_ == b.labels_).mean() > 0.999
    apart = np.abs(a.label_distributions_ - b.label_distributions_)
    assert apart.mean() < 2e-4


def test_shift_does_not_matter(weak):
    X, y = weak
    a, b = LabelCorrector().fit(X, y), LabelCorrector().fit(X + 100.0, y)
    np.testing.assert_array_equal(a.labels_, b.labels_)


def test_rotation_does_not_matter(weak):
    X, y = weak
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))
    a, b = LabelCorrector().fit(X, y), LabelCorrector().fit(X @ rotation, y)
    np.testing.assert_array_equal(a.labels_, b.labels_)


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_bits_for_any_number_of_threads(weak, method):
    X, y = weak
    fits = [
        LabelCorrector(method, n_jobs=jobs, random_state=7).fit(X, y)
        for jobs in (1, 2, -1)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(
            fits[0].label_distributions_, other.label_distributions_
        )


def test_memory_maps_and_float16_are_fine(tmp_path, weak):
    X, y = weak
    np.save(tmp_path / "x.npy", X.astype(np.float16))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    a = LabelCorrector().fit(mapped, y)
    b = LabelCorrector().fit(X.astype(np.float16).astype(np.float32), y)
    np.testing.assert_array_equal(a.labels_, b.labels_)
