"""Runs: what they leave, and bad input; real files and processes."""

import json

import numpy as np
import pytest
from train_runs import FAST, RESULTS, metrics, read_csv, succeed


@pytest.mark.slow
def test_a_run_leaves_everything_a_person_needs(data, whole):
    names = {path.name for path in whole.iterdir() if not path.name.startswith(".")}
    assert names >= {
        *RESULTS,
        *("summary.json", "config.json", "environment.json", "metrics.jsonl"),
        *("labels-round-01.csv", "labels-round-02.csv", "pretrained.safetensors"),
    }
    summary = json.loads((whole / "summary.json").read_text())
    assert len(summary["training"]["rounds"]) == 2
    assert summary["training"]["test_accuracy"] > 0.6
    rows = read_csv(whole / "labels.csv")
    assert len(rows) == 240
    assert {row["action"] for row in rows} <= {"keep", "relabel", "abstain"}
    steps = metrics(whole)
    assert {"pretrain", "srl", "round"} == {step["phase"] for step in steps}
    chosen = read_csv(whole / "labels-round-02.csv")
    assert {row["label"] for row in chosen} == {"north", "east", "south", "west"}
    assert {row["selected"] for row in chosen} == {"0", "1"}


@pytest.mark.slow
def test_init_leaves_simclr_out_and_gives_the_same_start(data, whole, tmp_path):
    folder = tmp_path / "again"
    succeed(
        "train", data / "train.npz", *FAST, "--init", whole, "-o", folder, "--quiet"
    )
    phases = [entry["phase"] for entry in metrics(folder)]
    assert "pretrain" not in phases
    first = (folder / "labels-round-01.csv").read_bytes()
    assert first == (whole / "labels-round-01.csv").read_bytes()


@pytest.mark.slow
def test_bad_requests_are_one_line_and_leave_nothing(data, whole, tmp_path, refuse):
    train = data / "train.npz"
    out = tmp_path / "out"
    refuse("train", says="give DATA to train on, or --resume DIR")
    refuse("train", tmp_path / "no", "-o", out, says="no such file or folder")
    refuse("train", train, "--preset", "x", "-o", out, says="there are tiny, cpu")
    refuse("train", train, "--set", "srl.stps=1", "-o", out, says="near names")
    refuse("train", train, "-o", whole, says="a run never overwrites another")
    refuse("train", train, "--resume", whole, says="--resume takes no DATA")
    refuse("train", train, "--init", train, "-o", out, says="not a safetensors file")
    other = ["--set", "encoder.width=2", "--init", whole]
    refuse("train", train, *FAST, *other, "-o", out, says="weights of another network")
    missing = ["--set", f"encoder.name=hf:{tmp_path / 'no'}"]
    refuse("train", train, *FAST, *missing, "-o", out, says="not loaded; it must be")
    for wrong in ("correct.val_ratio=5", "correct.step_size=-3"):
        refuse("train", train, "--set", wrong, "-o", out, says="must be above 0")
    refuse("train", "--resume", tmp_path, says="not a run directory")
    table = tmp_path / "out.csv"
    refuse("predict", train, train, "-o", table, says="not a readable corrector")
    refuse("predict", tmp_path, train, "-o", table, says="holds no model.safetensors")
    refuse("predict", whole, train, "-o", out, says=".csv, .tsv, .parquet or .jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_folder_one_is_in_is_no_run(data, tmp_path, refuse, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuse("train", data / "train.npz", "-o", ".", says="give it a name, e.g. -o run")


@pytest.mark.slow
def test_an_encoder_for_colours_is_refused_before_anything(data, tmp_path, refuse):
    pytest.importorskip("transformers")
    from hf_models import save_model

    save_model(tmp_path / "hf", "resnet")
    out, name = tmp_path / "out", f"encoder.name=hf:{tmp_path / 'hf'}"
    train = ["train", data / "train.npz", "--preset", "tiny", "--set", name]
    refuse(*train, "-o", out, says="needs colour images")
    assert not out.exists()


@pytest.mark.slow
def test_a_run_of_another_data_set_or_version_is_refused(whole, tmp_path, refuse):
    folder = tmp_path / "odd"
    folder.mkdir()
    facts = json.loads((whole / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**facts, "fingerprint": "x"}))
    refuse("train", "--resume", folder, says="is not what it was when the run")
    (folder / "config.json").write_text(json.dumps({**facts, "run_version": 99}))
    refuse("train", "--resume", folder, says="another version of stct")
    (folder / "config.json").write_text("{")
    refuse("train", "--resume", folder, says="not readable as JSON")
    (folder / "config.json").write_text("{}")
    refuse("train", "--resume", folder, says="'data' is missing")
    (folder / "config.json").write_text(json.dumps(facts))
    (folder / "checkpoint.safetensors").write_bytes(b"rubbish")
    refuse("train", "--resume", folder, says="not a safetensors file")


@pytest.mark.slow
def test_bad_images_are_named_or_left_out(data, tmp_path, refuse):
    picture = pytest.importorskip("PIL.Image")
    arrays = np.load(data / "train.npz")
    folder = tmp_path / "photos"
    for i, (image, label) in enumerate(
        zip(arrays["images"], arrays["labels"], strict=True)
    ):
        (folder / label).mkdir(parents=True, exist_ok=True)
        picture.fromarray(image[:, :, 0]).save(folder / label / f"{i:03d}.png")
    bad = folder / "north" / "bad.png"
    bad.write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    out = tmp_path / "run"
    refuse("train", folder, *FAST, "-o", out, says="north/bad.png")
    assert not out.exists()
    succeed("train", folder, *FAST, "--skip-bad", "-o", out, "--quiet")
    summary = json.loads((out / "summary.json").read_text())
    (skipped,) = summary["training"]["skipped"]
    assert "north/bad.png" in skipped
    assert any("could not be read" in note for note in summary["notes"])
    ids = {row["id"] for row in read_csv(out / "labels.csv")}
    assert len(ids) == 240
    assert "north/bad.png" not in ids


@pytest.mark.slow
def test_numbers_of_an_array_are_the_names_of_folders(data, tmp_path):
    picture = pytest.importorskip("PIL.Image")
    arrays = np.load(data / "train.npz")
    names, codes = np.unique(arrays["labels"], return_inverse=True)
    np.savez(tmp_path / "train.npz", images=arrays["images"], labels=codes)
    test = np.load(data / "test.npz")
    for i, label in enumerate(np.searchsorted(names, test["labels"])):
        (tmp_path / "test" / str(label)).mkdir(parents=True, exist_ok=True)
        place = tmp_path / "test" / str(label) / f"{i}.png"
        picture.fromarray(test["images"][i, :, :, 0]).save(place)
    out = tmp_path / "run"
    test_set = ["--test", tmp_path / "test", "-o", out, "--quiet"]
    succeed("train", tmp_path / "train.npz", *FAST, *test_set)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["training"]["test_accuracy"] > 0.6


@pytest.mark.slow
def test_a_test_set_of_other_classes_is_refused_before_anything(data, tmp_path, refuse):
    arrays = np.load(data / "test.npz")
    labels = arrays["labels"].astype("U9")
    labels[3] = "up"
    np.savez(tmp_path / "odd.npz", images=arrays["images"], labels=labels)
    out = tmp_path / "run"
    refuse(
        *("train", data / "train.npz", *FAST, "--test", tmp_path / "odd.npz"),
        *("-o", out),
        says="label 'up' is not among the classes",
    )
    assert not out.exists()
