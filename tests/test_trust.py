"""What a stranger's file cannot do: run, fetch, fill the memory, move the cursor."""

import hashlib
import json
import os
import random
import socket
import zipfile

import numpy as np
import pytest
from command import blobs

from stct import console
from stct.data.image_files import BadImage, Layout, decode, read_header
from stct.data.images import read_images
from stct.data.npy import open_npz, read_npy
from stct.data.results import write_results
from stct.data.summary import as_json
from stct.data.summary_file import read_summary
from stct.report.neighbours import draw_map, nearest
from stct.report.thumbnails import make_thumbnails

X, TRUTH, GIVEN = blobs()
EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 20 20
%%EndComments
(ran) (w) file closefile
%%EOF
"""


def test_an_image_file_starts_no_program(tmp_path, monkeypatch):
    """Pillow would give an EPS to Ghostscript, whatever the file is called."""
    programs = []
    monkeypatch.setattr("subprocess.check_call", lambda *a, **k: programs.append(a))
    monkeypatch.setattr("subprocess.Popen", lambda *a, **k: programs.append(a))
    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / "evil.png"
    path.write_bytes(EPS)
    for source in (path, EPS):
        with pytest.raises(BadImage, match="not an image"):
            read_header(source)
        with pytest.raises(BadImage, match="not an image"):
            decode(source, Layout(8, 8, 3))
    with pytest.raises(ValueError, match=r"evil\.png: not an image"):
        read_images(tmp_path)
    assert make_thumbnails([path], [0], [], budget=10**6).num_missing == 1
    assert programs == []


@pytest.mark.parametrize("reader", [read_npy, lambda path: read_images(path.parent)])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, reader):
    (tmp_path / "a").mkdir()
    for path in (tmp_path / "x.npy", tmp_path / "a" / "x.png"):
        os.mkfifo(path)
    with pytest.raises(ValueError, match="not a regular file"):
        reader(tmp_path / "x.npy")


def test_a_small_file_that_inflates_is_refused_before_it_does(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        shape = (300_000, 250)
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n"
        with archive.open("embeddings.npy", "w", force_zip64=True) as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little"))
            file.write(header.encode())
            for _ in range(300):
                file.write(bytes(1_000_000))
    assert path.stat().st_size < 10**6
    with (
        pytest.raises(ValueError, match="bomb.npz.*bytes that inflate to 300,0"),
        open_npz(path) as archive,
    ):
        archive.read("embeddings")


def make_output(folder):
    from stct import LabelCorrector
    from stct.data.inputs import read_inputs

    rows = [f"r{i},{label}" for i, label in enumerate(GIVEN)]
    (folder / "t.csv").write_text("id,label\n" + "\n".join(rows) + "\n")
    np.save(folder / "e.npy", X)
    inputs = read_inputs(folder / "t.csv", embeddings=folder / "e.npy")
    corrector = LabelCorrector().fit(inputs.embeddings, inputs.targets)
    (folder / "out").mkdir()
    write_results(folder / "out", inputs, corrector, seconds=0.0)
    return folder / "out"


def test_a_flipped_byte_of_a_result_is_refused(tmp_path):
    from stct.data.corrected import read_corrected

    out = make_output(tmp_path)
    chance = random.Random(0)
    for name in ("summary.json", "labels.csv"):
        whole = (out / name).read_bytes()
        for _ in range(20):
            data = bytearray(whole)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            (out / name).write_bytes(data)
            with pytest.raises(ValueError, match=name):
                read_corrected(out)
        (out / name).write_bytes(whole)
    read_corrected(out)


@pytest.mark.parametrize("kind", ["a row fewer", "another order", "no probabilities"])
def test_soft_labels_of_other_rows_are_refused(tmp_path, kind):
    from stct.data.corrected import read_corrected

    out = make_output(tmp_path)
    with np.load(out / "soft_labels.npz") as file:
        arrays = dict(file)
    if kind == "a row fewer":
        arrays["probabilities"] = arrays["probabilities"][:-1]
    elif kind == "another order":
        arrays["ids"] = arrays["ids"][::-1]
    else:
        arrays["probabilities"][3, 1] = np.nan
    np.savez(out / "soft_labels.npz", **arrays)
    with pytest.raises(ValueError, match=r"soft_labels\.npz"):
        list(read_corrected(out).soft_label_blocks())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("class_names", [[1], 2]),
        ("actions", {"keep": -1}),
        ("estimated_accuracy", {"before": 2.0}),
        ("transition_matrix", [[1.0]]),
        ("notes", "text"),
        ("rows", 1e300),
        ("parameters", {"min_odds": 0}),
    ],
)
def test_a_summary_with_a_checksum_that_fits_is_looked_at(tmp_path, name, value):
    from stct.data.corrected import read_corrected

    out = make_output(tmp_path)
    summary = json.loads((out / "summary.json").read_text())
    (out / "summary.json").write_text(as_json({**summary, name: value}))
    with pytest.raises(ValueError, match=f"summary.json: '{name}' must be"):
        read_corrected(out)


def test_a_terminal_is_not_spoken_to():
    said = console.printable("a\x1b[2Jb\x9b31mc\u202ed\x00e\ud800 漢 ü 🙂")
    assert said == r"a\x1b[2Jb\x9b31mc\u202ed\x00e\ud800 漢 ü 🙂"
    long = console.printable("x" * 10**6)
    assert len(long) < 1100
    assert long.endswith("... (1,000,000 characters)")


def test_json_for_a_terminal_is_the_same_json(tmp_path):
    summary = {"written_by": "stct", "notes": ["\x1b[31m\x9b2J\u202e\u2028 漢"]}
    text = as_json(summary)
    assert all(c.isprintable() or c == "\n" for c in text)
    (tmp_path / "s.json").write_text(text, encoding="utf-8")
    assert read_summary(tmp_path / "s.json") == summary


def test_an_unexpected_error_is_one_line_too(tmp_path, refuse, monkeypatch):
    def fail(path):
        raise KeyError("\x1b[31msomething")

    (tmp_path / "t.csv").write_text("label\na\nb\n")
    monkeypatch.setattr("stct.data.tables.read_table", fail)
    command = ["noise", tmp_path / "t.csv", "-o", tmp_path / "o.csv"]
    refuse(*command, says="stct noise: KeyError: ")
    refuse(*command, says="STCT_DEBUG=1")


def test_the_map_of_many_columns_is_that_of_the_columns_that_say_something():
    """More columns than rows: the smaller Gram matrix gives the same axes."""
    draw = np.random.default_rng(0)
    few = draw.normal(size=(90, 6)) * [30, 20, 9, 5, 3, 2]
    turn = np.linalg.qr(draw.normal(size=(5000, 6)))[0]
    wide = (few @ turn.T).astype(np.float32)  # the same distances in 5,000 columns
    narrow, seen = draw_map(few.astype(np.float32), 50), draw_map(wide, 50)
    for a, b in zip(narrow.points.T, seen.points.T, strict=True):
        assert abs(np.corrcoef(a, b)[0, 1]) > 0.999
    np.testing.assert_allclose(narrow.explained, seen.explained, atol=1e-3)
    rows = np.arange(20)
    np.testing.assert_array_equal(nearest(few, rows, 5), nearest(wide, rows, 5))


def test_wide_rows_take_memory_in_proportion_to_the_input(monkeypatch):
    import tracemalloc

    X = np.random.default_rng(0).normal(size=(100, 50_000)).astype(np.float32)
    tracemalloc.start()
    draw_map(X, 2000)
    nearest(X, np.arange(100), 10)
    assert tracemalloc.get_traced_memory()[1] < 8 * X.nbytes  # d x d: 500 times
    tracemalloc.stop()


def test_formulas_are_written_as_they_came_and_noted(write_run):
    columns = {
        "id": [f"r{i}" for i in range(60)],
        "label": [f"c{c}" for c in GIVEN],
        "note": ["=cmd|' /C calc'!A0", *["fine"] * 59],
    }
    out, _ = write_run(X, columns)
    assert "=cmd|' /C calc'!A0" in (out / "labels.csv").read_text()
    notes = json.loads((out / "summary.json").read_text())["notes"]
    assert sum("'note' begin like a formula" in note for note in notes) == 1


def test_infinite_labels_of_images_are_refused_at_once(tmp_path):
    images = np.zeros((4, 8, 8), np.uint8)
    np.savez(tmp_path / "i.npz", images=images, labels=[0.0, 1.0, np.inf, 1.0])
    with pytest.raises(ValueError, match="row 2: a label cannot be infinite"):
        read_images(tmp_path / "i.npz")


def test_a_report_that_cannot_be_made_leaves_the_old_one(write_run, monkeypatch):
    from stct.report import rebuild_report, write_report

    columns = {"id": [f"r{i}" for i in range(60)], "label": [f"c{c}" for c in GIVEN]}
    out, inputs = write_run(X, columns)
    write_report(out, embeddings=inputs.embeddings)
    before = {path.name: digest(path) for path in out.iterdir()}

    def fail(payload):
        raise ValueError("no")

    monkeypatch.setattr("stct.report.write.render", fail)
    with pytest.raises(ValueError, match="no"):
        rebuild_report(out, map_kind="tsne")
    assert {path.name: digest(path) for path in out.iterdir()} == before


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_weights_have_the_same_bytes_each_time(tmp_path):
    """Libraries put texts in any order; in ten calls two orders would be seen."""
    torch = pytest.importorskip("torch")
    from stct.train.files import read_tensors, tensors_as_bytes

    tensors = {"b": torch.ones(2, 3), "a": torch.zeros(5, dtype=torch.uint8)}
    texts = {name: f"text of {name} \u00fc" for name in "vwxyz"}
    made = {tensors_as_bytes(tensors, texts) for _ in range(10)}
    assert len(made) == 1
    (tmp_path / "m").write_bytes(made.pop())
    found, said = read_tensors(tmp_path / "m")
    assert said == texts
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


def test_damaged_weights_are_refused_and_nothing_is_fetched(tmp_path, monkeypatch):
    """A flipped byte anywhere; and a model file that names somebody's model."""
    torch = pytest.importorskip("torch")
    from stct.train import networks
    from stct.train.config import Encoder
    from stct.train.files import read_tensors, tensors_as_bytes
    from stct.train.model_file import About, load_model, save_model

    settings = Encoder(depth=10, width=1, projection=4)
    network = networks.build(
        settings,
        num_classes=2,
        mean=torch.zeros(1),
        std=torch.ones(1),
        generator=torch.Generator(),
        image_shape=(1, 8, 8),
    )
    path = tmp_path / "m.safetensors"
    save_model(path, network, About(settings, False, ["a", "b"], (1, 8, 8)))
    load_model(path)
    whole = path.read_bytes()
    chance = random.Random(0)
    for place in [3, 30, 300, *(chance.randrange(len(whole)) for _ in range(12))]:
        data = bytearray(whole)
        data[place] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"m\.safetensors"):
            load_model(path)
    path.write_bytes(whole)
    tensors, texts = read_tensors(path)
    about = json.loads(texts["about"])
    about["encoder"]["name"] = "hf:somebody/model"
    path.write_bytes(tensors_as_bytes(tensors, {"about": json.dumps(about)}))
    asked = []
    monkeypatch.setattr(socket.socket, "connect", lambda *a: asked.append(a))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: asked.append(a) or [])
    with pytest.raises(ValueError, match="nothing is fetched for a model file"):
        load_model(path)
    assert asked == []
