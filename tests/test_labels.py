import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stct.labels import decode, encode

scalars = st.one_of(st.text(max_size=3), st.integers(-3, 3), st.none())


@given(st.lists(scalars, min_size=1, max_size=30))
def test_encoding_and_decoding_gives_the_labels_back(items):
    encoded = encode(items)
    got = decode(encoded, encoded.codes)
    for a, b in zip(got.tolist(), items, strict=True):
        assert a == b or (b is None and (a is None or a != a))
    known = [item for item in items if item is not None]
    assert set(encoded.classes.tolist()) == set(known)
    assert (encoded.codes < 0).sum() == items.count(None)


@given(st.lists(scalars, min_size=1, max_size=30), st.randoms())
def test_classes_do_not_depend_on_the_order_of_rows(items, random):
    shuffled = items.copy()
    random.shuffle(shuffled)
    assert encode(items).classes.tolist() == encode(shuffled).classes.tolist()


def test_missing_values_of_every_kind():
    y = np.array(["a", None, np.nan, pd.NA, pd.NaT, "b"], dtype=object)
    assert encode(y).codes.tolist() == [0, -1, -1, -1, -1, 1]


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "category", "array"])
def test_large_whole_numbers_beside_missing_ones_stay_apart(kind):
    items = [pd.NA, 2**60, 2**60 + 1, 7]
    y = pd.Series(items, dtype="Int64").array
    if kind != "array":
        y = pd.Series(items, dtype="Int64").astype(kind)
    encoded = encode(y)
    assert encoded.classes.dtype == np.int64
    assert encoded.classes.tolist() == [7, 2**60, 2**60 + 1]
    assert encoded.codes.tolist() == [-1, 1, 2, 0]
    assert decode(encoded, encoded.codes).tolist() == [None, *items[1:]]
    filled = decode(encoded, np.array([2, 1, 2, 0]))
    assert filled.dtype == np.int64
    assert filled.tolist() == [2**60 + 1, *items[1:]]


def test_booleans_beside_missing_ones_stay_booleans():
    encoded = encode(pd.Series([True, None, False], dtype="boolean"))
    assert encoded.classes.dtype == bool
    assert encoded.codes.tolist() == [1, -1, 0]
