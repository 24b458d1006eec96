"""What the report gathers: ranking, dial, neighbours, pictures, words, rebuilding."""

import base64
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from command import assert_error, blobs, stct
from noisy_rows import noisy_digits

from stct import LabelCorrector
from stct.data.corrected import read_corrected
from stct.data.inputs import Inputs, read_inputs
from stct.data.results import write_results
from stct.data.summary import as_json
from stct.data.tables import Table, read_table
from stct.report import (
    REPORT_FILES,
    confusions,
    ranking,
    rebuild_report,
    thumbnails,
    words,
)
from stct.report.neighbours import draw_map, nearest, tsne
from stct.report.page import as_data_block
from stct.report.write import write_report


@pytest.fixture
def make_run(write_run):
    """Correct 60 rows and write all files of a run."""

    def make(*, labels=None, **more):
        X, _, given = blobs()
        labels = [f"c{c}" for c in given] if labels is None else labels
        columns = {"id": [f"r{i}" for i in range(60)], "label": labels}
        return write_run(X, columns, more_files=REPORT_FILES, **more)

    return make


def payload(out):
    page = (out / "report.html").read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(found[1])


def unpack(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_nearest_neighbours_against_all_pairs():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(500, 7)) + 100.0
    rows = np.array([3, 499, 0, 77])
    far = ((X[rows][:, None] - X) ** 2).sum(axis=2)
    far[np.arange(4), rows] = np.inf
    np.testing.assert_array_equal(nearest(X, rows, 6), far.argsort(axis=1)[:, :6])
    assert nearest(X[:3], np.array([1]), 10).shape == (1, 2)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-40, 1e-30, 1e20, 1e30, 1e37, 1e300])
def test_neighbours_and_map_of_rows_of_any_size(kind, size):
    if size in (1e-40, 1e300) and kind is np.float32:
        pytest.skip("float32 does not hold it")
    X = np.random.default_rng(0).normal(size=(300, 5)) + 3.0
    rows = np.arange(40)
    large = (X * size).astype(kind)
    np.testing.assert_array_equal(nearest(large, rows, 6), nearest(X, rows, 6))
    points, usual = draw_map(large, 50).points, draw_map(X, 50).points
    assert np.corrcoef(points[:, 0], usual[:, 0])[0, 1] > 0.999
    far = X.copy()
    far[77] *= 1e200
    assert np.isfinite(draw_map(far, 50).points).all()
    assert not (nearest(far, np.array([3, 4]), 10) == 77).any()


@pytest.mark.slow
def test_the_report_has_the_same_bytes_for_any_number_of_threads(tmp_path):
    X, y, _ = noisy_digits()
    np.save(tmp_path / "e.npy", X)
    (tmp_path / "t.csv").write_text("label\n" + "".join(f"{label}\n" for label in y))
    for threads in "12":
        done = subprocess.run(
            [sys.executable, "-m", "stct", "correct", "t.csv", "--embeddings"]
            + ["e.npy", "-o", f"out{threads}", "--quiet"],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": threads},
        )
        assert done.returncode == 0
    for name in ("labels.csv", "soft_labels.npz", "review.npz", "report.html"):
        one, two = ((tmp_path / f"out{n}" / name).read_bytes() for n in "12")
        assert one == two, name


def test_rows_in_shards_are_neighbours_too():
    class Shards:
        """Gives blocks only, as rows on a disk do."""

        def __init__(self, values):
            self.values, self.shape = values, values.shape

        def __len__(self):
            return len(self.values)

        def __getitem__(self, rows):
            assert isinstance(rows, slice)
            return self.values[rows]

    X = np.random.default_rng(0).normal(size=(20_000, 3)).astype(np.float32)
    rows = np.array([19_999, 4, 8192])
    np.testing.assert_array_equal(nearest(X, rows, 5), nearest(Shards(X), rows, 5))
    np.testing.assert_array_equal(
        draw_map(X, 100).points, draw_map(Shards(X), 100).points
    )


def test_the_map_shows_the_main_axes():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 5)) * [1.0, 9.0, 0.1, 4.0, 0.1]
    flat = draw_map(X, 50)
    assert abs(np.corrcoef(flat.points[:, 0], X[:, 1])[0, 1]) > 0.99
    assert abs(np.corrcoef(flat.points[:, 1], X[:, 3])[0, 1]) > 0.99
    assert flat.explained[0] > 0.7
    layout = tsne(flat.sample_points)
    assert layout.shape == (50, 2)
    np.testing.assert_array_equal(layout, tsne(flat.sample_points))
    assert draw_map(np.ones((5, 1)), 3).points.shape == (5, 2)


