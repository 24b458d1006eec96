"""The summary names its inputs without reading large ones whole."""

import hashlib

import numpy as np
import pytest

from stct.data import digests
from stct.data.digests import describe_input


def shards(folder):
    folder.mkdir()
    for number in range(3):
        np.save(folder / f"p{number}.npy", np.full((5000, 8), number, np.float32))
    return folder


def test_small_inputs_are_read_whole(tmp_path):
    (tmp_path / "t.csv").write_text("label\n1\n")
    digest = hashlib.sha256(b"label\n1\n").hexdigest()
    expected = {"file": "t.csv", "sha256": digest}
    assert describe_input(tmp_path / "t.csv") == expected
    assert describe_input(shards(tmp_path / "e")).keys() == {"file", "sha256"}


@pytest.fixture
def large(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "LARGE", 1000)
    return shards(tmp_path / "e")


def rename(folder):
    (folder / "p1.npy").rename(folder / "p9.npy")


def shorten(folder):
    path = folder / "p1.npy"
    path.write_bytes(path.read_bytes()[:-4])


def other_numbers(folder):
    np.save(folder / "p1.npy", np.full((5000, 8), 9, np.float32))


@pytest.mark.parametrize("change", [rename, shorten, other_numbers])
def test_large_inputs_are_known_by_names_sizes_and_samples(large, change):
    before = describe_input(large)
    assert before.keys() == {"file", "sampled_sha256"}
    assert describe_input(large) == before
    change(large)
    assert describe_input(large) != before


def test_large_inputs_are_not_read_whole(large, monkeypatch):
    def whole(path):
        raise AssertionError(path)

    monkeypatch.setattr(digests, "_whole", whole)
    np.save(large / "p1.npy", np.zeros((100_000, 8), np.float32))
    before = describe_input(large)["sampled_sha256"]
    with (large / "p1.npy").open("r+b") as file:
        file.seek(5000)  # between two samples
        file.write(b"1")
    assert describe_input(large)["sampled_sha256"] == before
