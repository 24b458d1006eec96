"""What other tools import, checked by those tools themselves."""

import json
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from command import assert_error, blobs, run_here, stct

from stct.data.annotation_files import read_annotations
from stct.data.corrected import read_corrected
from stct.export import export_folder

NAMES = ["<b>cat</b>", 'a "dog", big', "eel\n2"]


@pytest.fixture
def corrected_folder(write_run):
    """Correct 60 rows with odd labels, texts and image names."""

    def make(*, ending="csv", missing=False):
        X, truth, given = blobs()
        labels = [NAMES[c] for c in given]
        if missing:
            labels[7] = None
        columns = {
            "id": [f"r{i}" for i in range(60)],
            "label": labels,
            "note": [f"a fairly long sentence, & number {i}" for i in range(60)],
            "file": [f"{i}.png" for i in range(60)],
            "size": list(range(60)),
        }
        out, _ = write_run(X, columns, ending=ending)
        return out, X, [NAMES[c] for c in truth]

    return make


def test_label_studio_accepts_tasks_and_predictions(corrected_folder, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interface = pytest.importorskip("label_studio_sdk.label_interface")
    out, _, truth = corrected_folder(missing=True)
    export_folder(out, "label-studio", tmp_path / "ls")
    config = (tmp_path / "ls" / "label_config.xml").read_text("utf-8")
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text("utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        studio = interface.LabelInterface(config)
        studio.validate()
        assert len(tasks) == 60
        for task in tasks:
            assert studio.validate_task({"data": task["data"]})
            (prediction,) = task["predictions"]
            assert studio.validate_prediction(prediction, return_errors=True) == []
    found = [task["predictions"][0]["result"][0]["value"]["choices"] for task in tasks]
    assert found == [[name] for name in truth]
    assert tasks[3]["data"]["image"] == "/data/local-files/?d=3.png"
    assert tasks[7]["data"]["given"] == ""


def test_cleanlab_takes_the_issues(corrected_folder, tmp_path):
    from cleanlab.classification import CleanLearning
    from sklearn.linear_model import LogisticRegression

    out, X, _ = corrected_folder()
    export_folder(out, "cleanlab", tmp_path / "cl")
    issues = pd.read_csv(tmp_path / "cl" / "label_issues.csv")
    classes = pd.read_csv(tmp_path / "cl" / "classes.csv")
    assert issues["is_label_issue"].tolist() == [True] * 6 + [False] * 54
    assert sorted(classes["label"]) == sorted(NAMES)
    labels = issues["given_label"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # One process: its pool forks this one, threads and all, and can wait for ever.
        alone = {"find_label_issues_kwargs": {"n_jobs": 1}, "verbose": False}
        learner = CleanLearning(LogisticRegression(), **alone)
        theirs = learner.find_label_issues(X, labels)
        assert set(theirs.columns) <= set(issues.columns)
        for name in theirs.columns:
            assert theirs[name].dtype.kind == issues[name].dtype.kind, name
        again = CleanLearning(LogisticRegression(), verbose=False)
        again.fit(X, labels, label_issues=issues)
    assert np.mean(again.predict(X) == issues["predicted_label"]) > 0.95


def test_cleanlab_has_no_place_for_missing_labels(corrected_folder, tmp_path):
    out, *_ = corrected_folder(missing=True)
    with pytest.raises(ValueError, match="1 rows have no given label"):
        export_folder(out, "cleanlab", tmp_path / "cl")
    assert not (tmp_path / "cl").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_hugging_face_loads_the_dataset(corrected_folder, tmp_path, ending):
    datasets = pytest.importorskip("datasets")
    from PIL import Image

    out, _, truth = corrected_folder(ending=ending, missing=True)
    for i in range(0, 60, 2):
        Image.new("RGB", (5, 4), (i, 0, 0)).save(tmp_path / f"{i}.png")
    export_folder(out, "huggingface", tmp_path / "hf", images=tmp_path)
    (tmp_path / "hf").rename(tmp_path / "moved")
    for path in tmp_path.glob("*.png"):
        path.unlink()
    loaded = datasets.load_from_disk(tmp_path / "moved")
    kind = loaded.features["label"]
    assert [kind.int2str(code) for code in loaded["label"]] == truth
    assert loaded["given"][7] is None
    assert loaded["image"][2].size == (5, 4)
    assert loaded["image"][3] is None
    assert loaded["size"][:3] == ([0, 1, 2] if ending == "parquet" else list("012"))
    np.testing.assert_allclose(np.sum(loaded["probabilities"], axis=1), 1, rtol=1e-5)


@pytest.mark.slow
def test_export_through_the_command(corrected_folder, tmp_path):
    out, *_ = corrected_folder()
    done = stct("export", "out", "--to", "cleanlab", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "label_issues.csv" in done.stdout
    done = stct("export", "out", "--to", "cleanlab", cwd=tmp_path)
    assert_error(done, "stct-cleanlab", "exists")
    assert_error(stct("export", "out", "--to", "x", cwd=tmp_path), "label-studio")
    (tmp_path / "empty").mkdir()
    done = stct("export", "empty", "--to", "cleanlab", cwd=tmp_path)
    assert_error(done, "empty", "no summary.json")
    assert read_corrected(out).ids[0] == "r0"


def test_top_rows_are_those_with_the_most_to_gain(corrected_folder, tmp_path):
    out, *_ = corrected_folder()
    export_folder(out, "label-studio", tmp_path / "ls", top=6)
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text("utf-8"))
    assert {task["data"]["id"] for task in tasks} == {f"r{i}" for i in range(6)}
    assert all(task["data"]["action"] == "relabel" for task in tasks)
    with pytest.raises(ValueError, match="--top does not go with cleanlab"):
        export_folder(out, "cleanlab", tmp_path / "cl", top=6)


def test_argilla_reads_settings_and_records(corrected_folder, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        argilla = pytest.importorskip("argilla")
    client = mock.MagicMock()
    monkeypatch.setattr(argilla.Argilla, "_get_default", lambda *_: client)
    out, _, truth = corrected_folder()
    export_folder(out, "argilla", tmp_path / "ar", top=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = argilla.Settings.from_json(tmp_path / "ar/.argilla/settings.json")
        items = json.loads((tmp_path / "ar" / "records.json").read_text("utf-8"))
        records = [argilla.Record.from_dict(item) for item in items]
    assert settings.questions["label"].labels == sorted(NAMES)
    assert [field.name for field in settings.fields] == ["image"]
    assert len(records) == 10
    for record in records:
        (suggestion,) = list(record.suggestions)
        assert suggestion.value == truth[int(record.id[1:])]
    # What an annotator answers comes back as it was read.
    for item in items[:3]:
        item["responses"] = {"label": [{"value": NAMES[0], "user_id": "u"}]}
    path = tmp_path / "records.json"
    path.write_text(json.dumps(items), encoding="utf-8")
    found = read_annotations(path)
    assert found.decisions.values("label") == [NAMES[0]] * 3
    assert found.open == 7


def annotated(tasks, choices):
    """Tasks as Label Studio exports them, with the choices of annotators by id."""
    for number, task in enumerate(tasks):
        row = task["data"]["id"]
        task |= {"id": 100 + number, "annotations": []}
        for name in choices.get(row, []):
            result = dict(task["predictions"][0]["result"][0])
            result["value"] = {"choices": [name]}
            task["annotations"].append(
                {"was_cancelled": name is None, "result": [result] if name else []}
            )
    return tasks


def test_annotations_come_back_as_decisions(corrected_folder, tmp_path):
    out, _, truth = corrected_folder()
    export_folder(out, "label-studio", tmp_path / "ls", top=6)
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text("utf-8"))
    a, b, c = NAMES
    choices = {"r0": [truth[0]], "r1": [a, b, b], "r2": [a, b], "r3": [None], "r4": [c]}
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(annotated(tasks, choices)), encoding="utf-8")
    decisions = tmp_path / "decisions.csv"
    run_here("import", path, out, "-o", decisions, "--quiet")
    table = pd.read_csv(decisions)
    found = dict(zip(table["id"], table["label"], strict=True))
    assert found == {"r0": truth[0], "r1": b, "r4": c}
    imported = read_annotations(path)
    assert imported.disputed == ["r2"]
    assert imported.open == 2
    words = ("--embeddings", tmp_path / "e.npy", "--locked", decisions, "--quiet")
    run_here("correct", tmp_path / "t.csv", *words, "-o", tmp_path / "again")
    labels = pd.read_csv(tmp_path / "again" / "labels.csv", index_col="id")["label"]
    assert labels["r1"] == b
    assert labels["r4"] == c


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tasks: {"tasks": tasks}, "must be a list of tasks"),
        (lambda tasks: [], "must be a list of tasks"),
        (lambda tasks: [{"id": 1, "label": "cat"}], "not JSON-MIN"),
        (lambda tasks: [{"data": {"text": "x"}, "annotations": []}], "another project"),
        (lambda tasks: tasks, "nothing to import yet"),
        (lambda tasks: annotated(tasks, {"r0": ["owl"]}), "labels .* lacks: owl"),
        (lambda tasks: annotated(tasks, {"r0": [3]}), "one label was expected"),
        (lambda tasks: tasks + tasks[:1], "come more than once: r"),
    ],
)
def test_exports_of_other_projects_are_refused(
    corrected_folder, tmp_path, change, message
):
    out, *_ = corrected_folder()
    export_folder(out, "label-studio", tmp_path / "ls", top=6)
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text("utf-8"))
    path = tmp_path / "a.json"
    path.write_text(json.dumps(change(tasks)), encoding="utf-8")
    decisions = tmp_path / "decisions.csv"
    with pytest.raises(ValueError, match=message):
        run_here("import", path, out, "-o", decisions)
    assert not decisions.exists()
