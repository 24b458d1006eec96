"""``stct predict``: tables of labels for new images, and what is said of them."""

import json

import numpy as np
import pytest
from train_runs import read_csv, succeed

from stct.data.tables import read_table

pytestmark = pytest.mark.slow  # starts real processes


def test_predict_uses_the_run(data, whole, tmp_path):
    out = tmp_path / "predictions.csv"
    result = succeed("predict", whole, data / "test.npz", "-o", out)
    assert "60 images" in result.stdout
    rows = read_csv(out)
    labels = np.load(data / "test.npz")["labels"]
    right = np.mean(
        [row["label"] == label for row, label in zip(rows, labels, strict=True)]
    )
    summary = json.loads((whole / "summary.json").read_text())
    assert right == pytest.approx(summary["training"]["test_accuracy"])
    total = sum(float(rows[0][name]) for name in rows[0] if name.startswith("p:"))
    assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("ending", ["tsv", "parquet", "jsonl"])
def test_the_ending_says_the_format(data, whole, tmp_path, ending):
    out = tmp_path / f"predictions.{ending}"
    succeed("predict", whole, data / "test.npz", "-o", out, "--quiet")
    succeed("predict", whole, data / "test.npz", "-o", tmp_path / "p.csv", "--quiet")
    got, expected = read_table(out), read_table(tmp_path / "p.csv")
    assert list(got.columns) == list(expected.columns)
    for name in ("id", "label"):
        assert got.values(name) == expected.values(name)
    for name in list(got.columns)[2:]:
        numbers = [float(value) for value in got.values(name)]
        assert numbers == [float(value) for value in expected.values(name)]
        assert ending == "tsv" or got.values(name) == numbers  # numbers are numbers


def test_what_was_skipped_resized_and_converted_is_said(whole, tmp_path):
    picture = pytest.importorskip("PIL.Image")
    photos = tmp_path / "photos"
    photos.mkdir()
    rng = np.random.default_rng(0)
    for i in range(3):
        pixels = rng.integers(0, 255, (20, 12, 3), dtype=np.uint8)
        picture.fromarray(pixels).save(photos / f"{i}.png")
    (photos / "bad.png").write_bytes(b"rubbish")
    out = tmp_path / "p.csv"
    result = succeed("predict", whole, photos, "-o", out, "--skip-bad")
    assert "labels of 3 images" in result.stdout
    assert "3 of 3 images were resized to 8 x 8" in result.stdout
    assert "3 of 3 images were converted to grey" in result.stdout
    assert "1 images could not be read and were left out" in result.stdout
    assert "bad.png" in result.stdout
    assert [row["id"] for row in read_csv(out)] == ["0.png", "1.png", "2.png"]
