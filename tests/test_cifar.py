"""CIFAR's files: right pixels and names, MD5s, and no foreign code."""

import os
import pickle
import tarfile

import numpy as np
import pytest
from cifar_files import python2_pickle, write_cifar10, write_cifar100

from stct.data.cifar import is_cifar, read_cifar


def test_images_names_and_row_numbers(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    contents, checksums = write_cifar10(folder)
    read = read_cifar(folder, checksums=checksums)
    assert read.images.shape == (20, 32, 32, 3)
    assert read.notes == []
    assert read.classes == ("airplane", "automobile", "bird")
    assert read.labels.tolist() == ["airplane", "automobile", "bird", "airplane"] * 5
    # Row-major planes of red, green, blue; batches of 10,000 rows in the whole set.
    pixels = contents["data_batch_3"][b"data"][1]
    for channel, row, column in [(0, 0, 0), (1, 5, 7), (2, 31, 30)]:
        expected = pixels[channel * 1024 + row * 32 + column]
        assert read.images[9, row, column, channel] == expected
    assert read.ids[9] == "20001"


def test_missing_batches_are_named(tmp_path):
    folder = tmp_path / "c"
    _, checksums = write_cifar10(folder, batches=(1, 4))
    read = read_cifar(folder, checksums=checksums)
    assert len(read) == 8
    assert read.ids[4] == "30000"
    assert read.notes == [
        "c: data_batch_2, data_batch_3, data_batch_5 missing, read without"
    ]


def test_test_split_and_cifar100(tmp_path):
    _, checksums = write_cifar10(tmp_path / "ten")
    test = read_cifar(tmp_path / "ten", "test", checksums=checksums)
    assert test.labels.tolist() == ["bird", "airplane"]
    _, checksums = write_cifar100(tmp_path / "hundred")
    read = read_cifar(tmp_path / "hundred", checksums=checksums)
    assert read.labels.tolist() == ["bee", "apple", "bee"]
    assert is_cifar(tmp_path / "hundred")
    assert not is_cifar(tmp_path)
    with pytest.raises(ValueError, match="'train' or 'test', got 'val'"):
        read_cifar(tmp_path / "ten", "val")


def test_archive_gives_the_same(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    _, checksums = write_cifar10(folder)
    path = tmp_path / "cifar-10-python.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder, folder.name)
    read = read_cifar(path, checksums=checksums)
    assert is_cifar(path)
    expected = read_cifar(folder, checksums=checksums)
    np.testing.assert_array_equal(read.images, expected.images)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match="not a readable tar.gz"):
        read_cifar(path, checksums=checksums)


def test_a_file_that_is_not_the_published_one(tmp_path):
    folder = tmp_path / "c"
    _, checksums = write_cifar10(folder)
    message = f"its MD5 is {checksums['batches.meta']}, expected 5ff9c542"
    with pytest.raises(ValueError, match=message):
        read_cifar(folder)
    with (folder / "data_batch_2").open("ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match="data_batch_2: not the published file"):
        read_cifar(folder, checksums=checksums)


class Attack:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_foreign_code_does_not_run(tmp_path):
    folder = tmp_path / "c"
    write_cifar10(folder)
    attack = {b"labels": [], b"data": Attack(tmp_path / "ran")}
    (folder / "data_batch_1").write_bytes(pickle.dumps(attack))
    with pytest.raises(ValueError, match=r"data_batch_1: not a CIFAR.*posix.mkdir"):
        read_cifar(folder, checksums={})
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({b"labels": [0], b"data": b"x"}, "'data' is not an uint8 array"),
        ({b"labels": [0], b"data": np.zeros((1, 3072))}, "'data' is not an uint8"),
        ({b"labels": [0, 1], b"data": np.zeros((1, 3072), np.uint8)}, "one number"),
        ({b"labels": [3], b"data": np.zeros((1, 3072), np.uint8)}, "from 0 to 2"),
        ([1, 2], "it holds list"),
    ],
)
def test_wrong_content(tmp_path, content, message):
    folder = tmp_path / "c"
    write_cifar10(folder)
    (folder / "data_batch_1").write_bytes(python2_pickle(content))
    with pytest.raises(ValueError, match=message):
        read_cifar(folder, checksums={})


def test_nothing_of_cifar(tmp_path):
    with pytest.raises(ValueError, match="neither batches.meta"):
        read_cifar(tmp_path)
    write_cifar10(tmp_path / "c", batches=())
    with pytest.raises(ValueError, match="no train files; expected data_batch_1"):
        read_cifar(tmp_path / "c", checksums={})
