"""The grid runner, and the parts of the experiments that can be wrong quietly."""

import csv
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "experiments"
sys.path.insert(0, str(FOLDER))

import frozen  # noqa: E402
import generated  # noqa: E402
import runner  # noqa: E402

from stct import LabelCorrector  # noqa: E402
from stct import noise as stct_noise  # noqa: E402


def toy(measure):
    return runner.Experiment(
        name="toy",
        title="A toy.",
        data="anything",
        grids={"full": [{"noise": n, "seed": s} for n in "ab" for s in range(2)]},
        metrics=("value",),
        load=lambda path: path,
        measure=measure,
    )


def run(experiment, folder, *more):
    arguments = [str(folder), "--results", str(folder), *more]
    runner.main(experiment, arguments)


def rows(folder):
    with (folder / "toy.csv").open() as file:
        return list(csv.DictReader(file))


def test_present_cells_are_skipped_and_rows_say_where_they_come_from(tmp_path, capsys):
    calls = []

    def measure(data, cell):
        calls.append(runner.name_of(cell))
        return {"value": len(calls)}

    run(toy(measure), tmp_path, "--cells", "b/*")
    assert calls == ["b/0", "b/1"]
    run(toy(measure), tmp_path)
    assert calls == ["b/0", "b/1", "a/0", "a/1"]
    run(toy(measure), tmp_path)
    assert len(calls) == 4
    assert "4 cells present, 0 to run" in capsys.readouterr().out
    found = rows(tmp_path)
    # They stand where the grid has them, whichever was run first.
    assert [row["value"] for row in found] == ["3", "4", "1", "2"]
    assert list(found[0]) == [
        *("data", "scale", "noise", "seed", "value"),
        *("seconds", "machine", "commit"),
    ]
    assert found[0]["scale"] == "full"
    assert all(found[0].values())


def test_other_data_and_other_scales_are_other_rows(tmp_path):
    experiment = toy(lambda data, cell: {"value": 1})
    both = replace(experiment, grids={"full": [{"seed": 0}], "cpu": [{"seed": 0}]})
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for scale in ("full", "cpu"):
            arguments = [str(tmp_path / name), "--results", str(tmp_path)]
            runner.main(both, [*arguments, "--scale", scale])
    assert [(row["data"], row["scale"]) for row in rows(tmp_path)] == [
        *[("one", "full"), ("one", "cpu")],
        *[("two", "full"), ("two", "cpu")],
    ]


def test_an_interrupted_grid_goes_on_where_it_was(tmp_path):
    calls = []

    def interrupted(data, cell):
        calls.append(cell)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return {"value": 1}

    with pytest.raises(SystemExit) as stop:
        run(toy(interrupted), tmp_path)
    assert stop.value.code == 130
    assert len(rows(tmp_path)) == 2
    run(toy(interrupted), tmp_path)
    assert len(rows(tmp_path)) == 4
    assert len(calls) == 5


SCRIPT = """
import sys, time
sys.path.insert(0, {folder!r})
import runner
def measure(data, cell):
    time.sleep(0.01)
    return {{"value": "x" * 2000}}
runner.main(runner.Experiment("toy", "t", "d",
    {{"full": [{{"seed": s}} for s in range(80)]}}, ("value",), str, measure))
"""


@pytest.mark.slow
def test_a_killed_grid_leaves_whole_rows(tmp_path):
    script = tmp_path / "toy.py"
    script.write_text(SCRIPT.format(folder=str(FOLDER)))
    command = [sys.executable, script, tmp_path, "--results", tmp_path]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (tmp_path / "toy.csv").exists() or len(rows(tmp_path)) < 5:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    found = rows(tmp_path)
    assert 5 <= len(found) < 80
    for row in found:
        assert len(row["value"]) == 2000
        assert row["commit"]
    assert [row["seed"] for row in found] == [str(i) for i in range(len(found))]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    assert [row["seed"] for row in rows(tmp_path)] == [str(i) for i in range(80)]


