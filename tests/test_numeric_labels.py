"""Numeric labels: suspects first, intervals that hold, nothing changed."""

import csv
import json

import numpy as np
import pytest
from command import run_here
from sklearn.metrics import average_precision_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from stct import NumericLabelChecker
from stct.correction.numeric_target import false_discovery
from stct.numeric_labels import conformal_quantile


def houses(n=800, seed=0):
    """Features, labels of which a twentieth is wrong, and which."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [1.0, 10.0, 0.1, 1.0, 1.0, 1.0]
    spread = np.exp(0.7 * X[:, 3])  # labels of some rows are known better
    y = 100.0 * (X[:, 0] + 10.0 * X[:, 2] + 0.1 * spread * rng.normal(size=n)) + 500.0
    wrong = rng.permutation(n)[: n // 20]
    y[wrong] = rng.permutation(y[wrong]) + rng.choice([-90.0, 90.0], len(wrong))
    mask = np.zeros(n, dtype=bool)
    mask[wrong] = True
    return X, y, mask


@pytest.fixture(scope="module")
def checked():
    X, y, wrong = houses()
    return X, y, wrong, NumericLabelChecker().fit(X, y)


@parametrize_with_checks([NumericLabelChecker()])
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def test_wrong_labels_come_first(checked):
    _, y, wrong, m = checked
    suspicion = np.abs(m.z_scores_)
    assert average_precision_score(wrong, suspicion) > 0.85
    plain = average_precision_score(wrong, np.abs(y - m.predicted_))
    assert average_precision_score(wrong, suspicion) > plain  # the scale is local
    np.testing.assert_array_equal(m.ranking_, np.argsort(-suspicion, kind="stable"))
    assert wrong[m.suspect_].mean() > 0.75
    assert m.suspect_[wrong].mean() > 0.6


def test_intervals_hold_their_share(checked):
    _, y, wrong, m = checked
    inside = (m.intervals_[:, 0] <= y) & (y <= m.intervals_[:, 1])
    assert inside.mean() == pytest.approx(0.9, abs=0.01)
    assert inside[~wrong].mean() > 0.9


def test_a_prediction_is_not_moved_by_its_own_label(checked):
    X, y, wrong, m = checked
    row = int(np.flatnonzero(~wrong)[0])
    other = y.copy()
    other[row] += 40.0
    again = NumericLabelChecker().fit(X, other)
    assert abs(again.predicted_[row] - m.predicted_[row]) < 0.5


def test_units_and_missing_labels(checked):
    X, y, _, m = checked
    scaled = NumericLabelChecker().fit(X * 1000.0, y * 1e-6 - 3.0)
    np.testing.assert_allclose(scaled.z_scores_, m.z_scores_, atol=0.02)
    some = y.copy()
    some[:5] = np.nan
    part = NumericLabelChecker().fit(X, some)
    assert np.isnan(part.z_scores_[:5]).all()
    assert not part.suspect_[:5].any()
    assert np.isfinite(part.intervals_).all()
    assert len(part.ranking_) == len(y) - 5
    assert np.corrcoef(m.predict(X), m.predicted_)[0, 1] > 0.99


def test_curves_are_learnt_and_one_huge_label_spoils_nothing():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(600, 2))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.05 * rng.normal(size=600)
    clean = NumericLabelChecker().fit(X, y)
    assert clean.explained_variance_ > 0.9
    y[3] = 1e6
    m = NumericLabelChecker().fit(X, y)
    assert m.ranking_[0] == 3
    assert m.explained_variance_ > 0.9
    assert m.intervals_[3, 1] < 3.0


def test_false_discovery_and_conformal_quantile_are_the_textbooks():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(60), rng.random(10) * 1e-3])
    best = 0
    for k in range(1, len(p) + 1):
        if sorted(p)[k - 1] <= 0.1 * k / len(p):
            best = k
    assert false_discovery(p, 0.1).sum() == best > 0
    assert set(p[false_discovery(p, 0.1)]) == set(sorted(p)[:best])
    assert conformal_quantile(np.arange(1.0, 100.0), 0.9) == 90.0


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 20, "must be numbers"),
        ([True, False] * 10, "must be numbers"),
        (np.ones(20), "all labels are 1"),
        ([1.0] * 5 + [np.nan] * 15, "at least 10"),
        ([1.0] * 19 + [np.inf], "infinite values in row 19"),
        (np.ones((20, 2)), "1-d"),
    ],
)
def test_what_is_no_number_is_named(y, message):
    with pytest.raises(ValueError, match=message):
        NumericLabelChecker().fit(np.ones((20, 2)), y)


def test_command_lists_suspects_and_changes_nothing(tmp_path, capsys):
    X, y, wrong = houses(n=300)
    np.save(tmp_path / "houses.npy", X)
    table, out = tmp_path / "houses.csv", tmp_path / "out"
    with table.open("w", newline="") as file:
        rows = ([f"h{i}", f"{v:.2f}"] for i, v in enumerate(y))
        csv.writer(file).writerows([["id", "price"], *rows])
    words = ("correct", table, "--embeddings", tmp_path / "houses.npy", "--numeric")
    words = (*words, "--label-column", "price", "-o")
    run_here(*words, out)
    assert "no label was changed" in " ".join(capsys.readouterr().out.split())
    summary = json.loads((out / "summary.json").read_text())
    with (out / "suspects.csv").open() as file:
        suspects = list(csv.DictReader(file))
    assert len(suspects) == summary["suspects"] > 5
    assert [int(row["rank"]) for row in suspects] == list(range(1, len(suspects) + 1))
    with (out / "labels.csv").open() as file:
        assert [row["given"] for row in csv.DictReader(file)] == [f"{v:.2f}" for v in y]
    assert not (out / "patch.csv").exists()
    table.write_text(table.read_text().replace(f"h1,{y[1]:.2f}", "h1,unknown"))
    with pytest.raises(ValueError, match="row 1 .*'unknown' is no number"):
        run_here(*words, tmp_path / "other")
    with pytest.raises(ValueError, match="not both"):
        run_here(*words, out, "--multi-label", "|")
