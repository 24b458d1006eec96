"""Columns of a table as features: numbers, dates, categories; what is left out."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from stct import cli
from stct.data.tables import read_table
from stct.features import read_recipe
from stct.features.kinds import kind_of


def loans(num=400, wrong=0.15, seed=0):
    """Loans of three kinds, with outliers, gaps, dates and rare categories."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, num)
    names = np.array(["home", "car", "study"])
    income = np.array([9.0, 5.0, 1.0])[truth] + rng.normal(size=num)
    income[rng.random(num) < 0.02] = 1e6  # entered in cents
    shop = np.array(["bank", "dealer", "online"])[
        np.where(rng.random(num) < 0.7, truth, rng.integers(0, 3, num))
    ].astype(object)
    shop[:2] = ["rare", "odd"]
    since = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        truth * 200 + rng.integers(0, 90, num), unit="D"
    )
    age = rng.integers(18, 80, num).astype(object)
    age[rng.random(num) < 0.1] = "N/A"
    swapped = np.where(rng.random(num) < wrong, rng.integers(0, 3, num), truth)
    table = pd.DataFrame(
        {
            "customer_id": rng.permutation(num) + 7000,
            "income": income.round(2),
            "age": age,
            "shop": shop,
            "since": since.strftime("%Y-%m-%d"),
            "country": "DE",
            "zip": [f"{code:05d}" for code in rng.integers(1, 20, num)],
            "label": names[swapped],
        }
    )
    return table, names[truth]


@pytest.fixture
def correct(monkeypatch, tmp_path, capsys):
    """Correct a table inside this process; give summary and labels."""
    monkeypatch.chdir(tmp_path)

    def correct(table, *options, name="t.csv"):
        if name.endswith(".csv"):
            table.to_csv(name, index=False)
        else:
            table.to_parquet(name, index=False)
        command = ["correct", name, *options, "--json", "--overwrite"]
        monkeypatch.setattr(sys, "argv", ["stct", *command])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        assert stopped.value.code == 0, printed.err
        summary = json.loads(printed.out)
        labels = read_table(Path("stct-output", summary["files"][0])).values("label")
        return summary, np.array(labels)

    return correct


def test_a_table_and_new_rows(correct, tmp_path):
    table, truth = loans()
    summary, labels = correct(table, "--feature-columns", "all")
    assert np.mean(table["label"] == truth) < 0.92
    assert np.mean(labels == truth) > 0.97
    notes = " ".join(summary["notes"])
    assert "constant were left out: country" in notes
    assert "number the rows were left out: customer_id" in notes
    columns = ["income", "age", "shop", "since", "zip"]
    assert summary["features"] == {"kind": "table", "columns": columns, "skipped": []}
    recipe = read_recipe(tmp_path / "stct-output" / "features.npz")
    X = recipe.transform(read_table(tmp_path / "t.csv"), tmp_path / "t.csv")
    assert X.shape == (400, summary["embedding_columns"])
    # Numbers, checked by hand: median, interquartile range, and at most five of them.
    low, median, high = np.percentile(table["income"], [25, 50, 75])
    scaled = np.clip((table["income"] - median) / (high - low), -5, 5)
    assert any(np.allclose(column, scaled, atol=1e-5) for column in X.T)
    missing = table["age"] == "N/A"
    assert any((column == missing).all() for column in X.T)
    for name in ("bank", "dealer", "online"):
        assert any((column == (table["shop"] == name)).all() for column in X.T)
    assert not any((column == (table["shop"] == "rare")).all() for column in X.T)
    # New rows: an unknown category is none, an odd number is named.
    new = table.head(3).drop(columns="label").assign(shop=["bank", "new", "rare"])
    new.to_csv(tmp_path / "new.csv", index=False)
    again = recipe.transform(read_table(tmp_path / "new.csv"), tmp_path / "new.csv")
    np.testing.assert_array_equal(again[1], again[1])
    assert again.shape == (3, X.shape[1])
    new.assign(income="much").to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(ValueError, match=r"'income', row 0 .*: 'much' is not a finite"):
        recipe.transform(read_table(tmp_path / "bad.csv"), tmp_path / "bad.csv")


