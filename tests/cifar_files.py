"""Small files in the exact format of CIFAR's: pickles as Python 2 wrote them."""

import hashlib
import io
import pickle
import struct

import numpy as np

NAMES_10 = [b"airplane", b"automobile", b"bird"]


class _Python2Pickler(pickle._Pickler):
    """Protocol 2 with byte strings and the old name of NumPy's core, like CIFAR's."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_bytes(self, value):
        if len(value) < 256:
            self.write(b"U" + bytes([len(value)]) + value)
        else:
            self.write(b"T" + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    dispatch[bytes] = save_bytes


def python2_pickle(value):
    out = io.BytesIO()
    _Python2Pickler(out, protocol=2).dump(value)
    data = out.getvalue()
    return data.replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def batch(labels, seed, key=b"labels"):
    pixels = np.random.default_rng(seed).integers(0, 256, (len(labels), 3072), np.uint8)
    return {b"batch_label": b"a batch", key: list(labels), b"data": pixels}


def write_cifar10(folder, *, batches=(1, 2, 3, 4, 5), num=4):
    """Write a folder of CIFAR-10 files; give the pixels of each and their MD5s."""
    folder.mkdir()
    contents = {f"data_batch_{i}": batch(np.arange(num) % 3, i) for i in batches}
    contents["test_batch"] = batch([2, 0], 9)
    contents["batches.meta"] = {b"label_names": NAMES_10, b"num_vis": 3072}
    return contents, write(folder, contents)


def write_cifar100(folder):
    folder.mkdir()
    contents = {
        "train": batch([1, 0, 1], 0, b"fine_labels"),
        "test": batch([0], 1, b"fine_labels"),
        "meta": {b"fine_label_names": [b"apple", b"bee"]},
    }
    contents["train"][b"coarse_labels"] = [0, 0, 0]
    return contents, write(folder, contents)


def write(folder, contents):
    checksums = {}
    for name, content in contents.items():
        # Plain ints, as in the published files.
        plain = {
            k: [int(i) for i in v] if k.endswith(b"labels") else v
            for k, v in content.items()
        }
        data = python2_pickle(plain)
        (folder / name).write_bytes(data)
        checksums[name] = hashlib.md5(data).hexdigest()
    return checksums
