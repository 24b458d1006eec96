"""Tables as they are: separators, encodings, .csv.gz, .xlsx, numbers in text."""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import blobs

from stct import cli
from stct.data.embeddings import read_embeddings
from stct.data.tables import read_table, write_table

TEXT = "größe;label\n1,5;Füchse\n2,5;Bären\n"


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["stct", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        assert stopped.value.code == 0, printed.err
        return printed.out

    return run


@pytest.mark.parametrize(
    ("encoding", "options", "said"),
    [
        ("utf-8", {}, ["';' between its columns, a guess"]),
        ("utf-8-sig", {"sep": ";"}, []),
        ("cp1252", {"sep": ";"}, ["was read as cp1252, a guess: 'größe;label'"]),
        ("cp1252", {"sep": ";", "encoding": "cp1252"}, []),
        ("utf-16", {}, ["';' between its columns"]),
        ("utf-16-le", {"encoding": "utf-16-le", "sep": ";"}, []),
        ("cp850", {"encoding": "cp850", "sep": ";"}, []),
    ],
)
def test_encodings_are_guessed_and_kept(tmp_path, encoding, options, said):
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT.encode(encoding))
    table = read_table(path, **options)
    assert table.columns == {"größe": ["1,5", "2,5"], "label": ["Füchse", "Bären"]}
    assert len(table.notes) == len(said)
    assert all(part in note for part, note in zip(said, table.notes, strict=True))
    write_table(path, table)
    assert path.read_bytes() == TEXT.encode(encoding)


@pytest.mark.parametrize(
    ("sep", "word"), [("\t", "tab"), ("|", "|"), (";", "semicolon")]
)
def test_separators(tmp_path, sep, word):
    path = tmp_path / "t.csv"
    path.write_text(f'"a, b"{sep}label\n1{sep}x\n')
    for options in ({}, {"sep": sep}, {"sep": word}):
        assert list(read_table(path, **options).columns) == ["a, b", "label"]
    with pytest.raises(ValueError, match=r"--sep must be one character or tab"):
        read_table(path, sep="ab")
    with pytest.raises(ValueError, match=r"--encoding 'klingon' is not known"):
        read_table(path, encoding="klingon")
    path.write_bytes(TEXT.encode())
    with pytest.raises(ValueError, match=r"not ASCII text; set another --encoding"):
        read_table(path, encoding="ascii")


def test_a_compressed_table_from_elsewhere_and_back(tmp_path, run):
    """Corrected, applied and reverted: the same table in every byte."""
    X, truth, given = blobs()
    np.savetxt(
        tmp_path / "e.csv",
        np.column_stack([np.arange(60), X]),
        delimiter=",",
        header="id,a,b,c,d",
        comments="",
        fmt=["%d", *["%.6f"] * 4],
    )
    names = np.array(["Füchse", "Bären", "Löwen"])
    rows = "".join(f"{i};{names[label]}\r\n" for i, label in enumerate(given))
    data = ("id;label\r\n" + rows).encode("cp1252")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(data, mtime=0))
    out = run("correct", "t.csv.gz", "--embeddings", "e.csv", "--json")
    assert any("cp1252" in note for note in json.loads(out)["notes"])
    labels = read_table(tmp_path / "stct-output" / "labels.csv")
    assert labels.values("label") == names[truth].tolist()
    patch = "stct-output/patch.csv"
    run("apply", patch, "t.csv.gz", "-o", "u.csv.gz", "--quiet")
    fixed = gzip.decompress((tmp_path / "u.csv.gz").read_bytes()).decode("cp1252")
    assert fixed.splitlines()[1:] == [f"{i};{names[t]}" for i, t in enumerate(truth)]
    options = ["--sep", ";", "--encoding", "cp1252", "--quiet"]
    run("revert", patch, "u.csv.gz", "-o", "v.csv.gz", *options)
    assert (tmp_path / "v.csv.gz").read_bytes() == (tmp_path / "t.csv.gz").read_bytes()
    run("report", "stct-output", "--quiet")


def test_a_workbook(tmp_path, run, refuse):
    X, truth, given = blobs()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["since"] = pd.Timestamp("2024-01-31")
    frame["label"] = given
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        frame.to_excel(book, sheet_name="mine", index=False)
        frame.to_excel(book, sheet_name="other", index=False)
    table = read_table(tmp_path / "t.xlsx")
    assert table.values("label") == [str(label) for label in given]
    assert set(table.values("since")) == {"2024-01-31"}
    out = run("correct", "t.xlsx", "--feature-columns", "a,b,c,d", "--json")
    notes = json.loads(out)["notes"]
    assert any("has 2 sheets; the first was read, 'mine'" in note for note in notes)
    labels = read_table(tmp_path / "stct-output" / "labels.csv").values("label")
    assert labels == [str(label) for label in truth]
    patch = "stct-output/patch.csv"
    refuse("apply", patch, "t.xlsx", "-o", "u.xlsx", says=".xlsx to read")
    refuse(
        "correct", "t.xlsx", "--sep", ";", "-o", "x", says="--sep is for .csv and .tsv"
    )


@pytest.mark.parametrize(
    "cells",
    [
        ["[0.5, 1, -2]", "[1, 2, 3]"],
        ["[ 0.5  1.\n -2. ]", "[1. 2. 3.]"],
        ["0.5,1,-2", "1, 2, 3"],
        ["0.5 1 -2", "1 2 3"],
    ],
)
def test_lists_in_cells(tmp_path, cells):
    pd.DataFrame({"e": cells}).to_csv(tmp_path / "e.csv", index=False)
    expected = [[0.5, 1.0, -2.0], [1.0, 2.0, 3.0]]
    for name in ("e.csv", "e.jsonl"):
        if name == "e.jsonl":
            pd.DataFrame({"e": expected}).to_json(
                tmp_path / name, orient="records", lines=True
            )
        values = read_embeddings(tmp_path / name).values
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("e\n[0.1 0.2 ... 0.9]\n", r"row 0 .*NumPy has left out numbers"),
        ("a,b\n1,2\n1,x\n", r"column 'b', row 1 .*'x' is no number"),
        ("a,b\n1,2\n1,\n", r"column 'b', row 1 .*'' is no number"),
        ("a,b\n1,2\n1,nan\n", r"NaN or infinite values in rows"),
        ("id\n1\n", "no embedding columns"),
    ],
)
def test_text_that_holds_no_embeddings(tmp_path, content, says):
    path = Path(tmp_path / "e.csv")
    path.write_text(content)
    with pytest.raises(ValueError, match=says):
        read_embeddings(path)
