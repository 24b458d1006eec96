import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from stct.data import embeddings as module
from stct.data.embeddings import load_embeddings, read_embeddings
from stct.data.tables import Table, read_table

X = np.arange(12, dtype=np.float32).reshape(4, 3)
IDS = ["b", "007", "7", "a"]


def table_of(**columns):
    return Table("csv", columns, len(next(iter(columns.values()))))


def load(table, path, column=None, id_column=None):
    return load_embeddings(
        table, Path("t.csv"), file=path, column=column, id_column=id_column
    )


class Trap:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_npy_by_row(tmp_path):
    np.save(tmp_path / "e.npy", X)
    values, notes = load(table_of(label=["x"] * 4), tmp_path / "e.npy")
    np.testing.assert_array_equal(values, X)
    assert notes == []


def test_a_big_npy_is_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MEMORY_MAP_FROM", 1)
    np.save(tmp_path / "e.npy", X)
    assert isinstance(read_embeddings(tmp_path / "e.npy").values, np.memmap)


@pytest.mark.parametrize("name", ["embeddings", "anything"])
def test_npz_joined_by_id_keeps_the_order_of_the_table(tmp_path, name):
    order = [2, 0, 3, 1]
    ids = np.array(IDS)[order]
    np.savez(tmp_path / "e.npz", ids=ids, other=np.zeros(4), **{name: X[order]})
    values, _ = load(table_of(id=IDS), tmp_path / "e.npz")
    np.testing.assert_array_equal(values, X)


def test_ids_compare_as_text(tmp_path):
    np.savez(tmp_path / "e.npz", ids=np.array([3, 2, 1, 0]), embeddings=X)
    values, _ = load(table_of(id=["0", "1", "2", "3"]), tmp_path / "e.npz")
    np.testing.assert_array_equal(values, X[::-1])
    with pytest.raises(ValueError, match="no embedding for table ids 00$"):
        load(table_of(id=["00", "1", "2", "3"]), tmp_path / "e.npz")


def test_ids_on_one_side_only(tmp_path):
    np.savez(tmp_path / "e.npz", ids=np.array(IDS), embeddings=X)
    values, notes = load(table_of(label=["x"] * 4), tmp_path / "e.npz")
    np.testing.assert_array_equal(values, X)
    assert len(notes) == 1
    assert "matched by row order" in notes[0]


@pytest.mark.parametrize("kind", ["list", "fixed", "columns"])
def test_parquet_with_ids(tmp_path, kind):
    order = [1, 3, 2, 0]
    columns = {"uid": [IDS[i] for i in order]}
    if kind == "columns":
        columns |= {f"x{j}": X[order, j] for j in range(3)}
        columns["__index_level_0__"] = [9, 9, 9, 9]
    else:
        type_ = pa.list_(pa.float32(), *([3] if kind == "fixed" else []))
        columns["vector"] = pa.array(X[order].tolist(), type=type_)
        columns["caption"] = ["a", "b", "c", "d"]
    parquet.write_table(pa.table(columns), tmp_path / "e.parquet")
    values, _ = load(table_of(uid=IDS), tmp_path / "e.parquet", id_column="uid")
    np.testing.assert_array_equal(values, X)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_list_column_of_the_table(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        lines = [f'{name},"{row}"' for name, row in zip(IDS, X.tolist(), strict=True)]
        path.write_text("\n".join(["id,vector", *lines]))
    elif ending == "jsonl":
        path.write_text("".join(json.dumps({"vector": r}) + "\n" for r in X.tolist()))
    else:
        parquet.write_table(pa.table({"vector": X.tolist()}), path)
    values, _ = load_embeddings(
        read_table(path), path, file=None, column="vector", id_column=None
    )
    np.testing.assert_array_equal(values, X)


def test_a_named_array_or_column_of_the_file(tmp_path):
    np.savez(tmp_path / "e.npz", train=X, test=X[:2])
    assert read_embeddings(tmp_path / "e.npz", column="test").values.shape == (2, 3)
    with pytest.raises(ValueError, match="train, test .choose with"):
        read_embeddings(tmp_path / "e.npz")


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, np.float16])
def test_other_numbers_become_floats(tmp_path, dtype):
    np.save(tmp_path / "e.npy", X.astype(dtype))
    assert read_embeddings(tmp_path / "e.npy").values.dtype in (np.float32, np.float64)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.arange(4.0), "must be 2-d.*shape .4,."),
        (np.ones((4, 0)), "must be 2-d"),
        (np.ones((4, 2, 2)), "must be 2-d"),
        (np.array([["a", "b"]] * 4), "must be numbers"),
        (np.ones((4, 2), dtype=complex), "must be numbers"),
        (np.array([[1, np.nan], [1, 1], [np.inf, 1], [1, 1]]), "rows .* 0, 2;"),
    ],
)
def test_arrays_that_are_no_embeddings(tmp_path, array, message):
    np.save(tmp_path / "e.npy", array)
    with pytest.raises(ValueError, match=message):
        read_embeddings(tmp_path / "e.npy")


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize(
    "form", ["pickle.npy", "pickle.npz", "object.npy", "object.npz"]
)
def test_a_pickle_is_never_loaded(tmp_path, monkeypatch, form, big):
    monkeypatch.setattr(module, "_MEMORY_MAP_FROM", 1 if big else 2**30)
    trap = tmp_path / "sprung"
    kind, ending = form.split(".")
    path = tmp_path / f"e.{ending}"
    objects = np.array([[Trap(trap)]], dtype=object)
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Trap(trap)))
    elif ending == "npy":
        np.save(path, objects, allow_pickle=True)
    else:
        np.savez(path, embeddings=objects)
    with pytest.raises(ValueError, match="never loaded"):
        read_embeddings(path)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [("e.npy", b""), ("e.npy", b"\x93NUMPY"), ("e.npz", b"zip?"), ("e.txt", b"1 2")],
)
def test_files_that_are_no_embeddings(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=rf"{name}: .*\.np"):
        read_embeddings(tmp_path / name)


