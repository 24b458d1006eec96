import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from stct.data.tables import Absent, Table, read_table, write_table

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=5,
)
ODD = ["007", "NA", "nan", "1.0", " spaced ", "", "ü 漢 🙂", 'a "quote"', "x,y\tz"]
ODD += ["two\nlines", "two\r\nlines", "old\rmac", "\u2028", "'", "#", "-0", "1e5"]


def through(path, table):
    write_table(path, table)
    return read_table(path)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_text_stays_what_it_is(tmp_path, ending):
    table = Table(ending, {"id": ODD, "label": ODD[::-1]}, len(ODD))
    again = through(tmp_path / f"t.{ending}", table)
    assert again.columns == table.columns
    assert again.num_rows == len(ODD)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(TEXT, TEXT), max_size=5), ending=st.sampled_from("ct"))
def test_any_text_survives_csv_and_tsv(tmp_path_factory, rows, ending):
    path = tmp_path_factory.mktemp("t") / f"t.{ending}sv"
    columns = {"a": [row[0] for row in rows], "b": [row[1] for row in rows]}
    assert through(path, Table(f"{ending}sv", columns, len(rows))).columns == columns


@settings(deadline=None)
@given(rows=st.lists(st.dictionaries(TEXT, JSON, max_size=3), max_size=4))
def test_any_json_survives_jsonl(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    table = read_table(path)
    write_table(path, table)
    again = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    assert again == rows
    assert [list(map(repr, r.values())) for r in again] == [
        [repr(row[name]) for name in new] for row, new in zip(rows, again, strict=True)
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"id,label\n1,a\n",
        b"id,label\r\n1,a\r\n2,\r\n",
        b"\xef\xbb\xbfid,label\n1,\xc3\xbc\n",
        b'label\n""\nx\n',
        b'id,label\n1,"a,b"\n',
        b"id,label\n",
    ],
)
def test_common_csv_files_come_back_byte_for_byte(tmp_path, data):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    write_table(path, read_table(path))
    assert path.read_bytes() == data


def test_a_blank_line_of_one_column_is_a_row(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("label\na\n\nb\n")
    table = read_table(path)
    assert table.values("label") == ["a", "", "b"]
    write_table(path, table)
    assert read_table(path).values("label") == ["a", "", "b"]
    path.write_text("id,label\n1,a\n\n2,b\n")
    assert read_table(path).num_rows == 2


def test_parquet_keeps_types_and_schema(tmp_path):
    schema = pa.schema(
        [
            pa.field("id", pa.int8(), nullable=False, metadata={"unit": "row"}),
            ("x", pa.float32()),
            ("ok", pa.bool_()),
            ("kind", pa.dictionary(pa.int8(), pa.string())),
            ("when", pa.timestamp("ns", tz="UTC")),
            ("price", pa.decimal128(9, 2)),
            ("vector", pa.list_(pa.float16(), 2)),
            ("text", pa.large_string()),
        ],
        metadata={"mine": "kept"},
    )
    rows = [[1, 2], [0.5, None], [True, None], ["a", None], [1, None]]
    rows += [[None, 3], [[1, 2], None], ["", None]]
    pairs = zip(rows, schema, strict=True)
    arrays = [pa.array(values, type=field.type) for values, field in pairs]
    parquet.write_table(pa.table(arrays, schema=schema), tmp_path / "t.parquet")
    original = parquet.read_table(tmp_path / "t.parquet")
    assert original.schema.metadata == {b"mine": b"kept"}
    table = read_table(tmp_path / "t.parquet")
    write_table(tmp_path / "u.parquet", table.with_values("kind", ["b", "a"]))
    again = parquet.read_table(tmp_path / "u.parquet")
    assert again.schema.equals(original.schema, check_metadata=True)
    assert again.drop("kind").equals(original.drop("kind"))
    assert again["kind"].to_pylist() == ["b", "a"]


def test_jsonl_tells_absent_from_null(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n\n{"a": null, "b": 1.0}\r\n{"b": true}')
    table = read_table(path)
    assert table.columns["a"] == [1, None, Absent.ABSENT]
    assert [type(v) for v in table.columns["b"][1:]] == [float, bool]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.xls", b"", "must end in .csv, .tsv, .parquet or .jsonl"),
        ("t.xlsx", b"", "not a readable .xlsx workbook"),
        ("t.csv.gz", b"a,b", "not a readable .gz file"),
        ("t", b"", "no ending"),
        ("t.csv", b"", "no columns"),
        ("t.csv", b"PK\x03\x04\0\0", "not a text file"),
        ("t.csv", b"a,b\n1,2\n1,\x81\n", "line 3 is not UTF-8 text; set --encoding"),
        ("t.csv", b"a,b\n1,2\n1\n", "row 1 .* has 1 cells, the header has 2"),
        ("t.csv", b"a,b\n1,2,3\n", "row 0 .* has 3 cells"),
        ("t.csv", b'a,b\n1,"\n2,3\n', "unexpected end of data"),
        ("t.csv", b"a,b,a\n", "'a' comes twice"),
        ("t.jsonl", b'{"a": 1}\n{"a": \n', "line 2"),
        ("t.jsonl", b"[1, 2]\n", "line 1: each line must be one JSON object"),
        ("t.jsonl", b'{"a": 1, "a": 2}\n', "line 1: the key 'a' comes twice"),
        ("t.jsonl", b'{"a": "\\ud800"}\n', "line 1: half of a surrogate"),
        ("t.parquet", b"PAR1 no", "not a readable parquet file"),
    ],
)
def test_what_is_no_table(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(tmp_path / name)
    assert name in str(caught.value)


def test_a_type_that_cannot_hold_the_value(tmp_path):
    parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="'a' holds int64"):
        table.with_values("a", [1, "x"])
