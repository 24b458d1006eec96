"""Values of many rows wait on the disk, and nobody can tell but by the memory."""

import pickle
import tempfile

import numpy as np
import pytest
from noisy_rows import blobs

from stct import LabelCorrector
from stct.correction import canonical
from stct.numeric import scratch
from stct.numeric.engine import Local


def anonymous_megabytes():
    """Memory of this process that is not of a file."""
    with open("/proc/self/status") as file:
        return next(int(x.split()[1]) for x in file if "RssAnon" in x) / 1024


def test_many_values_take_no_memory_of_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = anonymous_megabytes()
    values = Local(on_disk=True).rows(
        lambda rows: np.full((rows.stop - rows.start, 16), rows.start, np.float32),
        2_000_000,
    )  # 128 MB
    assert anonymous_megabytes() - before < 32
    assert values.shape == (2_000_000, 16)
    assert values[8191, 3] == 0.0
    assert values[8192, 3] == 8192.0
    assert values[-1, 0] == 2_000_000 // 8192 * 8192
    assert list(tmp_path.iterdir()) == []  # the file has no name: nothing stays behind


def test_few_values_stay_in_memory():
    assert scratch.make_room((10, 3), np.dtype(np.float32)).base is None


def test_without_a_place_for_files_there_is_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    monkeypatch.setattr(scratch, "LEAST", 1)
    room = scratch.make_room((10, 3), np.dtype(np.float32))
    assert room.base is None
    assert room.shape == (10, 3)


@pytest.mark.parametrize("copies", [0, 5])
def test_the_same_bytes_from_disk_and_from_memory(tmp_path, monkeypatch, copies):
    X, given, _ = blobs(20_000)
    X[-copies or len(X) :], given[-copies or len(X) :] = X[:copies], given[:copies]
    np.save(tmp_path / "e.npy", X.astype(np.float32))
    H = np.load(tmp_path / "e.npy", mmap_mode="r")
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)  # rows stay in their file
    locked = np.arange(len(given)) % 100 == 0
    here = LabelCorrector().fit(H, given, locked=locked)
    monkeypatch.setattr(scratch, "LEAST", 1)
    there = LabelCorrector().fit(H, given, locked=locked)
    for name in ("label_distributions_", "labels_", "action_", "confidence_"):
        one, other = (getattr(corrector, name) for corrector in (here, there))
        assert one.tobytes() == other.tobytes()
        assert type(other) is np.ndarray
    assert here.estimated_accuracy_ == there.estimated_accuracy_
    again = pickle.loads(pickle.dumps(there))
    np.testing.assert_array_equal(again.label_distributions_, here.label_distributions_)
