"""Embeddings in shards through the real command; every bad one is one line."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import assert_error, blobs, stct

pytestmark = pytest.mark.slow  # starts real processes

X, TRUTH, GIVEN = blobs()


@pytest.fixture
def folder(tmp_path):
    """A table and three shards."""
    rows = [f"{i},{label}" for i, label in enumerate(GIVEN)]
    (tmp_path / "t.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    (tmp_path / "e").mkdir()
    for number in range(3):
        shard(tmp_path, number, X[20 * number : 20 * number + 20])
    return tmp_path


def shard(folder, number, values):
    np.save(folder / "e" / f"part-{number}-of-3.npy", values)


def correct(folder, *more):
    return stct("correct", "t.csv", "--embeddings", "e", *more, cwd=folder)


def test_shards_give_the_files_of_one_array(folder):
    np.save(folder / "one.npy", X)
    assert correct(folder, "-o", "a").returncode == 0
    one = ["correct", "t.csv", "--embeddings", "one.npy", "-o", "b"]
    assert stct(*one, cwd=folder).returncode == 0
    for name in ("labels.csv", "patch.csv", "soft_labels.npz"):
        assert (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes()


def remove_shard(folder):
    os.remove(folder / "e" / "part-1-of-3.npy")
    return "e: shard 1 is missing", "2 of 3 files"


def truncate(folder):
    path = folder / "e" / "part-2-of-3.npy"
    path.write_bytes(path.read_bytes()[:-7])
    return "part-2-of-3.npy: truncated", "20 rows need"


def narrow(folder):
    shard(folder, 1, X[20:40, :3])
    return "part-1-of-3.npy: 3 columns of float32", "part-0-of-3.npy has 4 of float32"


def other_type(folder):
    shard(folder, 1, X[20:40].astype(np.float64))
    return "part-1-of-3.npy: 4 columns of float64", "4 of float32"


def nan(folder):
    bad = X[40:].copy()
    bad[7, 1] = np.nan
    shard(folder, 2, bad)
    return "NaN or infinite", "row 47 (part-2-of-3.npy, row 7)"


def mixed(folder):
    (folder / "e" / "notes.txt").write_text("hello")
    return "e: a folder of embeddings", ".npy, .txt"


def too_few(folder):
    shard(folder, 2, X[40:59])
    return "e: 59 embeddings for 60 rows"


def pickled(folder):
    shard(folder, 1, np.array([[1, "a"]], dtype=object))
    return "part-1-of-3.npy", "pickle"


def longdouble(folder):
    shard(folder, 0, X[:20].astype(np.longdouble))
    return "part-0-of-3.npy: a shard is a 2-d array of float16, float32 or float64"


def folder_beside_files(folder):
    (folder / "e" / "more").mkdir()
    return "e: has a folder in it (more); all shards must be files of one folder"


def folders_only(folder):
    (folder / "e").rename(folder / "year=2024")
    (folder / "e").mkdir()
    (folder / "year=2024").rename(folder / "e" / "year=2024")
    return "e: has a folder in it (year=2024)"


def no_folder(folder):
    (folder / "e").rename(folder / "f")
    return "e: No such file or folder"


def ids_out_of_order(folder):
    for path in (folder / "e").iterdir():
        path.unlink()
    ids = [str(i) for i in range(60)]
    ids[33], ids[34] = ids[34], ids[33]
    vectors = pa.array(X.tolist(), pa.list_(pa.float32()))
    for number, a in enumerate((0, 30)):
        table = pa.table({"id": ids[a : a + 30], "v": vectors[a : a + 30]})
        pq.write_table(table, folder / "e" / f"p{number}.parquet")
    return "e: row 33 (p1.parquet, row 3) has id '34' where the table has '33'"


@pytest.mark.parametrize(
    "spoil",
    [
        remove_shard,
        truncate,
        narrow,
        other_type,
        nan,
        mixed,
        too_few,
        pickled,
        longdouble,
        folder_beside_files,
        folders_only,
        no_folder,
        ids_out_of_order,
    ],
)
def test_a_bad_shard_is_one_line_and_leaves_nothing(folder, spoil):
    fragments = spoil(folder)
    fragments = [fragments] if isinstance(fragments, str) else fragments
    before = sorted(path.name for path in folder.iterdir())
    assert_error(correct(folder, "-o", "out"), *fragments)
    assert sorted(path.name for path in folder.iterdir()) == before
