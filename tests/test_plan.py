"""`stct plan` through the real command, and its arithmetic."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import assert_error, blobs, stct

from stct.console import duration, size
from stct.planning import plan as planning
from stct.planning.plan import Problem, make_plan


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("stct.planning.plan.CALIBRATION_ROWS", 2000)


def test_more_rows_cost_more_and_more_workers_share():
    small, large = (make_plan(Problem(n, 16, 4)) for n in (10**6, 10**8))
    assert large.seconds > 20 * small.seconds
    assert large.memory > 20 * small.memory
    assert (small.engine, large.input) == ("local", 16 * 4 * 1e8)
    assert small.command_seconds > small.seconds + 1.0
    many = make_plan(Problem(10**8, 16, 4), workers=1000)
    assert many.engine == "ray"
    assert many.seconds < large.seconds / 10


def test_many_classes_keep_no_matrix():
    plan = make_plan(Problem(10**7, 16, 1000))
    assert plan.memory < 10**7 * 1000 * 4 / 2
    assert plan.disk < 10**7 * 1000


def test_a_billion_rows_take_the_time_to_read_them():
    """docs/scale.md: 16 machines, 1 GB a second each, a dozen passes."""
    plan = make_plan(Problem(10**9, 512, 10), workers=256)
    assert 11 * 2.048e12 / 16e9 <= plan.seconds < 13 * 2.048e12 / 16e9
    assert "1 GB a second" in plan.assumed
    assert not make_plan(Problem(10**5, 16, 4)).assumed


def test_too_little_memory_is_not_enough(monkeypatch):
    monkeypatch.setattr(planning, "available_memory", lambda: 1e9)
    plan = make_plan(Problem(10**7, 16, 4))
    assert plan.engine == "ray"
    assert "of memory are needed and 1 GB are free here" in plan.reason
    assert "the process that writes the table needs" in plan.reason


@pytest.mark.parametrize(("rows", "passes"), [(10**6, 2), (10**7, 16)])
def test_parquet_is_decoded_in_every_pass(rows, passes):
    """Each of the passes takes 100 seconds here, all else next to none."""
    plan = make_plan(Problem(rows, 16, 4, decoding=100.0 / rows))
    assert 100 * passes <= plan.seconds < 100 * (passes + 1)
    assert plan.command_seconds >= plan.seconds + 300


def test_the_calibration_does_not_grow_with_columns_and_classes(monkeypatch):
    seen, ridge = [], planning.RidgePath

    def spy(H, *rest, **more):
        seen.append(H.shape)
        return ridge(H, *rest, **more)

    monkeypatch.setattr(planning, "RidgePath", spy)
    wide = planning.measure(Problem(10**6, 4096, 3000))
    assert max(width for _, width in seen) == planning.MAX_WIDTH
    narrow = planning.measure(Problem(10**6, 1024, 1000))
    assert wide.factor > 4 * narrow.factor


def test_words():
    assert [size(v) for v in (12, 51_200_000, 2.05e12)] == [
        "12 bytes",
        "51.2 MB",
        "2.05 TB",
    ]
    assert [duration(s) for s in (1.02, 1.5, 118, 600, 36_000)] == [
        "1 second",
        "1.5 seconds",
        "118 seconds",
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
    for word in ("60 rows x 4 columns, 3 classes", "fit", "in all", "memory", "local:"):
        assert word in done.stdout
    sizes = ["--rows", "1e6", "--columns", "8", "--classes", "3", "--json"]
    result = json.loads(stct("plan", *sizes, cwd=tmp_path).stdout)
    assert result["rows"] == 10**6
    assert result["seconds"] > 0


@pytest.mark.slow
def test_the_command_times_the_decoding_of_parquet(tmp_path):
    X, _, given = blobs()
    (tmp_path / "t.csv").write_text("\n".join(["label", *map(str, given)]) + "\n")
    (tmp_path / "e").mkdir()
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    pq.write_table(pa.table(columns), tmp_path / "e" / "p0.parquet")
    done = stct("plan", "t.csv", "--embeddings", "e", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["decoding"] > 0


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
