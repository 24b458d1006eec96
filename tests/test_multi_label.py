"""Rows with several labels: right entries, the same form back, files, bad input."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from command import run_here
from scipy.stats import norm
from sklearn.base import clone

from stct import MultiLabelCorrector
from stct.correction.multi_label import discriminant_border
from stct.correction.settings import ScoreSettings
from stct.correction.squared_error import choose_features
from stct.label_sets import read_label_sets
from stct.numeric.engine import Local

NAMES = np.array(["comedy", "drama", "horror", "war"])


def films(n=500, rate=0.1, seed=0):
    """Embeddings, true indicators, and those with a share of the entries flipped."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 4)) < [0.4, 0.3, 0.2, 0.1]
    X = 5.0 * truth @ rng.normal(size=(4, 12)) + rng.normal(size=(n, 12))
    return X.astype(np.float32), truth, truth ^ (rng.random(truth.shape) < rate)


@pytest.fixture(scope="module")
def fitted():
    X, truth, given = films()
    locked = np.zeros(len(X), dtype=bool)
    locked[:20] = True
    given[:20] = truth[:20]
    given[0] ^= [True, False, False, False]  # a locked mistake
    return X, truth, given, MultiLabelCorrector().fit(X, given, locked=locked)


def test_entries_are_corrected_and_estimated(fitted):
    _, truth, given, m = fitted
    assert m.labels_.dtype == bool
    assert (m.labels_[20:] == truth[20:]).mean() > 0.98 > (given == truth).mean() + 0.05
    np.testing.assert_array_equal(m.labels_[:20], given[:20])
    wrong = (given != truth).mean(axis=0)
    assert np.abs(m.noise_rates_ - wrong).max() < 0.05
    low, high = m.estimated_accuracy_.before_interval
    assert low < 1.0 - wrong.mean() < high
    np.testing.assert_allclose(m.transition_matrices_.sum(axis=2), 1.0, atol=1e-6)


def test_changes_are_listed_and_add_up(fitted):
    _, _, given, m = fitted
    np.testing.assert_array_equal(m.labels_ != given, m.added_ | m.removed_)
    frame = m.to_frame()
    assert len(frame) == (m.labels_ != given).sum()
    assert frame["probability"].is_monotonic_decreasing
    assert frame["probability"].min() >= 0.5
    row, label = int(frame["row"][0]), int(frame["label"][0])
    assert given[row, label] == (frame["change"][0] == "remove")
    each = m.summary_frame()
    assert (each["rows_after"] == m.labels_.sum(axis=0)).all()


def test_new_rows_are_predicted(fitted):
    *_, m = fitted
    X, truth, _ = films(seed=0)
    assert m.predict_proba(X).shape == truth.shape
    assert (m.predict(X) == truth).mean() > 0.98


def test_the_same_whatever_the_form_and_the_threads():
    X, _, given = films(n=200)
    base = MultiLabelCorrector().fit(X, given)
    frame = pd.DataFrame(given.astype(int), columns=NAMES, index=range(5, 205))
    lists = [NAMES[row].tolist() for row in given]
    text = [" | ".join(row) for row in lists]
    m = MultiLabelCorrector(n_jobs=2).fit(X, frame)
    assert m.labels_.columns.tolist() == NAMES.tolist()
    assert m.labels_.index.equals(frame.index)
    np.testing.assert_array_equal(m.labels_.to_numpy(), base.labels_)
    m = MultiLabelCorrector().fit(X, sp.csr_array(given.astype(np.int64)))
    assert sp.issparse(m.labels_)
    np.testing.assert_array_equal(m.labels_.toarray(), base.labels_)
    m = MultiLabelCorrector().fit(X, lists)
    assert [set(row) for row in m.labels_] == [set(NAMES[r]) for r in base.labels_]
    np.testing.assert_array_equal(m.label_probabilities_, base.label_probabilities_)
    m = clone(MultiLabelCorrector("|")).fit(X, pd.Series(text))
    changed = (base.labels_ != given).any(axis=1)
    assert changed.any()
    for value, before, row in zip(m.labels_, text, range(len(X)), strict=True):
        assert changed[row] or value == before
        assert set(value.replace(" ", "").split("|")) - {""} == set(
            NAMES[base.labels_[row]]
        )


def test_unknown_rows_are_filled_and_empty_ones_are_known():
    X, truth, given = films(n=300)
    lists = [set(NAMES[row].tolist()) for row in given]
    lists[:10] = [None] * 10
    m = MultiLabelCorrector().fit(X, lists)
    right = [m.labels_[i] == list(NAMES[truth[i]]) for i in range(10)]
    assert np.mean(right) >= 0.8
    assert "10 rows had no labels" in m.notes_[0]
    assert not m.removed_[:10].any()


def test_a_label_that_cannot_be_learnt_is_left_alone():
    X, _, given = films(n=300)
    noise = np.random.default_rng(1).random(300) < 0.3
    Y = np.column_stack([given, noise, np.zeros(300, dtype=bool)])
    m = MultiLabelCorrector().fit(X, Y)
    assert m.learnable_.tolist() == [True] * 4 + [False] * 2
    np.testing.assert_array_equal(m.labels_[:, 4:], Y[:, 4:])
    assert "2 of 6 labels cannot be learnt" in m.notes_[0]
    assert np.isnan(m.noise_rates_[4:]).all()