def test_the_dial_does_what_min_odds_does(tmp_path):
    generator = np.random.default_rng(1)
    X, truth, _ = blobs(300)
    X += generator.normal(size=X.shape) * 3.0
    given = np.where(generator.random(300) < 0.4, generator.integers(0, 3, 300), truth)
    np.save(tmp_path / "e.npy", X)
    rows = "".join(f"{label}\n" for label in given)
    (tmp_path / "t.csv").write_text(f"label\n{rows}")
    inputs = read_inputs(tmp_path / "t.csv", embeddings=tmp_path / "e.npy")
    corrector = LabelCorrector(min_odds=2.6).fit(inputs.embeddings, inputs.targets)
    (tmp_path / "out").mkdir()
    write_results(tmp_path / "out", inputs, corrector, seconds=0.0)
    write_report(tmp_path / "out", embeddings=inputs.embeddings)
    found = payload(tmp_path / "out")
    dial = found["dial"]
    assert dial["values"][dial["start"]] == 2.6
    for k in range(0, len(dial["values"]), 6):
        odds = dial["values"][k]
        other = LabelCorrector(min_odds=odds).fit(inputs.embeddings, inputs.targets)
        assert dial["relabel"][k] == np.sum(other.action_ == "relabel")
        assert dial["abstain"][k] == np.sum(other.action_ == "abstain")
        assert dial["accuracy"][k] == pytest.approx(other.confidence_.mean(), abs=1e-4)
        for one in found["by_class"]:
            name = found["classes"][one["class"]]["name"]
            assert one["after"][k] == np.sum(other.labels_ == name)
    assert dial["keep"] == np.sum(corrector.action_ == "keep")
    order = unpack(found["page"]["row"], "<u4")
    wrong = 1.0 - corrector.confidence_
    first = found["details"]["pictured"]
    assert np.all(np.diff(wrong[order[first:]]) <= 2e-6)  # after those to check first
    assert wrong[order[: first // 2]].mean() > wrong[order[first // 2 :]].mean()


def test_rebuilt_report_has_the_same_bytes(make_run):
    out, inputs = make_run()
    write_report(out, embeddings=inputs.embeddings)
    before = [(out / name).read_bytes() for name in REPORT_FILES]
    (out / "report.html").unlink()
    assert rebuild_report(out) == []
    assert [(out / name).read_bytes() for name in REPORT_FILES] == before
    rebuild_report(out, map_kind="tsne")
    assert payload(out)["map"]["kind"] == "tsne"


def test_without_embeddings_there_is_a_report_without_a_map(make_run):
    out, _ = make_run()
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    summary["files"] = summary["files"][:4]
    (out / "summary.json").write_text(as_json(summary), "utf-8")
    rebuild_report(out)  # of a folder that has no review.npz
    found = payload(out)
    assert found["map"] is None
    assert found["details"]["items"][0]["near"] == []
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert set(REPORT_FILES) <= set(summary["files"])
    (out / "soft_labels.npz").unlink()
    rebuild_report(out)
    assert payload(out)["dial"]["relabel"][0] == 6


def test_a_page_of_many_rows_holds_the_top_part(make_run, monkeypatch):
    out, inputs = make_run()
    monkeypatch.setattr(ranking, "MOST_ROWS", 20)
    monkeypatch.setattr(ranking, "most_rows", lambda ids: 20)
    monkeypatch.setattr("stct.report.write._NUM_FIRST", 5)
    write_report(out, embeddings=inputs.embeddings)
    found = payload(out)
    assert found["rows"] == 60
    rows = unpack(found["page"]["row"], "<u4")
    assert 20 <= len(rows) <= 27
    assert set(range(6)) <= set(rows.tolist())  # the wrong ones
    assert found["dial"]["relabel"][0] == 6
    assert found["dial"]["keep"] == 54  # all rows count
    for item in found["details"]["items"]:
        assert item["at"] >= 0


def test_missing_and_hostile_images_are_counted(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (900, 10), "red").save(tmp_path / "wide.jpg")
    image.new("LA", (20, 20)).save(tmp_path / "alpha.png")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "wide.jpg").read_bytes()[:300])
    (tmp_path / "text.png").write_text("<svg onload=alert(1)>")
    os.mkfifo(tmp_path / "pipe.png")
    names = ["wide.jpg", "alpha.png", "cut.jpg", "text.png", "pipe.png", "gone.png"]
    names += ["", None, "http://example.org/x.png", "\0", "x" * 5000]
    paths = thumbnails.image_paths(names, tmp_path)
    made = thumbnails.make_thumbnails(paths, range(11), [], budget=10**6)  # no hang
    assert sorted(made.pictures) == [0, 1]
    assert made.num_missing == 9
    small = thumbnails.make_thumbnails(paths, [0, 1], [], budget=10)
    assert (small.num_left_out, small.pictures) == (2, {})


