"""Run the real command in a real process, and small data for it."""

import os
import signal
import subprocess
import sys

import numpy as np

from stct.cli import app


def stct(*arguments, cwd, **keywords):
    return subprocess.run(
        [sys.executable, "-m", "stct", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"},
        timeout=120,
        **keywords,
    )


def run_here(*arguments):
    """The command in this process; an error is raised with its one line."""
    return app([str(a) for a in arguments], standalone_mode=False)


def heed_signals():
    """For ``preexec_fn``: a child heeds Ctrl-C, also where these tests ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def assert_error(done, *fragments):
    """Exit code 2 and one line that says all of this."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("stct: error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    for fragment in fragments:
        assert fragment in done.stderr


def blobs(num_rows=60, num_wrong=6):
    """Three well separated classes, of which the first rows have a wrong label."""
    generator = np.random.default_rng(0)
    truth = np.arange(num_rows) % 3
    X = generator.normal(size=(num_rows, 4)).astype(np.float32)
    X[np.arange(num_rows), truth] += 8.0
    given = truth.copy()
    given[:num_wrong] = (given[:num_wrong] + 1) % 3
    return X, truth, given
