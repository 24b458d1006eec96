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