def test_many_writers_lose_no_row(tmp_path):
    cells = [{"seed": seed} for seed in range(40)]
    experiment = runner.Experiment("toy", "t", "d", {"full": cells}, (), str, dict)

    def add(seed):
        row = {"data": "d", "scale": "full", "seed": seed}
        runner.append_rows(tmp_path / "toy.csv", experiment, [row])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, reversed(range(40))))
    assert [int(row["seed"]) for row in rows(tmp_path)] == list(range(40))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cells", "a/7"], "no cell 'a/7'; near: a/"),
        (["--cells", "a/*", "c/*"], "no cell 'c/*'"),
        (["--results", "missing"], "missing: no such folder"),
    ],
)
def test_what_cannot_be_run_is_one_line(tmp_path, capsys, arguments, message):
    with pytest.raises(SystemExit) as stop:
        run(toy(lambda data, cell: {}), tmp_path, *arguments)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("toy: error: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "toy.csv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [("seed\n1\n", "has the columns seed; expected data, scale"), ("", "columns")],
)
def test_a_file_of_other_columns_is_not_touched(tmp_path, capsys, text, message):
    (tmp_path / "toy.csv").write_text(text)
    with pytest.raises(SystemExit):
        run(toy(lambda data, cell: {"value": 1}), tmp_path)
    assert message in capsys.readouterr().err
    assert (tmp_path / "toy.csv").read_text() == text


def digits(folder):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    path = folder / "digits.npz"
    human = np.where(np.arange(1200) < 80, (y[:1200] + 1) % 10, y[:1200])
    np.savez(
        path,
        train=X[:1200],
        y_train=y[:1200],
        test=X[1200:],
        y_test=y[1200:],
        human_worst=human,
    )
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "cells"),
    [
        ("label_accuracy", ["symmetric:0.5/*/0", "human:worst/split/0"]),
        ("validation_sets", ["asymmetric:0.2/*/split/0"]),
        ("sampling_rate", ["symmetric:0.5/split/*/0.2/0.9/0"]),
        ("clean_validation", ["asymmetric:0.4/[05]*/paper/0"]),
        ("distribution", ["symmetric:0.5/0"]),
    ],
)
def test_the_experiments_run_on_any_embeddings(tmp_path, script, cells):
    data = digits(tmp_path)
    command = [sys.executable, FOLDER / f"{script}.py", data, "--results", tmp_path]
    done = subprocess.run([*command, "--cells", *cells], capture_output=True, text=True)
    if script == "clean_validation":  # 5,000 extra rows are not there
        assert done.returncode == 2
        assert done.stderr == f"{script}: error: there are only 597 test rows\n"
    else:
        assert (done.returncode, done.stderr) == (0, "")
    assert len(runner.read_rows(tmp_path / f"{script}.csv")) >= 2


def test_what_is_no_embeddings_file_is_said(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, train=np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"other.npz: .* no array y_train, test, y_te"):
        frozen.load(path)
    path.write_text("no zip")
    with pytest.raises(ValueError, match=r"other.npz: not an embeddings file"):
        frozen.load(path)


@pytest.mark.parametrize("name", ["y_train", "y_test", "human_worst"])
def test_labels_are_one_for_each_row(tmp_path, name):
    with np.load(digits(tmp_path)) as file:
        arrays = dict(file)
    arrays[name] = arrays[name][:-1]
    np.savez(tmp_path / "short.npz", **arrays)
    with pytest.raises(
        ValueError, match=rf"short.npz: .*{name} has the shape \(\d+,\)"
    ):
        frozen.load(tmp_path / "short.npz")


