"""Kinds of cases: honest files, which of them is changed, and what reads them."""

import contextlib
import gzip
import hashlib
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import mutations
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # the helpers of the other tests
import cifar_files
from command import blobs

X, TRUTH, GIVEN = blobs()
LABELS = [f"class {c}" for c in GIVEN]


class Kind(NamedTuple):
    """A way in."""

    make: Callable[[Path], object]  # writes the honest files
    files: tuple[str, ...]  # of which one is changed
    run: tuple[str, ...] | Callable[[], object]  # stct's arguments, or a reader
    heavy: bool = False  # imports torch


def _table(folder, ending="csv"):
    import pyarrow as pa
    from pyarrow import parquet

    ids = [f"r{i}" for i in range(60)]
    path = folder / f"t.{ending}"
    if ending == "parquet":
        table = pa.table({"id": ids, "label": LABELS, "size": np.arange(60) / 7})
        parquet.write_table(table, path)
    elif ending == "jsonl":
        rows = zip(ids, GIVEN.tolist(), X.tolist(), strict=True)
        lines = [json.dumps({"id": i, "label": c, "v": v}) for i, c, v in rows]
        path.write_text("\n".join(lines) + "\n")
    else:
        mark = "," if ending == "csv" else "\t"
        rows = [mark.join(r) for r in zip(ids, LABELS, ["text"] * 60, strict=True)]
        path.write_text("\n".join([mark.join(["id", "label", "note"]), *rows]) + "\n")
    np.save(folder / "e.npy", X)


def _npz(folder):
    _table(folder)
    ids = np.array([f"r{i}" for i in range(60)])
    np.savez_compressed(folder / "e.npz", embeddings=X, ids=ids)


def _parquet_embeddings(folder):
    import pyarrow as pa
    from pyarrow import parquet

    _table(folder)
    ids = [f"r{i}" for i in range(60)]
    parquet.write_table(pa.table({"id": ids, "v": X.tolist()}), folder / "e.parquet")


def _shards(folder):
    import pyarrow as pa
    from pyarrow import parquet

    _table(folder)
    for name in ("npy", "parquet"):
        (folder / name).mkdir()
    for i in range(3):
        part = X[i * 20 : i * 20 + 20]
        np.save(folder / "npy" / f"{i}.npy", part)
        parquet.write_table(
            pa.table({"id": [f"r{j}" for j in range(i * 20, i * 20 + 20)]}
                     | {f"c{k}": part[:, k] for k in range(4)}),
            folder / "parquet" / f"{i}.parquet",
        )  # fmt: skip


def _patch(folder):
    _table(folder)
    rows = "r0,class 1,class 0,0.9\nr1,class 2,class 1,0.8\n"
    (folder / "patch.csv").write_text(f"id,old,new,confidence\n{rows}")


def _decisions(folder):
    _table(folder)
    (folder / "d.csv").write_text("id,label\nr0,class 0\nr5,class 2\n")


def _audit(folder):
    _table(folder)
    rows = [f"r{i},{LABELS[i]},class {TRUTH[i]}" for i in range(0, 60, 3)]
    (folder / "a.csv").write_text("\n".join(["id,given,verified", *rows]) + "\n")


def _annotations(folder):
    _table(folder)
    rows = [f"r{i},{who},{LABELS[i]}" for i in range(60) for who in ("ann", "bob")]
    (folder / "votes.csv").write_text("\n".join(["id,annotator,label", *rows]) + "\n")


def _workbook(folder):
    from openpyxl import Workbook

    _table(folder)
    book = Workbook()
    book.active.append(["id", "label"])
    for i, label in enumerate(LABELS):
        book.active.append([f"r{i}", label])
    book.save(folder / "t.xlsx")


