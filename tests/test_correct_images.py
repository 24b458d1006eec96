"""``stct correct`` on images, in real processes, with real and with small encoders."""

import csv
import json
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from command import assert_error, stct
from hf_models import save_model
from PIL import Image

pytestmark = pytest.mark.slow  # starts real processes

KINDS = ("stripes", "spots", "slope")


def texture(kind, generator):
    """Draw one of three textures, in random colours and with noise."""
    x, y = np.meshgrid(np.arange(32), np.arange(32))
    shift = generator.integers(0, 8)
    pattern = {
        "stripes": (x + shift) // 4 % 2,
        "spots": ((x + shift) // 8 + (y + shift) // 8) % 2,
        "slope": (x + y + shift) / 70,
    }[kind]
    low, high = generator.integers(0, 80, 3), generator.integers(150, 256, 3)
    pixels = low + pattern[..., None] * (high - low)
    return (pixels + generator.normal(0, 8, pixels.shape)).clip(0, 255).astype(np.uint8)


def write_photos(folder, num=120, rate=0.2):
    """Write class folders; give the true kind of each image by its id."""
    generator = np.random.default_rng(0)
    truth = {}
    for i in range(num):
        kind = KINDS[i % 3]
        given = KINDS[generator.integers(3)] if generator.random() < rate else kind
        (folder / given).mkdir(parents=True, exist_ok=True)
        Image.fromarray(texture(kind, generator)).save(folder / given / f"{i}.png")
        truth[f"{given}/{i}.png"] = kind
    return truth


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_class_folders_with_real_weights(tmp_path):
    truth = write_photos(tmp_path / "photos")
    command = ["correct", "photos", "--encoder", "efficientnet-lite0"]
    done = stct(*command, "--cache-dir", "cache", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "out" / "labels.csv")
    assert [row["id"] for row in rows] == sorted(truth)
    assert all(row["given"] == row["id"].split("/")[0] for row in rows)
    before = np.mean([row["given"] == truth[row["id"]] for row in rows])
    after = np.mean([row["label"] == truth[row["id"]] for row in rows])
    assert before < 0.92
    assert after > 0.97
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["images"]["encoder"] == "efficientnet-lite0"
    assert summary["embedding_columns"] == 1280
    page = (tmp_path / "out" / "report.html").read_text()
    assert rows[0]["id"] in page

    # Put right by hand, the images are known again, wherever they are now.
    for row in rows_of(tmp_path / "out" / "patch.csv"):
        old = tmp_path / "photos" / row["id"]
        old.rename(tmp_path / "photos" / row["new"] / old.name)
    kept = sorted((tmp_path / "cache").rglob("*.npz"))
    done = stct(*command, "--cache-dir", "cache", "-o", "again", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted((tmp_path / "cache").rglob("*.npz")) == kept
    assert len(rows_of(tmp_path / "again" / "patch.csv")) <= 1


def test_table_of_paths_and_a_bad_file(tmp_path):
    truth = write_photos(tmp_path / "photos", num=60, rate=0)
    lines = [f"photos/{name},{kind},mine" for name, kind in truth.items()]
    lines.insert(3, "photos/gone.png,spots,mine")
    table = "\n".join(["file,label,note", *lines]) + "\n"
    (tmp_path / "t.csv").write_text(table)
    command = ["correct", "t.csv", "--encoder", "efficientnet-lite0", "--no-cache"]
    done = stct(*command, cwd=tmp_path)
    assert_error(done, "row 3", "photos/gone.png: there is no such file", "--skip-bad")
    assert not (tmp_path / "stct-output").exists()
    done = stct(*command, "--skip-bad", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["rows"] == 60
    assert "gone.png" in summary["images"]["skipped"][0]
    assert any("left out: 1, the first" in note for note in summary["notes"])
    rows = rows_of(tmp_path / "stct-output" / "labels.csv")
    assert [row["id"] for row in rows[:5]] == ["0", "1", "2", "4", "5"]
    assert rows[0]["note"] == "mine"
    # The patch fits the table as it is, with the bad row in it.
    done = stct(
        "apply", "stct-output/patch.csv", "t.csv", "-o", "new.csv", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    changed = rows_of(tmp_path / "stct-output" / "patch.csv")
    new = rows_of(tmp_path / "new.csv")
    assert all(new[int(row["id"])]["label"] == row["new"] for row in changed)


def test_npz_with_numbers_for_labels(tmp_path):
    generator = np.random.default_rng(0)
    images = [texture(KINDS[i % 3], generator) for i in range(30)]
    np.savez(tmp_path / "x.npz", images=np.stack(images), labels=np.arange(30) % 3)
    save_model(tmp_path / "model", "dinov2")
    arguments = ["--encoder", "hf:model", "--cache-dir", "c", "--quiet"]
    done = stct("correct", "x.npz", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    rows = rows_of(tmp_path / "stct-output" / "labels.csv")
    assert [row["given"] for row in rows[:4]] == ["0", "1", "2", "0"]


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["photos"], ["photos: a folder of images needs --encoder"]),
        (["photos", "--no-cache"], ["--no-cache", "need --encoder"]),
        (["photos", "--encoder", "vgg"], ["'vgg'", "efficientnet-lite0", "hf:"]),
        (["photos", "--encoder", "vgg", "--embeddings", "x.npy"], ["one of them"]),
        (["x", "--encoder", "efficientnet-lite0"], ["x: there is no such file"]),
    ],
)
def test_mistakes_are_one_line(tmp_path, arguments, fragments):
    write_photos(tmp_path / "photos", num=6)
    done = stct("correct", *arguments, cwd=tmp_path)
    assert_error(done, *fragments)
    assert not (tmp_path / "stct-output").exists()


def test_a_killed_run_goes_on(tmp_path):
    """Kill -9 while it embeds; the second run takes what the first has kept."""
    code = textwrap.dedent("""
        import sys, time, numpy as np, torch
        from pathlib import Path
        from stct.encoders import Encoder, Preprocess, embed

        class Slow(torch.nn.Module):
            seen = 0
            def forward(self, x):
                Slow.seen += len(x)
                time.sleep(float(sys.argv[1]))
                return x.mean(dim=(2, 3))

        images = np.random.default_rng(0).integers(0, 256, (3000, 4, 4, 3), np.uint8)
        X = embed(images, Encoder("slow", Slow(), Preprocess()), cache_dir=Path("c"))
        print(Slow.seen, X.sum())
    """)
    command = [sys.executable, "-c", code]
    running = subprocess.Popen([*command, "0.05"], cwd=tmp_path)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "c").rglob("*.npz"))) < 2:
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    kept = len(list((tmp_path / "c").rglob("*.npz")))
    done = [
        subprocess.run(
            [*command, "0"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert int(done[0][0]) == 3000 - 512 * kept
    assert done[1] == ["0", done[0][1]]
