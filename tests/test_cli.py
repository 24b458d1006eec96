"""The command, in a real process wherever it matters."""

import contextlib
import hashlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from command import blobs, heed_signals, stct
from pyarrow import parquet

from stct import console
from stct.data.columns import encode_label
from stct.data.tables import read_table

pytestmark = pytest.mark.slow  # starts real processes

CLASSES = {
    "csv": ["007", "NA", "ü, \nodd"],
    "tsv": ["1.0", "1", " x "],
    "parquet": [3, 10, 2],
    "jsonl": [1, "1", True],
}


def write_inputs(folder, ending, *, missing=(7,)):
    """Write a table of 60 rows with ids, odd labels and columns of the caller's own."""
    X, truth, given = blobs()
    classes = CLASSES[ending]
    labels = [None if i in missing else classes[c] for i, c in enumerate(given)]
    ids = [f"img/{i}" for i in range(60)]
    confidence = [f"{c} mine" for c in truth]
    path = folder / f"t.{ending}"
    if ending == "parquet":
        columns = {"id": ids, "confidence": confidence, "label": labels}
        parquet.write_table(pa.table(columns), path)
    elif ending == "jsonl":
        rows = zip(ids, confidence, labels, strict=True)
        lines = [json.dumps({"id": a, "confidence": b, "label": c}) for a, b, c in rows]
        path.write_text("\n".join(lines))
    else:
        comma = "," if ending == "csv" else "\t"
        cells = [["id", "confidence", "label"]]
        cells += [
            [a, b, c or ""] for a, b, c in zip(ids, confidence, labels, strict=True)
        ]
        text = "\n".join(comma.join(f'"{cell}"' for cell in row) for row in cells)
        path.write_text(text + "\n")
    order = np.random.default_rng(1).permutation(60)
    np.savez(folder / "e.npz", embeddings=X[order], ids=np.array(ids)[order])
    return path, [classes[c] for c in truth]


def exactly(values):
    """Values with their types, comparable: 1, 1.0 and True all differ."""
    return [encode_label(value, text_only=False) for value in values]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "jsonl"])
