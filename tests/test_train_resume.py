"""Runs that were stopped: killed, out of disk, without a number; real processes."""

import json
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from command import assert_error, stct
from safetensors.numpy import load_file
from train_runs import (
    FAST,
    assert_same_results,
    logged,
    metrics,
    place_of,
    reached,
    start_stct,
    succeed,
    wait_until,
)

from stct.train.files import read_tensors, tensors_as_bytes

pytestmark = pytest.mark.slow  # starts real processes

RESUME = ["--save-every", "0", "--quiet"]


def kill_when(process, condition, *, after=0.0):
    wait_until(process, condition)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_kill_at_any_moment_and_resume_gives_the_same_bytes(data, whole, tmp_path):
    folder = tmp_path / "killed"
    chance = random.Random(0)
    command = [
        *("train", data / "train.npz", *FAST, "--test", data / "test.npz"),
        *("-o", folder, *RESUME),
    ]
    # Moments: in SimCLR, in each round, and wherever the dice say in between.
    for number in (0, 1, 2):
        kill_when(
            start_stct(*command),
            lambda number=number: reached(folder, number),
            after=chance.random() * 0.4,
        )
        assert not (folder / "model.safetensors").exists() or number == 2
        command = ["train", "--resume", folder, *RESUME]
    succeed(*command)
    assert_same_results(folder, whole, "labels-round-01.csv", "pretrained.safetensors")
    assert logged(folder) == logged(whole)


def test_steps_that_are_done_again_are_logged_once(data, whole, tmp_path):
    """A checkpoint is older than the last lines of the metrics: these come again."""
    folder = tmp_path / "redone"
    command = ["train", data / "train.npz", *FAST, "--test", data / "test.npz"]
    kill_when(start_stct(*command, "-o", folder, *RESUME), lambda: reached(folder, 1))
    early = (folder / "checkpoint.safetensors").read_bytes()
    kept = int(place_of(folder)["metrics_bytes"])
    process = start_stct("train", "--resume", folder, "--save-every", "1e6", "--quiet")
    kill_when(process, lambda: (folder / "labels-round-01.csv").exists())
    assert (folder / "checkpoint.safetensors").read_bytes() == early
    assert (folder / "metrics.jsonl").stat().st_size > kept
    succeed("train", "--resume", folder, "--quiet")
    assert logged(folder) == logged(whole)
    assert_same_results(folder, whole)


def before_the_first_checkpoint(run, folder):
    """What a run has left when it is killed in its first steps."""
    folder.mkdir()
    for name in ("config.json", "environment.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    return folder


def test_resume_without_a_checkpoint_starts_over(whole, tmp_path):
    folder = before_the_first_checkpoint(whole, tmp_path / "early")
    succeed("train", "--resume", folder, "--quiet")
    assert_same_results(folder, whole)


def test_resume_without_a_checkpoint_starts_over_from_init(data, whole, tmp_path):
    command = ["train", data / "train.npz", *FAST, "--init", whole, "--quiet"]
    succeed(*command, "-o", tmp_path / "init")
    folder = before_the_first_checkpoint(tmp_path / "init", tmp_path / "early")
    succeed("train", "--resume", folder, "--quiet")
    assert "pretrain" not in {entry["phase"] for entry in metrics(folder)}
    assert_same_results(folder, tmp_path / "init")


def test_a_finished_run_says_what_it_took_over_all_resumes(data, whole, tmp_path):
    folder = tmp_path / "twice"
    command = ["train", data / "train.npz", *FAST, "-o", folder]
    kill_when(start_stct(*command, *RESUME), lambda: reached(folder, 2))
    before = float(place_of(folder)["seconds"])
    assert before > 0.0
    succeed("train", "--resume", folder, "--quiet")
    seconds = json.loads((folder / "summary.json").read_text())["seconds"]
    times = [entry["seconds"] for entry in metrics(folder)]
    assert before < times[-1] <= seconds
    assert times == sorted(times)
    printed = succeed("train", "--resume", folder).stdout
    assert printed.startswith(f"Trained on 240 images in {seconds:.0f} s")


def test_other_settings_than_the_checkpoints_are_refused(whole, tmp_path, refuse):
    folder = stopped(whole, tmp_path / "other")
    facts = json.loads((folder / "config.json").read_text())
    facts["config"]["srl"]["learning_rate"] = 0.5
    (folder / "config.json").write_text(json.dumps(facts))
    refuse("train", "--resume", folder, says="not those of its checkpoint")
    facts = json.loads((whole / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**facts, "seed": 7}))
    refuse("train", "--resume", folder, says="settings or seed")


