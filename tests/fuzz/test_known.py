"""Kinds of damage that once gave a traceback, a crash or a wait; made by code."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import tarfile
import zipfile

import mutations
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stct.data.cifar import read_cifar
from stct.data.cifar_n import read_cifar_n
from stct.data.clothing1m import read_clothing1m
from stct.data.columns import read_ids, read_labels
from stct.data.embeddings import read_embeddings
from stct.data.files import read_json
from stct.data.image_files import BadImage, read_header
from stct.data.images import read_images
from stct.data.npy import read_array
from stct.data.plain_pickle import load_plain
from stct.data.tables import read_table

ARRAY = np.arange(12.0).reshape(4, 3)


BYTES = ARRAY.tobytes()


def npy(text, data=BYTES, length=None, version=1):
    raw = text.encode("latin1") + b"\n"
    size = (len(raw) if length is None else length).to_bytes(2, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + raw + data


def header(shape, kind="<f8"):
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}"


def letters(code):
    return np.full(4, code, "<u4").tobytes()


def zipped(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def damaged(data, place):
    return data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]


def parquet(columns):
    import pyarrow as pa
    from pyarrow import parquet as pq

    out = io.BytesIO()
    arrays = [pa.array(values, kind) for _, values, kind in columns]
    pq.write_table(pa.table(arrays, names=[name for name, _, _ in columns]), out)
    return out.getvalue()


GOOD = npy(header((4, 3)))
EMBEDDINGS = {
    "bracket": ("e.npy", npy(header((4, 3)).replace("(", "["))),
    "no end": ("e.npy", npy(header((4, 3))[:-3])),
    "many brackets": ("e.npy", npy("(" * 9000)),
    "huge": ("e.npy", npy(header((10**9, 10**9)))),
    "huge and empty": ("e.npy", npy(header((10**18, 0)))),
    "below zero": ("e.npy", npy(header((-4, 3)))),
    "64 dimensions": ("e.npy", npy(header((1,) * 64))),
    "no numbers in the shape": ("e.npy", npy(header("('a', 3)"))),
    "a call as a shape": ("e.npy", npy(header("__import__('os').abort()"))),
    "no type": ("e.npy", npy(header((4, 3), "zz"))),
    "a type of fields": ("e.npy", npy(header((4, 3), "f4,f4"))),
    "an empty type": ("e.npy", npy(header((4, 3), "V0"))),
    "objects": ("e.npy", npy(header((4, 3), "|O"))),
    "dates": ("e.npy", npy(header((4, 3), "<M8[s]"))),
    "a long header": ("e.npy", npy(header((4, 3)) + " " * 60_000)),
    "a length beyond the file": ("e.npy", npy(header((4, 3)), length=65_535)),
    "another version": ("e.npy", npy(header((4, 3)), version=9)),
    "half": ("e.npy", GOOD[: len(GOOD) // 2]),
    "nothing": ("e.npy", b""),
    "a pickle": ("e.npy", pickle.dumps(ARRAY)),
    "infinite": ("e.npy", npy(header((4, 3)), np.full(12, np.inf).tobytes())),
    "bz2": ("e.npz", zipped([("a.npy", GOOD)], zipfile.ZIP_BZIP2)),
    "lzma": ("e.npz", zipped([("a.npy", GOOD)], zipfile.ZIP_LZMA)),
    "checksum": ("e.npz", damaged(zipped([("a.npy", GOOD)]), 130)),
    "no array": ("e.npz", zipped([("a.txt", b"x")])),
    "no zip": ("e.npz", b"PK\x03\x04" + bytes(50)),
    "characters beyond Unicode": (
        "e.npz",
        zipped(
            [
                ("embeddings.npy", GOOD),
                (
                    "ids.npy",
                    npy(header((4,), "<U1"), letters(0x110000)),
                ),
            ]
        ),
    ),
    "halves of characters": (
        "e.npz",
        zipped(
            [
                ("embeddings.npy", GOOD),
                (
                    "ids.npy",
                    npy(header((4,), "<U1"), letters(0xD800)),
                ),
            ]
        ),
    ),
    "ids of shape (2, 2)": (
        "e.npz",
        zipped(
            [
                ("embeddings.npy", GOOD),
                ("ids.npy", npy(header((2, 2), "<i8"), np.arange(4).tobytes())),
            ]
        ),
    ),
    "no parquet": ("e.parquet", b"PAR1" + bytes(40) + b"PAR1"),
    "empty lists": ("e.parquet", parquet([("v", [[], [], [], []], None)])),
    "lists with a null": ("e.parquet", parquet([("v", [[1.0], None, [2.0]], None)])),
    "lists of text": ("e.parquet", parquet([("v", [["a"], ["b"]], None)])),
}


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(tmp_path, name):
    file, data = EMBEDDINGS[name]
    (tmp_path / file).write_bytes(data)
    with pytest.raises(ValueError, match=file) as error:
        read_embeddings(tmp_path / file)
    assert type(error.value) is ValueError
    assert "\n" not in str(error.value)


def test_a_folder_of_parquet_with_a_column_twice(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet as pq

    for name in ("0", "1"):
        table = pa.table([[1.0, 2.0], [3.0, 4.0]], names=["c", "c"])
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match="'c' comes twice"):
        read_embeddings(tmp_path)


TABLES = {
    "a number of 400 digits": ("t.jsonl", f'{{"label": {"9" * 400}}}\n'.encode()),
    "a number of 9,000 digits": ("t.jsonl", f'{{"label": {"9" * 9000}}}\n'.encode()),
    "deep": ("t.jsonl", b'{"label": ' + b"[" * 5000 + b"]" * 5000 + b"}\n"),
    "infinite": ("t.jsonl", b'{"label": Infinity}\n'),
    "too large": ("t.jsonl", b'{"label": 1e999}\n'),
    "half a character": ("t.jsonl", b'{"label": "\\ud800"}\n'),
    "a list as a label": ("t.jsonl", b'{"label": [1]}\n'),
    "zero bytes": ("t.csv", b"label\na\0b\n"),
    "another encoding": ("t.jsonl", b'{"label": "\x81\x8d"}\n'),
    "a quote without an end": ("t.csv", b'label\n"a\n'),
    "gz": ("t.csv.gz", gzip.compress(b"label\na\nb\n")[:-9]),
    "gz of gz": ("t.csv.gz", damaged(gzip.compress(b"label\na\nb\n" * 50), 15)),
    "no workbook": ("t.xlsx", zipped([("a.xml", b"<a>")])),
    "durations": ("t.parquet", parquet([("label", [2**62, 1], "duration[s]")])),
    "a date that no calendar has": (
        "t.parquet",
        parquet([("label", [2**30], "date32")]),
    ),
    "times": ("t.parquet", parquet([("label", [2**62], "timestamp[us]")])),
    "lists": ("t.parquet", parquet([("label", [[1], [2]], None)])),
    "bytes": ("t.parquet", parquet([("label", [b"\xff"], None)])),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path, name):
    file, data = TABLES[name]
    path = tmp_path / file
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"t\.|column 'label'") as error:
        read_labels(read_table(path), path, "label")
    assert type(error.value) is ValueError


@pytest.mark.parametrize("value", ["9" * 400, "[1]", "null", '""'])
def test_ids(tmp_path, value):
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"id": {value}}}\n')
    with pytest.raises(ValueError, match="row 0"):
        read_ids(read_table(path), path, None)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        '{"a":' * 200 + "1" + "}" * 200,
        "NaN",
        '{"a": Infinity}',
        "",
        "\ufeff{}",
    ],
)
def test_json(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.json"):
        read_json(path)


def reconstruct(shape, kind, raw, function="_reconstruct", state=None):
    """A pickle of an array by hand; the dtype's own state is what a file says."""
    text = b"cnumpy.core.multiarray\n" + function.encode() + b"\n"
    text += b"cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n" + pickle.dumps(shape, 0)[:-1]
    text += b"cnumpy\ndtype\n(S'" + kind.encode() + b"'\nI0\nI1\ntR"
    text += state or b"(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb"
    return text + b"I00\n" + pickle.dumps(raw, 2)[2:-1] + b"tb."