def _compressed(folder):
    _table(folder)
    path = folder / "t.csv"
    (folder / "t.csv.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def _corrector(folder):
    _output(folder)
    _table(folder)


def _probabilities(folder):
    _table(folder)
    P = np.full((60, 3), 0.1) + 0.7 * np.eye(3)[TRUTH]
    np.save(folder / "p.npy", P)


def _noise(folder):
    _table(folder)
    flips = {"class 0": "class 1", "class 1": "class 0", "class 2": "class 1"}
    (folder / "map.json").write_text(json.dumps(flips))
    np.save(folder / "m.npy", np.full((3, 3), 0.1) + 0.7 * np.eye(3))
    (folder / "m.csv").write_text("0.8,0.1,0.1\n0.1,0.8,0.1\n0.1,0.1,0.8\n")


def _images(folder):
    from PIL import Image

    draw = np.random.default_rng(0)
    for i, ending in enumerate(["png", "jpg", "webp", "bmp", "gif", "tiff", "ppm"]):
        where = folder / "photos" / ("a", "b")[i % 2]
        where.mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 255, (12, 10, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(where / f"{i}.{ending}")


def _read_images():
    from stct.data.images import read_images
    from stct.report.thumbnails import make_thumbnails

    files = sorted(map(str, Path("photos").rglob("*.*")))
    make_thumbnails(files, range(len(files)), [], budget=10**6)
    read_images("photos", skip_bad=True)


def _image_arrays(folder):
    images = np.random.default_rng(0).integers(0, 255, (20, 8, 8), dtype=np.uint8)
    np.savez(folder / "i.npz", images=images, labels=np.arange(20) % 3)


def _read_image_arrays():
    from stct.data.images import read_images

    read_images("i.npz", size=10)


def _cifar(folder):
    cifar_files.write_cifar10(folder / "c")
    with tarfile.open(folder / "c.tar.gz", "w:gz") as archive:
        for path in sorted((folder / "c").iterdir()):
            archive.add(path, path.name)
    codes = {"clean_label": TRUTH, "worse_label": GIVEN, "aggre_label": GIVEN}
    np.save(folder / "n.npy", np.array(codes, dtype=object), allow_pickle=True)


def _read_cifar():
    from stct.data.cifar import read_cifar

    read_cifar(Path("c"), checksums={})


def _read_cifar_archive():
    from stct.data.cifar import read_cifar

    read_cifar(Path("c.tar.gz"), checksums={})


def _read_cifar_n():
    from stct.data.cifar_n import read_cifar_n

    read_cifar_n(Path("n.npy"))


def _clothing(folder):
    _images(folder)
    names = [str(p.relative_to(folder)) for p in sorted(folder.rglob("photos/*/*.*"))]
    (folder / "noisy_train_key_list.txt").write_text("\n".join(names))
    lines = [f"{name} {i % 2}" for i, name in enumerate(names)]
    (folder / "noisy_label_kv.txt").write_text("\n".join(lines))
    (folder / "category_names_eng.txt").write_text("Shirt\nCoat\n")


def _read_clothing():
    from stct.data.images import read_images

    read_images(".", skip_bad=True).images[:2]


def _output(folder):
    from stct import cli

    _table(folder)
    arguments = ["correct", folder / "t.csv", "--embeddings", folder / "e.npy"]
    sys.argv = ["stct", *map(str, arguments), "-o", str(folder / "made"), "--quiet"]
    with contextlib.suppress(SystemExit):
        cli.main()
    assert (folder / "made" / "report.html").exists()
    for name in ("t.csv", "e.npy"):
        (folder / name).unlink()


def _cache(folder):
    from stct.encoders.cache import EmbeddingCache

    cache = EmbeddingCache(folder, "e")
    cache.add([bytes([i] * 16) for i in range(4)], np.ones((4, 3), np.float32))
    path = next(folder.rglob("*.npz"))
    path.rename(folder / "embeddings" / "e" / "block.npz")


def _read_cache():
    from stct.encoders.cache import EmbeddingCache

    EmbeddingCache(Path(), "e").find([bytes([i] * 16) for i in range(4)])


def _run(folder):
    """Write a run as 'stct train' does, without training: its files are the point."""
    import torch

    from stct.train import networks
    from stct.train.checkpoint import settings_hash
    from stct.train.command import new_request
    from stct.train.model_file import About, save_model
    from stct.train.runs import Run
    from stct.train.state import State

    images = np.random.default_rng(0).integers(0, 255, (20, 8, 8), dtype=np.uint8)
    np.savez(folder / "i.npz", images=images, labels=np.arange(20) % 2)
    request = new_request(
        folder / "i.npz", preset_name="tiny", assignments=[], seed=0, test=None,
        init=None, label_column="label", image_column=None, id_column=None,
        skip_bad=False,
    )  # fmt: skip
    from dataclasses import asdict

    run = Run.start(folder / "run", {**asdict(request), "classes": [0, 1]})
    state = State(_network(), None)
    run.log({"phase": "round", "round": 1, "noisy_validation_accuracy": 0.5})
    run.save(state, settings_hash(request.config, 0), 1.0)
    run.confirm()
    run.__exit__()
    encoder = request.config.encoder
    about = About(encoder, False, [0, 1], (1, 8, 8))
    with torch.no_grad():
        save_model(folder / "model.safetensors", _network(), about)
    assert isinstance(state.network, networks.Network)


def _network():
    import torch

    from stct.train import networks
    from stct.train.presets import preset

    return networks.build(
        preset("tiny").encoder,
        num_classes=2,
        mean=torch.zeros(1),
        std=torch.ones(1),
        generator=torch.Generator(),
        image_shape=(1, 8, 8),
    )


def _read_run():
    from stct.train.checkpoint import load_checkpoint, settings_hash
    from stct.train.request import read_request
    from stct.train.runs import Run
    from stct.train.state import State

    request = read_request(Path("run"))
    run = Run.open(Path("run"))
    try:
        state = State(_network(), None)
        place = load_checkpoint(
            Path("run"), state, settings_hash(request.config, request.seed)
        )
        run.go_on(place)
        run.read_rounds()
    finally:
        run.__exit__()


_CORRECT = ("correct", "t.csv", "-o", "out", "--embeddings")
_OUT = tuple(
    f"made/{name}"
    for name in ("summary.json", "labels.csv", "review.npz", "soft_labels.npz")
)
KINDS = {
    "csv table": Kind(_table, ("t.csv",), (*_CORRECT, "e.npy")),
    "tsv table": Kind(
        lambda folder: _table(folder, "tsv"),
        ("t.tsv",),
        ("correct", "t.tsv", "-o", "out", "--embeddings", "e.npy", "--json"),
    ),
    "jsonl table": Kind(
        lambda folder: _table(folder, "jsonl"),
        ("t.jsonl",),
        ("correct", "t.jsonl", "--embeddings-column", "v", "-o", "out"),
    ),
    "parquet table": Kind(
        lambda folder: _table(folder, "parquet"),
        ("t.parquet",),
        ("correct", "t.parquet", "--embeddings", "e.npy", "-o", "out"),
    ),
    "npy": Kind(_table, ("e.npy",), (*_CORRECT, "e.npy")),
    "npz": Kind(_npz, ("e.npz",), (*_CORRECT, "e.npz")),
    "parquet embeddings": Kind(
        _parquet_embeddings, ("e.parquet",), (*_CORRECT, "e.parquet")
    ),
    "npy shards": Kind(_shards, ("npy/0.npy", "npy/2.npy"), (*_CORRECT, "npy")),
    "parquet shards": Kind(
        _shards, ("parquet/0.parquet", "parquet/1.parquet"), (*_CORRECT, "parquet")
    ),
    "probabilities": Kind(
        _probabilities,
        ("p.npy",),
        ("correct", "t.csv", "--pred-probs", "p.npy", "-o", "out"),
    ),
    "audit": Kind(_audit, ("a.csv",), (*_CORRECT, "e.npy", "--audit", "a.csv")),
    "annotations": Kind(
        _annotations,
        ("votes.csv",),
        (*_CORRECT, "e.npy", "--annotations", "votes.csv"),
    ),
    "workbook": Kind(
        _workbook,
        ("t.xlsx",),
        ("correct", "t.xlsx", "--embeddings", "e.npy", "-o", "out"),
    ),
    "compressed table": Kind(
        _compressed,
        ("t.csv.gz",),
        ("correct", "t.csv.gz", "--embeddings", "e.npy", "-o", "out"),
    ),
    "corrector": Kind(
        _corrector,
        ("made/corrector.npz", "made/soft_labels.npz"),
        (*_CORRECT, "e.npy", "--from", "made"),
    ),
    "decisions": Kind(
        _decisions, ("d.csv",), (*_CORRECT, "e.npy", "--locked", "d.csv")
    ),
    "patch": Kind(
        _patch, ("patch.csv", "t.csv"), ("apply", "patch.csv", "t.csv", "-o", "out.csv")
    ),
    "flips": Kind(
        _noise,
        ("map.json",),
        (
            "noise",
            "t.csv",
            "--kind",
            "asymmetric",
            "--map",
            "map.json",
            "-o",
            "out.csv",
        ),
    ),
    "matrix": Kind(
        _noise,
        ("m.npy",),
        ("noise", "t.csv", "--kind", "matrix", "--matrix", "m.npy", "-o", "out.csv"),
    ),
    "matrix of text": Kind(
        _noise,
        ("m.csv",),
        ("noise", "t.csv", "--kind", "matrix", "--matrix", "m.csv", "-o", "out.csv"),
    ),
    "images": Kind(
        _images,
        (
            "photos/a/0.png",
            "photos/b/1.jpg",
            "photos/a/2.webp",
            "photos/b/3.bmp",
            "photos/a/4.gif",
            "photos/b/5.tiff",
            "photos/a/6.ppm",
        ),
        _read_images,
    ),  # fmt: skip
    "image arrays": Kind(_image_arrays, ("i.npz",), _read_image_arrays),
    "cifar": Kind(_cifar, ("c/data_batch_1", "c/batches.meta"), _read_cifar),
    "cifar archive": Kind(_cifar, ("c.tar.gz",), _read_cifar_archive),
    "cifar-n": Kind(_cifar, ("n.npy",), _read_cifar_n),
    "clothing1m": Kind(
        _clothing,
        ("noisy_train_key_list.txt", "noisy_label_kv.txt", "category_names_eng.txt"),
        _read_clothing,
    ),
    "report": Kind(_output, _OUT, ("report", "made")),
    "export": Kind(
        _output, _OUT, ("export", "made", "--to", "label-studio", "-o", "out")
    ),
    "cache": Kind(_cache, ("embeddings/e/block.npz",), _read_cache),
    "model": Kind(
        _run,
        ("model.safetensors",),
        ("predict", "model.safetensors", "i.npz", "-o", "out.csv"),
        heavy=True,
    ),  # fmt: skip
    "run": Kind(
        _run,
        ("run/config.json", "run/checkpoint.safetensors", "run/metrics.jsonl"),
        _read_run,
        heavy=True,
    ),  # fmt: skip
}


def change(path, draw):
    """Change one file in place; a checksum is made to fit, mostly."""
    data = path.read_bytes()
    if path.suffix == ".safetensors":
        data = _change_tensors(path, data, draw)
    elif path.suffix == ".npy" and data[6:8] == b"\x01\x00" and b"O'" not in data[:128]:
        data = mutations.change_npy(data, draw)
    elif path.suffix == ".npz":
        data = mutations.change_npz(data, draw)
    elif path.suffix == ".json" and draw.integers(4):
        data = _change_json(path, data, draw)
    elif path.suffix in (".csv", ".tsv", ".jsonl", ".txt", ".json") and draw.integers(
        4
    ):
        data = mutations.change_text(data, draw)
    else:
        data = mutations.change_bytes(data, draw)
    path.write_bytes(data)
    summary = path.with_name("summary.json")
    if path.name.startswith("labels.") and summary.exists() and draw.integers(4):
        from stct.data.summary import as_json

        values = json.loads(summary.read_text())
        digest = hashlib.sha256(data).hexdigest()
        values["sha256"][path.name] = digest
        summary.write_text(as_json(values))


def _change_json(path, data, draw):
    value = mutations.change_json(json.loads(data), draw)
    if path.name == "summary.json" and isinstance(value, dict):
        from stct.data.summary import as_json

        try:
            return as_json(value).encode("utf-8", "surrogatepass")
        except ValueError:
            return data
    return json.dumps(value).encode()


def _change_tensors(path, data, draw):
    """Change bytes, or a text or a tensor with a checksum that fits."""
    if draw.integers(3) == 0:
        return mutations.change_bytes(data, draw)
    import torch

    from stct.train.files import read_tensors, tensors_as_bytes

    tensors, texts = read_tensors(path)
    if draw.integers(2):
        name = list(texts)[draw.integers(len(texts))]
        try:
            changed = mutations.change_json(json.loads(texts[name]), draw)
            texts[name] = json.dumps(changed)
        except (ValueError, TypeError):
            texts[name] = mutations.NASTY[draw.integers(len(mutations.NASTY))]
    else:
        name = list(tensors)[draw.integers(len(tensors))]
        array = mutations.change_array(tensors[name].numpy(), draw)
        if array.dtype.kind == "U":
            del tensors[name]
        else:
            tensors[name] = torch.from_numpy(np.ascontiguousarray(array))
    return tensors_as_bytes(tensors, texts)
