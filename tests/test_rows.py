"""Rows in files give what an array gives, bit for bit, however they are stored."""

import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stct import LabelCorrector
from stct.correction import canonical
from stct.data import embeddings, row_groups
from stct.data.row_groups import open_parquet
from stct.data.shards import open_folder, open_npy
from stct.numeric import engine, tiles
from stct.numeric.file_rows import from_memory_map


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


def test_one_large_row_group_is_decoded_in_windows(tmp_path, monkeypatch):
    """Writers make groups of a million rows; any slice is right, in any order."""
    row = X.shape[1] * X.itemsize
    monkeypatch.setattr(row_groups, "_WINDOW_BYTES", 100 * row)
    path = parquet_file(tmp_path / "one.parquet", group=len(X))
    assert pq.ParquetFile(path).metadata.num_row_groups == 1
    rows, _ = open_parquet([path], column=None, id_column=None)
    decoded = []
    real = row_groups.Group.numbers
    monkeypatch.setattr(
        row_groups.Group, "numbers", lambda *a: decoded.append(real(*a)) or decoded[-1]
    )
    for a in range(0, len(X), 150):  # one pass
        np.testing.assert_array_equal(rows[a : a + 150], X[a : a + 150])
    assert max(map(len, decoded)) <= 100
    assert sum(map(len, decoded)) == len(X)  # once each: the reader went on
    for a, b in np.random.default_rng(0).integers(0, len(X) + 1, (30, 2)):
        np.testing.assert_array_equal(rows[a:b], X[a:b])
    assert rows.name_row(250).endswith("row 250)")


def test_the_next_window_is_decoded_while_this_one_is_worked_on(tmp_path, monkeypatch):
    monkeypatch.setattr(row_groups, "_WINDOW_BYTES", 100 * X.shape[1] * X.itemsize)
    path = parquet_file(tmp_path / "ahead.parquet", group=len(X))
    rows, _ = open_parquet([path], column=None, id_column=None)
    ahead, real = threading.Event(), row_groups.Window.decode

    def decode(window, reader):
        values = real(window, reader)
        if window.start == 100:
            ahead.set()
        return values

    monkeypatch.setattr(row_groups.Window, "decode", decode)
    rows[0:50]
    assert ahead.wait(10)  # nobody has asked for row 100


def test_a_file_that_was_written_again_is_read_again(tmp_path):
    path = parquet_file(tmp_path / "one.parquet", slice(0, 100))
    first, _ = open_parquet([path], column=None, id_column=None)
    np.testing.assert_array_equal(first[0:100], X[:100])
    parquet_file(path, slice(100, 200))
    second, _ = open_parquet([path], column=None, id_column=None)
    np.testing.assert_array_equal(second[0:100], X[100:200])


def test_a_row_group_of_another_width_is_named(tmp_path):
    good = parquet_file(tmp_path / "a.parquet")
    lists = pa.FixedSizeListArray.from_arrays(X[:, :2].ravel(), 2)
    bad = tmp_path / "b.parquet"
    pq.write_table(pa.table({"vector": lists}), bad)
    rows, _ = open_parquet([good, bad], column=None, id_column=None)
    with pytest.raises(ValueError, match=r"b\.parquet: row group 0: 2 columns"):
        rows[len(X) : len(X) + 5]


@pytest.fixture
def streamed(monkeypatch):
    """Small tiles, and rows that are taken as they come."""
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)
    for module in (tiles, engine):
        monkeypatch.setattr(module, "TILE", 256)
    monkeypatch.setattr(engine, "UNIT", 512)
    monkeypatch.setattr(engine, "FEW", 1000)


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
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)
    as_they_come = LabelCorrector().fit(X, Y)
    # Another order rounds otherwise, and draws another sample to choose the family.
    assert (by_content.labels_ == as_they_come.labels_).mean() > 0.998


