"""benchmarks/crowd.py: the crowds that it makes, and its table."""

import csv
import importlib

import numpy as np
import pytest
from documented import ROOT


@pytest.fixture
def crowd(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("crowd")


def test_made_crowds_are_what_they_are_called(crowd):
    truth = np.random.default_rng(0).integers(0, 10, 3000)
    X = np.zeros((3000, 2), np.float32)
    made = {kind: crowd.inject(X, truth, kind, 0) for kind in crowd.INJECTED}
    per_row = {kind: (c.votes >= 0).sum() / 3000 for kind, c in made.items()}
    assert per_row["spammers"] == 5.0
    assert per_row["pair"] == 3.0
    assert 1.1 < per_row["few"] < 1.3
    votes = made["spammers"].votes
    right = [(v[v >= 0] == truth[v >= 0]).mean() for v in votes.T]
    assert min(right[:8]) > 0.85
    assert max(right[8:]) < 0.2
    confused = crowd.PAIRS[truth] != truth
    votes = made["pair"].votes[confused]
    taken = votes == crowd.PAIRS[truth[confused]][:, None]
    assert 0.3 < taken.sum() / (votes >= 0).sum() < 0.4
    assert taken.any(axis=0).all()


def test_table_of_results(crowd, tmp_path):
    rows = [
        {
            "cell": "a",
            "seed": seed,
            "method": method,
            "votes_per_row": 2,
            "right": right,
        }
        | {"seconds": 1, "megabytes": 2, "estimate": 0.9, "low": 0.8, "high": 1.0}
        | {"held": 1.0 if method == "stct" else ""}
        for seed in (0, 1)
        for method, right in zip(
            crowd.METHODS, (0.5, 0.6, 0.7, 0.65, 0.8 + 0.1 * seed), strict=True
        )
    ]
    path = tmp_path / "crowd.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, crowd.COLUMNS, restval="")
        table.writeheader()
        table.writerows(rows)
    line = next(t for t in crowd.report(path).splitlines() if t.startswith("| a |"))
    shares = "| a | 2.0 | 50.0 | 60.0 | 70.0 | 65.0 | 85.0 | +15.0 |"
    assert line == f"{shares} 90.0 (80 to 100) | 2 of 2 |"
