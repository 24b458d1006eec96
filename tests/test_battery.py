"""The battery and the test of stability, as processes on cells of the install."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parent.parent / "benchmarks"
METHODS = ["given", "probe", "logistic", "knn", "cleanlab", "anchors", "stct"]
CELLS = ["digits:sym50", "iris:sym20"]


def script(name, *arguments):
    return subprocess.run(
        [sys.executable, FOLDER / name, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"},
        timeout=120,
    )


def battery(out, *more, only=CELLS):
    done = script("battery.py", "--only", *only, "--seeds", 1, "--out", out, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(out, name="battery.csv"):
    with (out / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with all methods, and what was printed."""
    out = tmp_path_factory.mktemp("battery")
    return out, battery(out)


def test_every_cell_and_method_is_a_row(whole):
    out, printed = whole
    found = rows(out)
    assert [(r["cell"], r["method"]) for r in found] == [
        (cell, method) for cell in CELLS for method in METHODS
    ]
    for row in found:
        assert row["features"] == row["cell"].split(":")[0]
        assert row["seed"] == "0"
        assert 0.3 < float(row["right"]) <= 1.0
        assert float(row["seconds"]) >= 0.0
        if row["method"] == "given":
            assert row["right"] == row["given"]
        if row["method"] != "stct":
            assert row["estimate_before"] == row["after_held"] == ""
            continue
        for name in ("before", "after"):
            low, high = float(row[f"{name}_low"]), float(row[f"{name}_high"])
            assert low <= float(row[f"estimate_{name}"]) <= high
            truth = float(row["given" if name == "before" else "right"])
            assert row[f"{name}_held"] == str(int(low <= truth <= high))
        assert 0.0 <= float(row["calibration_error"]) < 0.5
        assert 0.0 <= float(row["abstained"]) + float(row["relabelled"]) <= 1.0
    digits = {r["method"]: r for r in found if r["features"] == "digits"}
    assert (digits["knn"]["n"], digits["knn"]["C"]) == ("1797", "10")
    for method in METHODS[1:]:
        assert float(digits[method]["right"]) > 0.7


def test_table_and_picture(whole):
    out, printed = whole
    assert "of 4 intervals" in printed
    assert "of 2 cells" in printed
    title, _, *table = (out / "battery.md").read_text().splitlines()
    assert title.startswith("# ")
    assert table[0].startswith("| cell | n | given | probe |")
    leads = [float(line.split("|")[10]) for line in table[2:4]]
    assert leads == sorted(leads)
    assert (out / "battery.png").read_bytes().startswith(b"\x89PNG")


def test_rows_that_are_there_stay(whole):
    out, printed = whole
    path = out / "battery.csv"
    before = path.read_text()
    path.write_text(before + "iris:sym20,iris,0,st")  # killed while it wrote
    again = battery(out)
    assert path.read_text() == before
    assert printed.endswith(again.lstrip())  # the table, and no more


def test_fresh_rows_and_ablations(whole, tmp_path):
    text = (whole[0] / "battery.csv").read_text()
    (tmp_path / "ablations.csv").write_text(text.replace(",stct,", ",default,"))
    before = rows(tmp_path, "ablations.csv")
    printed = battery(tmp_path, "--ablate", "--fresh", only=CELLS[1:])
    after = rows(tmp_path, "ablations.csv")
    kept = len(before) - 1
    assert after[:kept] == before[:kept]
    default, *variants = after[kept:]
    for name in ("cell", "method", "given", "right"):
        assert default[name] == before[-1][name]
    assert default != before[-1]  # says no more than how many are right
    names = [row["method"] for row in variants]
    assert len(set(names)) == len(names) > 0
    assert "default" not in names
    for row in variants:
        assert (row["cell"], row["given"]) == (default["cell"], default["given"])
        assert 0.3 < float(row["right"]) <= 1.0
        assert row["method"] in printed
    assert "all cells" in printed


def test_stability():
    done = script("stability.py", "--only", "iris:sym50")
    header, *lines = done.stdout.splitlines()
    assert len(lines) == 8, done.stderr
    assert all(line.startswith("iris:sym50") for line in lines)
    assert done.returncode == any(line.endswith("too much") for line in lines)
    assert done.stderr == ""
