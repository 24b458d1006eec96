"""The Ray engine in real processes: same bits, also when a worker is killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import psutil
import pytest
from command import assert_error, blobs, stct

from stct import LabelCorrector
from stct.correction import canonical
from stct.data.shards import open_folder
from stct.numeric.engine import UNIT, Local
from stct.numeric.ray_engine import RayEngine

ray = pytest.importorskip("ray")

pytestmark = [
    pytest.mark.slow,
    # Ray's own, when it is shut down
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    engine = RayEngine(num_workers=2)
    engine.start()
    yield engine
    ray.shutdown()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Two units and a bit, in shards that are cut elsewhere, and their labels."""
    rng = np.random.default_rng(0)
    n, d = 2 * UNIT + 1000, 8
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[np.arange(n), truth] += 2.0
    y = np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), truth)
    y[5] = -1
    folder = tmp_path_factory.mktemp("shards")
    for number, block in enumerate(np.array_split(X, 3)):
        np.save(folder / f"p{number}.npy", block)
    return open_folder(folder, column=None, id_column=None)[0], y


def test_rows_sums_and_some_of_them(cluster):
    n = 2 * UNIT + 17
    values = np.random.default_rng(0).normal(size=(n, 3))
    kept = cluster.keep(values)
    np.testing.assert_array_equal(
        kept[UNIT - 3 : UNIT + 3], values[UNIT - 3 : UNIT + 3]
    )
    index = np.array([0, 5, UNIT, n - 1])
    np.testing.assert_array_equal(cluster.take(kept, index), values[index])
    squares = cluster.rows(lambda rows: kept[rows] ** 2, n)
    np.testing.assert_array_equal(cluster.take(squares, None), values**2)
    there = cluster.sum(lambda rows: (kept[rows].sum(axis=0), len(kept[rows])), n)
    here = Local().sum(lambda rows: (values[rows].sum(axis=0),), n)
    np.testing.assert_array_equal(there[0], here[0])
    assert there[1] == n


def test_same_bits_as_local(cluster, rows, monkeypatch):
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)
    local = LabelCorrector().fit(*rows)
    there = LabelCorrector(engine=cluster).fit(*rows)
    np.testing.assert_array_equal(
        there.label_distributions_, local.label_distributions_
    )
    np.testing.assert_array_equal(there.labels_, local.labels_)


def test_several_labels_per_row_give_the_same_bits(cluster, rows, monkeypatch):
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)
    X, y = rows
    rng = np.random.default_rng(1)
    Y = np.where(rng.random((len(y), 3)) < 0.7, y[:, None], rng.integers(0, 3))
    Y = np.where((rng.random(Y.shape) < 0.6) & (Y >= 0), Y, np.nan)
    local, there = (
        LabelCorrector(engine=engine).fit(X, Y) for engine in ("local", cluster)
    )
    np.testing.assert_array_equal(
        there.label_distributions_, local.label_distributions_
    )
    assert there.annotators_ == local.annotators_


def test_small_data_in_memory_gives_the_same_bits_too(cluster):
    X, _, given = blobs()
    local, there = (
        LabelCorrector(engine=engine).fit(X, given) for engine in ("local", cluster)
    )
    np.testing.assert_array_equal(
        there.label_distributions_, local.label_distributions_
    )


def kill_a_worker(killed):
    """Kill -9 the first worker that is seen at work."""
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        for process in psutil.Process().children(recursive=True):
            if process.name().startswith("ray::_"):
                os.kill(process.pid, signal.SIGKILL)
                killed.append(process.pid)
                return
        time.sleep(0.01)


def while_a_worker_dies(job):
    killed = []
    killer = threading.Thread(target=kill_a_worker, args=(killed,))
    killer.start()
    result = job()
    killer.join()
    assert killed
    return result


def test_a_worker_killed_in_a_pass_changes_no_bit(cluster, rows):
    X, y = rows

    def slow(rows):
        time.sleep(0.03)
        return (X[rows].sum(axis=0, dtype=np.float64),)

    there = while_a_worker_dies(lambda: cluster.sum(slow, len(y)))
    np.testing.assert_array_equal(there[0], Local().sum(slow, len(y))[0])


def test_a_worker_killed_in_a_fit_changes_no_bit(cluster, rows, monkeypatch):
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)
    there = while_a_worker_dies(lambda: LabelCorrector(engine=cluster).fit(*rows))
    local = LabelCorrector().fit(*rows)
    np.testing.assert_array_equal(
        there.label_distributions_, local.label_distributions_
    )


def test_a_worker_s_error_is_ours(cluster, rows):
    X, y = rows

    def fail(rows):
        raise ValueError(f"row {rows.start} is odd")

    with pytest.raises(ValueError, match=r"^row 0 is odd$"):
        cluster.sum(fail, len(y))


