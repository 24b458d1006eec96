"""Rows in files give what an array gives, bit for bit, however they are stored."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stct import LabelCorrector, blocks, engine, given_labels, nmc
from stct.data.shards import open_folder, open_npy, open_parquet
from stct.rows import from_memory_map


def problem(n=3000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[np.arange(n), truth] += 2.0
    y = np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), truth)
    return X, y


X, Y = problem()


def npy_shards(folder, cuts=(0, 700, 701, 1900, 3000)):
    folder.mkdir()
    for number, (a, b) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
        np.save(folder / f"part-{number}.npy", X[a:b])
    return open_folder(folder, column=None, id_column=None)[0]


def parquet_file(path, rows=slice(None), group=512, **columns):
    lists = pa.FixedSizeListArray.from_arrays(X[rows].ravel(), X.shape[1])
    table = pa.table({**columns, "vector": lists})
    pq.write_table(table, path, row_group_size=group)
    return path


def sources(folder):
    np.save(folder / "one.npy", X)
    yield np.load(folder / "one.npy", mmap_mode="r")
    yield open_npy([folder / "one.npy"])
    yield npy_shards(folder / "shards")
    path = parquet_file(folder / "one.parquet")
    yield open_parquet([path], column=None, id_column=None)[0]
    (folder / "many").mkdir()
    parquet_file(folder / "many" / "a1.parquet", slice(0, 1000))
    parquet_file(folder / "many" / "a2.parquet", slice(1000, 3000), group=300)
    yield open_folder(folder / "many", column=None, id_column=None)[0]


def test_any_slice_is_that_of_the_array(tmp_path):
    rng = np.random.default_rng(0)
    for source in list(sources(tmp_path))[1:]:
        assert source.shape == X.shape
        for a, b in rng.integers(0, len(X) + 1, (50, 2)):
            np.testing.assert_array_equal(source[a:b], X[a:b])
        np.testing.assert_array_equal(source[5:2000:7], X[5:2000:7])


@pytest.fixture
def streamed(monkeypatch):
    """Small tiles, and rows that are taken as they come."""
    monkeypatch.setattr(nmc, "MAX_SORTED", 0)
    monkeypatch.setattr(given_labels, "MAX_FITTED", 1000)
    for module in (blocks, engine):
        monkeypatch.setattr(module, "TILE", 256)
    monkeypatch.setattr(engine, "UNIT", 512)


@pytest.mark.parametrize("small", [True, False])
def test_every_source_gives_the_bits_of_the_array(tmp_path, small, request):
    if not small:
        request.getfixturevalue("streamed")
    expected = LabelCorrector().fit(X, Y)
    assert (expected.labels_ != Y).sum() > 100
    for source in sources(tmp_path):
        got = LabelCorrector().fit(source, Y)
        np.testing.assert_array_equal(
            got.label_distributions_, expected.label_distributions_
        )
        np.testing.assert_array_equal(got.labels_, expected.labels_)
        np.testing.assert_array_equal(
            got.predict_proba(source), expected.predict_proba(X)
        )


def test_rows_as_they_come_agree_with_sorted_rows(monkeypatch):
    by_content = LabelCorrector().fit(X, Y)
    monkeypatch.setattr(nmc, "MAX_SORTED", 0)
    as_they_come = LabelCorrector().fit(X, Y)
    # Another order rounds otherwise, and draws another sample to choose the family.
    assert (by_content.labels_ == as_they_come.labels_).mean() > 0.998


def test_x_itself_is_never_changed(streamed):
    before = X.copy()
    LabelCorrector().fit(X, Y)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("method", ["split", "paper"])
def test_the_other_methods_read_files_too(tmp_path, method):
    source = npy_shards(tmp_path / "shards")
    got, expected = (
        LabelCorrector(method, random_state=0).fit(rows, Y) for rows in (source, X)
    )
    np.testing.assert_array_equal(got.labels_, expected.labels_)


def test_rows_travel_without_their_numbers(tmp_path):
    source = npy_shards(tmp_path / "shards")
    source[0:10]
    sent = pickle.dumps(source)
    assert len(sent) < 2000
    np.testing.assert_array_equal(pickle.loads(sent)[690:710], X[690:710])


def test_a_part_of_a_memory_map_is_not_taken_for_the_whole(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert from_memory_map(mapped[10:]) is None
    assert from_memory_map(mapped[:, 1:]) is None
    np.testing.assert_array_equal(from_memory_map(mapped)[3:9], X[3:9])


def test_numbers_in_names_count_by_value(tmp_path):
    for number in range(11):
        np.save(tmp_path / f"s{number}.npy", X[number : number + 1])
    rows, _ = open_folder(tmp_path, column=None, id_column=None)
    np.testing.assert_array_equal(rows[0:11], X[:11])


def test_nan_is_named_with_its_shard_and_row(tmp_path):
    folder = tmp_path / "shards"
    npy_shards(folder)
    bad = X[701:1900].copy()
    bad[99, 3] = np.nan
    np.save(folder / "part-2.npy", bad)
    rows, _ = open_folder(folder, column=None, id_column=None)
    with pytest.raises(ValueError, match=r"row 800 \(part-2.npy, row 99\)"):
        LabelCorrector().fit(rows, Y)


@pytest.mark.parametrize(("n", "count"), [(10, 100), (100, 100), (100_000, 4096)])
def test_rows_from_all_over_come_in_order_and_once(n, count):
    rows = engine.spread_rows(n, count)
    assert np.all(np.diff(rows) > 0)
    assert rows[0] == 0
    assert rows[-1] == n - 1
    assert len(rows) <= count
    if n > count:
        share = np.bincount(rows * 8 // n, minlength=8) / len(rows)
        assert np.all(np.abs(share - 1 / 8) < 0.05)


def test_rows_that_were_sent_notice_a_new_file(tmp_path):
    path = tmp_path / "H.npy"
    np.save(path, np.zeros((50, 3), np.float32))
    rows = pickle.dumps(open_npy([path]))
    for _ in range(2):  # the second finds the map of the first
        np.testing.assert_array_equal(pickle.loads(rows)[0:50], np.zeros((50, 3)))
    path.unlink()
    np.save(path, np.ones((50, 3), np.float32))
    np.testing.assert_array_equal(pickle.loads(rows)[0:50], np.ones((50, 3)))
