"""What Windows and macOS lack is not needed: taken away here, on any system."""

import errno
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import blobs

# Runs in a process of its own, because it takes names away from the whole of it.
WITHOUT = """
import importlib, os, pkgutil, signal, sys, warnings

import stct

def modules():
    for found in pkgutil.walk_packages(stct.__path__, "stct."):
        if found.name != "stct.__main__":
            yield importlib.import_module(found.name)

warnings.simplefilter("ignore")  # other packages' own
names = [module.__name__ for module in modules()]  # other packages come with all names
for name in list(sys.modules):
    if name.partition(".")[0] == "stct":
        del sys.modules[name]
for place, gone in {
    os: "register_at_fork fork posix_fallocate posix_fadvise sysconf "
        "sched_getaffinity getuid geteuid",
    signal: "pthread_sigmask SIGKILL SIGALRM SIGHUP SIGUSR1",
}.items():
    for name in gone.split():
        delattr(place, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None  # an import raises
import stct
assert names == [module.__name__ for module in modules()]
print(len(names))
"""


@pytest.mark.slow
def test_every_module_imports_without_what_only_unix_has(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = [p for p in Path(__file__).parents[1].glob("src/stct/**/*.py")]
    assert int(done.stdout) == len(files) - 2  # not stct itself, not __main__


@pytest.fixture
def like_windows(monkeypatch):
    """Folders cannot be opened; only what is open for writing can be flushed."""
    real_open, real_sync = os.open, os.fsync
    flushed = []

    def no_folders(path, flags, *more, **keywords):
        if isinstance(path, str | Path) and Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real_open(path, flags, *more, **keywords)

    def writable_only(descriptor):
        import fcntl

        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        if mode == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        assert stat.S_ISREG(os.fstat(descriptor).st_mode)
        flushed.append(descriptor)
        real_sync(descriptor)

    monkeypatch.setattr(os, "open", no_folders)
    monkeypatch.setattr(os, "fsync", writable_only)
    return flushed


@pytest.mark.skipif(sys.platform == "win32", reason="is Windows")
def test_outputs_are_written_where_folders_cannot_be_opened(
    tmp_path, like_windows, monkeypatch, capsys
):
    from stct import cli

    X, _, given = blobs()
    np.save(tmp_path / "e.npy", X)
    lines = [f"row{i},{label}" for i, label in enumerate(given)]
    (tmp_path / "t.csv").write_text("\n".join(["id,label", *lines]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for command in (
        "correct t.csv --embeddings e.npy -o out --quiet",
        "apply out/patch.csv t.csv -o applied.csv --quiet",
    ):
        monkeypatch.setattr(sys, "argv", ["stct", *command.split()])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 0, capsys.readouterr().err
    assert len(like_windows) >= 7  # every file of the folder, and the table
    assert not list(tmp_path.glob(".*"))


@pytest.mark.skipif(sys.platform == "win32", reason="is Windows")
def test_a_run_is_held_and_finished_where_folders_cannot_be_opened(
    tmp_path, like_windows
):
    runs = pytest.importorskip("stct.train.runs")
    run = runs.Run.start(tmp_path / "run", {"data": "none"})
    with pytest.raises(ValueError, match="another process is at this run"):
        runs.Run.open(tmp_path / "run")
    results = run.scratch()
    (results / "summary.json").write_text("{}", encoding="utf-8")
    run.adopt(results, last="summary.json")
    assert (tmp_path / "run" / "summary.json").read_text(encoding="utf-8") == "{}"
    run._release()
    runs.Run.open(tmp_path / "run")._release()  # nobody is at it any more


def test_pre_commit_uses_the_pinned_ruff():
    root = Path(__file__).parents[1]
    (pin,) = re.findall(r'"(ruff==[\d.]+)"', (root / "pyproject.toml").read_text())
    hooks = (root / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"ruff==[\d.]+", hooks) == [pin, pin]
