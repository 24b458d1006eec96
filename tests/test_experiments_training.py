"""The experiments that train: what they read, and the runs that they keep."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from cifar_files import write_cifar10

FOLDER = Path(__file__).parent.parent / "experiments"
sys.path.insert(0, str(FOLDER))

import runner  # noqa: E402
import training  # noqa: E402
import training_data  # noqa: E402
import training_runs  # noqa: E402

from stct.data import cifar  # noqa: E402


@pytest.mark.slow
def test_training_cells_call_the_command_and_share_simclr(tmp_path, monkeypatch):
    pytest.importorskip("lightning_fabric")
    short = ["num_rounds=2", "srl.steps=3", "pretrain.epochs=1"]
    monkeypatch.setattr(training, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(training, "SIMCLR", [*training.SIMCLR, short[2]])
    monkeypatch.setattr(training, "VARIANTS", {"STCT": short[:2]})
    cell = {"dataset": "digits", "noise": "symmetric:0.5", "seed": 1}
    row = training.measure(tmp_path, {**cell, "variant": "STCT"})
    assert row["images"] == 1437
    assert 40 < row["actual_noise"] < 50
    assert row["label_accuracy"] > 100 - row["actual_noise"]
    assert len(row["label_curve"].split()) == len(row["test_curve"].split()) == 2
    assert row["test_accuracy"] == float(row["test_curve"].split()[-1])
    assert row["pretrain_seconds"] > 0
    files = sorted((tmp_path / "runs").rglob("*.safetensors"))
    times = [file.stat().st_mtime_ns for file in files]
    assert "digits-pretrained-1/run/pretrained.safetensors" in str(files)
    assert training.measure(tmp_path, {**cell, "variant": "STCT"}) == row
    assert [file.stat().st_mtime_ns for file in files] == times  # nothing ran again
    config = json.loads(next((tmp_path / "runs").rglob("run/config.json")).read_text())
    assert config["images"] == [1437, 8, 8, 1]


def test_every_variant_is_a_setting_that_training_has():
    config = pytest.importorskip("stct.train.config_text")
    presets = pytest.importorskip("stct.train.presets")
    for settings in [*training.VARIANTS.values(), training.SIMCLR]:
        config.override(presets.preset("tiny"), settings)
    assert set(training.PRESETS.values()) <= set(presets.PRESETS)


FAKE = """
import json, pathlib, sys, time
folder = pathlib.Path(__file__).parent
with (folder / "calls").open("a") as file:
    print(*sys.argv[1:], file=file)
new = "-o" in sys.argv
run = pathlib.Path(sys.argv[sys.argv.index("-o" if new else "--resume") + 1])
run.mkdir(exist_ok=not new)
time.sleep(float((folder / "sleep").read_text()))
if (folder / "fail").exists():
    sys.exit("one line\\nstct: error: no luck")
(run / "metrics.jsonl").write_text(
    "".join(json.dumps({"seconds": s}) + "\\n" for s in (5, 70, 3, 9))
)
(run / "summary.json").write_text(json.dumps({"seconds": 12.5}))
"""


class Fake:
    """A command in place of ``stct train`` that takes no time, or as long as asked."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "fake.py").write_text(FAKE)
        (folder / "sleep").write_text("0")
        self.command = [sys.executable, str(folder / "fake.py")]

    @property
    def calls(self):
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def fake(tmp_path, monkeypatch):
    made = Fake(tmp_path)
    monkeypatch.setattr(training_runs, "COMMAND", made.command)
    return made


def wanted(**changes):
    task = training_data.make_task(Path(), "digits", "symmetric:0.5", 0)
    return replace(training_runs.Wanted(task, "tiny", 0, ["srl.steps=7"]), **changes)


