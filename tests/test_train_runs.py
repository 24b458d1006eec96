"""Runs: files, resume after kill -9, several processes, bad input; real processes."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command import assert_error, stct
from safetensors.numpy import load_file
from test_train_algorithm import pictures

from stct import cli

FAST = [
    *("--preset", "tiny", "--set", "pretrain.epochs=3", "--set", "srl.steps=15"),
    *("--set", "pretrain.batch_size=64", "--set", "num_rounds=2"),
    *("--set", "srl.batch_size=16", "--set", "srl.unlabeled_batch_size=32"),
    *("--set", "srl.num_anchors=16", "--set", "select.num_neighbors=15"),
]
RESULTS = ["model.safetensors", "labels.csv", "soft_labels.npz", "patch.csv"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    images, truth = pictures(300, rng)
    noisy = np.where(rng.random(300) < 0.3, rng.integers(0, 4, 300), truth)
    names = np.array(["north", "east", "south", "west"])
    np.savez(folder / "train.npz", images=images[:240], labels=names[noisy[:240]])
    np.savez(folder / "test.npz", images=images[240:], labels=names[truth[240:]])
    return folder


@pytest.fixture(scope="module")
def whole(data):
    """A run that nobody disturbed."""
    succeed(
        "train",
        data / "train.npz",
        *FAST,
        "--test",
        data / "test.npz",
        "-o",
        data / "whole",
        "--quiet",
    )
    return data / "whole"


@pytest.mark.slow
def test_a_run_leaves_everything_a_person_needs(data, whole):
    names = {path.name for path in whole.iterdir() if not path.name.startswith(".")}
    assert names >= {
        *RESULTS,
        *("summary.json", "config.json", "environment.json", "metrics.jsonl"),
        *("labels-round-01.csv", "labels-round-02.csv", "pretrained.safetensors"),
    }
    summary = json.loads((whole / "summary.json").read_text())
    assert len(summary["training"]["rounds"]) == 2
    assert summary["training"]["test_accuracy"] > 0.6
    rows = read_csv(whole / "labels.csv")
    assert len(rows) == 240
    assert {row["action"] for row in rows} <= {"keep", "relabel", "abstain"}
    steps = metrics(whole)
    assert {"pretrain", "srl", "round"} == {step["phase"] for step in steps}
    chosen = read_csv(whole / "labels-round-02.csv")
    assert {row["label"] for row in chosen} == {"north", "east", "south", "west"}
    assert {row["selected"] for row in chosen} == {"0", "1"}


@pytest.mark.slow
def test_predict_uses_the_run(data, whole, tmp_path):
    out = tmp_path / "predictions.csv"
    result = succeed("predict", whole, data / "test.npz", "-o", out)
    assert "60 images" in result.stdout
    rows = read_csv(out)
    labels = np.load(data / "test.npz")["labels"]
    right = np.mean(
        [row["label"] == label for row, label in zip(rows, labels, strict=True)]
    )
    summary = json.loads((whole / "summary.json").read_text())
    assert right == pytest.approx(summary["training"]["test_accuracy"])
    total = sum(float(rows[0][name]) for name in rows[0] if name.startswith("p:"))
    assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.slow
def test_kill_at_any_moment_and_resume_gives_the_same_bytes(data, whole, tmp_path):
    folder = tmp_path / "killed"
    chance = random.Random(0)
    command = [
        *("train", data / "train.npz", *FAST, "--test", data / "test.npz"),
        *("-o", folder, "--save-every", "0", "--quiet"),
    ]
    # Moments: in SimCLR, in each round, and wherever the dice say in between.
    for phase in (("pretrain", 0), ("srl", 1), ("srl", 2)):
        process = start_stct(*command)
        wait_until(process, folder, phase)
        time.sleep(chance.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (folder / "model.safetensors").exists() or phase == ("srl", 2)
        command = ["train", "--resume", folder, "--save-every", "0", "--quiet"]
    succeed(*command)
    for name in [*RESULTS, "labels-round-01.csv", "pretrained.safetensors"]:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert logged(folder) == logged(whole)
    succeed("train", "--resume", folder)  # finished: nothing to do


def logged(folder):
    return [
        {k: v for k, v in entry.items() if k != "seconds"} for entry in metrics(folder)
    ]


def metrics(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def read_csv(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def reached(folder, phase):
    """Is the last checkpoint in this phase or a later one?"""
    from safetensors import safe_open

    path = folder / "checkpoint.safetensors"
    if not path.exists():
        return False
    with safe_open(path, framework="np") as file:
        place = file.metadata()
    return (int(place["round"]), int(place["step"])) >= (phase[1], 1)


def wait_until(process, folder, phase):
    for _ in range(6000):
        if reached(folder, phase) or process.poll() is not None:
            return
        time.sleep(0.02)
    raise AssertionError(f"{phase} was not reached in two minutes")


def start_stct(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "stct", *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
def test_resume_without_a_checkpoint_starts_over(data, whole, tmp_path):
    folder = tmp_path / "early"
    folder.mkdir()
    for name in ("config.json", "environment.json"):
        (folder / name).write_bytes((whole / name).read_bytes())
    succeed("train", "--resume", folder, "--quiet")
    for name in RESULTS:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.slow
def test_init_leaves_simclr_out_and_gives_the_same_start(data, whole, tmp_path):
    folder = tmp_path / "again"
    succeed(
        "train", data / "train.npz", *FAST, "--init", whole, "-o", folder, "--quiet"
    )
    phases = [entry["phase"] for entry in metrics(folder)]
    assert "pretrain" not in phases
    first = (folder / "labels-round-01.csv").read_bytes()
    assert first == (whole / "labels-round-01.csv").read_bytes()


@pytest.mark.slow
def test_two_processes_train_one_model_as_good_as_one(data, whole, tmp_path):
    folder = tmp_path / "pair"
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"),
        *("--master-port", str(20000 + os.getpid() % 20000), "-m", "stct", "train"),
        *(data / "train.npz", *FAST, "--test", data / "test.npz", "-o", folder),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Trained on") == 1
    one, two = (
        json.loads((path / "summary.json").read_text()) for path in (whole, folder)
    )
    assert two["training"]["test_accuracy"] > one["training"]["test_accuracy"] - 0.15
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    weights = load_file(folder / "model.safetensors")
    assert weights.keys() == load_file(whole / "model.safetensors").keys()
    assert all(np.isfinite(value).all() for value in weights.values())


def succeed(*arguments):
    done = stct(*arguments, cwd=".")
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def refuse(monkeypatch, capsys):
    """Run the command inside this process: importing torch each time is slow."""

    def run(*arguments, says):
        monkeypatch.setattr(sys, "argv", ["stct", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        assert stopped.value.code == 2
        assert printed.out == ""
        assert printed.err.startswith("stct: error: ")
        assert printed.err.count("\n") == 1, printed.err
        assert says in printed.err

    return run


@pytest.mark.slow
def test_bad_requests_are_one_line_and_leave_nothing(data, whole, tmp_path, refuse):
    train = data / "train.npz"
    out = tmp_path / "out"
    refuse("train", says="give DATA to train on, or --resume DIR")
    refuse("train", tmp_path / "no", "-o", out, says="no such file or folder")
    refuse("train", train, "--preset", "x", "-o", out, says="there are tiny, cpu")
    refuse("train", train, "--set", "srl.stps=1", "-o", out, says="near names")
    refuse("train", train, "-o", whole, says="a run never overwrites another")
    refuse("train", train, "--resume", whole, says="--resume takes no DATA")
    refuse("train", "--resume", tmp_path, says="not a run directory")
    refuse("predict", train, train, "-o", out, says="not a safetensors file")
    refuse("predict", tmp_path, train, "-o", out, says="holds no model.safetensors")
    assert not out.exists()


@pytest.mark.slow
def test_a_run_of_another_data_set_or_version_is_refused(whole, tmp_path, refuse):
    folder = tmp_path / "odd"
    folder.mkdir()
    facts = json.loads((whole / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**facts, "fingerprint": "x"}))
    refuse("train", "--resume", folder, says="is not what it was when the run")
    (folder / "config.json").write_text(json.dumps({**facts, "run_version": 99}))
    refuse("train", "--resume", folder, says="another version of stct")
    (folder / "config.json").write_text("{")
    refuse("train", "--resume", folder, says="not written by stct train")
    (folder / "config.json").write_text(json.dumps(facts))
    (folder / "checkpoint.safetensors").write_bytes(b"rubbish")
    refuse("train", "--resume", folder, says="not a safetensors file")


@pytest.mark.slow
def test_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(data, tmp_path):
    folder = tmp_path / "wild"
    done = stct(
        *("train", data / "train.npz", *FAST, "--set", "srl.learning_rate=1e30"),
        *("-o", folder, "--save-every", "0", "--quiet"),
        cwd=tmp_path,
    )
    assert_error(done, "the loss is not a number at step")
    assert all(
        np.isfinite(value).all()
        for value in load_file(folder / "checkpoint.safetensors").values()
    )


@pytest.mark.slow
def test_bad_images_are_named_or_left_out(data, tmp_path, refuse):
    picture = pytest.importorskip("PIL.Image")
    arrays = np.load(data / "train.npz")
    folder = tmp_path / "photos"
    for i, (image, label) in enumerate(
        zip(arrays["images"], arrays["labels"], strict=True)
    ):
        (folder / label).mkdir(parents=True, exist_ok=True)
        picture.fromarray(image[:, :, 0]).save(folder / label / f"{i:03d}.png")
    bad = folder / "north" / "bad.png"
    bad.write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    out = tmp_path / "run"
    refuse("train", folder, *FAST, "-o", out, says="north/bad.png")
    assert not out.exists()
    succeed("train", folder, *FAST, "--skip-bad", "-o", out, "--quiet")
    summary = json.loads((out / "summary.json").read_text())
    (skipped,) = summary["training"]["skipped"]
    assert "north/bad.png" in skipped
    assert any("could not be read" in note for note in summary["notes"])
    ids = {row["id"] for row in read_csv(out / "labels.csv")}
    assert len(ids) == 240
    assert "north/bad.png" not in ids


@pytest.mark.slow
def test_a_test_set_of_other_classes_is_refused_before_anything(data, tmp_path, refuse):
    arrays = np.load(data / "test.npz")
    labels = arrays["labels"].astype("U9")
    labels[3] = "up"
    np.savez(tmp_path / "odd.npz", images=arrays["images"], labels=labels)
    out = tmp_path / "run"
    refuse(
        *("train", data / "train.npz", *FAST, "--test", tmp_path / "odd.npz"),
        *("-o", out),
        says="label 'up' is not among the classes",
    )
    assert not out.exists()


def small_disk():
    """Writing more than 400 kB to a file fails, as on a full disk."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_run_can_go_on(data, whole, tmp_path):
    folder = tmp_path / "full"
    done = stct(
        *("train", data / "train.npz", *FAST, "--test", data / "test.npz"),
        *("-o", folder, "--save-every", "0", "--quiet"),
        cwd=tmp_path,
        preexec_fn=small_disk,
    )
    assert_error(done, "too large")
    succeed("train", "--resume", folder, "--quiet")
    for name in RESULTS:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
