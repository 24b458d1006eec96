"""Sets that do not fit into memory: decoded once, kept on the disk, read ahead."""

import numpy as np
import pytest
import torch
from command import stct
from lightning_fabric import Fabric
from PIL import Image
from test_train_algorithm import CONFIG, pictures, start
from train_runs import FAST, RESULTS

from stct.data import image_set
from stct.data.images import read_images
from stct.train import pixels, srl
from stct.train.images import Images
from stct.train.pixels import PixelBlocks, ahead, decoded, print_nothing
from stct.train.state import generator_at

FABRIC = Fabric(accelerator="cpu", devices=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sixty pictures in four class folders."""
    place = tmp_path_factory.mktemp("pictures")
    images, labels = pictures(60, np.random.default_rng(0))
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        (place / str(label)).mkdir(exist_ok=True)
        Image.fromarray(image[..., 0]).save(place / str(label) / f"{i:02d}.png")
    return place


@pytest.fixture
def lazy(folder, tmp_path, monkeypatch):
    """The same as a set that is too large for memory, in blocks of 25 rows."""
    monkeypatch.setenv("STCT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pixels, "_BLOCK_BYTES", 25 * 64)
    monkeypatch.setattr(pixels, "_DECODED", 10)
    return read_images(folder, most_bytes=0).images


@pytest.fixture
def decodes(monkeypatch):
    """How many images were decoded."""
    counted = []
    decode_all = image_set.decode_all

    def count(sources, layout):
        counted.append(len(sources))
        return decode_all(sources, layout)

    monkeypatch.setattr(image_set, "decode_all", count)
    return counted


def test_each_image_is_decoded_once_and_later_runs_decode_none(folder, lazy, decodes):
    said = []
    first = decoded(lazy, FABRIC, said.append)
    assert sum(decodes) == 60
    assert isinstance(first, PixelBlocks)
    whole = read_images(folder).images
    rows = np.array([59, 0, 24, 25, 26, 3, 3])
    np.testing.assert_array_equal(first[rows], whole[rows])
    assert first.shape == whole.shape
    assert said[-1] == "decoding images: 100%"
    decodes.clear()
    again = decoded(lazy, FABRIC, print_nothing)
    np.testing.assert_array_equal(again[np.arange(60)], whole)
    assert not decodes
    # A memory that exists already, and other files, are left alone.
    assert decoded(whole, FABRIC, print_nothing) is whole


def test_a_file_that_was_cut_off_or_whose_image_changed_is_written_again(
    folder, lazy, decodes, tmp_path
):
    decoded(lazy, FABRIC, print_nothing)
    blocks = sorted((tmp_path / "cache" / "pixels").iterdir())
    assert len(blocks) == 3
    cut, gone, _ = blocks
    cut.write_bytes(cut.read_bytes()[:-5])
    gone.unlink()
    decodes.clear()
    whole = read_images(folder).images
    decodes.clear()
    again = decoded(lazy, FABRIC, print_nothing)
    np.testing.assert_array_equal(again[np.arange(60)], whole)
    assert 20 <= sum(decodes) <= 50  # these two alone
    first = lazy.sources[0]
    kept = first.read_bytes()
    Image.new("L", (8, 8), 77).save(first)
    try:
        fresh = decoded(lazy, FABRIC, print_nothing)
        assert (fresh[[0]] == 77).all()
    finally:
        first.write_bytes(kept)


def test_without_room_the_images_stay_as_they_are(lazy, tmp_path, monkeypatch):
    class Full:
        free = 100

    said = []
    monkeypatch.setattr(pixels.shutil, "disk_usage", lambda folder: Full)
    assert decoded(lazy, FABRIC, said.append) is lazy
    assert "set STCT_CACHE to a folder with room" in said[0]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STCT_CACHE", str(tmp_path / "file"))
    with pytest.raises(ValueError, match="decoded images cannot be kept"):
        decoded(lazy, FABRIC, said.append)


def test_a_step_reads_each_row_once(lazy, decodes):
    """Also where nothing is kept: weak and strong views are of the same pixels."""
    state, _ = start(lazy[np.arange(60)], CONFIG, FABRIC)
    state.labels, state.clean = np.zeros(60, np.intp), np.ones(60, bool)
    rows = srl.Rows.of(state, "all")
    decodes.clear()
    images = Images(lazy, FABRIC.device)
    assert not images.at_hand
    draws = generator_at(0, "x")
    srl.draw_batch(images, rows, CONFIG.srl, CONFIG.augment, draws, FABRIC)
    assert sum(decodes) == 32 + 32 + 32  # labelled, unlabelled, anchors


def test_batches_made_ahead_are_those_made_when_asked_for():
    def make(step):
        return torch.rand(3, generator=generator_at(0, step))

    for start_at, stop in ((0, 5), (4, 5), (5, 5), (7, 5)):
        pairs = zip(
            ahead(make, start_at, stop, wait=True),
            ahead(make, start_at, stop, wait=False),
            strict=True,
        )
        assert all(torch.equal(a, b) for a, b in pairs)

    def fail(step):
        if step == 2:
            raise ValueError("row 2")
        return step

    taken = ahead(fail, 0, 5, wait=False)
    assert [next(taken), next(taken)] == [0, 1]
    with pytest.raises(ValueError, match="row 2"):
        next(taken)


SMALL_MEMORY = """
import sys
from stct.data import image_lists, images
images.MOST_BYTES = image_lists.MOST_BYTES = 0
images.read_images.__kwdefaults__["most_bytes"] = 0
from stct.cli import main
main()
"""


@pytest.mark.slow
def test_a_set_on_the_disk_trains_as_one_in_memory(folder, tmp_path, monkeypatch):
    """Same settings, same bytes: read ahead in blocks, or all in memory."""
    import subprocess
    import sys

    monkeypatch.setenv("STCT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    command = ["train", str(folder), *map(str, FAST), "--set", "num_rounds=1", "-o"]
    done = stct(*command, "memory", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "small.py").write_text(SMALL_MEMORY)
    done = subprocess.run(
        [sys.executable, "small.py", *command, "disk"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "decoding images: 100%" in done.stderr
    for name in RESULTS:
        first, second = ((tmp_path / run / name) for run in ("memory", "disk"))
        assert first.read_bytes() == second.read_bytes(), name