def stopped(whole, folder):
    """A copy of a run whose results were not written yet."""
    shutil.copytree(whole, folder)
    (folder / "summary.json").unlink()
    command = ["train", "--resume", folder, *RESUME]
    kill_when(start_stct(*command), lambda: reached(folder, 1))
    (folder / "summary.json").unlink(missing_ok=True)
    return folder


def test_another_version_on_the_way_is_noted(whole, tmp_path):
    folder = stopped(whole, tmp_path / "older")
    path = folder / "checkpoint.safetensors"
    place = place_of(folder) | {"software": '["stct 0.0.9, torch 2.0.0"]'}
    place.pop("sha256")
    tensors, _ = read_tensors(path)
    path.write_bytes(tensors_as_bytes(tensors, place))
    succeed("train", "--resume", folder, "--quiet")
    notes = json.loads((folder / "summary.json").read_text())["notes"]
    assert any("in parts with stct 0.0.9, torch 2.0.0 and with" in n for n in notes)
    clean = json.loads((whole / "summary.json").read_text())["notes"]
    assert not any("in parts" in note for note in clean)


def test_resume_takes_no_settings(data, whole, refuse):
    for option in (
        *(["--seed", 0], ["--preset", "tiny"], ["--set", "num_rounds=2"]),
        *(["--skip-bad"], ["--label-column", "label"], ["--id-column", "id"]),
        *(["--test", data / "test.npz"], ["--init", whole], ["--image-column", "x"]),
    ):
        says = f"--resume takes no {option[0]}: the run has its own"
        refuse("train", "--resume", whole, *option, says=says)


@pytest.mark.parametrize("phase", ["pretrain", "srl"])
def test_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(data, tmp_path, phase):
    folder = tmp_path / "wild"
    command = ["train", data / "train.npz", *FAST]
    done = stct(
        *(*command, "--set", f"{phase}.learning_rate=1e30", "-o", folder, *RESUME),
        cwd=tmp_path,
    )
    assert_error(done, "the loss is not a number at step", "start a new run")
    checkpoint = folder / "checkpoint.safetensors"
    if phase == "srl":
        assert_error(done, "--init DIR")
        assert place_of(folder)["phase"] == "pretrain"  # the first step ruined it
        succeed(*command, "--init", folder, "-o", tmp_path / "next", "--quiet")
    tensors = load_file(checkpoint).values() if checkpoint.exists() else []
    assert all(np.abs(tensor).max() < 1e6 for tensor in tensors if tensor.size)


def small_disk():
    """Writing more than 400 kB to a file fails, as on a full disk."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))


def test_a_full_disk_is_one_line_and_the_run_can_go_on(data, whole, tmp_path):
    folder = tmp_path / "full"
    done = stct(
        *("train", data / "train.npz", *FAST, "--test", data / "test.npz"),
        *("-o", folder, *RESUME),
        cwd=tmp_path,
        preexec_fn=small_disk,
    )
    place = folder / "checkpoint.safetensors"
    assert_error(done, f"{place}: File too large", f"stct train --resume {folder}")
    assert not list(folder.glob(".*.tmp"))
    succeed("train", "--resume", folder, "--quiet")
    assert_same_results(folder, whole)


@pytest.fixture
def small_mount(tmp_path):
    """A file system of its own with room for one checkpoint and not for two."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("mounting needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_file_system_leaves_nothing_in_the_way(data, whole, small_mount):
    folder = small_mount / "run"
    done = stct(
        *("train", data / "train.npz", *FAST, "--test", data / "test.npz"),
        *("-o", folder, *RESUME),
        cwd=small_mount,
    )
    assert_error(done, f"{folder}", "No space left on device", "stct train --resume")
    assert not list(folder.glob(".*.tmp"))
    moved = data.parent / "moved"
    shutil.rmtree(moved, ignore_errors=True)
    shutil.copytree(folder, moved)  # to where there is room
    succeed("train", "--resume", moved, "--quiet")
    assert_same_results(moved, whole)
