"""What tests share. No library may look for a model on the network: set that first."""

import csv
import os
import signal
import sys

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
# A script that starts the tests in its background ignores Ctrl-C, and so would every
# process that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def write_run(tmp_path):
    """Correct the labels of a table and write the files of the run into out."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    from stct import LabelCorrector
    from stct.data.inputs import read_inputs
    from stct.data.results import write_results

    def write(X, columns, *, ending="csv", more_files=(), **more):
        np.save(tmp_path / "e.npy", X)
        path = tmp_path / f"t.{ending}"
        if ending == "parquet":
            parquet.write_table(pa.table(columns), path)
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*columns.values(), strict=True))
        inputs = read_inputs(path, embeddings=tmp_path / "e.npy", **more)
        corrector = LabelCorrector()
        corrector.fit(inputs.embeddings, inputs.targets, locked=inputs.locked)
        out = tmp_path / "out"
        out.mkdir()
        write_results(out, inputs, corrector, seconds=0.0, more_files=more_files)
        return out, inputs

    return write


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Pictures with noisy labels to train on, and true ones to test on."""
    import numpy as np
    from test_train_algorithm import pictures

    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    images, truth = pictures(300, rng)
    noisy = np.where(rng.random(300) < 0.3, rng.integers(0, 4, 300), truth)
    names = np.array(["north", "east", "south", "west"])
    np.savez(folder / "train.npz", images=images[:240], labels=names[noisy[:240]])
    np.savez(folder / "test.npz", images=images[240:], labels=names[truth[240:]])
    return folder


@pytest.fixture(scope="session")
def whole(data):
    """A run of ``stct train`` that nobody disturbed."""
    from train_runs import FAST, succeed

    test = ["--test", data / "test.npz"]
    out = ["-o", data / "whole", "--quiet"]
    succeed("train", data / "train.npz", *FAST, *test, *out)
    return data / "whole"


@pytest.fixture
def refuse(monkeypatch, capsys):
    """Run a command that must fail inside this process: importing torch is slow."""
    from stct import cli

    def run(*arguments, says):
        capsys.readouterr()  # what was printed before
        monkeypatch.setattr(sys, "argv", ["stct", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        assert stopped.value.code == 2
        assert printed.out == ""
        assert printed.err.startswith("stct: error: ")
        assert printed.err.count("\n") == 1, printed.err
        assert says in printed.err

    return run
