"""What tests share. No library may look for a model on the network: set that first."""

import csv
import os

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"


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
