"""Every write, rename and flush of a command fails once, in turn; nothing is lost.

Afterwards either the old or the new result is there, whole, nothing half-written lies
beside it, and the same command without the fault gives what it always gives. Every
sixth point is tried here, all of them with ``make fuzz`` (STCT_FUZZ=1).
"""

import builtins
import errno
import hashlib
import io
import os
import shutil
import sys

import numpy as np
import pytest
from kinds import _decisions, _patch

from stct import cli

EVERY = 1 if os.environ.get("STCT_FUZZ") else 6
CORRECT = ["correct", "t.csv", "--embeddings", "e.npy", "--quiet"]
COMMANDS = {
    "correct": [*CORRECT, "-o", "new"],
    "correct again": [*CORRECT, "-o", "old", "--locked", "d.csv", "--overwrite"],
    "apply": ["apply", "patch.csv", "t.csv", "-o", "old.csv", "--overwrite", "--quiet"],
    "report": ["report", "old", "--map", "tsne", "--quiet"],
}


class Faults:
    """Counts what goes to the disk, and lets one of these calls fail."""

    def __init__(self, monkeypatch, at=None):
        self.count, self.at = 0, at
        real_open = io.open
        outer = self

        class Raw(io.FileIO):
            def write(self, data):
                outer.step()
                return super().write(data)

        def opened(file, mode="r", buffering=-1, encoding=None, errors=None,
                   newline=None, closefd=True, opener=None):  # fmt: skip
            if not set(mode) & set("wax") or isinstance(file, int):
                return real_open(
                    file, mode, buffering, encoding, errors, newline, closefd, opener
                )
            raw = Raw(file, mode.replace("b", "").replace("t", ""))
            if "b" in mode and "+" in mode:
                return io.BufferedRandom(raw)
            if "b" in mode:
                return io.BufferedWriter(raw)
            return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, newline)

        monkeypatch.setattr(io, "open", opened)
        monkeypatch.setattr(builtins, "open", opened)
        for name in ("fsync", "rename", "replace", "mkdir", "chmod"):
            self._wrap(monkeypatch, name)

    def _wrap(self, monkeypatch, name):
        real = getattr(os, name)

        def call(*arguments, **keywords):
            self.step()
            return real(*arguments, **keywords)

        monkeypatch.setattr(os, name, call)

    def step(self):
        self.count += 1
        if self.count == self.at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Inputs, an earlier output folder and an earlier output file."""
    folder = tmp_path_factory.mktemp("faults")
    _patch(folder)
    _decisions(folder)
    run(folder, [*CORRECT, "-o", "old"])
    (folder / "old.csv").write_text("id,label\n")
    return folder


def run(folder, arguments):
    """Give the exit code."""
    here = os.getcwd()
    os.chdir(folder)
    sys.argv = ["stct", *arguments]
    try:
        cli.main()
    except SystemExit as end:
        return end.code or 0
    finally:
        os.chdir(here)


def digests(folder):
    """Contents of all files, but for what a clock says."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "summary.json":
            found[str(path.relative_to(folder))] = hashlib.sha256(
                path.read_bytes()
            ).hexdigest()
    return found


def whole(folder):
    """Tell whether the outputs can be read, by whoever comes next."""
    from stct.data.corrected import read_corrected

    for name in ("old", "new"):
        if (folder / name).exists():
            read_corrected(folder / name)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_fault_loses_nothing(start, tmp_path, monkeypatch, capsys, name):
    command = COMMANDS[name]
    here = tmp_path / "here"
    shutil.copytree(start, here)
    with monkeypatch.context() as patch:
        counted = Faults(patch)
        assert run(here, command) == 0
    before, after = digests(start), digests(here)
    assert counted.count >= 5
    for at in range(1, counted.count + 1, EVERY):
        shutil.rmtree(here)
        shutil.copytree(start, here)
        with monkeypatch.context() as patch:
            Faults(patch, at)
            code = run(here, command)
        said = capsys.readouterr().err
        assert code in (0, 2), (at, said)
        if code:
            assert said.startswith("stct: error: "), (at, said)
            assert said.count("\n") == 1, (at, said)
        found = digests(here)
        folder = command[command.index("-o") + 1] if "-o" in command else None
        labels = f"{folder}/labels.csv"
        for path in {*before, *after}:
            known = [before.get(path), after.get(path)]
            if found.get(labels, "") == after.get(labels):  # the report comes later
                known += [None] if path.endswith(("report.html", "review.npz")) else []
            assert found.get(path) in known, (at, path, said)
        assert set(found) <= {*before, *after}, (at, set(found) - {*before, *after})
        whole(here)
        again = command
        if name == "correct" and (here / "new").exists():
            again = [*command, "--overwrite"]  # only the report was left to make
        assert run(here, again) == 0, (at, capsys.readouterr().err)
        assert digests(here) == after, at
    print(f"{name}: {counted.count} points")


def test_faults_are_seen(tmp_path, monkeypatch):
    """The counting itself works: a write in the middle fails, with its reason."""
    with monkeypatch.context() as patch:
        Faults(patch, 2)
        with pytest.raises(OSError, match="No space"):  # noqa: PT012
            np.save(tmp_path / "a.npy", np.ones(3))
            np.save(tmp_path / "b.npy", np.ones(300_000))
