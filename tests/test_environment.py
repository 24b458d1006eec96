"""The environment does not matter: each of these runs a few commands in a bad one."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from command import blobs

pytestmark = pytest.mark.slow  # starts real processes

X, TRUTH, GIVEN = blobs()
COMMANDS = """
import sys
from stct import cli
for line in (
    "correct t.csv --embeddings e.npy -o out --quiet",
    "report out --quiet",
    "apply out/patch.csv t.csv -o o.csv --quiet",
):
    sys.argv = ["stct", *line.split()]
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            raise
"""
NO_NETWORK = """
import socket
def refuse(*arguments, **keywords):
    raise OSError("no network here")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
"""


def run(folder, *, code="", environment=None, **keywords):
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"r{i},c\u00fc{label}" for i, label in enumerate(GIVEN)]
    text = "id,label\n" + "\n".join(rows) + "\n"
    (folder / "t.csv").write_text(text, encoding="utf-8")
    np.save(folder / "e.npy", X)
    done = subprocess.run(
        [sys.executable, "-c", code + COMMANDS],
        cwd=folder,
        env={"OMP_NUM_THREADS": "1", **(environment or dict(os.environ))},
        capture_output=True,
        timeout=240,
        **keywords,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    written = (folder / "o.csv").read_text(encoding="utf-8").splitlines()[1:]
    right = sum(
        line.endswith(f"c\u00fc{t}") for line, t in zip(written, TRUTH, strict=True)
    )
    assert right >= 59
    names = {"t.csv", "e.npy", "out", "o.csv", "home"}
    assert {path.name for path in folder.iterdir()} <= names


def bare(**more):
    """Only what Python itself needs."""
    kept = {k: os.environ[k] for k in ("PATH", "PYTHONPATH") if k in os.environ}
    return kept | more


def test_interrupts_ignored_no_home_and_an_old_locale(tmp_path):
    run(
        tmp_path / "here",
        environment=bare(LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )


def test_spaces_in_the_path_no_network_and_a_home_that_cannot_be_written(tmp_path):
    home = tmp_path / "a folder" / "of \u00fc" / "home"
    home.mkdir(parents=True)
    home.chmod(0o500)
    run(home.parent, code=NO_NETWORK, environment=bare(HOME=str(home)))
    assert list(home.iterdir()) == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another"
)
def test_not_root(tmp_path):
    """As a user without a home; the folder is the only one that it may write to."""
    nobody = 65534
    folder = tmp_path / "theirs"
    folder.mkdir()
    shutil.chown(folder, nobody, nobody)
    for above in folder.parents:  # pytest keeps others out
        if above.stat().st_mode & 0o055 != 0o055 and above != above.parent:
            above.chmod(above.stat().st_mode | 0o055)
    if subprocess.run(["test", "-x", sys.executable], user=nobody).returncode:
        pytest.skip("the interpreter is root's own")
    run(folder, environment=bare(HOME="/nonexistent"), user=nobody, group=nobody)