PICKLES = {
    "flags of a type": reconstruct(
        (3,), "O8", [1, 2, 3], state=b"(I3\nS'|'\nNNNI-1\nI-1\nI0\ntb"
    ),
    "fewer bytes": reconstruct((10**6,), "i8", b"12345678"),
    "below zero": reconstruct((-1,), "i8", b""),
    "objects": reconstruct((1,), "O8", [1]),
    "fields": reconstruct((1,), "V8", b"12345678"),
    "another function": reconstruct((1,), "i8", b"12345678", function="scalar"),
    "a large memo": b"\x80\x02Nr\xff\xff\xff\x7f0j\xff\xff\xff\x7e.",
    "a frame beyond the end": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "bytes beyond the end": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
    "an object": b"\x80\x02cbuiltins\nobject\n)\x81.",
    "state of a function": b"\x80\x02c_codecs\nencode\n}X\x01\x00\x00\x00aK\x01sb.",
    "a dictionary of lists": b"\x80\x02}]K\x01s.",
    "persistent": b"\x80\x02K\x01Q.",
    "no stack": b"\x80\x02R.",
}


@pytest.mark.parametrize("name", PICKLES)
def test_pickles(tmp_path, name):
    with pytest.raises(ValueError):  # noqa: PT011
        load_plain(PICKLES[name])
    path = tmp_path / "n.npy"
    path.write_bytes(npy(header((), "|O"), PICKLES[name]))
    with pytest.raises(ValueError, match=r"n\.npy"):
        read_cifar_n(path)


