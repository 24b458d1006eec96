"""``stct correct --from``, ``stct predict`` and ``stct check``, with real files."""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hf_models import save_model
from PIL import Image

from stct import LabelCorrector, cli
from stct.data.gate import rows_that_decide
from stct.data.row_digests import find_digests, row_digests, with_codes

EXAMPLES = Path(__file__).parents[1] / "examples" / "pipelines"
NAMES = np.array(["ant", "bee", "cow"])


def make_rows(n=900, wrong=0.2):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 6)) + 2.0 * rng.normal(size=(3, 6))[truth]
    flip = rng.random(n) < wrong
    given = np.where(flip, (truth + rng.integers(1, 3, n)) % 3, truth)
    return X.astype(np.float32), given, truth


X, GIVEN, TRUTH = make_rows()


def write(folder, name, rows, labels=True, extra=None):
    """NAME.csv and NAME.npy with these rows."""
    np.save(folder / f"{name}.npy", X[rows])
    with (folder / f"{name}.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "label"] if labels else ["id"])
        for row in rows:
            label = (extra or {}).get(row, NAMES[GIVEN[row]])
            out.writerow([row, label] if labels else [row])


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command inside this process: code, stdout, stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["stct", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err

    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with old rows, and the output of their correction."""
    folder = tmp_path_factory.mktemp("made")
    write(folder, "old", range(600))
    argv, sys.argv = sys.argv, ["stct", "correct", "old.csv", "--embeddings", "old.npy"]
    sys.argv += ["-o", "run", "--quiet"]
    before = Path.cwd()
    os.chdir(folder)
    try:
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    finally:
        os.chdir(before)
        sys.argv = argv
    assert stopped.value.code == 0
    return folder


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


def test_a_batch_gets_the_same_outputs_without_a_fit(folder, run, monkeypatch):
    write(folder, "new", range(600, 900), extra={600: ""})

    def no_fit(*_, **__):
        raise AssertionError("nothing is fitted")

    monkeypatch.setattr(LabelCorrector, "fit", no_fit)
    code, out, _ = run(
        *["correct", "new.csv", "--embeddings", "new.npy", "--from", "run"],
        *["-o", "new-run", "--json"],
    )
    assert code == 0
    names = {path.name for path in (folder / "run").iterdir()}
    assert {path.name for path in (folder / "new-run").iterdir()} == names
    rows = table(folder / "new-run" / "labels.csv")
    assert rows[0]["action"] == "fill"
    right = np.mean(
        [r["label"] == NAMES[t] for r, t in zip(rows, TRUTH[600:], strict=True)]
    )
    assert right > 0.9
    summary = json.loads(out)
    told = summary["from"]
    assert (told["refit"], told["rows_in_the_fit"]) == (False, 0)
    assert [d["differs"] for d in told["differences"]] == [False] * 3
    assert summary["termination_condition"] == "judged"
    judged, earlier = (
        LabelCorrector.load(p) for p in ("new-run/corrector.npz", "run/corrector.npz")
    )
    np.testing.assert_array_equal(judged.predict_proba(X), earlier.predict_proba(X))


def test_rows_of_the_fit_keep_what_was_said_of_them(folder, run):
    relabelled = {500: "ant" if GIVEN[500] else "bee"}
    write(folder, "mixed", range(400, 700), extra=relabelled)
    code, out, _ = run(
        *["correct", "mixed.csv", "--embeddings", "mixed.npy", "--from", "run"],
        *["-o", "mixed-run", "--json"],
    )
    assert code == 0
    old = {row["id"]: row for row in table(folder / "run" / "labels.csv")}
    new = {row["id"]: row for row in table(folder / "mixed-run" / "labels.csv")}
    for row in range(400, 600):
        if row != 500:
            assert new[str(row)] == old[str(row)]
    summary = json.loads(out)
    assert summary["from"]["rows_in_the_fit"] == 199
    notes = " ".join(summary["notes"])
    assert "199 rows have the embedding and the label of a row that run" in notes
    assert "1 rows have the embedding of a row that run" in notes
    # The file alone does not know the rows: nearly the same labels.
    code, _, _ = run(
        *["correct", "old.csv", "--embeddings", "old.npy", "--quiet"],
        *["--from", "run/corrector.npz", "-o", "in-sample"],
    )
    assert code == 0
    again = table(folder / "in-sample" / "labels.csv")
    same = np.mean([row["label"] == old[row["id"]]["label"] for row in again])
    assert same > 0.97


def test_refit_adds_a_batch_and_later_batches_know_it(folder, run):
    write(folder, "add", range(600, 900))
    arguments = ["add.csv", "--embeddings", "add.npy", "--quiet"]
    code, _, _ = run("correct", *arguments, "--from", "run", "--refit", "-o", "added")
    assert code == 0
    with np.load("added/corrector.npz") as file:
        about = json.loads(file["about"].tobytes())
        assert about["fit"]["num_rows"] == 900
        assert file["given_counts"].tolist() == np.bincount(GIVEN).tolist()
    code, out, _ = run(
        "correct", *arguments[:-1], "--json", "--from", "added", "-o", "3"
    )
    assert code == 0
    assert json.loads(out)["from"]["rows_in_the_fit"] == 300
    assert table(folder / "3" / "labels.csv") == table(folder / "added" / "labels.csv")


def test_numbers_in_another_format_are_the_same_classes(folder, run):
    """A csv file has text only; jsonl and parquet have numbers."""
    lines = [json.dumps({"id": i, "label": int(GIVEN[i])}) for i in range(600)]
    (folder / "n.jsonl").write_text("\n".join(lines))
    code, _, _ = run(
        "correct", "n.jsonl", "--embeddings", "old.npy", "-o", "n", "--quiet"
    )
    assert code == 0
    write(folder, "c", range(600, 900), extra={i: GIVEN[i] for i in range(600, 900)})
    only = [*["correct", "c.csv", "--embeddings", "c.npy", "--from", "n"], "--quiet"]
    assert run(*only, "-o", "nc")[0] == 0
    assert {row["label"] for row in table(folder / "nc" / "labels.csv")} == {*"012"}
    rows = [row for row in range(600, 900) if GIVEN[row] < 2]  # one class has no row
    np.save("two.npy", X[rows])
    lines = [json.dumps({"id": i, "label": int(GIVEN[i])}) for i in rows]
    (folder / "two.jsonl").write_text("\n".join(lines))
    only = [
        "correct",
        "two.jsonl",
        "--embeddings",
        "two.npy",
        "--from",
        "nc",
        "--quiet",
    ]
    assert run(*only, "-o", "two")[0] == 0
    said = (folder / "two" / "labels.jsonl").read_text().splitlines()
    assert {type(json.loads(line)["label"]) for line in said} == {int}
    assert 2 in {json.loads(line)["label"] for line in said}


def test_predict_labels_rows_without_labels(folder, run):
    write(folder, "unlabelled", range(600, 900), labels=False)
    arguments = ["predict", "run", "unlabelled.csv", "--embeddings", "unlabelled.npy"]
    code, out, _ = run(*arguments, "-o", "p.csv")
    assert (code, out) == (0, "p.csv: labels of 300 rows\n")
    rows = table(folder / "p.csv")
    assert list(rows[0]) == ["id", "label", "confidence", "p:ant", "p:bee", "p:cow"]
    assert (
        np.mean(
            [r["label"] == NAMES[t] for r, t in zip(rows, TRUTH[600:], strict=True)]
        )
        > 0.8
    )
    np.save("unlabelled.npy", X[600:] + 1)
    code, out, _ = run(*arguments, "-o", "p.csv", "--overwrite")
    assert "note: this batch does not look like the rows of the fit: the feature" in out
    code, _, _ = run(*arguments, "-o", "p.parquet", "--quiet")
    assert code == 0


def test_text_and_columns_are_embedded_as_they_were(folder, run):
    words = {
        "ant": "small insect legs",
        "bee": "honey wings flower",
        "cow": "milk grass",
    }
    rng = np.random.default_rng(0)
    for name, rows in (("texts", range(300)), ("more", range(600, 700))):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["id", "text", "label"])
            for row in rows:
                said = rng.permutation(words[NAMES[TRUTH[row]]].split())
                out.writerow([row, f"{' '.join(said)} {row}", NAMES[GIVEN[row]]])
    arguments = ["--text-column", "text", "-o", "t", "--quiet"]
    assert run("correct", "texts.csv", *arguments)[0] == 0
    code, _, err = run("correct", "more.csv", "--from", "t", "-o", "m", "--quiet")
    assert (code, err) == (0, "")
    right = [NAMES[t] for t in TRUTH[600:700]]
    said = [row["label"] for row in table(folder / "m" / "labels.csv")]
    assert np.mean(np.array(said) == right) > 0.95
    assert run("predict", "t", "more.csv", "-o", "m.csv", "--quiet")[0] == 0
    said = [row["label"] for row in table(folder / "m.csv")]
    assert np.mean(np.array(said) == right) > 0.9
    assert run("check", "more.csv", "--from", "t", "--max-wrong", "0.01")[0] == 1


@pytest.mark.slow
def test_photos_are_embedded_by_the_same_encoder(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STCT_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for i in range(80):
        kind = "light" if i % 2 else "dark"
        given = kind if i % 9 else "dark"
        pixels = rng.integers(0, 80, (32, 32, 3)) + 150 * (kind == "light")
        for place in (f"photos/{given}", "new") if i < 20 else (f"photos/{given}",):
            Path(place).mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8)).save(f"{place}/{i}-{kind}.png")
    save_model(tmp_path / "model", "dinov2")
    arguments = ["--encoder", "hf:model", "-o", "run", "--quiet"]
    assert run("correct", "photos", *arguments)[0] == 0
    code, out, _ = run("predict", "run", "new", "-o", "p.csv")
    assert code == 0
    assert "labels of 20 rows" in out
    for row in table(tmp_path / "p.csv"):
        assert row["label"] in row["id"]
    (tmp_path / "model").rename(tmp_path / "moved")
    moved = ["--encoder", "hf:moved", "--quiet"]
    assert run("predict", "run", "new", "-o", "q.csv", *moved)[0] == 0
    assert Path("q.csv").read_bytes() == Path("p.csv").read_bytes()
    save_model(tmp_path / "other", "resnet")
    code, _, err = run("predict", "run", "new", "-o", "r.csv", "--encoder", "hf:other")
    assert code == 2
    assert "hf:other is not the one of run" in err
    assert run("correct", "photos", "--from", "run", "-o", "3", *moved)[0] == 0


def audit(folder, name, rows, truth=TRUTH):
    with (folder / name).open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "given", "verified"])
        out.writerows([row, NAMES[GIVEN[row]], NAMES[truth[row]]] for row in rows)


def test_a_batch_takes_an_audit_and_another_separator(folder, run):
    rows = range(600, 900)
    write(folder, "semi", rows)
    path = folder / "semi.csv"
    path.write_text(path.read_text().replace(",", ";"))
    audit(folder, "seen.csv", rows[::3])
    arguments = ["--embeddings", "semi.npy", "--sep", ";"]
    code, out, _ = run(
        *["correct", "semi.csv", "--from", "run", "--audit", "seen.csv", *arguments],
        *["-o", "audited", "--json"],
    )
    assert code == 0
    summary = json.loads(out)
    share = np.mean(GIVEN[600:900:3] != TRUTH[600:900:3])
    assert summary["noise_rate"] == pytest.approx(share)
    written = (folder / "audited" / "labels.csv").read_text().splitlines()
    said = [line.split(";")[2] for line in written[1:]]
    assert said[::3] == NAMES[TRUTH[600:900:3]].tolist()
    only = ["--max-wrong", 0.9, "--quiet"]
    assert run("check", "semi.csv", "--from", "run", *arguments, *only) == (0, "", "")
    assert run("check", "semi.csv", "--audit", "seen.csv", "--sep", ";", *only)[0] == 0
    code, _, _ = run("predict", "run", "semi.csv", *arguments, "-o", "s.csv", "--quiet")
    assert code == 0


def test_check_passes_fails_or_cannot_tell(folder, run):
    few = np.random.default_rng(1).choice(600, 60, replace=False)
    audit(folder, "audit.csv", few)
    command = ["check", "old.csv", "--audit", "audit.csv", "--max-wrong"]
    share = np.mean(GIVEN[few] != TRUTH[few])
    for limit, code, word in (
        (0.5, 0, "pass"),
        (0.02, 1, "fail"),
        (0.2, 3, "undecided"),
    ):
        found, out, err = run(*command, limit)
        assert (found, err) == (code, "")
        assert out.startswith(f"{word}: old.csv: {share:.1%} of 600 labels wrong")
        assert out.count("\n") == 1
    assert "random rows would tell" in out
    code, out, _ = run(*command, 0.02, "--json", "--junit", "check.xml")
    told = json.loads(out)
    assert (told["result"], told["exit_code"], code) == ("fail", 1, 1)
    low, high = told["interval"]
    assert 0.02 < low < share < high
    assert told["verified_rows"] == 60
    suite = ElementTree.parse("check.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "1",
        "1",
        "0",
    )
    assert suite.find("testcase/failure").get("message").startswith("fail: old.csv")
    code, out, _ = run(*command, 0.2, "--junit", "check.xml", "--overwrite")
    assert ElementTree.parse("check.xml").getroot().get("errors") == "1"
    assert run(*command, 0.5, "--quiet") == (0, "", "")
    # Without an audit: the estimate of a fit, or of an earlier model.
    code, out, _ = run(
        "check", "old.csv", "--embeddings", "old.npy", "--max-wrong", 0.6
    )
    assert (code, out[:4]) == (0, "pass")
    np.save("noise.npy", np.random.default_rng(0).normal(size=(600, 4)))
    arguments = ["--embeddings", "noise.npy", "--max-wrong", 0.05]
    code, out, _ = run("check", "old.csv", *arguments)
    assert code == 3
    assert "the features say nothing of the 600 labels" in out
    arguments = ["--from", "run", "--embeddings", "old.npy", "--max-wrong", 0.01]
    assert run("check", "old.csv", *arguments)[0] == 1


def test_rows_that_an_audit_needs():
    """The smallest number whose exact interval leaves the limit out."""
    count = rows_that_decide(0.1, 0.05, 10**6)
    assert 100 < count < 300
    assert rows_that_decide(0.06, 0.05, 10**6) > 1000
    assert rows_that_decide(0.05, 0.05, 10**6) is None
    assert rows_that_decide(0.06, 0.05, 100) <= 100  # all of them


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            "correct new.csv --embeddings old.npy --from run -o x",
            "600 embeddings for 3",
        ),
        ("correct new.csv --embeddings wide.npy --from run -o x", "7 columns"),
        ("correct odd.csv --embeddings new.npy --from run -o x", "know: emu; its cl"),
        (
            "correct none.csv --embeddings new.npy --from run -o x",
            "no labels; 'stct pr",
        ),
        ("correct new.csv --from run -o x", "no embeddings: give --embeddings"),
        ("correct new.csv --embeddings new.npy --from nowhere -o x", "no such folder"),
        ("correct new.csv --embeddings new.npy --from empty -o x", "no summary.json"),
        (
            "correct new.csv --embeddings new.npy --from without -o x",
            "no corrector.npz",
        ),
        ("correct new.csv --embeddings new.npy --from new.npy -o x", "not a readable"),
        ("correct new.csv --embeddings new.npy --refit -o x", "--refit goes with"),
        ("correct new.csv --from run -o run --overwrite", "is the earlier run itself"),
        ("correct new.csv --embeddings new.npy --from run --seed 3 -o x", "no --seed"),
        ("correct new.csv --pred-probs new.npy --from run -o x", "no --pred-probs"),
        ("predict run new.csv --embeddings wide.npy -o x", "x: a table must end in"),
        ("predict run new.csv --embeddings wide.npy -o x.csv", "7 columns"),
        ("predict run new.csv -o x.csv", "no embeddings: give --embeddings"),
        ("predict new.npy new.csv --embeddings new.npy -o x.csv", "--embeddings goes"),
        ("check new.csv --embeddings new.npy --max-wrong 5", "between 0 and 1, got 5"),
        ("check new.csv --max-wrong 0.05", "no embeddings"),
        ("check new.csv --audit other.csv --max-wrong 0.05", "ids that new.csv lacks"),
        ("check new.csv --audit new.csv --max-wrong 0.05", "not an audit"),
        ("check old.csv --audit gone/x.csv --max-wrong 0.05", "No such file"),
        ("check old.csv --audit other.csv --max-wrong 0.05 --junit no/x", "no folder"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(folder, run, arguments, says):
    write(folder, "new", [0, 1, 2])
    write(folder, "odd", [0, 1, 2], extra={1: "emu"})
    write(folder, "none", [0, 1, 2], extra={0: "", 1: "", 2: ""})
    write(folder, "new", [0, 1, 2])
    np.save("wide.npy", np.zeros((3, 7)))
    Path("empty").mkdir(exist_ok=True)
    Path("without").mkdir(exist_ok=True)
    Path("without/summary.json").write_bytes(Path("run/summary.json").read_bytes())
    audit(folder, "other.csv", [17, 18])
    before = sorted(path.name for path in folder.iterdir())
    code, out, err = run(*arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith("stct: error: ")
    assert err.count("\n") == 1
    assert says in err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_digests_know_rows_by_what_they_are():
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.normal(size=(20_000, 5)), rng.integers(0, 9, (20_000, 5))]
    )
    rows = np.unique(rows.astype(np.float32), axis=0)
    digests = row_digests(rows)
    assert len(np.unique(digests)) == len(rows)
    assert row_digests(rows[7:9].astype(np.float64)).tolist() == digests[7:9].tolist()
    zeros = np.zeros((1, 3))
    assert row_digests(-zeros) == row_digests(zeros)
    codes = np.arange(len(rows)) % 5 - 1
    known = with_codes(digests[:100], codes[:100])
    found = find_digests(with_codes(digests[50:150], codes[50:150]), known)
    assert found.tolist() == [*range(50, 100), *[-1] * 50]
    other = find_digests(with_codes(digests[:100], codes[:100] + 1), known)
    assert (other == -1).all()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the workflow's script is for sh")
def test_the_examples_for_pipelines_run(tmp_path):
    """The workflow's script and the hook's command, on files of each kind."""
    workflow = (EXAMPLES / "check-labels.yml").read_text()
    script = re.search(r"run: \|\n((?: {10}.*\n)+)", workflow)[1]
    hook = (EXAMPLES / "pre-commit-config.yaml").read_text()
    entry = shlex.split(re.search(r"entry: (.*)", hook)[1])
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "stct").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m stct "$@"\n')
    (programs / "stct").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 6000)
    Z = rng.normal(size=(6000, 2)) + 8.0 * truth[:, None]

    def outcome(command, wrong, rows):
        given = np.where(rng.random(rows) < wrong, 1 - truth[:rows], truth[:rows])
        np.save(tmp_path / "embeddings.npy", Z[:rows])
        text = "\n".join(["label", *(f"k{g}" for g in given), ""])
        (tmp_path / "labels.csv").write_text(text)
        (tmp_path / "check-labels.xml").unlink(missing_ok=True)
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout

    step = ["sh", "-e", "-c", script]
    code, out = outcome(step, 0.0, 6000)
    assert (code, out[:5]) == (0, "pass:"), out
    code, out = outcome(step, 0.3, 6000)
    assert (code, out[:5]) == (1, "fail:"), out
    code, out = outcome(step, 0.05, 400)
    assert code == 0
    assert out.startswith("undecided:")
    assert "::warning::" in out
    assert (tmp_path / "check-labels.xml").exists()
    code, out = outcome(entry, 0.3, 6000)
    assert (code, out[:5]) == (1, "fail:")