def test_pixels_need_no_pillow(monkeypatch):
    image = pytest.importorskip("PIL.Image")
    import io

    generator = np.random.default_rng(0)
    monkeypatch.setattr(thumbnails, "_has_pillow", lambda: False)
    for shape in [(8, 8), (8, 8, 1), (9, 7, 3), (5, 5, 4)]:
        pixels = generator.integers(0, 256, (2, *shape), dtype=np.uint8)
        made = thumbnails.make_thumbnails(pixels, [1], [], budget=10**6)
        read = np.asarray(image.open(io.BytesIO(made.pictures[1])))
        np.testing.assert_array_equal(read.reshape(shape), pixels[1])
    made = thumbnails.make_thumbnails(["a.png"], [0], [], budget=10**6)
    assert "Pillow" in made.note


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0001, "Almost none of your labels looks wrong."),
        (0.05, "About 1 in 20 of your labels is probably wrong."),
        (0.32, "About 1 in 3 of your labels is probably wrong."),
        (0.48, "About 1 in 2 of your labels is probably wrong."),
        (0.8, "About 4 in 5 of your labels are probably wrong."),
        (0.99, "Nearly all of your labels are probably wrong."),
    ],
)
def test_noise_in_words(rate, text):
    assert words.headline(rate, True) == text
    between = words.headline(rate, True, (rate * 0.5, min(1.0, rate * 1.5)))
    assert between.startswith(text[:-1])
    assert between.endswith(f": {rate * 0.5:.0%} to {min(1.0, rate * 1.5):.0%}.")


def test_broken_assumptions_are_said():
    given = np.repeat([0, 1, 2], 100)
    label = given.copy()
    label[:80] = 1  # cat becomes dog
    summary = {"learnable": [True, True, False], "noise_rate": 0.3}
    found = words.warn(summary, given, label, ["cat", "dog", "eel"])
    assert [warning.title for warning in found] == [
        "eel fails Theorem 1's check",
        "dog swallows cat",
    ]
    assert "80 of the 100 rows given as cat" in found[1].text
    summary = {"termination_condition": "nothing_learnt"}
    assert words.warn(summary, given, given, ["a", "b", "c"])[0].title.startswith(
        "Noth"
    )
    assert words.headline(0.5, False) == "Nothing can be said about these labels."


def test_data_cannot_leave_its_block():
    evil = {"</script><!--": "<script>&\u2028\ud800"}
    text = as_data_block(evil)
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == evil


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_decisions_take_part_in_a_correction(make_run, tmp_path, ending):
    _, _, given = blobs()
    labels = given.tolist() if ending == "parquet" else [str(c) for c in given]
    (tmp_path / "d.csv").write_text("id,label\nr0,2\nr1,9\nr30,0\n")
    out, inputs = make_run(labels=labels, ending=ending, locked=tmp_path / "d.csv")
    write_report(out, embeddings=inputs.embeddings, locked=inputs.locked)
    table = read_table(out / f"labels.{ending}")
    kind = int if ending == "parquet" else str
    assert table.values("given") == labels
    got = [table.values("label")[i] for i in (0, 1, 30)]
    assert got == [kind(2), kind(9), kind(0)]
    changed = "keep" if given[30] == 0 else "relabel"
    assert [table.values("action")[i] for i in (0, 1, 30)] == [
        "relabel",
        "relabel",
        changed,
    ]
    summary = read_corrected(out).summary
    assert any("d.csv" in n and "9" in n for n in summary["notes"])
    assert summary["estimated_accuracy"]["before"] < 1 - 2 / 60
    found = payload(out)
    assert found["dial"]["relabel"][0] == summary["actions"]["relabel"]
    assert found["dial"]["relabel"][-1] >= 2  # locked rows heed no dial


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("id,label\nr0,\n", ["d.csv", "id r0 has no label"]),
        ("id,name\nr0,1\n", ["d.csv", "no column 'label'"]),
        ("id,label\nr0,1\nr0,2\n", ["d.csv", "more than once: r0"]),
        ("id,label\nx1,1\n", ["ids that", "t.csv lacks: x1", "another table"]),
    ],
)
def test_bad_decisions(make_run, tmp_path, text, fragments):
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(ValueError, match="d.csv") as caught:
        make_run(locked=tmp_path / "d.csv")
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_curves_of_a_training_run(make_run):
    out, inputs = make_run()
    rounds = [{"round": 1, "loss": 2.0, "accuracy": np.float32(0.5), "phase": "x"}]
    rounds.append({"round": 2, "loss": float("nan"), "accuracy": 0.75, "done": True})
    images = np.zeros((60, 8, 8), np.uint8)
    write_report(out, embeddings=inputs.embeddings, images=images, metrics=rounds)
    assert payload(out)["curves"] == [
        {"round": 1.0, "loss": 2.0, "accuracy": 0.5},
        {"round": 2.0, "accuracy": 0.75},
    ]
    rebuild_report(out)
    assert len(payload(out)["curves"]) == 2


