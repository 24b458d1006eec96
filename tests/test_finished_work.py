"""Rows in shards, and a disk or a memory that ends: whole files, one line, labels kept.

The disk is a real one of a few kilobytes where the tests may mount one.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from command import assert_error, blobs, stct

from stct.data.corrected import read_corrected
from stct.data.locks import let_all_go
from stct.data.outputs import check_folder

pytestmark = pytest.mark.slow  # starts real processes

X, TRUTH, GIVEN = blobs()
LABELS = ["corrector.npz", "labels.csv", "patch.csv", "soft_labels.npz"]
LABELS += ["summary.json"]
CORRECT = ["correct", "t.csv", "--embeddings", "shards", "--quiet"]


def write_inputs(tmp_path):
    rows = [f"{i},{label}" for i, label in enumerate(GIVEN)]
    (tmp_path / "t.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    (tmp_path / "shards").mkdir()
    for number, block in enumerate(np.array_split(X, 3)):
        np.save(tmp_path / "shards" / f"{number}.npy", block)
    return tmp_path


@pytest.fixture
def folder(tmp_path):
    return write_inputs(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Give the files of a run in which nothing goes wrong."""
    folder = write_inputs(tmp_path_factory.mktemp("whole"))
    assert stct(*CORRECT, "-o", "out", cwd=folder).returncode == 0
    return folder / "out"


def assert_same(out, whole, *files):
    for name in files or ("labels.csv", "patch.csv", "soft_labels.npz"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def small_disk(folder):
    """Give a function that mounts a disk of so many kilobytes."""
    disk = folder / "disk"
    disk.mkdir()

    def mount(kilobytes):
        command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", disk]
        if not shutil.which("mount") or subprocess.run(command).returncode:
            pytest.skip("only root may mount a disk")

    yield mount
    if os.path.ismount(disk):
        subprocess.run(["umount", disk], check=True)


def test_a_disk_too_small_for_the_labels_stays_empty(folder, small_disk):
    small_disk(8)
    done = stct(*CORRECT, "-o", "disk/out", cwd=folder)
    assert_error(done, "disk/out: not written (No space left on device)")
    assert names(folder / "disk") == []


def test_a_disk_too_small_for_the_report_gets_the_labels(folder, small_disk, whole):
    small_disk(64)
    done = stct(*CORRECT, "-o", "disk/out", cwd=folder)
    assert_error(done, "labels are there", "report.html", "No space left on device")
    assert [name for name in names(folder / "disk" / "out") if name in LABELS] == LABELS
    assert_same(folder / "disk" / "out", whole)


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))


def test_a_report_that_does_not_fit_can_be_made_later(folder, whole):
    done = stct(*CORRECT, "-o", "out", cwd=folder, preexec_fn=limit_files)
    assert_error(done, "labels are there", "File too large", "'stct report out' makes")
    assert names(folder / "out") == sorted([*LABELS, "review.npz"])
    check_folder(folder / "out", overwrite=True)  # may be replaced
    let_all_go()
    assert_same(folder / "out", whole)
    assert stct("report", "out", cwd=folder).returncode == 0
    assert_same(folder / "out", whole, "report.html", "review.npz")


# The real command, but for what happens when the report is made.
SPOILT = """
import os, signal, sys
import stct.cli, stct.report.write

def has_no_memory(*_):
    raise MemoryError("Unable to allocate 8.00 PiB")

def is_killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

stct.report.write.nearest = globals()[sys.argv.pop(1)]
stct.cli.main()
"""


def correct_where_the_report(does, folder, *more):
    return subprocess.run(
        [sys.executable, "-c", SPOILT, does, *CORRECT, "-o", "out", *more],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


def test_a_report_without_memory_leaves_the_labels(folder, whole):
    done = correct_where_the_report("has_no_memory", folder)
    assert_error(
        done,
        "out: the corrected labels are there",
        "(out of memory Unable to allocate 8.00 PiB)",
        "without neighbours and map",
    )
    assert names(folder / "out") == LABELS
    check_folder(folder / "out", overwrite=True)
    let_all_go()
    assert_same(folder / "out", whole)


def test_a_command_killed_in_its_report_leaves_the_labels(folder, whole):
    done = correct_where_the_report("is_killed", folder)
    assert done.returncode == -signal.SIGKILL
    assert names(folder) == [".out.lock", "out", "shards", "t.csv"]  # taken over
    assert names(folder / "out") == LABELS
    check_folder(folder / "out", overwrite=True)
    let_all_go()
    assert_same(folder / "out", whole)


def test_results_of_before_there_were_checksums_are_read(write_run):
    out, _ = write_run(X, {"label": GIVEN.tolist()})
    path = out / "summary.json"
    summary = json.loads(path.read_text())
    del summary["checksum"], summary["sha256"]
    path.write_text(json.dumps(summary))
    assert read_corrected(out).summary["rows"] == len(GIVEN)
