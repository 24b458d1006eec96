"""Images from every kind of source, of odd sizes and modes, good and bad."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
from cifar_files import write_cifar10
from PIL import Image
from pyarrow import parquet

from stct.data import cifar
from stct.data.images import LazyImages, read_images


def picture(seed=0, height=8, width=10):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def save(path, pixels, **keywords):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **keywords)
    return path


def class_folders(folder):
    """Two classes, five images; the order of writing is not the order of reading."""
    for seed, name in enumerate(
        ["dog/b.png", "cat/2.bmp", "dog/a.png", "cat/1.png", "dog/deep/x.webp"]
    ):
        keywords = {"lossless": True} if name.endswith("webp") else {}
        save(folder / name, picture(seed), **keywords)
    return folder


def test_class_folders(tmp_path):
    folder = class_folders(tmp_path / "photos")
    (folder / "dog" / "notes.txt").write_text("no image")
    (folder / ".cache").mkdir()
    read = read_images(folder)
    names = ["cat/1.png", "cat/2.bmp", "dog/a.png", "dog/b.png", "dog/deep/x.webp"]
    assert read.ids == names
    assert read.labels.tolist() == ["cat", "cat", "dog", "dog", "dog"]
    assert read.images.dtype == np.uint8
    for image, seed in zip(read.images, [3, 1, 2, 0, 4], strict=True):
        np.testing.assert_array_equal(image, picture(seed))
    assert read.notes == read.skipped == []
    assert read.table_format is None


def test_folder_without_classes(tmp_path):
    save(tmp_path / "b.png", picture(1))
    save(tmp_path / "a.png", picture(0))
    with pytest.raises(ValueError, match="no class folders with images"):
        read_images(tmp_path)
    read = read_images(tmp_path, labels_required=False)
    assert read.labels is None
    assert read.ids == ["a.png", "b.png"]
    save(tmp_path / "cat" / "c.png", picture(2))
    read = read_images(tmp_path)
    assert read.ids == ["cat/c.png"]
    assert read.notes == [
        "2 images outside the class folders were left out: a.png, b.png"
    ]


def test_folder_of_splits_is_not_taken_for_classes(tmp_path):
    save(tmp_path / "train" / "cat" / "1.png", picture())
    save(tmp_path / "val" / "cat" / "1.png", picture())
    with pytest.raises(ValueError, match="holds train, val; give one of these"):
        read_images(tmp_path)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_tables_of_paths(tmp_path, ending):
    class_folders(tmp_path / "photos")
    rows = {
        "id": ["x", "y", "z"],
        "path": ["photos/dog/a.png", "photos/cat/1.png", "photos/dog/b.png"],
        "label": ["dog", None, "dog"],
    }
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        parquet.write_table(pa.table(rows), path)
    elif ending == "jsonl":
        lines = [
            dict(zip(rows, r, strict=True)) for r in zip(*rows.values(), strict=True)
        ]
        path.write_text("\n".join(map(json.dumps, lines)))
    else:
        comma = "," if ending == "csv" else "\t"
        cells = [list(rows), *zip(*rows.values(), strict=True)]
        path.write_text("\n".join(comma.join(c or "" for c in r) for r in cells))
    read = read_images(path)
    assert read.labels.tolist() == ["dog", None, "dog"]
    assert read.ids == ["x", "y", "z"]
    assert read.id_column == "id"
    assert read.table_format == ending
    np.testing.assert_array_equal(read.images[1], picture(3))


def test_table_without_labels_ids_or_known_columns(tmp_path):
    save(tmp_path / "a.png", picture())
    path = tmp_path / "t.csv"
    path.write_text("where\na.png\n")
    with pytest.raises(ValueError, match="no column 'label'"):
        read_images(path)
    with pytest.raises(ValueError, match=r"set --image-column.*are where"):
        read_images(path, labels_required=False)
    read = read_images(path, image_column="where", labels_required=False)
    assert read.labels is None
    assert read.ids == ["0"]


def test_npz(tmp_path):
    grey = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
    path = tmp_path / "x.npz"
    np.savez(path, images=grey, labels=[2, 0, 2])
    read = read_images(path)
    np.testing.assert_array_equal(read.images, grey[..., None])
    assert read.labels.tolist() == [2, 0, 2]
    assert read.ids == ["0", "1", "2"]
    np.savez(path, images=grey, ids=["c", "a", "b"])
    assert read_images(path, labels_required=False).ids == ["c", "a", "b"]
    colour = read_images(path, labels_required=False, channels=3, size=(8, 10))
    assert colour.images.shape == (3, 8, 10, 3)
    assert colour.notes == ["all images were made 10 x 8, colour"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros(3)}, "no array 'images'; it holds x"),
        ({"images": np.zeros((2, 4, 4), np.uint8)}, "no array 'labels'"),
        ({"images": np.zeros((2, 4, 4)), "labels": [0, 1]}, "must be uint8 .* float64"),
        ({"images": np.zeros((2, 4, 4, 2), np.uint8), "labels": [0, 1]}, "c 1 or 3"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": [0]}, "each of 2 images"),
        ({"images": np.zeros((0, 4, 4), np.uint8), "labels": []}, "no images in it"),
        (
            {
                "images": np.zeros((2, 4, 4), np.uint8),
                "labels": [0, 1],
                "ids": ["a", "a"],
            },
            "more than once: a",
        ),
        (
            {
                "images": np.zeros((1, 4, 4), np.uint8),
                "labels": np.array([{}], dtype=object),
            },
            "a pickle",
        ),
    ],
)
def test_npz_that_cannot_be_used(tmp_path, arrays, message):
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=message):
        read_images(path)


def test_files_that_are_no_source(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(pickle.dumps([1]))
    with pytest.raises(ValueError, match=r"x\.npz: not readable"):
        read_images(path)
    path = tmp_path / "x.txt"
    path.write_text("x")
    with pytest.raises(ValueError, match="images come from a folder"):
        read_images(path)
    with pytest.raises(ValueError, match="no such file or folder"):
        read_images(tmp_path / "nowhere")


def test_cifar_folder(tmp_path, monkeypatch):
    _, checksums = write_cifar10(tmp_path / "c", batches=(2,))
    monkeypatch.setattr(cifar, "CHECKSUMS", checksums)
    read = read_images(tmp_path / "c")
    assert read.images.shape == (4, 32, 32, 3)
    assert "missing" in read.notes[0]
    assert len(read_images(tmp_path / "c", split="test")) == 2


def test_mixed_sizes_and_modes(tmp_path):
    """The most common size and mode win; the others are changed, said once."""
    photos = tmp_path / "p" / "x"
    for i in range(3):
        save(photos / f"{i}.png", picture(i))
    save(photos / "3.png", np.full((16, 20, 3), 77, np.uint8))
    save(photos / "4.png", np.full((8, 10), 99, np.uint8))
    read = read_images(tmp_path / "p")
    assert read.images.shape == (5, 8, 10, 3)
    assert (read.images[3] == 77).all()
    assert (read.images[4] == 99).all()
    assert read.notes == [
        "1 of 5 images were resized to 10 x 8, the most common size",
        "1 of 5 images were converted to colour, as most are",
    ]
    small = read_images(tmp_path / "p", size=4, channels=1)
    assert small.images.shape == (5, 4, 4, 1)
    assert small.notes[0] == "5 of 5 images were resized to 4 x 4"


def test_another_shape_is_cut_not_squashed(tmp_path):
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 200  # the middle third is all that stays
    save(tmp_path / "x" / "wide.png", wide)
    read = read_images(tmp_path, size=10)
    assert (read.images[0] == 200).all()


def test_odd_modes(tmp_path):
    folder = tmp_path / "x"
    deep = np.array([[0, 256], [32_768, 65_535]], dtype=np.uint16)
    save(folder / "a_deep.png", deep)
    clear = np.zeros((2, 2, 4), np.uint8)  # black, but transparent
    clear[0, 0] = [10, 20, 30, 255]
    save(folder / "b_clear.png", clear)
    palette = Image.fromarray(np.full((2, 2, 3), (1, 2, 3), np.uint8)).quantize(2)
    palette.save(folder / "c_palette.gif")
    Image.new("1", (2, 2), 1).save(folder / "d_bit.png")
    Image.new("CMYK", (2, 2)).save(folder / "e_ink.jpg")
    read = read_images(tmp_path, channels=3)
    assert read.images[0, :, :, 0].tolist() == [[0, 1], [128, 255]]
    assert read.images[1].reshape(4, 3).tolist() == [[10, 20, 30]] + [[255] * 3] * 3
    assert (read.images[2] == [1, 2, 3]).all()
    assert (read.images[3] == 255).all()
    assert (read.images[4] == 255).all()


def test_a_photo_is_turned_as_the_camera_was(tmp_path):
    upright = np.zeros((16, 8, 3), np.uint8)
    upright[:8] = 255  # white above black
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera lay on its side
    path = save(tmp_path / "x" / "p.png", np.rot90(upright), exif=exif)
    with Image.open(path) as image:
        assert image.size == (16, 8)
    read = read_images(tmp_path)
    assert read.notes == []
    np.testing.assert_array_equal(read.images[0], upright)


def bad_files(folder):
    """One good image and four that cannot be read, in two ways to find out."""
    save(folder / "x" / "good.png", picture())
    (folder / "x" / "text.png").write_text("not an image")
    (folder / "x" / "empty.jpg").write_bytes(b"")
    whole = save(folder / "x" / "whole.jpg", picture(1, 64, 64)).read_bytes()
    (folder / "x" / "whole.jpg").unlink()
    (folder / "x" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    whole = (folder / "x" / "good.png").read_bytes()
    (folder / "x" / "torn.png").write_bytes(whole[:-60])
    return folder


@pytest.mark.parametrize("most_bytes", [2**30, 10])
def test_bad_files_are_skipped_and_listed(tmp_path, most_bytes):
    folder = bad_files(tmp_path / "p")
    read = read_images(folder, skip_bad=True, most_bytes=most_bytes)
    assert read.ids == ["x/good.png"]
    np.testing.assert_array_equal(read.images[:], picture()[None])
    assert len(read.labels) == 1
    found = sorted(line.split(": ")[0].rsplit("/")[-1] for line in read.skipped)
    assert found == ["cut.jpg", "empty.jpg", "text.png", "torn.png"]


@pytest.mark.parametrize("name", ["text.png", "empty.jpg", "cut.jpg", "torn.png"])
def test_a_bad_file_is_named(tmp_path, name):
    folder = bad_files(tmp_path / "p")
    for path in (folder / "x").iterdir():
        if path.name not in (name, "good.png"):
            path.unlink()
    with pytest.raises(ValueError, match=rf"x/{name}: .*\(--skip-bad"):
        read_images(folder)
    (folder / "x" / "good.png").unlink()
    with pytest.raises(ValueError, match=rf"no image that can be read.*{name}"):
        read_images(folder, skip_bad=True)


def test_label_for_a_missing_file(tmp_path):
    save(tmp_path / "a.png", picture())
    path = tmp_path / "t.csv"
    path.write_text("image,label,more\ngone.png,x,1\na.png,y,2\n")
    with pytest.raises(ValueError, match=r"row 0 .*gone\.png: there is no such file"):
        read_images(path)
    read = read_images(path, skip_bad=True)
    assert read.labels.tolist() == ["y"]
    assert read.ids == ["1"]  # its row in the file
    assert read.table.columns == {"image": ["a.png"], "label": ["y"], "more": ["2"]}
    assert len(read.skipped) == 1
    path.write_text("image,label\n,x\n")
    with pytest.raises(ValueError, match="row 0 .*: no path of an image"):
        read_images(path)


def test_lazy_images_are_the_same(tmp_path):
    folder = class_folders(tmp_path / "photos")
    now = read_images(folder)
    later = read_images(folder, most_bytes=100)
    assert isinstance(later.images, LazyImages)
    assert later.images.shape == now.images.shape
    assert len(later.images) == 5
    for rows in (np.array([4, 0, 0]), slice(1, 3), np.arange(5) > 2, 2, -1):
        np.testing.assert_array_equal(later.images[rows], now.images[rows])
    again = pickle.loads(pickle.dumps(later.images))  # to another process
    np.testing.assert_array_equal(again[:], now.images)
    (folder / "dog" / "a.png").write_text("broken since")
    with pytest.raises(ValueError, match=r"a\.png: not an image"):
        later.images[np.array([2])]


def test_progress_reaches_the_end(tmp_path):
    seen = []
    read_images(class_folders(tmp_path / "p"), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_wanted_shape_must_make_sense(tmp_path):
    with pytest.raises(ValueError, match="size must be 1 pixel or more"):
        read_images(tmp_path, size=0)
    with pytest.raises(ValueError, match="channels must be 1"):
        read_images(tmp_path, channels=4)
