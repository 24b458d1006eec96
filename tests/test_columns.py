"""Labels as text: exact, and looked at once for each label, not for each row."""

import json

import numpy as np
from command import blobs

from stct import LabelCorrector
from stct.data import columns
from stct.data.inputs import fit_inputs, read_inputs
from stct.data.results import write_results


def test_the_work_on_label_texts_does_not_grow_with_rows(tmp_path, monkeypatch):
    X, _, given = blobs(600)
    names = [f"class {label}" for label in given]
    (tmp_path / "t.csv").write_text("\n".join(["label", *names]) + "\n")
    np.save(tmp_path / "e.npy", X)
    columns._is_json.cache_clear()
    parse, parsed = json.loads, []

    def count(text, **keywords):
        parsed.append(text)
        return parse(text, **keywords)

    monkeypatch.setattr(json, "loads", count)
    inputs = read_inputs(tmp_path / "t.csv", embeddings=tmp_path / "e.npy")
    corrector = LabelCorrector()
    fit_inputs(corrector, inputs)
    (tmp_path / "out").mkdir()
    summary = write_results(tmp_path / "out", inputs, corrector, seconds=0.0)
    assert sorted(parsed) == ["class 0", "class 1", "class 2"]
    assert sum(summary["class_counts"]["before"]) == 600
    moved = sum(move["rows"] for move in summary["most_common_corrections"])
    assert moved == summary["actions"]["relabel"] > 0