def test_what_is_computed_again_has_the_bits_of_what_is_kept(monkeypatch):
    kept = LabelCorrector().fit(X, Y)
    monkeypatch.setattr(engine, "FEW", 0)
    again = LabelCorrector().fit(X, Y)
    np.testing.assert_array_equal(again.label_distributions_, kept.label_distributions_)


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


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_rows_are_found_from_another_folder(tmp_path, monkeypatch, kind):
    """A cluster that was started elsewhere has another current folder."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "e").mkdir()
    np.save(tmp_path / "e" / "p0.npy", X)
    if kind == "parquet":
        parquet_file(tmp_path / "e" / "p0.parquet")
        (tmp_path / "e" / "p0.npy").unlink()
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(open_folder(Path("e"), column=None, id_column=None)[0])
    monkeypatch.chdir("elsewhere")
    np.testing.assert_array_equal(pickle.loads(sent)[5:9], X[5:9])


MANY_SHARDS = """
import resource, sys
from pathlib import Path
from stct.data.shards import open_folder

resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
rows, _ = open_folder(Path(sys.argv[1]), column=None, id_column=None)
print(sum(float(rows[i : i + 7].sum()) for _ in range(2) for i in range(0, 300, 7)))
"""


def test_more_shards_than_files_may_be_open(tmp_path):
    for number in range(300):
        np.save(tmp_path / f"s{number}.npy", np.full((1, 2), 0.5, np.float32))
    command = [sys.executable, "-c", MANY_SHARDS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("600.0\n", "")


NAMES = {
    "row numbers": (["rows-0", "rows-5000"], None),
    "a later start": (["shard5", "shard6"], None),
    "a date": (["emb-20240105"], None),
    "a time": (["emb-0", "emb-1700000000"], None),
    "no digit to some": (["a²", "a1"], None),
    "every other": (["s0", "s2", "s4", "s6"], None),
    "a gap": (["s0", "s1", "s3"], "shard 2 is missing"),
    "a gap from 1": (["s1", "s3"], "shard 2 is missing"),
    "the first, of three": (["s-1-of-3", "s-2-of-3"], "shard 0 or 3 is missing"),
    "the last, of three": (["s-0-of-3", "s-1-of-3"], "shard 2 is missing"),
    "the last, from 1": (["s-1-of-3", "s-3-of-3"], "shard 2 is missing"),
    "of very many": (["s-0-of-999999999999"], "1 of 999999999999 files"),
}


@pytest.mark.parametrize("case", NAMES)
def test_numbers_in_names_count_shards_only_where_they_do(tmp_path, case):
    names, problem = NAMES[case]
    for name in names:
        np.save(tmp_path / f"{name}.npy", X[:1])
    if problem is None:
        rows, _ = open_folder(tmp_path, column=None, id_column=None)
        assert len(rows) == len(names)
        return
    with pytest.raises(ValueError, match=problem):
        open_folder(tmp_path, column=None, id_column=None)


def columns_file(path, **columns):
    pq.write_table(pa.table({k: np.float32(v) for k, v in columns.items()}), path)


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ({"b": [3], "a": [4]}, "b.parquet: column 'b' where a.parquet has 'a'"),
        ({"a": [3], "c": [4]}, "b.parquet: column 'c' where a.parquet has 'b'"),
        ({"a": [3]}, "b.parquet: 1 columns of numbers, but a.parquet has 2"),
    ],
)
def test_files_with_other_columns_are_not_mixed(tmp_path, second, problem):
    columns_file(tmp_path / "a.parquet", a=[1], b=[2])
    columns_file(tmp_path / "b.parquet", **second)
    with pytest.raises(ValueError, match=problem):
        open_folder(tmp_path, column=None, id_column=None)


def test_list_columns_of_two_names_are_not_mixed(tmp_path):
    for name in ("a", "b"):
        lists = pa.FixedSizeListArray.from_arrays(X.ravel(), X.shape[1])
        pq.write_table(
            pa.table({f"vector_{name}": lists}), tmp_path / f"{name}.parquet"
        )
    with pytest.raises(ValueError, match="'vector_b' where a.parquet has 'vector_a'"):
        open_folder(tmp_path, column=None, id_column=None)


def test_a_large_file_of_float16_stays_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(embeddings, "_MEMORY_MAP_FROM", 1000)
    half = X.astype(np.float16)
    np.save(tmp_path / "e.npy", half)
    values = embeddings.read_embeddings(tmp_path / "e.npy").values
    assert isinstance(values, np.memmap)
    got, expected = (
        LabelCorrector().fit(rows, Y) for rows in (values, half.astype(np.float32))
    )
    np.testing.assert_array_equal(
        got.label_distributions_, expected.label_distributions_
    )
