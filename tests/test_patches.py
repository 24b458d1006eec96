import json
import math
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from stct.data.columns import decode_label, encode_label
from stct.data.patches import (
    Change,
    apply_patch,
    describe,
    make_patch,
    read_patch,
    reverse,
)
from stct.data.tables import Absent, Table, read_table, write_table

PATH = Path("t.csv")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TRICKY = st.sampled_from(
    ["", "1", "1.0", "true", "null", "NaN", '"', '"a"', "{}", " 1"]
)
NUMBERS = st.integers() | st.floats(allow_infinity=False) | st.booleans()
MIXED = TEXT | TRICKY | NUMBERS | st.none() | st.just(Absent.ABSENT)


def same(a, b):
    """The same value of the same type; -0.0 is not 0.0 and NaN is NaN."""
    return type(a) is type(b) and repr(a) == repr(b)


@settings(deadline=None)
@given(MIXED)
def test_a_label_comes_back_from_its_text(label):
    assert same(
        decode_label(encode_label(label, text_only=False), text_only=False), label
    )


@settings(deadline=None)
@given(TEXT | TRICKY | st.none())
def test_text_comes_back_from_its_text(label):
    assert same(
        decode_label(encode_label(label, text_only=True), text_only=True), label
    )


@settings(deadline=None)
@given(MIXED, MIXED)
def test_different_labels_have_different_texts(a, b):
    texts = [encode_label(label, text_only=False) for label in (a, b)]
    assert (texts[0] == texts[1]) == same(a, b)


def test_plain_labels_read_plainly():
    assert encode_label("007", text_only=True) == "007"
    assert encode_label("cat", text_only=False) == "cat"
    assert encode_label("1", text_only=False) == '"1"'
    assert [encode_label(v, text_only=False) for v in (1, 1.0, True, None)] == [
        "1",
        "1.0",
        "true",
        "",
    ]


def check_there_and_back(folder, ending, old, new):
    """Write a table and a patch, apply and revert it through files."""
    path = folder / f"t.{ending}"
    before = read_table(path)
    patch = make_patch(
        range(len(old)), old, new, [0.5] * len(old), text_only=ending != "jsonl"
    )
    write_table(folder / "p.csv", patch)
    changes = read_patch(folder / "p.csv")
    applied = apply_patch(changes, before, path, label_column="label")
    assert applied.conflicts == []
    assert all(map(same, applied.table.values("label"), new))
    write_table(path, applied.table)
    reverted = apply_patch(
        reverse(changes), read_table(path), path, label_column="label"
    )
    assert reverted.conflicts == []
    assert all(map(same, reverted.table.values("label"), old))


PAIRS = st.lists(st.tuples(MIXED, MIXED), min_size=1, max_size=6)


@settings(deadline=None)
@given(PAIRS)
def test_apply_and_revert_are_inverses_in_jsonl(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("p")
    # one row keeps a label, or else the column would be gone
    old, new = map(list, zip(("cat", "dog"), *pairs, strict=True))
    lines = [{} if v is Absent.ABSENT else {"label": v} for v in old]
    lines = [json.dumps({"x": 1, **line}) + "\n" for line in lines]
    (folder / "t.jsonl").write_text("".join(lines))
    check_there_and_back(folder, "jsonl", old, new)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXT | TRICKY, TEXT | TRICKY), min_size=1, max_size=6))
def test_apply_and_revert_are_inverses_in_parquet_text(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("p")
    old, new = map(list, zip(*pairs, strict=True))
    parquet.write_table(pa.table({"label": old}), folder / "t.parquet")
    check_there_and_back(folder, "parquet", old, new)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (pa.int64(), [1, None, 3], [2, 2**62, None]),
        (pa.uint8(), [1, None, 3], [2, 255, None]),
        (pa.float64(), [0.1, None, math.nan], [1e300, -0.0, 2.0]),
        (pa.float32(), [0.5, None, math.nan], [0.25, 1.0, 2.0]),
        (pa.bool_(), [True, None, False], [False, True, None]),
    ],
)
def test_typed_labels_come_back_exactly(tmp_path, kind, old, new):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"label": pa.array(old, kind)}), path)
    patch = make_patch(range(3), old, new, [1.0] * 3, text_only=False)
    write_table(tmp_path / "p.csv", patch)
    changes = read_patch(tmp_path / "p.csv")
    applied = apply_patch(changes, read_table(path), path, label_column="label")
    assert all(map(same, applied.table.values("label"), new))
    back = apply_patch(reverse(changes), applied.table, path, label_column="label")
    assert all(map(same, back.table.values("label"), old))
    assert back.table.columns["label"].type == kind


def test_conflicts_are_listed_and_left_alone():
    table = Table("csv", {"id": ["a", "b"], "label": ["x", "y"]}, 2)
    changes = [Change("a", "x", "z"), Change("b", "other", "z")]
    result = apply_patch(changes, table, PATH, label_column="label")
    assert result.num_changed == 1
    assert result.table.values("label") == ["z", "y"]
    assert result.conflicts == [("b", "other", "y")]
    assert describe(result.conflicts) == ["conflict: id b: expected 'other', found 'y'"]
    assert len(describe(result.conflicts * 25)) == 25


def test_a_patch_without_changes_is_fine(tmp_path):
    write_table(
        tmp_path / "p.csv", make_patch(["a"], ["x"], ["x"], [1], text_only=True)
    )
    assert (tmp_path / "p.csv").read_text() == "id,old,new,confidence\n"
    assert read_patch(tmp_path / "p.csv") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,old\n1,a\n", "not a patch, no column 'new'"),
        ("id,old,new\n1,a,b\n1,a,b\n", "more than once: 1"),
        ("id,old,new\n,a,b\n", "row 0 .* has no id"),
    ],
)
def test_files_that_are_no_patch(tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_patch(tmp_path / "p.csv")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("9,1,2", "no rows for the patch's ids 9$"),
        ("0,1,cat", "'label' holds int64"),
        ("0,1,[2]", "'label' holds int64"),
    ],
)
def test_patches_that_do_not_fit_the_table(tmp_path, row, message):
    parquet.write_table(pa.table({"label": [1, 2]}), tmp_path / "t.parquet")
    (tmp_path / "p.csv").write_text(f"id,old,new\n{row}\n")
    table = read_table(tmp_path / "t.parquet")
    changes = read_patch(tmp_path / "p.csv")
    with pytest.raises(ValueError, match=message):
        apply_patch(changes, table, tmp_path / "t.parquet", label_column="label")