def test_an_archive_that_inflates(tmp_path):
    """Refused by the sizes that it says, before its MD5 could be looked at."""
    path = tmp_path / "c.tar.gz"
    with gzip.open(path, "wb") as file:
        member = tarfile.TarInfo("cifar-10-batches-py/data_batch_1")
        member.size = 3 * 10**9
        file.write(member.tobuf() + bytes(10**6))
    with pytest.raises(ValueError, match=r"3,000,000,000 bytes"):
        read_cifar(path)


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, bytes])
def test_an_archive_that_is_none(tmp_path, pack):
    path = tmp_path / "c.tar.gz"
    path.write_bytes(damaged(pack(bytes(2000)), 30))
    with pytest.raises(ValueError, match=r"c\.tar\.gz"):
        read_cifar(path)


@pytest.mark.parametrize("line", ["a.png 99999999999", "a.png ²", "a.png", "a.png -1"])
def test_class_numbers(tmp_path, line):
    (tmp_path / "noisy_train_key_list.txt").write_text("a.png")
    (tmp_path / "noisy_label_kv.txt").write_text(line)
    with pytest.raises(ValueError, match=r"noisy_label_kv\.txt: line 1"):
        read_clothing1m(tmp_path)


IMAGES = {
    "a large one in few bytes": b"P6 30000 5000 255\n" + bytes(100),
    "half a header": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    "nothing": b"",
    "letters": b"P3 x y z\n",
}


@pytest.mark.parametrize("name", IMAGES)
def test_images(tmp_path, name):
    path = tmp_path / "a" / "x.png"
    path.parent.mkdir()
    path.write_bytes(IMAGES[name])
    with pytest.raises(BadImage):
        read_header(IMAGES[name])
    with pytest.raises(ValueError, match=r"x\.png"):
        read_images(tmp_path)


@pytest.mark.parametrize("read", [read_table, read_embeddings, read_json])
def test_pipes_are_not_waited_for(tmp_path, read):
    for ending in ("csv", "npy", "json"):
        os.mkfifo(tmp_path / f"x.{ending}")
    path = {read_table: "x.csv", read_embeddings: "x.npy"}.get(read, "x.json")
    with pytest.raises(ValueError, match="not a regular file"):
        read(tmp_path / path)


def kind_of_error(read, data):
    """Give the class of the error, None where there is none."""
    try:
        read(data)
    except Exception as error:
        return type(error)
    return None


def read_npy_bytes(data):
    return read_array(io.BytesIO(data), len(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_line_or_plain_data(data):
    for start in (b"", b"\x80\x02", b"\x93NUMPY\x01\x00"):
        assert kind_of_error(load_plain, start + data) in (None, ValueError)
        assert kind_of_error(read_npy_bytes, start + data) in (None, ValueError)


@given(st.integers(0, 2**32 - 1))
def test_changed_arrays_are_a_line_or_an_array(seed):
    data = mutations.change_npy(mutations.npy_bytes(ARRAY), np.random.default_rng(seed))
    assert kind_of_error(read_npy_bytes, data) in (None, ValueError)
