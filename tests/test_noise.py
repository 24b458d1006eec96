import numpy as np
import pytest

from stct import noise


@pytest.fixture
def labels():
    return np.random.default_rng(1).integers(0, 10, 20_000)


def rng():
    return np.random.default_rng(0)


def matrix(labels, noisy, C=10):
    T = np.zeros((C, C))
    np.add.at(T, (labels, noisy), 1)
    return T / T.sum(axis=1, keepdims=True)


def test_symmetric_may_redraw_the_true_class(labels):
    got = noise.symmetric(labels, 10, 0.5, rng())
    T = matrix(labels, got.labels)
    np.testing.assert_allclose(np.diagonal(T), 0.55, atol=0.04)
    np.testing.assert_allclose(T[~np.eye(10, dtype=bool)], 0.05, atol=0.02)
    assert got.nominal_rate == 0.5
    assert got.actual_rate == (labels != got.labels).mean()


def test_strict_symmetric_changes_exactly_the_rate(labels):
    got = noise.symmetric(labels, 10, 0.3, rng(), redraw_true=False)
    assert got.actual_rate == pytest.approx(0.3)


def test_asymmetric_follows_the_cifar_10_map(labels):
    got = noise.asymmetric(labels, 0.4, rng())
    T = matrix(labels, got.labels)
    for c in range(10):
        if c in noise.CIFAR10_FLIPS:
            assert T[c, noise.CIFAR10_FLIPS[c]] == pytest.approx(0.4, abs=0.001)
            assert T[c, c] == pytest.approx(0.6, abs=0.001)
        else:
            assert T[c, c] == 1.0
    assert got.actual_rate == pytest.approx(0.2, abs=0.01)


def test_cifar_100_map_stays_inside_the_coarse_class():
    classes = sorted(c for group in noise.CIFAR100_GROUPS for c in group)
    assert classes == list(range(100))
    flips = noise.CIFAR100_FLIPS
    assert sorted(flips) == sorted(flips.values()) == list(range(100))
    for group in noise.CIFAR100_GROUPS:
        assert {flips[c] for c in group} == set(group)
    # apple -> mushroom -> orange -> pear -> sweet pepper -> apple
    assert [flips[c] for c in (0, 51, 53, 57, 83)] == [51, 53, 57, 83, 0]


def test_pair_moves_to_the_next_class(labels):
    got = noise.pair(labels, 10, 0.45, rng())
    T = matrix(labels, got.labels)
    np.testing.assert_allclose(np.diagonal(T), 0.55, atol=0.001)
    np.testing.assert_allclose(np.diagonal(T[:, np.r_[1:10, 0]]), 0.45, atol=0.001)


def test_instance_dependent_noise_depends_on_the_instance(labels):
    H = rng().normal(size=(len(labels), 5))
    got = noise.instance_dependent(labels, H, 10, 0.4, rng())
    assert got.actual_rate == pytest.approx(0.4, abs=0.02)
    # Rows of one class that were flipped to different labels differ in their features.
    rows = (labels == 0) & (got.labels != 0)
    means = [H[rows & (got.labels == j)].mean(axis=0) for j in range(1, 10)]
    spread = np.std(means, axis=0).max()
    shuffled = rng().permutation(got.labels[rows])
    by_chance = [H[rows][shuffled == j].mean(axis=0) for j in range(1, 10)]
    assert spread > 2 * np.std(by_chance, axis=0).max()


def test_matrix_noise_follows_the_matrix(labels):
    T = np.random.default_rng(3).dirichlet(np.ones(10), size=10)
    got = noise.from_matrix(labels, T, rng())
    np.testing.assert_allclose(matrix(labels, got.labels), T, atol=0.04)
    assert got.actual_rate == pytest.approx(got.nominal_rate, abs=0.01)


def test_same_seed_same_labels_and_nothing_in_place(labels):
    before = labels.copy()
    one, two = (noise.symmetric(labels, 10, 0.5, rng()) for _ in range(2))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(labels, before)


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_rates_outside_0_to_1_are_refused(labels, rate):
    with pytest.raises(ValueError, match="between 0 and 1"):
        noise.symmetric(labels, 10, rate, rng())


@pytest.mark.parametrize("T", [np.ones((10, 10)), np.eye(3), np.eye(10)[:, :5]])
def test_bad_matrices_are_refused(labels, T):
    with pytest.raises(ValueError, match="T must be"):
        noise.from_matrix(labels, T, rng())


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_extreme_rates(labels, rate):
    got = noise.pair(labels, 10, rate, rng())
    assert got.actual_rate == rate