def test_a_run_is_reused_only_if_nothing_changed(tmp_path, fake):
    place = tmp_path / "place"
    first = training_runs.make(place, wanted())
    assert training_runs.make(place, wanted()) == first
    assert len(fake.calls) == 1
    other = training_data.make_task(Path(), "digits", "symmetric:0.8", 0)
    for number, changes in enumerate(
        ({"settings": ["srl.steps=8"]}, {"preset": "cpu"}, {"seed": 1}, {"task": other})
    ):
        training_runs.make(place, wanted(**changes))
        assert len(fake.calls) == number + 2
        assert len(list(place.glob("run-old-*"))) == number + 1
    np.testing.assert_array_equal(np.load(place / "train.npz")["labels"], other.given)


def test_labels_do_not_matter_to_simclr_and_images_do(tmp_path, fake):
    place = tmp_path / "place"
    for noise in ("symmetric:0.5", "symmetric:0.8"):
        task = training_data.make_task(Path(), "digits", noise, 0)
        training_runs.make(place, wanted(task=task, labels=False))
    assert len(fake.calls) == 1
    task = training_data.make_task(Path(), "digits", "symmetric:0.5", 1)
    training_runs.make(place, wanted(task=task, labels=False))
    assert len(fake.calls) == 2


def test_seconds_and_commit_are_those_of_the_run(tmp_path, fake, monkeypatch):
    monkeypatch.setattr(training_runs, "commit", lambda: "aaa")
    made = training_runs.make(tmp_path / "place", wanted())
    assert made.seconds == 70 + 12.5  # it was resumed once, after 70 seconds
    monkeypatch.setattr(training_runs, "commit", lambda: "bbb")
    assert training_runs.make(tmp_path / "place", wanted()).commit == "aaa"
    (made.run / "summary.json").unlink()
    (made.run / "checkpoint.safetensors").touch()
    assert training_runs.make(tmp_path / "place", wanted()).commit == "aaa bbb"
    assert fake.calls[-1] == f"--resume {made.run}"


def test_a_row_takes_its_facts_from_the_run(tmp_path, monkeypatch):
    experiment = runner.Experiment(
        name="toy",
        title="A toy.",
        data="anything",
        grids={"full": [{"seed": 0}]},
        metrics=("value",),
        load=lambda path: path,
        measure=lambda data, cell: {"value": 1, "seconds": 7200.0, "commit": "then"},
    )
    runner.main(experiment, [str(tmp_path), "--results", str(tmp_path)])
    (row,) = runner.read_rows(tmp_path / "toy.csv")
    assert (row["seconds"], row["commit"]) == ("7200.0", "then")
    assert row["machine"] == runner.machine()


def test_a_run_that_fails_is_one_line(tmp_path, fake):
    (tmp_path / "fail").touch()
    with pytest.raises(ValueError, match=r"run: stct train failed: stct: error: no l"):
        training_runs.make(tmp_path / "place", wanted())


KILLED = """
import sys
sys.path[:0] = [{folder!r}, {tests!r}]
import test_experiments_training as tests, training_runs
training_runs.COMMAND = {command!r}
training_runs.make(tests.Path({place!r}), tests.wanted())
"""


