"""Every bad input of the real command: one line, exit code 2, nothing left behind."""

import pickle
import resource

import numpy as np
import pytest
from command import assert_error, blobs, stct

from stct.data.tables import read_table

pytestmark = pytest.mark.slow  # starts real processes

X, TRUTH, GIVEN = blobs()
ROWS = [f"{i},{label}" for i, label in enumerate(GIVEN)]


def table(*rows, header="id,label"):
    return "\n".join([header, *rows]) + "\n"


def files(folder, text=None, array=X):
    """Write a table and embeddings that are fine but for what is given."""
    (folder / "t.csv").write_text(table(*ROWS) if text is None else text)
    np.save(folder / "e.npy", array)


def with_cell(array, row, value):
    changed = array.copy()
    changed[row, 1] = value
    return changed


def correct(folder, *more, **keywords):
    command = ["correct", "t.csv", "--embeddings", "e.npy", *more]
    return stct(*command, cwd=folder, **keywords)


def left_behind(folder):
    return sorted(path.name for path in folder.iterdir())


def same_rows(*rows):
    return table(*rows, *ROWS[len(rows) :])


@pytest.mark.parametrize(
    ("text", "array", "fragments"),
    [
        (None, X[:-1], ["e.npy", "59 embeddings for 60 rows"]),
        (same_rows("0,0", ",1"), X, ["t.csv", "'id'", "row 1", "no id"]),
        (same_rows("0,0", "0,1"), X, ["t.csv", "more than once: 0"]),
        (None, with_cell(X, 7, np.nan), ["e.npy", "NaN or infinite", "rows", "7;"]),
        (None, X.astype(str), ["e.npy", "must be numbers"]),
        (None, X[:, 0], ["e.npy", "must be 2-d"]),
        (
            table(*(f"{i},cat" for i in range(60))),
            X,
            ["t.csv: column 'label' has one class only (cat)", "two"],
        ),
        (
            table(*(f"{i}," for i in range(60))),
            X,
            ["t.csv: column 'label' has no labels"],
        ),
        (table(), X[:0], ["t.csv", "no rows"]),
        ("", X, ["t.csv", "no columns"]),
        (table("1,2,3"), X, ["t.csv", "row 0", "3 cells", "2"]),
        (table(*ROWS, header="id,target"), X, ["t.csv", "no column 'label'", "target"]),
    ],
)
def test_bad_tables_and_embeddings(tmp_path, text, array, fragments):
    files(tmp_path, text, array)
    before = left_behind(tmp_path)
    assert_error(correct(tmp_path), *fragments)
    assert left_behind(tmp_path) == before


@pytest.mark.parametrize(
    ("command", "fragments"),
    [
        (["correct", "gone.csv", "--embeddings", "e.npy"], ["gone.csv: No such file"]),
        (["correct", "t.csv", "--embeddings", "gone.npy"], ["gone.npy: No such file"]),
        (["correct", "t.csv"], ["--embeddings FILE", "--embeddings-column NAME"]),
        (["correct", "e.npy", "--embeddings", "e.npy"], [".csv, .tsv, .parquet"]),
        (["correct", "binary.csv", "--embeddings", "e.npy"], ["not a text file"]),
        (["correct", "t.csv", "--embeddings", "other.npz"], ["no embedding", "59"]),
        (
            ["correct", "t.csv", "--embeddings", "e.npy", "-o", "mine"],
            ["mine: the out"],
        ),
        (["correct", "t.csv", "--embeddings", "e.npy", "-o", "t.csv/x"], ["no folder"]),
        (["apply", "p.csv", "t.csv", "-o", "o.csv"], ["p.csv: not a patch", "'old'"]),
        (["apply", "t.csv", "t.csv", "-o", "o.tsv"], ["o.tsv: must end in .csv"]),
        (["noise", "t.csv", "--rate", "2", "-o", "o.csv"], ["between 0 and 1, got 2"]),
    ],
)
def test_bad_commands(tmp_path, command, fragments):
    files(tmp_path)
    (tmp_path / "binary.csv").write_bytes(X.tobytes())
    np.savez(tmp_path / "other.npz", embeddings=X, ids=np.arange(60) - 1)
    (tmp_path / "p.csv").write_text("id,label\n")
    (tmp_path / "mine").mkdir()
    before = left_behind(tmp_path)
    assert_error(stct(*command, cwd=tmp_path), *fragments)
    assert left_behind(tmp_path) == before
    assert left_behind(tmp_path / "mine") == []


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (["--id-column", "uid"], ["t.csv", "no column 'uid'", "--id-column"]),
        (["--locked-column", "label"], ["'label', row 1", "true, yes or 1"]),
        (["--min-odds", "0.5"], ["--min-odds must be 1 or more", "0.5"]),
    ],
)
def test_bad_options(tmp_path, options, fragments):
    files(tmp_path)
    assert_error(correct(tmp_path, *options), *fragments)
    assert left_behind(tmp_path) == ["e.npy", "t.csv"]


