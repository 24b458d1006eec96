"""Eq. (10): k-NN labels and the selection, against naive versions."""

import numpy as np
import pytest

from stct.train import selection


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def naive_neighbor_labels(H, labels, num_classes, k):
    unit = H / np.linalg.norm(H, axis=1, keepdims=True)
    result = np.zeros((len(H), num_classes))
    for i in range(len(H)):
        similarity = unit @ unit[i]
        similarity[i] = -np.inf
        for j in np.argsort(-similarity)[:k]:
            result[i, labels[j]] += 1 / k
    return result


@pytest.mark.parametrize("k", [1, 5, 40])
def test_neighbor_labels_against_a_full_sort(rng, k, monkeypatch):
    H, labels = rng.normal(size=(90, 6)), rng.integers(0, 4, 90)
    expected = naive_neighbor_labels(H, labels, 4, k)
    np.testing.assert_allclose(
        selection.neighbor_labels(H, labels, 4, k), expected, atol=1e-6
    )
    monkeypatch.setattr(selection, "_CHUNK_NUMBERS", 90 * 7)  # 7 rows at a time
    np.testing.assert_allclose(
        selection.neighbor_labels(H, labels, 4, k), expected, atol=1e-6
    )


def test_a_row_is_never_its_own_witness():
    H = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    shares = selection.neighbor_labels(H, np.array([0, 1, 0, 1]), 2, 1)
    np.testing.assert_array_equal(shares, [[0, 1], [1, 0], [0, 1], [1, 0]])


def test_more_neighbours_than_rows_takes_all_others(rng):
    H, labels = rng.normal(size=(5, 3)), np.array([0, 0, 0, 1, 1])
    shares = selection.neighbor_labels(H, labels, 2, 2000)
    np.testing.assert_allclose(shares[0], [0.5, 0.5])
    np.testing.assert_allclose(shares[4], [0.75, 0.25])


def test_duplicates_all_count(rng):
    H = np.repeat(rng.normal(size=(1, 3)), 6, axis=0)
    shares = selection.neighbor_labels(H, np.array([0, 0, 0, 1, 1, 1]), 2, 2)
    np.testing.assert_allclose(shares[0], [0.4, 0.6], atol=1e-6)


def test_eq_10_keeps_the_best_of_each_class(rng):
    labels = np.repeat([0, 1, 2], [40, 20, 10])
    Y_p = rng.dirichlet(np.ones(3), size=70)
    clean = selection.select_clean(labels, Y_p, keep=0.25)
    for label, count in ((0, 10), (1, 5), (2, 2)):
        rows = np.flatnonzero(labels == label)
        losses = -np.log(Y_p[rows, label])
        assert clean[rows].sum() == count
        assert losses[clean[rows]].max() <= losses[~clean[rows]].min()


def test_more_is_trusted_as_rounds_go_by(rng):
    labels, Y_p = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), size=60)
    before = selection.select_clean(labels, Y_p, keep=0.2)
    after = selection.select_clean(labels, Y_p, keep=0.4)
    assert (after >= before).all()
    assert selection.select_clean(labels, Y_p, keep=3.0).all()


def test_no_class_is_lost_and_no_neighbour_is_no_reason_to_crash():
    labels = np.array([0, 0, 0, 1])
    Y_p = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    clean = selection.select_clean(labels, Y_p, keep=0.01)
    np.testing.assert_array_equal(clean, [True, False, False, True])


def test_hidden_rows_are_never_chosen_and_no_class_is_lost_by_them(rng):
    labels, Y_p = np.arange(60) % 3, rng.dirichlet(np.ones(3), size=60)
    hidden = rng.random(60) < 0.2
    before = selection.select_clean(labels, Y_p, keep=0.5)
    after = selection.select_clean(labels, Y_p, keep=0.5, hidden=hidden)
    np.testing.assert_array_equal(after, before & ~hidden)
    # The one best row of each class is hidden: the next best is taken.
    best = selection.select_clean(labels, Y_p, keep=1e-6)
    shown = selection.select_clean(labels, Y_p, keep=1e-6, hidden=best)
    assert np.bincount(labels[shown]).tolist() == [1, 1, 1]
    for label in range(3):
        ranked = np.sort(Y_p[labels == label, label])[::-1]
        assert Y_p[shown & (labels == label), label] == ranked[1]
    # Where a whole class is hidden there is nothing to take.
    all_of_one = selection.select_clean(labels, Y_p, keep=0.5, hidden=labels == 1)
    assert not all_of_one[labels == 1].any()
