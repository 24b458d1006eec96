"""The paper's numbers, our tables and figures, and that they belong together."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "experiments"
sys.path.insert(0, str(FOLDER))

import figures  # noqa: E402
import runner  # noqa: E402


def test_cells_of_the_paper_are_all_there():
    paper = runner.read_rows(FOLDER / "paper.csv")
    items = {row["item"] for row in paper}
    numbers = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")
    assert items == {f"Table {number}" for number in numbers}
    for row in paper:
        assert row["value"] == row["printed"] or row["printed"] in ("-", "x", "N-C")
    keys = [tuple(row.values())[:5] for row in paper]
    assert len(keys) == len(set(keys))
    doubtful = {(r["item"], r["method"]) for r in paper if r["doubt"]}
    assert ("Table IV", "DivideMix") in doubtful  # repeats SOP
    assert ("Table VII", "w/o L_U") in doubtful  # repeats Table VI
    assert ("Table I", "STCT") not in doubtful


def test_tables_print_paper_ours_and_n(tmp_path):
    columns = "data,scale,noise,method,seed,label_accuracy"
    lines = [f"d,full,symmetric:0.5,split,{s},{v}" for s, v in ((0, 80), (1, 82))]
    (tmp_path / "label_accuracy.csv").write_text("\n".join([columns, *lines]) + "\n")
    done = subprocess.run(
        [sys.executable, FOLDER / "tables.py", "--results", tmp_path],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "97.4 / 81.0 ± 1.4 (2)" in done.stdout
    assert "| loo | " in done.stdout
    assert "| 97.4 /  |" in done.stdout  # not run, so empty


def test_figures_are_drawn_from_the_results_in_the_repository(tmp_path):
    present = [
        name
        for name in figures.DRAW
        if (FOLDER / "results" / f"{figures.SOURCES.get(name, name)}.csv").exists()
    ]
    for name in present:
        figures.DRAW[name](FOLDER / "results").savefig(tmp_path / "f.png", dpi=20)
        assert (tmp_path / "f.png").stat().st_size > 0


def test_an_unknown_figure_lists_its_neighbours():
    done = subprocess.run(
        [sys.executable, FOLDER / "figures.py", "sampling_rat"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("figures: error: no figure 'sampling_rat'; near: sam")
    assert done.stderr.count("\n") == 1
