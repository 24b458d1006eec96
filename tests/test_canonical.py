"""Rows that are there twice must not vouch for each other's labels."""

import numpy as np
import pytest
from noisy_rows import blobs, noisy_digits

from stct import LabelCorrector
from stct.correction import canonical
from stct.correction.canonical import order_by_content
from stct.numeric.engine import Local


def naive_originals(H, given, locked):
    seen = {}
    original = list(range(len(H)))
    for row, (values, label) in enumerate(zip(H.tolist(), given, strict=True)):
        if not locked[row] and label >= 0:
            original[row] = seen.setdefault((tuple(values), label), row)
    return original


def groups(original):
    """Which rows belong together, whoever of them stands for the others."""
    return {frozenset(np.flatnonzero(original == row)) for row in set(original)}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_duplicates_are_found_as_loops_find_them(dtype):
    rng = np.random.default_rng(0)
    H = rng.integers(0, 2, (400, 9)).astype(dtype)  # most rows are there several times
    given, locked = rng.integers(-1, 3, 400), rng.random(400) < 0.1
    order, original = order_by_content(H, given, locked, Local())
    naive = np.array(naive_originals(H, given, locked))
    assert groups(original) == groups(naive)
    assert len(set(original)) < 400
    np.testing.assert_array_equal(np.sort(order), np.arange(400))
    assert (np.diff(given[order]) >= 0).all()


def test_rows_that_share_their_first_columns_are_no_duplicates():
    rng = np.random.default_rng(0)
    H = np.column_stack([np.zeros((50, 8)), rng.normal(size=50)])
    given = np.zeros(50, dtype=np.intp)
    _, original = order_by_content(H, given, np.zeros(50, bool), Local())
    np.testing.assert_array_equal(original, np.arange(50))


def some_rows_twice(n=1500, d=20, repeated=200):
    """Rows of which some are there twice or three times, some with another label."""
    rng = np.random.default_rng(0)
    H, given = rng.normal(size=(n, d)).astype(np.float32), rng.integers(-1, 4, n)
    H[n - repeated :] = H[:repeated]
    same = slice(0, repeated - 50)  # the others may have another label
    given[n - repeated :][same] = given[:repeated][same]
    H[300:350] = H[:50]
    given[300:350] = given[:50]
    order = rng.permutation(n)
    return H[order], given[order], rng.random(n) < 0.05


CHANGES = {
    "noise": lambda H, rng: H + 1e-6 * rng.normal(size=H.shape).astype(np.float32),
    "unit": lambda H, rng: 2 * H,
    "float64": lambda H, rng: H.astype(np.float64),
    "columns": lambda H, rng: H[:, rng.permutation(H.shape[1])],
    "all": lambda H, rng: (
        2 * (H + 1e-6 * rng.normal(size=H.shape))[:, rng.permutation(H.shape[1])]
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_rounding_units_and_the_order_of_columns_hardly_change_a_thing(change):
    H, given, locked = some_rows_twice()
    order, original = order_by_content(H, given, locked, Local())
    other = change(H, np.random.default_rng(1))
    new_order, new_original = order_by_content(other, given, locked, Local())
    found = groups(original)
    assert len(H) - len(found) > 120
    assert groups(new_original) == found
    place, new_place = np.argsort(order), np.argsort(new_order)
    moved = np.abs(place - new_place)
    assert moved.max() <= 3  # equal rows may change places, and so may neighbours
    _, which, times = np.unique(H, axis=0, return_inverse=True, return_counts=True)
    assert (moved[times[which] == 1] == 0).mean() > 0.99


def test_rows_that_differ_by_a_little_more_than_rounding_are_no_duplicates():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(500, 20))
    H[250:] = H[:250] + 1e-3 * rng.normal(size=(250, 20))
    given, none = np.zeros(500, dtype=np.intp), np.zeros(500, dtype=bool)
    _, original = order_by_content(H, given, none, Local())
    np.testing.assert_array_equal(original, np.arange(500))
    _, original = order_by_content(H, given, none, Local(), same=0.1)
    assert len(set(original)) < 300


def test_rows_come_in_the_order_of_label_and_sum_and_not_as_they_were_given():
    H, given, locked = some_rows_twice()
    order, _ = order_by_content(H, given, locked, Local())
    by_hand = sorted(
        range(len(H)), key=lambda row: (given[row], H[row].astype(float).sum())
    )
    total = H.sum(axis=1, dtype=np.float64)
    np.testing.assert_array_equal(given[order], given[by_hand])
    np.testing.assert_allclose(total[order], total[by_hand], atol=1e-9)
    shuffled = np.random.default_rng(2).permutation(len(H))
    again, _ = order_by_content(H[shuffled], given[shuffled], locked[shuffled], Local())
    np.testing.assert_array_equal(H[shuffled][again], H[order])


def test_all_rows_twice_is_the_same_as_once():
    X, given, truth = noisy_digits()
    once = LabelCorrector().fit(X, given)
    twice = LabelCorrector().fit(np.tile(X, (2, 1)), np.tile(given, 2))
    expected = np.tile(once.label_distributions_, (2, 1))
    np.testing.assert_array_equal(twice.label_distributions_, expected)
    assert np.mean(twice.labels_ == np.tile(truth, 2)) > 0.95
    assert any("1797 rows are exact duplicates" in note for note in twice.notes_)


def test_duplicates_of_large_data_count_once_too(monkeypatch):
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)
    X, given, truth = noisy_digits()
    m = LabelCorrector().fit(np.tile(X, (2, 1)), np.tile(given, 2))
    assert np.mean(m.labels_ == np.tile(truth, 2)) > 0.95
    assert abs(m.estimated_accuracy_.after - np.mean(m.labels_[:1797] == truth)) < 0.05
    np.testing.assert_array_equal(m.labels_[:1797], m.labels_[1797:])


def test_a_duplicate_with_another_label_stays():
    X, given, _ = blobs()
    X, y = np.vstack([X, X[:1]]), np.append(given, (given[0] + 1) % 3)
    assert not any("duplic" in note for note in LabelCorrector().fit(X, y).notes_)


def test_a_locked_row_teaches_its_duplicates():
    X, given, truth = blobs()
    wrong = int(np.flatnonzero(given != truth)[0])
    X, y = np.vstack([X, X[wrong : wrong + 1]]), np.append(given, given[wrong])
    locked = np.zeros(len(X), dtype=bool)
    locked[wrong] = True
    m = LabelCorrector().fit(X, y, locked=locked)
    assert m.action_[wrong] == "keep"
    assert m.labels_[wrong] == given[wrong]
    assert not any("duplic" in note for note in m.notes_)