def test_a_training_whose_parent_was_killed_is_waited_for(tmp_path, fake, capsys):
    place = tmp_path / "place"
    (tmp_path / "sleep").write_text("4")
    script = KILLED.format(
        folder=str(FOLDER),
        tests=str(Path(__file__).parent),
        command=fake.command,
        place=str(place),
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    while not (place / "run").exists():
        assert parent.poll() is None
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    training_runs.make(place, wanted())
    assert "another process trains here; waiting for it" in capsys.readouterr().out
    assert len(fake.calls) == 1  # what it gave was used
    assert not list(place.glob("run-old-*"))


def small_cifar(folder, monkeypatch, **more):
    """CIFAR's files with few rows in a batch; their checksums are not asked for."""
    monkeypatch.setattr(cifar, "CHECKSUMS", {})
    contents, _ = write_cifar10(folder / "cifar-10-batches-py", **more)
    return contents


def test_an_incomplete_cifar_is_refused(tmp_path, monkeypatch):
    small_cifar(tmp_path, monkeypatch, batches=(2, 3))
    for dataset, needed in (("cifar10-10k", "10,000"), ("cifar10", "50,000")):
        with pytest.raises(ValueError, match=f"of the first {needed} training") as stop:
            training_data.make_task(tmp_path, dataset, "symmetric:0.5", 0)
        assert "cifar-10-batches-py: " in str(stop.value)
        assert "data_batch_1, data_batch_4, data_batch_5 missing" in str(stop.value)
        assert "\n" not in str(stop.value)


def test_people_label_the_images_of_the_first_batch(tmp_path, monkeypatch):
    small_cifar(tmp_path, monkeypatch, batches=(1, 2))
    monkeypatch.setitem(training_data.CIFAR_ROWS, "cifar10-10k", 4)
    with pytest.raises(ValueError, match=r"CIFAR-10_human.pt: no such file; human"):
        training_data.make_task(tmp_path, "cifar10-10k", "human:worst", 0)
    clean = np.zeros(50_000, dtype=np.int64)
    for start in (0, 10_000):
        clean[start : start + 4] = np.arange(4) % 3
    content = {"clean_label": clean, "worse_label": (clean + 1) % 3}
    torch.save(content, tmp_path / "CIFAR-10_human.pt")
    task = training_data.make_task(tmp_path, "cifar10-10k", "human:worst", 0)
    assert task.truth.tolist() == [0, 1, 2, 0]
    assert task.given.tolist() == [1, 2, 0, 1]
    assert len(task.images) == 4


def test_grids_hold_every_table_that_trains():
    cpu, paper = (training.EXPERIMENT.grids[scale] for scale in ("cpu", "paper"))
    names = {runner.name_of(cell) for cell in cpu}
    for labels in ("aggregate", "random1", "worst"):
        assert f"cifar10-10k/human:{labels}/STCT/0" in names
    assert "clothing1m/web/STCT/0" in {runner.name_of(cell) for cell in paper}


def write_clothing(folder):
    from PIL import Image

    rng = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    lists = {"noisy_train": range(40), "clean_test": range(40, 50)}
    for name, numbers in lists.items():
        keys = [f"images/{i}.jpg" for i in numbers]
        for key in keys:
            pixels = rng.integers(0, 256, (16, 16, 3), np.uint8)
            Image.fromarray(pixels).save(folder / key)
        (folder / f"{name}_key_list.txt").write_text("\n".join(keys))
        kv = "".join(f"{key} {i % 2}\n" for i, key in enumerate(keys))
        (folder / f"{name.split('_')[0]}_label_kv.txt").write_text(kv)


@pytest.mark.slow
def test_clothing_has_a_row_without_what_nobody_knows(tmp_path, monkeypatch):
    pytest.importorskip("lightning_fabric")
    cell = {"dataset": "clothing1m", "noise": "web", "variant": "STCT", "seed": 0}
    with pytest.raises(ValueError, match="clothing1m: no lists of Clothing-1M in it"):
        training.measure(tmp_path, cell)
    write_clothing(tmp_path / "clothing1m")
    monkeypatch.setattr(training, "RUNS", tmp_path / "runs")
    monkeypatch.setitem(training.PRESETS, "clothing1m", "tiny")
    short = ["num_rounds=1", "srl.steps=2", "pretrain.epochs=0", "image_size=16"]
    monkeypatch.setattr(training, "VARIANTS", {"STCT": short})
    row = training.measure(tmp_path, cell)
    assert row["images"] == 40
    assert 0 <= row["test_accuracy"] <= 100
    assert row["label_accuracy"] == row["actual_noise"] == row["label_curve"] == ""
    assert row["pretrain_seconds"] == 0
    assert set(row) <= set(training.EXPERIMENT.columns)
