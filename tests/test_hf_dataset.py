"""Data sets that the datasets library saved."""

import sys

import datasets
import numpy as np
import pytest
from PIL import Image

from stct.data.images import read_images


def pictures(num):
    generator = np.random.default_rng(0)
    return [
        Image.fromarray(generator.integers(0, 256, (6, 5, 3), np.uint8))
        for _ in range(num)
    ]


def save(folder, num=4, labels=(1, 0, -1, 1)):
    kinds = datasets.Features(
        {
            "picture": datasets.Image(),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "key": datasets.Value("string"),
        }
    )
    rows = {
        "picture": pictures(num),
        "label": list(labels),
        "key": [f"k{i}" for i in range(num)],
    }
    data = datasets.Dataset.from_dict(rows, features=kinds)
    data.save_to_disk(folder)
    return data


def test_images_and_class_names(tmp_path):
    save(tmp_path / "d")
    read = read_images(tmp_path / "d", id_column="key")
    assert read.images.shape == (4, 6, 5, 3)
    np.testing.assert_array_equal(read.images[2], np.asarray(pictures(4)[2]))
    assert read.labels.tolist() == ["dog", "cat", None, "dog"]
    assert read.classes == ("cat", "dog")
    assert read.ids == ["k0", "k1", "k2", "k3"]
    assert read_images(tmp_path / "d").ids == ["0", "1", "2", "3"]


def test_splits(tmp_path):
    data = save(tmp_path / "d")
    both = datasets.DatasetDict({"train": data, "test": data.select([0, 1])})
    both.save_to_disk(tmp_path / "both")
    assert len(read_images(tmp_path / "both")) == 4
    assert len(read_images(tmp_path / "both", split="test")) == 2
    with pytest.raises(ValueError, match="no split 'val'; it has train, test"):
        read_images(tmp_path / "both", split="val")


def test_columns_that_are_not_there(tmp_path, monkeypatch):
    save(tmp_path / "d")
    with pytest.raises(ValueError, match=r"no column 'key' of images"):
        read_images(tmp_path / "d", image_column="key")
    with pytest.raises(ValueError, match="no column 'stars'; its columns are picture"):
        read_images(tmp_path / "d", label_column="stars")
    assert read_images(tmp_path / "d", label_column="x", labels_required=False)
    (tmp_path / "d" / "state.json").write_text("{")
    with pytest.raises(ValueError, match="not a readable data set"):
        read_images(tmp_path / "d")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r"pip install 'stct\[huggingface\]'"):
        read_images(tmp_path / "d")
