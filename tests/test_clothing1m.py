"""A small tree in the layout of Clothing-1M."""

import numpy as np
import pytest
from PIL import Image

from stct.data.clothing1m import is_clothing1m, read_clothing1m
from stct.data.image_set import LazyImages
from stct.data.images import read_images

NAMES = ["T-Shirt", "Shirt", "Knitwear"]


def write_tree(folder, place="annotations"):
    lists = folder / place
    lists.mkdir(parents=True, exist_ok=True)
    keys = [f"images/{i % 2}/{i:02}/10{i},2{i}.jpg" for i in range(8)]
    for i, key in enumerate(keys):
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60 + i, 80), (20 * i, 0, 0)).save(path)
    noisy, val, test = keys[:5], keys[5:6], keys[6:]
    (lists / "noisy_train_key_list.txt").write_text("\n".join(noisy) + "\n")
    (lists / "clean_val_key_list.txt").write_text("\n".join(val) + "\n")
    (lists / "clean_test_key_list.txt").write_text("\n".join(test) + "\n")
    # Some training images have a clean label too: it must not be read.
    (lists / "noisy_label_kv.txt").write_text(
        "".join(f"{key} {i % 3}\n" for i, key in enumerate(noisy))
    )
    (lists / "clean_label_kv.txt").write_text("".join(f"{key} 2\n" for key in keys))
    (lists / "category_names_eng.txt").write_text("\n".join(NAMES) + "\n")
    return keys


@pytest.mark.parametrize("place", ["", "annotations"])
def test_noisy_training_set_is_read_lazily(tmp_path, place):
    keys = write_tree(tmp_path, place)
    assert is_clothing1m(tmp_path)
    read = read_clothing1m(tmp_path)
    assert read.ids == keys[:5]
    assert read.labels.tolist() == ["T-Shirt", "Shirt", "Knitwear", "T-Shirt", "Shirt"]
    assert read.classes == tuple(NAMES)
    assert isinstance(read.images, LazyImages)
    assert read.images.shape == (5, 256, 256, 3)
    assert abs(int(read.images[np.array([4])].mean()) - 80 // 3) < 3


def test_clean_sets_are_for_scoring(tmp_path):
    keys = write_tree(tmp_path)
    for split, expected in [("val", keys[5:6]), ("test", keys[6:])]:
        read = read_clothing1m(tmp_path, split)
        assert read.ids == expected
        assert set(read.labels) == {"Knitwear"}
    with pytest.raises(ValueError, match="train, val or test, got 'clean_train'"):
        read_clothing1m(tmp_path, "clean_train")


def test_found_by_read_images(tmp_path):
    write_tree(tmp_path)
    assert read_images(tmp_path, size=32).images.shape == (5, 32, 32, 3)
    assert len(read_images(tmp_path, split="test")) == 2


def test_what_is_missing_is_named(tmp_path):
    keys = write_tree(tmp_path)
    (tmp_path / keys[1]).unlink()
    with pytest.raises(ValueError, match=r"101,21\.jpg: there is no such file"):
        read_clothing1m(tmp_path)
    read = read_clothing1m(tmp_path, skip_bad=True)
    assert read.ids == [keys[0], *keys[2:5]]
    assert read.labels.tolist() == ["T-Shirt", "Knitwear", "T-Shirt", "Shirt"]
    assert len(read.skipped) == 1
    lists = tmp_path / "annotations"
    (lists / "category_names_eng.txt").unlink()
    assert read_clothing1m(tmp_path, skip_bad=True).classes == ("0", "1", "2")
    (lists / "noisy_label_kv.txt").write_text(f"{keys[0]} 0\n")
    with pytest.raises(ValueError, match="no label for images"):
        read_clothing1m(tmp_path)
    (lists / "noisy_label_kv.txt").write_text("rubbish\n")
    with pytest.raises(ValueError, match="line 1: expected an image and a class"):
        read_clothing1m(tmp_path)
    (lists / "noisy_label_kv.txt").unlink()
    with pytest.raises(ValueError, match=r"no noisy_label_kv\.txt in it"):
        read_clothing1m(tmp_path)
