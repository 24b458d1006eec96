"""The paper's numbers, our tables and figures, and that they belong together."""

import csv
import hashlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "experiments"
RESULTS = FOLDER / "results"
sys.path.insert(0, str(FOLDER))

import figures  # noqa: E402
import reading  # noqa: E402
import runner  # noqa: E402
import tables  # noqa: E402

EXPERIMENTS = (
    *("label_accuracy", "validation_sets", "sampling_rate"),
    *("clean_validation", "distribution", "training"),
)


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, FOLDER / f"{script}.py", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )


def write_rows(folder, name, rows):
    """Write a results file of these rows, empty where they say nothing."""
    columns = reading.experiment(name).columns
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def test_cells_of_the_paper_are_all_there():
    paper = runner.read_rows(FOLDER / "paper.csv")
    assert Counter(row["item"] for row in paper) == {
        "Table I": 120,
        "Table II": 36,
        "Table III": 36,
        "Table IV": 48,
        "Table V": 14,
        "Table VI": 24,
        "Table VII": 32,
        "Table VIII": 16,
    }
    for row in paper:
        assert row["value"] == row["printed"] or row["printed"] in ("-", "x", "N-C")
    keys = [tuple(row.values())[:5] for row in paper]
    assert len(keys) == len(set(keys))
    doubtful = {(r["item"], r["method"]) for r in paper if r["doubt"]}
    assert ("Table IV", "DivideMix") in doubtful  # repeats SOP
    assert ("Table VII", "w/o L_U") in doubtful  # repeats Table VI
    assert ("Table III", "PENCIL") in doubtful  # 79.8 where 80.0 were given
    assert ("Table I", "STCT") not in doubtful


def test_numbers_of_the_paper_are_as_they_were_copied():
    """Pins every number; what we doubt may be said in other words."""
    rows = runner.read_rows(FOLDER / "paper.csv")
    text = "\n".join(",".join(list(row.values())[:7]) for row in rows)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert digest == "c459f7394f50be91bfd524bab4ff4500864b8cdc0a466aad489e0c8f9c4bb25c"


def test_results_are_there_and_the_tables_are_made_of_them():
    for name in EXPERIMENTS:
        assert reading.read_all(RESULTS, name), f"{name}.csv is empty or missing"
    made = tables.write(RESULTS)
    assert made.strip() == (RESULTS / "tables.md").read_text("utf-8").strip()


def test_tables_hold_every_number_of_the_paper(tmp_path):
    paper = runner.read_rows(FOLDER / "paper.csv")
    shown = set()
    for block in tables.blocks(tmp_path, paper):
        for method in block.methods:
            name = block.names.get(method, method)
            for noise in block.noises:
                shown.add((block.item, block.dataset, block.metric, noise, name))
    for r in paper:
        assert (r["item"], r["dataset"], r["metric"], r["noise"], r["method"]) in shown


def toy_rows(data, values, **more):
    cell = {"data": data, "scale": "full", "noise": "symmetric:0.5", "method": "split"}
    return [
        {**cell, "seed": seed, "label_accuracy": value, **more}
        for seed, value in enumerate(values)
    ]


def test_tables_print_paper_ours_and_n(tmp_path):
    write_rows(tmp_path, "label_accuracy", toy_rows("d", (80, 82)))
    done = run("tables", "--results", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "97.4 / 81.0 ± 1.4 (2)" in done.stdout
    assert "| loo | " in done.stdout
    assert "| 97.4 /  |" in done.stdout  # not run, so empty
    assert done.stderr.count("\n") == 1
    assert "training.csv" in done.stderr
    assert "label_accuracy.csv" not in done.stderr


def test_rows_of_other_data_are_tables_of_their_own(tmp_path):
    for name in EXPERIMENTS:
        shutil.copy(RESULTS / f"{name}.csv", tmp_path)
        mine = reading.read_all(tmp_path, name)
        for change in ({"data": "other"}, {"scale": "other"}):
            new = [{**row, **change, "label_accuracy": "1.0"} for row in mine[:20]]
            experiment = reading.experiment(name)
            new = [{k: row[k] for k in experiment.columns} for row in new]
            runner.append_rows(tmp_path / f"{name}.csv", experiment, new)
    before, after = (
        [table.strip() for table in tables.write(folder).split("### ")]
        for folder in (RESULTS, tmp_path)
    )
    assert set(before) <= set(after)
    titles = [table.partition("\n")[0] for table in after]
    assert len(titles) == len(set(titles))
    assert any("embeddings other" in table for table in after)
    assert any("data `other`" in table for table in after)


def test_tables_over_r_and_clean_rows_have_paper_beside_split():
    text = (RESULTS / "tables.md").read_text("utf-8")
    for line in ("symmetric:0.8, paper, printed |", "symmetric:0.8, split, covering |"):
        assert text.count(line) == 3  # right labels, test accuracy, samplings
    assert "| asymmetric:0.4, paper |" in text
    assert "| asymmetric:0.4, split |" in text


@pytest.mark.parametrize("script", ["tables", "figures"])
def test_results_that_are_not_there_are_one_line(tmp_path, script):
    done = run(script, "--results", tmp_path / "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{script}: error: ")
    assert done.stderr.endswith("nowhere: no such folder with results\n")
    (tmp_path / "label_accuracy.csv").write_text("row,x\n1,2\n")
    done = run(script, "--results", tmp_path, "--output", tmp_path / "out")
    assert done.returncode == 2
    assert "label_accuracy.csv: has the columns row, x; expected data" in done.stderr
    assert done.stderr.count("\n") == 1


def test_figures_are_drawn_from_the_results_in_the_repository(tmp_path, capsys):
    for name in figures.DRAW:
        figures.draw(name, RESULTS, tmp_path)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(figures.DRAW)
    assert "not drawn" not in capsys.readouterr().out


def test_figures_of_half_a_grid_say_what_is_missing(tmp_path, capsys):
    """One cell of each experiment, from two data: two figures each, no traceback."""
    for name in EXPERIMENTS:
        rows = reading.read_all(RESULTS, name)
        if name == "training":
            curves = ("symmetric:0.5", "STCT")
            rows = [r for r in rows if (r["noise"], r["variant"]) == curves]
        write_rows(tmp_path, name, [rows[0], {**rows[0], "data": "other"}])
    for name in figures.DRAW:
        figures.draw(name, tmp_path, tmp_path)
    assert len(list(tmp_path.glob("*.png"))) == 2 * len(figures.DRAW)
    assert (tmp_path / "sampling_rate-other-full.png").exists()
    said = capsys.readouterr().out
    assert "label_accuracy: drawn without some: label_accuracy.csv lacks" in said
    assert "and 80 more of 84 cells" in said


def test_figures_without_rows_are_said(tmp_path):
    write_rows(tmp_path, "training", [])
    done = run("figures", "--results", tmp_path, "--output", tmp_path / "new" / "place")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("not drawn") == len(figures.DRAW)
    assert (tmp_path / "new" / "place").is_dir()


def test_an_unknown_figure_lists_its_neighbours():
    done = run("figures", "sampling_rat")
    assert done.returncode == 2
    assert done.stderr.startswith("figures: error: no figure 'sampling_rat'; near: sam")
    assert done.stderr.count("\n") == 1