def test_a_damaged_file_is_one_line(tmp_path):
    with np.load(digits(tmp_path)) as file:
        np.savez_compressed(tmp_path / "damaged.npz", **file)
    data = bytearray((tmp_path / "damaged.npz").read_bytes())
    for place in range(200, 20_000, 37):
        data[place] ^= 0xFF
    (tmp_path / "damaged.npz").write_bytes(data)
    command = [sys.executable, FOLDER / "label_accuracy.py", tmp_path / "damaged.npz"]
    done = subprocess.run(
        [*command, "--results", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("label_accuracy: error: ")
    assert "damaged.npz: not an embeddings file" in done.stderr
    assert done.stderr.count("\n") == 1


def test_all_scales_are_the_same_where_no_gpu_is_needed(tmp_path, capsys):
    for scale in ("full", "cpu", "paper"):
        run(toy(lambda data, cell: {"value": 1}), tmp_path, "--scale", scale)
    assert len(rows(tmp_path)) == 4
    assert {row["scale"] for row in rows(tmp_path)} == {"full"}
    with pytest.raises(SystemExit):
        run(toy(None), tmp_path, "--help")
    assert "runs in full on a CPU" in " ".join(capsys.readouterr().out.split())


def test_a_cell_of_several_rows_is_one_cell(tmp_path, capsys):
    experiment = toy(lambda data, cell: [{"value": i} for i in range(3)])
    run(experiment, tmp_path, "--cells", "a/0")
    run(experiment, tmp_path, "--cells", "a/*")
    assert [row["seed"] for row in rows(tmp_path)] == ["0"] * 3 + ["1"] * 3
    assert "a/0: 3 rows" in capsys.readouterr().out


def test_nmc_of_the_experiments_is_nmc_of_the_library(tmp_path):
    data = frozen.load(digits(tmp_path))
    given = frozen.add_noise(data, "symmetric:0.5", 3).labels
    for method in ("split", "paper"):
        ours = frozen.correct(data, given, method=method, seed=3)
        library = LabelCorrector(method, random_state=3).fit(data.H, given)
        assert ours.num_splits == library.n_iter_
        assert np.mean(ours.labels.argmax(axis=1) == library.labels_) > 0.999


def test_splits_do_not_repeat_the_draws_of_the_noise():
    """One generator for both would validate with exactly the rows of wrong labels."""
    truth = np.zeros(1000, np.intp)
    noisy = stct_noise.symmetric(truth, 10, 0.5, np.random.default_rng(4)).labels
    for number in (1, 2, 3):
        rows = frozen.stream(4, number).permutation(1000)[:500]
        assert 0.35 < np.mean(noisy[rows] != 0) < 0.55


def test_fuzzy_c_means_is_the_textbook_formula():
    rng = np.random.default_rng(0)
    H, centres, m = rng.normal(size=(7, 3)), rng.normal(size=(4, 3)), 1.7
    U = generated.memberships(H, centres, m)
    d = [[np.linalg.norm(h - c) for c in centres] for h in H]
    for i in range(7):
        for j in range(4):
            expected = 1 / sum((d[i][j] / d[i][k]) ** (2 / (m - 1)) for k in range(4))
            assert U[i, j] == pytest.approx(expected)
    moved = generated.move_centres(H, U, m)
    expected = sum(U[i, 2] ** m * H[i] for i in range(7)) / sum(U[:, 2] ** m)
    np.testing.assert_allclose(moved[2], expected)


def test_rules_choose_rows_with_more_right_labels_than_there_were(tmp_path):
    data = frozen.load(digits(tmp_path))
    given = frozen.add_noise(data, "symmetric:0.5", 0).labels
    nearest = generated.neighbours(data.H, k=30)
    assert all(i not in row for i, row in enumerate(nearest))
    unit = data.H / np.linalg.norm(data.H, axis=1, keepdims=True)
    naive = np.argsort(-(unit @ unit[5]), kind="stable")[1:31]
    assert set(nearest[5]) == set(naive)
    clusters = generated.fuzzy_clusters(data.H, 10, seed=0)
    for chosen in (
        generated.by_loss(data.H, given, seed=0),
        generated.by_neighbours(nearest, given, 10),
        generated.by_clusters(clusters, given, 10),
    ):
        assert 100 < len(chosen.rows) < 1200
        right = np.mean(chosen.labels == data.truth[chosen.rows])
        assert right > np.mean(given == data.truth) + 0.1