def test_correct_apply_revert(tmp_path, ending):
    path, truth = write_inputs(tmp_path, ending)
    done = stct("correct", path.name, "--embeddings", "e.npz", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "relabelled" in done.stdout
    told = r"Corrected in ([\d.]+) s, ([\d.]+) s with reading and writing\n"
    own, all_of_it = map(float, re.match(told, done.stdout).groups())
    assert own <= all_of_it
    out = tmp_path / "stct-output"
    expected = ["corrector.npz", f"labels.{ending}", "patch.csv", "report.html"]
    expected += ["review.npz", "soft_labels.npz", "summary.json"]
    assert sorted(file.name for file in out.iterdir()) == expected

    table, labels = read_table(path), read_table(out / f"labels.{ending}")
    columns = ["id", "given", "label", "confidence", "action", "confidence_original"]
    assert list(labels.columns) == columns
    assert labels.values("id") == table.values("id")
    assert exactly(labels.values("given")) == exactly(table.values("label"))
    assert exactly(labels.values("label")) == exactly(truth)
    assert labels.values("confidence_original") == table.values("confidence")
    actions = labels.values("action")
    assert actions == ["relabel"] * 6 + ["keep", "fill"] + ["keep"] * 52

    patch = read_table(out / "patch.csv")
    assert list(patch.columns) == ["id", "old", "new", "confidence"]
    assert patch.values("id") == [f"img/{i}" for i in (*range(6), 7)]
    assert patch.values("old")[-1] == ""

    soft = np.load(out / "soft_labels.npz", allow_pickle=False)
    assert soft["ids"].tolist() == table.values("id")
    assert soft["probabilities"].dtype == np.float32
    np.testing.assert_allclose(soft["probabilities"].sum(axis=1), 1.0, rtol=1e-5)
    best = soft["classes"][soft["probabilities"].argmax(axis=1)].tolist()
    assert best == (exactly(truth) if ending == "jsonl" else truth)

    applied = tmp_path / f"applied.{ending}"
    done = stct("apply", out / "patch.csv", path, "-o", applied, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"7 labels changed in {applied}\n"
    assert exactly(read_table(applied).values("label")) == exactly(truth)

    back = tmp_path / f"back.{ending}"
    done = stct(
        "revert", out / "patch.csv", applied, "-o", back, "--quiet", cwd=tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    again = read_table(back)
    assert list(again.columns) == list(table.columns)
    for name in table.columns:
        assert exactly(again.values(name)) == exactly(table.values(name))
    if ending == "parquet":
        assert again.schema.equals(table.schema, check_metadata=True)


def test_json_summary_and_the_same_bytes_again(tmp_path):
    path, _ = write_inputs(tmp_path, "csv")
    command = ["correct", path, "--embeddings", "e.npz", "--method", "split"]
    command += ["--seed", "3", "--min-odds", "2", "-o", "out"]
    done = stct(*command, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    out = tmp_path / "out"
    assert summary == json.loads((out / "summary.json").read_text("utf-8"))
    assert summary["rows"] == 60
    assert summary["class_names"] == sorted(CLASSES["csv"])
    assert (summary["method"], summary["seed"]) == ("split", 3)
    assert summary["parameters"]["min_odds"] == 2.0
    assert sum(summary["actions"].values()) == 60
    assert summary["actions"]["fill"] == 1
    assert sum(summary["class_counts"]["before"]) == 59
    assert sum(summary["class_counts"]["after"]) == 60
    assert np.shape(summary["transition_matrix"]) == (3, 3)
    assert len(summary["learnable"]) == 3
    accuracy = summary["estimated_accuracy"]
    for when in ("before", "after"):
        low, high = accuracy[f"{when}_interval"]
        assert low <= accuracy[when] <= high
    assert summary["noise_rate"] == pytest.approx(1 - accuracy["before"])
    assert set(summary["versions"]) == {"stct", "python", "numpy", "scikit-learn"}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert summary["inputs"]["table"] == {"file": "t.csv", "sha256": digest}
    assert any("'confidence_original'" in note for note in summary["notes"])

    files = ["corrector.npz", "labels.csv", "patch.csv", "report.html", "review.npz"]
    files += ["soft_labels.npz"]
    before = [(out / name).read_bytes() for name in files]
    done = stct(*command, "--overwrite", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [(out / name).read_bytes() for name in files] == before
    again = json.loads((out / "summary.json").read_text("utf-8"))
    of_the_clock = {"seconds": 0, "checksum": 0}
    assert {**again, **of_the_clock} == {**summary, **of_the_clock}


def test_locked_rows_and_row_numbers_as_ids(tmp_path):
    X, truth, given = blobs(120, num_wrong=15)
    marks = ["yes", "TRUE", "1", "no", "", "0", *[""] * 114]
    rows = [f"{label},{mark}" for label, mark in zip(given, marks, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["stars,checked", *rows]))
    np.save(tmp_path / "e.npy", X)
    command = ["correct", "t.csv", "--embeddings", "e.npy", "--quiet"]
    command += ["--label-column", "stars", "--locked-column", "checked"]
    done = stct(*command, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    labels = read_table(tmp_path / "stct-output" / "labels.csv")
    assert labels.values("id") == [str(i) for i in range(120)]
    assert labels.values("label")[:3] == [str(v) for v in given[:3]]
    assert labels.values("label")[3:] == [str(v) for v in truth[3:]]
    assert labels.values("confidence")[:3] == ["1.0"] * 3
    patch = read_table(tmp_path / "stct-output" / "patch.csv")
    assert patch.values("id") == [str(i) for i in range(3, 15)]


def test_conflicts_stop_everything_unless_skipped(tmp_path):
    (tmp_path / "t.csv").write_text("id,label\na,x\nb,y\n")
    (tmp_path / "p.csv").write_text("id,old,new\na,x,z\nb,other,z\n")
    command = ["apply", "p.csv", "t.csv", "-o", "out.csv"]
    done = stct(*command, cwd=tmp_path)
    assert done.returncode == 2
    listed, error = done.stderr.splitlines()
    assert listed == "conflict: id b: expected 'other', found 'y'"
    assert error.startswith("stct: error: t.csv: 1 of 2 labels are not what the patch")
    assert not (tmp_path / "out.csv").exists()
    done = stct(*command, "--skip-conflicts", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [listed]
    assert (tmp_path / "out.csv").read_text() == "id,label\na,z\nb,y\n"


def test_conflicts_and_changes_as_json(tmp_path):
    rows = "".join(f"{i},x\n" for i in range(30))
    (tmp_path / "t.csv").write_text(f"id,label\n{rows}")
    changes = "".join(f"{i},{'y' if i else 'x'},z\n" for i in range(30))
    (tmp_path / "p.csv").write_text(f"id,old,new\n{changes}")
    command = ["apply", "p.csv", "t.csv", "-o", "out.csv"]
    assert stct(*command, cwd=tmp_path).stderr.count("conflict: id") == 29
    command += ["--skip-conflicts", "--json"]
    done = stct(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert result["changed"] == 1
    assert len(result["conflicts"]) == 29
    assert result["conflicts"][0] == {"id": "1", "expected": "y", "found": "x"}
    command = ["revert", "p.csv", "out.csv", "-o", "back.csv", *command[-2:]]
    assert json.loads(stct(*command, cwd=tmp_path).stdout)["changed"] == 1


WITHOUT_DELAY = """
from types import SimpleNamespace
from stct import cli, console

class Timer:
    def __init__(self, seconds, call):
        self.start = call

    def cancel(self):
        pass

    join = cancel

console.threading = SimpleNamespace(**{**vars(console.threading), "Timer": Timer})
cli.main()
"""


def on_a_terminal(*arguments, cwd):
    """Run the command with stderr on a terminal, and give what that shows."""
    terminal, side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", WITHOUT_DELAY, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=side,
        env={**os.environ, "TERM": "xterm", "OMP_NUM_THREADS": "1"},
    ) as process:
        os.close(side)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal ends
            while part := os.read(terminal, 65536):
                shown += part
    os.close(terminal)
    assert process.returncode == 0, shown
    return shown.decode()


def test_progress_of_all_that_can_take_long(tmp_path):
    path, _ = write_inputs(tmp_path, "csv")
    correct = ["correct", path.name, "--embeddings", "e.npz", "--overwrite"]
    patch = ["stct-output/patch.csv", "-o", "out.csv", "--overwrite"]
    for command, texts in (
        (correct, [f"Reading {path.name}", "Correcting", "Writing the labels"]),
        (["noise", path.name, "-o", "n.csv"], ["Reading t.csv", "Writing n.csv"]),
        (["apply", *patch, path.name], ["Patching t.csv", "Writing out.csv"]),
        (["report", "stct-output"], ["Writing the report"]),
    ):
        shown = on_a_terminal(*command, cwd=tmp_path)
        for text in texts:
            assert text in shown, command
    assert on_a_terminal(*correct, "--quiet", cwd=tmp_path) == ""
    assert on_a_terminal(*correct, "--json", cwd=tmp_path) == ""


def test_progress_is_one_plain_line_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(console, "_SHOW_AFTER", 0.0)
    for quiet in (False, True):
        with console.progress("Correcting", quiet=quiet) as report:
            for done in (0.0, 0.25, 0.5, 1.0):
                report(done)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(r"Correcting: 25%, about .* seconds? left\n", shown.err)


def test_a_log_file_gets_lines_while_nothing_is_reported(capsys, monkeypatch):
    monkeypatch.setattr(console, "_SHOW_AFTER", 0.0)
    monkeypatch.setattr(console, "_PLAIN_EVERY", 0.05)
    with console.progress("Embedding", quiet=False) as report:
        while capsys.readouterr().err.count("Embedding: 0 s so far") < 1:
            time.sleep(0.05)
        report(0.5)
        seen = ""
        while seen.count("Embedding: 50%, about") < 3:
            time.sleep(0.05)
            seen += capsys.readouterr().err
    with console.progress("Embedding", quiet=True):
        time.sleep(0.1)
    assert capsys.readouterr().err.count("\n") <= 1  # nothing after the end


STOPPED = """
import time
from stct import cli
from stct.data import tables
from stct.data.tables import read_table

def stop(*arguments):
    print("here", flush=True)
    time.sleep(60)

def write_table(path, table, **_):
    path.write_text("half of")
    stop()

if {reading}:
    tables.decode = stop
else:
    tables.write_table = write_table
cli.main()
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("reading", [True, False])
def test_a_signal_ends_it_and_leaves_nothing(tmp_path, end, reading):
    (tmp_path / "t.csv").write_text("label\na\nb\n")
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED.format(reading=reading)]
        + ["noise", "t.csv", "-o", "out.csv"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_signals,
    )
    assert process.stdout.readline() == b"here\n"
    process.send_signal(end)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + end
    assert (stdout, stderr) == (b"", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_nohup_is_heeded(tmp_path):
    """A hangup does not end what was started to go on without a terminal."""
    (tmp_path / "t.csv").write_text("label\na\nb\n")
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED.format(reading=True).replace("60", "1")]
        + ["noise", "t.csv", "-o", "out.csv"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert process.stdout.readline() == b"here\n"
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 2  # what it has read is nothing