def test_a_locked_row_needs_a_label(tmp_path):
    text = table(
        *(f"{row},{i == 3}" for i, row in enumerate(ROWS)), header="id,label,ok"
    )
    files(tmp_path, text.replace("3,1,True", "3,,True"))
    done = correct(tmp_path, "--locked-column", "ok")
    assert_error(done, "t.csv: row 3", "is locked but has no label")


@pytest.mark.parametrize("bare", [True, False])
def test_a_pickle_is_never_loaded(tmp_path, bare):
    class Trap:
        def __reduce__(self):
            return open, (str(tmp_path / "sprung"), "w")

    files(tmp_path)
    if bare:
        (tmp_path / "e.npy").write_bytes(pickle.dumps(Trap()))
    else:
        np.save(tmp_path / "e.npy", np.array([[Trap()]] * 60), allow_pickle=True)
    assert_error(correct(tmp_path), "e.npy", "pickle", "never loaded")
    assert left_behind(tmp_path) == ["e.npy", "t.csv"]


def test_an_unwritable_folder(tmp_path):
    files(tmp_path)
    done = correct(tmp_path, "-o", "/proc/stct-output")
    assert_error(done, "/proc/stct-output")


def small_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))


def medium_disk():
    """Room for the table of the demonstration but not for its embeddings."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def test_a_disk_that_fills_up(tmp_path):
    """The limit is on the size of a file: a real error from the real system call."""
    files(tmp_path)
    done = correct(tmp_path, preexec_fn=small_disk)
    assert_error(done, "stct-output: not written (File too large)")
    assert left_behind(tmp_path) == ["e.npy", "t.csv"]
    rows = "".join(f"row number {i},x{i % 2}\n" for i in range(200))
    (tmp_path / "t.csv").write_text(f"id,label\n{rows}")
    done = stct("noise", "t.csv", "-o", "o.csv", cwd=tmp_path, preexec_fn=small_disk)
    assert_error(done, "o.csv: not written (File too large)")
    done = stct("demo", "--no-training", cwd=tmp_path, preexec_fn=medium_disk)
    assert_error(done, "demo-output: not written (no room for all of it on the disk)")
    assert left_behind(tmp_path) == ["e.npy", "t.csv"]


def test_odd_but_fine(tmp_path):
    """Rare classes, missing labels, odd text, constant, equal columns, equal rows."""
    labels = [["ü 漢 🙂", " spaced ", "[red]x[/red]"][c] for c in GIVEN]
    labels[10], labels[11], labels[12] = "[b]once[/b]", "", ""
    array = np.hstack([X, X[:, :1], np.ones((60, 1))])
    array[20:22] = array[23]
    files(tmp_path, table(*(f"{i},{v}" for i, v in enumerate(labels))), array)
    done = correct(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "60 in 4 classes",
        "filled",
        "2 rows had no label",
        "[b]once[/b]",
        "constant",
    ):
        assert text in done.stdout
    written = read_table(tmp_path / "stct-output" / "labels.csv").values("label")
    assert set(written) >= {"ü 漢 🙂", " spaced ", "[red]x[/red]"}


@pytest.mark.parametrize("kind", ["int", "float", "bool"])
def test_typed_labels(tmp_path, kind):
    values = {"int": "012", "float": ["0.5", "1.5", "2.5"], "bool": ["true", "false"]}
    lines = [
        f'{{"label": {values[kind][c % len(values[kind])]}, "v": {row.tolist()}}}'
        for c, row in zip(GIVEN, X, strict=True)
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    command = ["correct", "t.jsonl", "--embeddings-column", "v", "--json"]
    done = stct(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f'"class_names": [{", ".join(sorted(values[kind]))}]' in done.stdout
