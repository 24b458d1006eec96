"""Several machines: each process writes its embeddings, the corrector reads them."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
from command import stct
from test_train_algorithm import pictures
from test_train_runs import FAST, RESULTS

pytestmark = pytest.mark.slow  # starts real processes

# The real command, but that it keeps what every correction was given.
SPY = """
import json
import numpy as np
import stct.cli
from stct.estimator import LabelCorrector

fit = LabelCorrector.fit

def spy(self, X, *rest, **more):
    kept = [[part.name, part.num_rows] for part in X._parts]
    with open("read.jsonl", "a") as file:
        file.write(json.dumps(kept) + "\\n")
    np.save("last.npy", X[0 : len(X)])
    return fit(self, X, *rest, **more)

LabelCorrector.fit = spy
stct.cli.main()
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nodes")
    rng = np.random.default_rng(0)
    images, truth = pictures(121, rng)  # an odd number: the last shard is shorter
    noisy = np.where(rng.random(121) < 0.3, rng.integers(0, 4, 121), truth)
    np.savez(folder / "train.npz", images=images, labels=noisy)
    (folder / "spy.py").write_text(SPY)
    return folder


def two_nodes(data, *arguments, folders=None):
    """Run torchrun twice, as on two machines; give what both of them said."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    line = [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2"),
        *("--nproc-per-node", "1", "--rdzv-endpoint", endpoint, "--node-rank"),
    ]
    nodes = [
        subprocess.Popen(
            [*line, str(rank), str(data / "spy.py"), *map(str, arguments)],
            cwd=data if folders is None else folders[rank],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    said = [node.communicate(timeout=150) for node in nodes]
    return [(node.returncode, *texts) for node, texts in zip(nodes, said, strict=True)]


@pytest.fixture(scope="module")
def run(data):
    (data / "read.jsonl").unlink(missing_ok=True)
    for code, _, errors in two_nodes(data, "train", "train.npz", *FAST, "-o", "run"):
        assert code == 0, errors
    return data / "run"


def test_the_corrector_reads_what_the_processes_wrote(data, run):
    lines = (data / "read.jsonl").read_text().splitlines()
    assert len(lines) == 3  # two rounds and the end, all in the first process
    for line in lines:
        names, sizes = zip(*json.loads(line), strict=True)
        assert [os.path.basename(name) for name in names] == [
            "rows-0-of-2.npy",
            "rows-1-of-2.npy",
        ]
        assert sizes == (61, 60)
    assert not (run / ".embeddings").exists()


def test_all_shards_are_the_embeddings_of_the_one_model(data, run):
    from stct.train import STCT

    H = STCT.load(run / "model.safetensors").embed(
        np.load(data / "train.npz")["images"]
    )
    np.testing.assert_allclose(np.load(data / "last.npy"), H, rtol=1e-4, atol=1e-5)


def test_resume_over_the_shards_of_a_killed_run_gives_the_same_bytes(data, run):
    """Killed before its first checkpoint, and other processes left shards too."""
    folder = data / "killed"
    left = folder / ".embeddings"
    left.mkdir(parents=True)
    for name in ("config.json", "environment.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    for name in ("rows-1-of-2.npy", "rows-2-of-3.npy"):
        np.save(left / name, np.zeros((3, 5), np.float32))
    for code, _, errors in two_nodes(data, "train", "--resume", "killed"):
        assert code == 0, errors
    for name in RESULTS:
        assert (folder / name).read_bytes() == (run / name).read_bytes(), name
    assert not left.exists()
    assert stct("predict", folder, "train.npz", "-o", "p.csv", cwd=data).returncode == 0


def test_a_run_directory_that_is_not_shared_is_said(data, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    arguments = ["train", data / "train.npz", *FAST, "-o", "run"]
    results = two_nodes(data, *arguments, folders=folders)
    assert all(code != 0 for code, *_ in results)
    said = "".join(errors for *_, errors in results)
    assert "stct: error: run: is not there; the run directory must be on a" in said
