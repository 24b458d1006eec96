"""`stct plan` through the real command, and its arithmetic."""

import json

import numpy as np
import pytest
from command import assert_error, blobs, stct

from stct.console import duration, size
from stct.plan import Problem, make_plan


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("stct.plan.CALIBRATION_ROWS", 2000)


def test_more_rows_cost_more_and_more_workers_share():
    small, large = (make_plan(Problem(n, 16, 4)) for n in (10**6, 10**8))
    assert large.seconds > 20 * small.seconds
    assert large.memory > 20 * small.memory
    assert (small.engine, large.input) == ("local", 16 * 4 * 1e8)
    many = make_plan(Problem(10**8, 16, 4), workers=1000)
    assert many.engine == "ray"
    assert many.seconds < large.seconds / 10


def test_many_classes_keep_no_matrix():
    plan = make_plan(Problem(10**7, 16, 1000))
    assert plan.memory < 10**7 * 1000 * 4 / 4
    assert plan.disk < 10**7 * 1000


def test_words():
    assert [size(v) for v in (12, 51_200_000, 2.05e12)] == [
        "12 bytes",
        "51.2 MB",
        "2.05 TB",
    ]
    assert [duration(s) for s in (1.02, 1.5, 600, 36_000)] == [
        "1 second",
        "1.5 seconds",
        "10 minutes",
        "10 hours",
    ]


@pytest.mark.slow
def test_the_command(tmp_path):
    X, _, given = blobs()
    lines = ["label", *map(str, given)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    np.save(tmp_path / "e.npy", X)
    done = stct("plan", "t.csv", "--embeddings", "e.npy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("60 rows x 4 columns, 3 classes", "time", "memory", "disk", "local:"):
        assert word in done.stdout
    sizes = ["--rows", "1e6", "--columns", "8", "--classes", "3", "--json"]
    result = json.loads(stct("plan", *sizes, cwd=tmp_path).stdout)
    assert result["rows"] == 10**6
    assert result["seconds"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (["--rows", "5"], "all of --rows, --columns and --classes"),
        (
            ["--rows", "1.5", "--columns", "2", "--classes", "2"],
            "must be a whole",
        ),
        (["t.csv", "--rows", "5"], "not both"),
        (["t.csv", "--embeddings", "e.npy"], "t.csv"),
    ],
)
def test_bad_sizes_are_one_line(tmp_path, arguments, fragment):
    assert_error(stct("plan", *arguments, cwd=tmp_path), fragment)