@pytest.mark.parametrize(
    ("ids", "table_ids", "message"),
    [
        (["b", "b", "7", "a"], IDS, "more than once: b$"),
        (["b", "", "7", "a"], IDS, "row 1 .* has no id"),
        (["b", "7", "a"], IDS, "3 ids for 4 embeddings"),
        (IDS, IDS[:3], "ids that the table lacks: a$"),
        (["p", "q", "r", "s"], IDS, "no embedding for table ids b, 007, 7, a$"),
        (IDS, ["b", "b", "7", "a"], "t.csv: column 'id': .* more than once: b$"),
        (IDS, ["b", "", "7", "a"], "t.csv: column 'id': row 1 .* has no id"),
    ],
)
def test_ids_that_do_not_match(tmp_path, ids, table_ids, message):
    np.savez(tmp_path / "e.npz", ids=np.array(ids), embeddings=X)
    with pytest.raises(ValueError, match=message):
        load(table_of(id=table_ids), tmp_path / "e.npz")


def test_many_unmatched_ids_are_counted(tmp_path):
    np.savez(tmp_path / "e.npz", ids=np.array(IDS), embeddings=X)
    with pytest.raises(ValueError, match=r"0, 1, 2, 3, 4, \.\.\. \(49 in all\)"):
        load(table_of(id=[str(i) for i in range(50)]), tmp_path / "e.npz")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 2], [1]], "row 1 .* has 1 numbers, row 0 has 2"),
        ([[1, 2], None], "row 1 .* has no list"),
        ([[1, 2], ["a", 1]], "row 1 .* not all are numbers"),
        ([None, [1]], "row 0 .* has no list"),
        ([[1, None], [1, 2]], "row 0 .* not all are numbers"),
    ],
)
def test_list_columns_that_are_no_embeddings(tmp_path, rows, message):
    table = Table("jsonl", {"vector": rows}, len(rows))
    path = tmp_path / "t.jsonl"
    with pytest.raises(ValueError, match=message):
        load_embeddings(table, path, file=None, column="vector", id_column=None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": [1, 2], "x": ["a", "b"]}, "column 'x' holds string"),
        ({"id": [1, 2]}, "no embedding columns"),
        ({"u": [[1], [2]], "v": [[1], [2]]}, "several list columns .u, v."),
        ({"u": [["a"], ["b"]]}, "lists of string"),
        ({"u": [[1.0], None]}, "row 1 .* has no list"),
        ({"u": [[1.0], [1.0, 2.0]]}, "row 1 .* has 2 numbers"),
        ({"x": [1.0, None]}, "NaN or infinite values in rows .* 1;"),
    ],
)
def test_parquet_files_that_are_no_embeddings(tmp_path, columns, message):
    parquet.write_table(pa.table(columns), tmp_path / "e.parquet")
    with pytest.raises(ValueError, match=message):
        read_embeddings(tmp_path / "e.parquet")