def test_later_batches_give_the_same_bits(cluster):
    X, _, given = blobs(20_000, 4000)
    X, given, later, labels = X[:2000], given[:2000], X[2000:], given[2000:]
    there = LabelCorrector(engine=cluster).fit(X, given)
    here = LabelCorrector().fit(X, given)
    for refit in (False, True):
        one, other = (c.judge(later, labels, refit=refit) for c in (here, there))
        same = one.label_distributions_ == other.label_distributions_
        assert same.all()
        assert one.differences_ == other.differences_


@pytest.fixture
def folder(tmp_path):
    X, _, given = blobs()
    lines = ["id,label", *(f"{i},{label}" for i, label in enumerate(given))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    np.save(tmp_path / "e.npy", X)
    return tmp_path


def correct(folder, *more, embeddings="e.npy"):
    return stct("correct", "t.csv", "--embeddings", embeddings, *more, cwd=folder)


@pytest.mark.parametrize("embeddings", ["e.npy", "shards"])
def test_the_command_on_a_running_cluster_writes_the_same_files(
    cluster, folder, embeddings
):
    """The cluster runs in another folder: shards are found all the same."""
    (folder / "shards").mkdir()
    np.save(folder / "shards" / "p0.npy", np.load(folder / "e.npy"))
    address = ray.get_runtime_context().gcs_address
    there = ["-o", "a", "--engine", "ray", "--ray-address", address]
    done = correct(folder, *there, embeddings=embeddings)
    assert done.returncode == 0, done.stderr
    assert correct(folder, "-o", "b").returncode == 0
    for name in ("labels.csv", "patch.csv", "soft_labels.npz"):
        assert (folder / "a" / name).read_bytes() == (folder / "b" / name).read_bytes()


@pytest.mark.parametrize(
    ("more", "fragment"),
    [
        (["--engine", "ray", "--ray-address", "127.0.0.1:9"], "127.0.0.1:9 cannot be"),
        (["--engine", "ray", "--ray-address", "nonsense"], "auto or host:port"),
        (["--ray-address", "auto"], "--ray-address goes with --engine ray"),
    ],
)
def test_a_cluster_that_is_not_there_is_one_line(folder, more, fragment):
    assert_error(correct(folder, "-o", "out", *more), fragment)
    assert not (folder / "out").exists()


def test_a_server_that_is_not_ray_is_one_line(folder):
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        done = correct(folder, "--engine", "ray", "--ray-address", address)
        server.shutdown()
    assert_error(done, f"Ray at {address} cannot be reached: what answers there")


# The real command, but for what happens on the workers.
SPOILT = """
import os, signal, sys, time
import stct.cli, stct.numeric.ray_engine

died = os.path.abspath("died")
as_it_is = stct.numeric.ray_engine._sum_unit

def dies(function, start, stop):
    os.kill(os.getpid(), signal.SIGKILL)

def dies_once(function, start, stop):
    if not os.path.exists(died):
        open(died, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return as_it_is(function, start, stop)

def has_no_memory(function, start, stop):
    raise MemoryError("Unable to allocate 8.00 PiB")

def is_killed_by_ray(function, start, stop):
    time.sleep(60)

stct.numeric.ray_engine._sum_unit = globals()[sys.argv.pop(1)]
stct.cli.main()
"""


def correct_where_a_worker(does, folder, *more, **environment):
    command = ["correct", "t.csv", "--embeddings", "e.npy", "--json"]
    return subprocess.run(
        [sys.executable, "-c", SPOILT, does, *command, "--engine", "ray", *more],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        timeout=120,
    )


@pytest.mark.parametrize(
    ("does", "fragment"),
    [
        ("dies", "a Ray worker died 6 times over the same rows"),
        ("has_no_memory", "out of memory on a Ray worker:"),
    ],
)
def test_a_worker_that_always_fails_is_one_line(cluster, folder, does, fragment):
    address = ray.get_runtime_context().gcs_address
    done = correct_where_a_worker(does, folder, "--ray-address", address)
    assert_error(done, fragment, "fewer workers on each machine")
    assert sorted(path.name for path in folder.iterdir()) == ["e.npy", "t.csv"]


def test_a_worker_that_ray_kills_for_its_memory_is_one_line(folder):
    """Ray's own monitor does it, told that any use of memory is too much."""
    settings = {"RAY_memory_usage_threshold": "0.0001", "RAY_task_oom_retries": "1"}
    done = correct_where_a_worker("is_killed_by_ray", folder, **settings)
    assert_error(done, "out of memory on a Ray worker:", "fewer workers")
    assert sorted(path.name for path in folder.iterdir()) == ["e.npy", "t.csv"]


def test_a_worker_that_dies_once_leaves_stdout_to_the_results(cluster, folder):
    """Ray would tell of it there, in front of the JSON."""
    address = ray.get_runtime_context().gcs_address
    done = correct_where_a_worker("dies_once", folder, "--ray-address", address)
    assert done.returncode == 0, done.stderr
    assert (folder / "died").exists()
    assert json.loads(done.stdout)["rows"] == 60