def test_nothing_said_and_typed_columns(correct):
    table, truth = loans()
    table["age"] = pd.to_numeric(table["age"], errors="coerce")
    table["since"] = pd.to_datetime(table["since"])
    summary, labels = correct(table, name="t.parquet")
    assert np.mean(labels == truth) > 0.97
    assert summary["notes"][0].startswith("features are columns income, age, shop")
    table["vector"] = list(np.eye(3)[np.searchsorted(["car", "home", "study"], truth)])
    summary, _ = correct(table, name="t.parquet")
    assert summary["notes"][0] == "embeddings are the lists in column 'vector'"
    table["said"] = [f"I want a loan for my {t}, row {i}" for i, t in enumerate(truth)]
    summary, _ = correct(table.drop(columns="vector"))
    assert summary["notes"][0] == "features are the texts in column 'said'"


def test_columns_that_leak_the_label(correct):
    table, _ = loans()
    table["label_text"] = "a loan for " + table["label"]
    table["code"] = table["label"].map({"home": 3, "car": 1, "study": 2})
    summary, _ = correct(table, "--feature-columns", "all")
    assert "code" not in summary["features"]["columns"]
    assert any("give the label away were left out: " in n for n in summary["notes"])
    summary, labels = correct(table, "--feature-columns", "income, code,country")
    assert summary["features"]["columns"] == ["income", "code"]
    notes = " ".join(summary["notes"])
    assert "'code' gives the label of nearly every row" in notes
    assert "columns that are constant: country" in notes
    summary, labels = correct(table, "--text-column", "label_text")
    assert any("'label_text' gives the label of nearly" in n for n in summary["notes"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--feature-columns", "income,shoe"], "no column 'shoe'"),
        (["--feature-columns", "country"], "all of --feature-columns are constant"),
        (
            ["--feature-columns", "name"],
            "'name' cannot be a feature: its values differ",
        ),
        (["--feature-columns", "label,age"], "names the labels, 'label'"),
        (["--feature-columns", " , "], "names no column"),
        (["--feature-columns", "age", "--text-column", "name"], "not both"),
        (["--feature-columns", "age", "--encoder", "minilm"], "not both"),
        (["--feature-columns", "age", "--embeddings", "e.npy"], "one of them"),
    ],
)
def test_columns_that_cannot_be_used(tmp_path, monkeypatch, refuse, options, says):
    monkeypatch.chdir(tmp_path)
    table, _ = loans(60)
    table["name"] = [f"customer {i}" for i in range(60)]
    table.to_csv("t.csv", index=False)
    refuse("correct", "t.csv", *options, says=says)
    assert not Path("stct-output").exists()


def test_tables_without_anything_to_go_by(tmp_path, monkeypatch, refuse):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame({"id": range(9), "label": list("abc") * 3})
    table.to_csv("t.csv", index=False)
    refuse("correct", "t.csv", says="no embeddings: give --embeddings FILE")
    table.assign(file=[f"{i}.jpg" for i in range(9)]).to_csv("t.csv", index=False)
    refuse("correct", "t.csv", says="column 'file' names images; give --encoder")


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", "", "1e3"], "number"),
        (["1,5", "2,25", "-3"], "number"),
        (["00123", "00456", "00123", "00456", "00123"], "category"),
        (["2024-01-31", "2023-12-01 10:30", "9999-12-31", "-"], "date"),
        (["31.12.2023", "01.01.2024", "31.12.2023", "01.01.2024"], "category"),
        (["x"] * 5, "constant"),
        (["", "", ""], "constant"),
        (["x", ""] * 5, "category"),
        ([f"text number {i} of many" for i in range(9)], "text"),
        (["[1, 2]", "[3, 4]"], "lists"),
    ],
)
def test_kinds_of_columns(tmp_path, cells, kind):
    pd.DataFrame({"x": cells, "y": 1}).to_csv(tmp_path / "t.csv", index=False)
    assert kind_of(read_table(tmp_path / "t.csv"), "x") == kind