def test_labels_that_annotators_forgot_are_found():
    """A third of the labels is missing: errors go one way, and labels are rare."""
    X, truth, _ = films(n=1500)
    given = truth & (np.random.default_rng(1).random(truth.shape) < 0.67)
    m = MultiLabelCorrector().fit(X, given)
    assert (m.labels_ == truth).mean() > 0.97 > (given == truth).mean() + 0.03
    assert m.added_.sum() > 10 * m.removed_.sum()
    assert (m.transition_matrices_[:, 1, 0] > 0.2).all()


def test_border_is_where_two_normal_densities_cross():
    rng = np.random.default_rng(0)
    given = (rng.random(4000) < 0.1).astype(np.intp)
    scores = given + rng.normal(size=4000)
    grid = np.linspace(-1.0, 5.0, 60_001)
    deviation = np.sqrt(0.1 * scores[given == 1].var() + 0.9 * scores[given == 0].var())
    share = given.mean()
    one = share * norm.pdf(grid, scores[given == 1].mean(), deviation)
    zero = (1.0 - share) * norm.pdf(grid, scores[given == 0].mean(), deviation)
    crossing = grid[np.argmax(one > zero)]
    assert discriminant_border(scores, given) == pytest.approx(crossing, abs=0.01)


def test_strength_is_that_of_least_brute_force_error():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(40, 6))
    Y = np.stack([H[:, 0] + rng.normal(size=40), rng.normal(size=40)], axis=1)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    everything = np.ones(40, dtype=bool)
    found = choose_features(H, Y, everything, Local(1), ScoreSettings(fourier=False))
    Hc = H - H.mean(axis=0)
    unit = np.linalg.eigvalsh(Hc.T @ Hc).mean()
    errors = {}
    for strength in ScoreSettings().ridge.values:
        total = 0.0
        for i in range(40):
            rest = np.arange(40) != i
            A, B = H[rest], Y[rest]
            mean, weights = A.mean(axis=0), None
            Ac = A - mean
            weights = np.linalg.solve(
                Ac.T @ Ac + strength * unit * np.eye(6), Ac.T @ (B - B.mean(axis=0))
            )
            own = Y.mean(axis=0) + (H[i] - mean) @ weights
            total += float(((own - Y[i]) ** 2).sum())
        errors[strength] = total / 80
    assert found.strength == min(errors, key=errors.get)
    assert found.error == pytest.approx(min(errors.values()), rel=1e-4)


@pytest.mark.parametrize(
    ("y", "separator", "message"),
    [
        ([["a"], "b"], None, "row 1: labels must be a list or set"),
        (["a", "b"], "|", "no row has more than one label"),
        (["a|b", 3], "|", "row 1: labels must be text"),
        ([[], []], None, "no labels in any row"),
        (np.array([[0, 2], [1, 0]]), None, "0 and 1 only, got 2 in row 0, column 1"),
        (np.array([[0, np.nan], [1, 0]]), None, "row 0 .* unknown in part"),
        (np.array([["a", "b"]]), None, "0 and 1 only"),
        ([None, None], None, "no labels in any row"),
        ([[["a"]], ["b"]], None, "must be text or a number"),
    ],
)
def test_what_is_no_set_of_labels_is_named(y, separator, message):
    with pytest.raises(ValueError, match=message):
        read_label_sets(y, separator)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_command_writes_changes_and_an_exact_patch(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    X, truth, given = films(n=200)
    np.save("films.npy", X)
    lists = [NAMES[row].tolist() for row in given]
    table = tmp_path / f"films.{ending}"
    with table.open("w", newline="") as file:
        if ending == "csv":
            rows = ([f"f{i}", f"no. {i}", "|".join(r)] for i, r in enumerate(lists))
            csv.writer(file).writerows([["id", "title", "label"], *rows])
        else:
            rows = ({"id": f"f{i}", "label": row} for i, row in enumerate(lists))
            file.writelines(json.dumps(row) + "\n" for row in rows)
    separator = "|" if ending == "csv" else "list"
    out = tmp_path / "out"
    run_here(
        *("correct", table, "--embeddings", "films.npy", "-o", out, "--quiet"),
        *("--multi-label", separator),
    )
    summary = json.loads((out / "summary.json").read_text())
    assert sorted(path.name for path in out.iterdir()) == sorted(summary["files"])
    with pytest.raises(ValueError, match="no classes .multi-label."):
        run_here("report", out)
    run_here(
        *("correct", table, "--embeddings", "films.npy", "-o", out, "--quiet"),
        *("--multi-label", separator, "--overwrite"),
    )
    changes = pd.read_csv(out / "changes.csv")
    assert len(changes) == summary["added"] + summary["removed"]
    fixed, back = tmp_path / f"fixed.{ending}", tmp_path / f"back.{ending}"
    run_here("apply", out / "patch.csv", table, "-o", fixed, "--quiet")
    run_here("revert", out / "patch.csv", fixed, "-o", back, "--quiet")
    assert back.read_bytes() == table.read_bytes()
    if ending == "csv":
        new = pd.read_csv(fixed, keep_default_na=False)["label"]
        new = [set(text.split("|")) - {""} for text in new]
    else:
        new = [json.loads(line)["label"] for line in fixed.read_text().splitlines()]
    right = [set(v) == set(NAMES[t]) for v, t in zip(new, truth, strict=True)]
    assert np.mean(right) > 0.95
