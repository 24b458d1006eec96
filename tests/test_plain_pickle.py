import os
import pickle

import numpy as np
import pytest

from stct.data.plain_pickle import load_plain


class Attack:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(5))
def test_plain_data_comes_back(protocol):
    value = {"a": [1, 2.5, None, "x"], "b": np.arange(6).reshape(2, 3), "c": b"\xff"}
    back = load_plain(pickle.dumps(value, protocol))
    assert {k: v for k, v in back.items() if k != "b"} == {
        k: v for k, v in value.items() if k != "b"
    }
    np.testing.assert_array_equal(back["b"], value["b"])


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_runs(tmp_path, protocol):
    """Also not inside an array of objects, or behind a harmless pickle."""
    target = tmp_path / "made"
    hidden = np.array([Attack(target), 1], dtype=object)
    for value in (Attack(target), [hidden], {"x": Attack(target)}):
        data = pickle.dumps(1) + pickle.dumps(value, protocol)
        with pytest.raises(ValueError, match="wants to run"):
            load_plain(data, skip=1)
    assert not target.exists()


def test_other_ways_to_run_something_are_refused():
    for code in (
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.",
        b"cnumpy\nload\n(X\x01\x00\x00\x00atR.",
        b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
        b"not a pickle",
        b"",
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            load_plain(code)