def test_numbers_that_became_text_are_the_same_classes(tmp_path):
    """A training run has numbers as labels and writes them to a csv."""
    X, _, given = blobs()
    labels = given.tolist()
    columns = {"id": list(range(60)), "label": labels}
    table = Table("csv", columns, 60)
    inputs = Inputs(table, "label", "id", columns["id"], labels, X, None, {})
    corrector = LabelCorrector().fit(X, inputs.targets)
    write_results(tmp_path, inputs, corrector, seconds=0.0)
    write_report(tmp_path, embeddings=X, title="numbers.npz")
    found = payload(tmp_path)
    assert [one["code"] for one in found["classes"]] == ["0", "1", "2"]
    assert {one["before"] for one in found["by_class"]} <= {18, 19, 20, 21, 22}
    assert found["title"] == "numbers.npz"
    assert "--locked" not in json.dumps(found["commands"])  # there is no table


@pytest.mark.slow
def test_report_through_the_command(make_run, tmp_path):
    out, inputs = make_run()
    write_report(out, embeddings=inputs.embeddings)
    done = stct("report", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("out/report.html")
    assert_error(stct("report", "gone", cwd=tmp_path), "gone", "no such folder")
    assert_error(
        stct("report", "out", "--images", "gone", cwd=tmp_path), "gone", "no such"
    )
    done = stct("report", "out", "--images", ".", cwd=tmp_path)
    assert_error(done, "no column of image files")
    (out / "review.npz").write_bytes(b"PK not an archive")
    before = (out / "report.html").read_bytes()
    assert_error(stct("report", "out", cwd=tmp_path), "review.npz")
    assert (out / "report.html").read_bytes() == before
    command = ["correct", "t.csv", "--embeddings", "e.npy", "--image-column", "x"]
    done = stct(*command, cwd=tmp_path)
    assert_error(done, "t.csv", "no column 'x'", "--image-column")


@pytest.mark.slow
def test_probabilities_instead_of_embeddings(tmp_path):
    X, truth, given = blobs()
    P = np.full((60, 3), 0.02)
    P[np.arange(60), truth] = 0.96
    np.save(tmp_path / "p.npy", P)
    rows = "".join(f"{label}\n" for label in given)
    (tmp_path / "t.csv").write_text(f"label\n{rows}")
    done = stct("correct", "t.csv", "--pred-probs", "p.npy", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    out = tmp_path / "stct-output"
    labels = read_table(out / "labels.csv").values("label")
    assert labels == [str(c) for c in truth]
    assert payload(out)["map"] is None
    np.save(tmp_path / "e.npy", X)
    more = ["correct", "t.csv", "--pred-probs", "p.npy", "-o", "other"]
    done = stct(*more, "--embeddings", "e.npy", cwd=tmp_path)
    assert_error(done, "embeddings or --pred-probs, not both")
    assert_error(stct(*more, "--method", "split", cwd=tmp_path), "needs embeddings")
    np.save(tmp_path / "p.npy", P[:, :2])
    assert_error(stct(*more, cwd=tmp_path), "2 columns", "3 classes")
    np.save(tmp_path / "p.npy", np.eye(3)[given])
    done = stct(*more, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "out-of-fold" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_moved_images_are_said_and_found_again(tmp_path):
    image = pytest.importorskip("PIL.Image")
    X, _, given = blobs()
    np.save(tmp_path / "e.npy", X)
    rows = [f"{i}.png,{label}" for i, label in enumerate(given)]
    (tmp_path / "t.csv").write_text("\n".join(["photo,label", *rows]))
    for i in range(50):
        image.new("RGB", (40, 40), (i, i, i)).save(tmp_path / f"{i}.png")
    command = ["correct", "t.csv", "--embeddings", "e.npy", "--image-column", "photo"]
    done = stct(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "10 image files are missing or cannot be read" in said
    out = tmp_path / "stct-output"
    found = payload(out)["details"]
    assert found["has_images"]
    assert len(found["pictures"]) == 50
    assert sum(item["image"] < 0 for item in found["items"]) == 10
    (tmp_path / "moved").mkdir()
    for i in range(60):
        image.new("RGB", (40, 40), (i, i, i)).save(tmp_path / "moved" / f"{i}.png")
    done = stct("report", "stct-output", "--images", "moved", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "missing" not in done.stdout
    assert len(payload(out)["details"]["pictures"]) == 60


def corrected_of(given, label, num_classes):
    """Stand in for the files of a run whose every change was made."""
    given, label = np.array(given), np.array(label)
    action = np.where(given == label, "keep", "relabel")
    return SimpleNamespace(
        given=given, label=label, action=action, classes=range(num_classes)
    )


def test_confused_pairs_stand_out_and_spread_errors_do_not():
    generator = np.random.default_rng(0)
    truth = np.repeat(np.arange(40), 50)
    given = truth.copy()
    wrong = generator.random(len(truth)) < 0.2
    given[wrong] = generator.integers(0, 40, wrong.sum())
    pairs = confusions.find_pairs(corrected_of(given, truth, 40))
    assert len(pairs.given) > 300
    assert not pairs.beyond_chance.any()
    T = np.eye(40).tolist()
    assert confusions.transition({"transition_matrix": T}, pairs) is None

    given[truth == 3] = np.where(np.arange(50) < 20, 30, 3)  # 3 is taken for 30
    given[truth == 9] = np.where(np.arange(50) < 15, 11, 9)
    pairs = confusions.find_pairs(corrected_of(given, truth, 40))
    clear = pairs.beyond_chance > 0
    found = zip(pairs.given[clear], pairs.other[clear], strict=True)
    assert set(found) == {(30, 3), (11, 9)}
    assert (pairs.given[0], pairs.other[0], pairs.rows[0]) == (30, 3, 20)
    T = np.eye(40)
    T[3, 30], T[9, 11] = 0.4, 0.3
    found = confusions.transition({"transition_matrix": T.tolist()}, pairs)
    assert found["total"] == 40
    places = {c: k for k, c in enumerate(found["classes"])}  # similar side by side
    assert sorted(places) == [3, 9, 11, 30]
    assert abs(places[3] - places[30]) == abs(places[9] - places[11]) == 1


def test_pairs_follow_the_dial_and_every_change_has_evidence(tmp_path):
    generator = np.random.default_rng(2)
    truth = np.arange(1800) % 30
    X = generator.normal(size=(1800, 40)).astype(np.float32)
    X[np.arange(1800), truth] += 5.0
    given = np.where(generator.random(1800) < 0.4, (truth + 1) % 30, truth)
    np.save(tmp_path / "e.npy", X)
    rows = "".join(
        f"class {c},what a customer said in row {i}\n" for i, c in enumerate(given)
    )
    (tmp_path / "t.csv").write_text(f"label,text\n{rows}")
    inputs = read_inputs(tmp_path / "t.csv", embeddings=tmp_path / "e.npy")
    corrector = LabelCorrector().fit(inputs.embeddings, inputs.targets)
    (tmp_path / "out").mkdir()
    write_results(tmp_path / "out", inputs, corrector, seconds=0.0)
    write_report(tmp_path / "out", embeddings=inputs.embeddings)
    found = payload(tmp_path / "out")
    names = [one["name"] for one in found["classes"]]
    old, new = np.array(inputs.targets), corrector.labels_
    for odds in (1.0, 10.0):
        k = found["dial"]["values"].index(odds)
        other = LabelCorrector(min_odds=odds).fit(inputs.embeddings, inputs.targets)
        for one in found["pairs"]["items"]:
            a, b = names[one["given"]], names[one["other"]]
            assert one["count"][k] == np.sum((old == a) & (other.labels_ == b))
    counts = [one["count"][found["dial"]["start"]] for one in found["pairs"]["items"]]
    assert counts == sorted(counts, reverse=True)
    assert len(found["transition"]["classes"]) == 24  # of 30, all of them confused
    changed = np.flatnonzero(old != new)
    assert len(changed) > 600
    row_at = unpack(found["page"]["row"], "<u4")
    shown = {row_at[item["at"]]: item for item in found["details"]["items"]}
    assert set(changed.tolist()) <= set(shown)
    assert all(shown[row]["text"] and shown[row]["near"] for row in changed.tolist())
    low, high = found["accuracy"]["before_interval"]
    assert f"{1 - high:.0%} to {1 - low:.0%}" in found["headline"]
