"""The battery on one's own embeddings, through the real command, on the digits."""

import contextlib
import csv
import io
import json
import math
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import assert_error, heed_signals, stct
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score

from stct.bench import averages, battery, results
from stct.bench.measure import measure
from stct.bench.methods import METHODS, TITLES
from stct.bench.plot import plot
from stct.cli import main

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "correct.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits as a table of names with embeddings apart, and as one npz file."""
    path = tmp_path_factory.mktemp("digits")
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    rushed = np.where(np.arange(600) % 4 == 0, (y + 1) % 10, y)
    lines = [f"{i},digit {y[i]},digit {rushed[i]}" for i in range(600)]
    (path / "t.csv").write_text("id,label,rushed\n" + "\n".join(lines) + "\n")
    order = np.random.default_rng(0).permutation(600)
    np.savez(path / "e.npz", embeddings=X[order], ids=order)
    np.savez(path / "all.npz", train=X, y_train=y, human_rushed=rushed)
    return path


def here(*arguments):
    """Run the command in this process: quick, for what fails before any work."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["stct", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
    return subprocess.CompletedProcess(
        arguments, stop.value.code, out.getvalue(), err.getvalue()
    )


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_all_methods_on_a_table(folder, tmp_path):
    out = tmp_path / "out"
    done = stct(
        *("bench", folder / "t.csv", "--embeddings", folder / "e.npz"),
        *("--noise", "symmetric:0.5,asymmetric:0.4"),
        *("--noisy-column", "rushed", "-o", out),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for method in METHODS:
        assert done.stdout.count(f" {TITLES[method]}  ") == 3
    assert "nearest mean" in done.stdout
    files = sorted(path.name for path in out.iterdir())
    assert files == ["bench.csv", "bench.png", "summary.json"]
    assert (out / "bench.png").read_bytes()[1:4] == b"PNG"
    rows = read(out / "bench.csv")
    assert len(rows) == 3 * len(METHODS)
    assert not any(row["failure"] for row in rows)
    for row in rows:
        right = float(row["label_accuracy"])
        if row["method"] == "given":
            assert right == pytest.approx(1 - float(row["actual_noise"]))
            assert row["auroc"] == ""
        elif row["noise"] == "symmetric:0.5" and row["method"] != "paper":
            assert float(row["auroc"]) > 0.7
        if row["noise"] == "symmetric:0.5" and row["method"] == "loo":
            assert right > 0.85
            assert float(row["f1"]) > 0.85
            assert float(row["auroc"]) > 0.9
    rushed = [row for row in rows if row["noise"] == "rushed"]
    assert {row["actual_noise"] for row in rushed} == {"0.25"}


@pytest.mark.slow
def test_one_npz_file_has_everything_and_says_it_as_json(folder, tmp_path):
    command = ["bench", folder / "all.npz", "--methods", "given,loo", "--json"]
    command += ["--noise", "asymmetric:0.4", "--map", "cifar10", "-o", "out"]
    command += ["--seeds", "2"]
    done = stct(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout)
    noises = [(r["noise"], r["method"]) for r in summary["results"]]
    assert noises == [
        *[("asymmetric:0.4", "given"), ("asymmetric:0.4", "loo")],
        *[("human_rushed", "given"), ("human_rushed", "loo")],
    ]
    given, loo = summary["results"][2:]
    assert given["label_accuracy"] == 0.75
    assert loo["label_accuracy"] > 0.9
    rows = read(tmp_path / "out/bench.csv")
    mine = [float(r["label_accuracy"]) for r in rows if r["method"] == "loo"][:2]
    assert [r["n"] for r in summary["results"]] == [2, 2, 1, 1]
    mean = summary["results"][1]
    assert mean["label_accuracy"] == pytest.approx(np.mean(mine), abs=1e-5)
    assert mean["label_accuracy_std"] == pytest.approx(np.std(mine, ddof=1), abs=1e-5)
    assert_error(stct(*command, cwd=tmp_path), "out", "--overwrite")


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (["--noise", "symetric:0.5"], ["'symetric'", "symmetric, symmetric-strict"]),
        (["--noise", "pair"], ["'pair'", "rate", "pair:0.4"]),
        (["--noise", "pair:1.5"], ["'pair:1.5'", "from 0 to 1"]),
        (["--noise", "none"], ["--noisy-column"]),
        (["--methods", "loo,magic"], ["'magic'", "given, probe"]),
        (["--noisy-column", "nobody"], ["'nobody'", "--noisy-column"]),
        (["--noisy-column", "id"], ["'id'", "which 'label' lacks"]),
        (["--map", "cifar10", "--noise", "asymmetric:0.4"], ["cifar10", "digit 0"]),
        (["--label-column", "class"], ["'class'", "--label-column"]),
        (["--embeddings", "missing.npy"], ["missing.npy"]),
    ],
)
def test_bad_input_is_one_line(folder, tmp_path, options, fragments):
    command = ["bench", folder / "t.csv", "--embeddings", folder / "e.npz"]
    assert_error(here(*command, "-o", tmp_path / "out", *options), *fragments)
    assert list(tmp_path.iterdir()) == []


def test_npz_files_that_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.zeros((4, 2))
    np.savez(tmp_path / "a.npz", embeddings=X)
    assert_error(here("bench", "a.npz"), "a.npz", "no labels")
    np.savez(tmp_path / "b.npz", embeddings=X, labels=np.array([1, 2, None, 1]))
    assert_error(here("bench", "b.npz"), "b.npz", "'labels'")
    np.savez(tmp_path / "c.npz", embeddings=X, labels=np.array([1, 2]))
    assert_error(here("bench", "c.npz"), "2 labels", "4 embeddings")
    (tmp_path / "d.npz").write_text("text")
    assert_error(here("bench", "d.npz"), "d.npz", "not a .npz file")
    (tmp_path / "t.csv").write_text('label\na\nb\n""\n')
    np.save(tmp_path / "e.npy", np.zeros((3, 2)))
    done = here("bench", "t.csv", "--embeddings", "e.npy")
    assert_error(done, "t.csv", "no label in row 2")


@pytest.mark.slow
def test_without_matplotlib_and_cleanlab_there_is_a_line_instead(folder, tmp_path):
    """Run the command where both packages cannot be found."""
    script = (
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('matplotlib', 'cleanlab'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "import importlib.util as u\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda n, p=None: None if n == 'cleanlab' else real(n, p)\n"
        "from stct.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, "bench", folder / "all.npz"]
    command += ["--noise", "pair:0.2", "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no plot: matplotlib is not installed; pip install" in done.stdout
    assert "cleanlab is not installed: pip install" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "bench.csv",
        "summary.json",
    ]
    failed = {row["method"] for row in read(tmp_path / "out/bench.csv")}
    assert failed == set(METHODS) - {"cleanlab"}


@pytest.mark.slow
def test_ctrl_c_ends_the_processes_and_leaves_nothing(folder, tmp_path):
    command = [sys.executable, "-m", "stct", "bench", folder / "all.npz"]
    process = subprocess.Popen(
        [*command, "--seeds", "1000", "--methods", "given"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_signals,
    )
    assert process.stderr.readline().startswith("Benchmarking: ")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (stdout, stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_benchmark_of_the_repository_is_the_same_battery():
    command = [sys.executable, BENCHMARK, "--noise", "symmetric:0.5"]
    command += ["--methods", "given", "loo"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stct loo (default)" in done.stdout
    assert "x H.T @ H" in done.stdout


def score(noise, method, seed, right):
    return battery.Score(noise, method, seed, 0.5, right, right, right, 2.0, 9.0, "")


def test_what_is_asked_for_twice_is_run_once():
    text = "symmetric:0.5, symmetric:.50,pair:0.2,symmetric:0.5,symmetric-strict:0.5"
    expected = ["symmetric:0.5", "pair:0.2", "symmetric-strict:0.5"]
    assert battery.parse_noise(text) == expected
    assert battery.parse_methods("loo,given,loo") == (["loo", "given"], [])


def test_long_names_of_noise_keep_the_columns_apart():
    long = "labels_of_the_second_annotator"
    scores = [score(noise, "loo", 0, 0.9) for noise in (long, "pair:0.1")]
    head, first, second = results.table_lines(averages.average(scores))
    assert first.startswith(f"{long}  stct loo (default)")
    assert second.index("stct loo") == first.index("stct loo") == head.index("method")


def test_the_plot_tells_how_many_seeds_each_panel_has(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path: drawn.append(self))
    scores = [score("pair:0.1", "loo", seed, 0.9) for seed in range(3)]
    means = averages.average([*scores, score("rushed", "loo", 0, 0.8)])
    plot(means, tmp_path / "bench.png", "4 rows")
    titles = [axis.get_title() for axis in drawn[0].axes]
    assert titles[:2] == ["pair:0.1, mean of 3 seeds", "rushed"]
    assert "seconds" in titles
    assert any("F1" in title for title in titles)
    assert any("AUROC" in title for title in titles)


def test_f1_and_auroc_are_the_textbook_ones():
    rng = np.random.default_rng(0)
    truth, given, labels = (rng.integers(0, 3, 200) for _ in range(3))
    wrong = given != truth
    expected = f1_score(wrong, labels != given)
    assert battery.detection_f1(given, labels, truth) == pytest.approx(expected)
    doubt = rng.normal(size=200)
    pairs = [float(a > b) for a in doubt[wrong] for b in doubt[~wrong]]
    auroc = battery.detection_auroc(given, doubt, truth)
    assert auroc == pytest.approx(np.mean(pairs))
    assert math.isnan(battery.detection_auroc(truth, doubt, truth))
    assert math.isnan(battery.detection_auroc(given, None, truth))


def test_asymmetric_noise_goes_to_the_class_with_the_nearest_mean():
    H = np.array([[0.0], [0.2], [1.0], [1.2], [5.0], [5.2]])
    truth = np.array([0, 0, 1, 1, 2, 2])
    assert battery.nearest_classes(H, truth, 3) == {0: 1, 1: 0, 2: 1}


def test_a_method_that_fails_is_a_row_that_says_why(monkeypatch):
    def broken(H, y, C):
        raise RuntimeError("no\nluck")

    monkeypatch.setitem(METHODS, "knn", broken)
    done = measure("knn", np.zeros((4, 2)), np.zeros(4, np.intp), 2)
    assert done.verdict is None
    assert done.failure == "RuntimeError: no luck"
    score = battery.Score(
        *("pair:0.1", "knn", 0, 0.1),
        *(math.nan, math.nan, math.nan, math.nan, math.nan, done.failure),
    )
    (mean,) = averages.average([score])
    assert mean.n == 0
    assert "failed" in results.table_lines([mean])[1]
