"""Several labels per row: the estimator and the command line."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from command import assert_error, stct
from crowds import crowd, long_table, with_gaps

from stct import LabelCorrector
from stct.correction import canonical
from stct.data.annotations import read_votes


@pytest.fixture(scope="module")
def fitted():
    X, Y, truth = crowd()
    return X, Y, truth, LabelCorrector().fit(X, with_gaps(Y))


def test_corrects_better_than_the_majority_and_knows_how_well(fitted):
    X, Y, truth, m = fitted
    counts = (Y[:, :, None] == np.arange(3)).sum(axis=1)
    majority = (counts.argmax(axis=1) == truth).mean()
    after = (m.labels_ == truth).mean()
    assert after > 0.95 > majority + 0.02
    low, high = m.estimated_accuracy_.after_interval
    assert low <= after <= high
    assert abs(m.estimated_accuracy_.before - majority) < 0.05
    assert (m.predict(X) == truth).mean() > 0.8
    assert m.transition_matrix_.sum(axis=1) == pytest.approx(1.0)


def test_annotators_are_estimated(fitted):
    _, Y, truth, m = fitted
    assert [one.name for one in m.annotators_] == [f"column {i}" for i in range(5)]
    held = 0
    for a, one in enumerate(m.annotators_):
        voted = Y[:, a] >= 0
        right = (Y[voted, a] == truth[voted]).mean()
        assert one.labels == voted.sum()
        assert abs(one.accuracy - right) < 0.05
        held += one.interval[0] <= right <= one.interval[1]
        clean, given, expected = one.confusion[0]
        seen = (truth[voted] == clean) & (Y[voted, a] == given)
        assert clean != given
        assert abs(seen.sum() - expected) < 10
    assert held >= 4
    assert not m.annotators_[0].at_random
    same = others = 0
    for i in np.flatnonzero(Y[:, 2] >= 0):
        rest = Y[i, [0, 1, 3, 4]]
        same += (rest == Y[i, 2]).sum()
        others += (rest >= 0).sum()
    assert m.annotators_[2].agreement == pytest.approx(same / others)


def test_who_labels_at_random_is_named():
    X, Y, truth = crowd(accuracies=(0.9, 0.9, 0.0, 0.9), seed=3)
    m = LabelCorrector().fit(X, with_gaps(Y))
    assert [one.at_random for one in m.annotators_] == [False, False, True, False]
    assert any("at random: column 2" in note for note in m.notes_)
    assert (m.labels_ == truth).mean() > 0.95


def test_columns_frames_lists_and_long_tables_are_the_same(fitted):
    X, Y, _, m = fitted
    frame = pd.DataFrame(with_gaps(Y), columns=list("abcde"))
    lists = [[None if v < 0 else int(v) for v in row] for row in Y]
    votes = long_table(Y, list("abcde"))
    by_id = pd.DataFrame(votes).rename(columns={"row": "id"})
    by_id["id"] = "p" + by_id["id"].astype(str)
    indexed = pd.DataFrame(X, index=[f"p{i}" for i in range(len(X))])
    shuffled = pd.DataFrame(votes).sample(frac=1.0, random_state=0)
    for other in (
        LabelCorrector().fit(X, frame),
        LabelCorrector().fit(X, lists),
        LabelCorrector().fit(X, annotations=votes),
        LabelCorrector().fit(X, annotations=tuple(votes.values())),
        LabelCorrector().fit(X, annotations=shuffled),
        LabelCorrector().fit(indexed, annotations=by_id),
    ):
        np.testing.assert_array_equal(
            other.label_distributions_, m.label_distributions_
        )
    names = {one.name for one in LabelCorrector().fit(X, frame).annotators_}
    assert names == set("abcde")


@pytest.mark.parametrize("shape", ["columns", "table"])
def test_one_annotator_is_one_label_per_row(shape):
    X, Y, _ = crowd()
    y = np.where(Y[:, 0] >= 0, Y[:, 0], np.nan)
    alone = LabelCorrector().fit(X, y)
    if shape == "columns":
        m = LabelCorrector().fit(X, np.column_stack([y, np.full(len(y), np.nan)]))
    else:
        m = LabelCorrector().fit(X, annotations=long_table(Y[:, :1]))
    np.testing.assert_array_equal(m.label_distributions_, alone.label_distributions_)
    np.testing.assert_array_equal(m.action_, alone.action_)
    assert m.estimated_accuracy_ == alone.estimated_accuracy_
    assert [one.labels for one in m.annotators_] == [(Y[:, 0] >= 0).sum()]
    assert alone.annotators_ == []


def test_order_of_rows_annotators_and_columns_changes_nothing(fitted):
    X, Y, _, m = fitted
    rng = np.random.default_rng(0)
    rows, who = rng.permutation(len(X)), rng.permutation(5)
    other = LabelCorrector().fit(X[rows], with_gaps(Y)[rows][:, who])
    np.testing.assert_array_equal(
        other.label_distributions_, m.label_distributions_[rows]
    )
    assert [one.name for one in other.annotators_] == [f"column {i}" for i in range(5)]
    names = np.array(["zebra", "ant", "cow"])
    renamed = LabelCorrector().fit(
        X, annotations=long_table(Y) | {"label": names[long_table(Y)["label"]]}
    )
    np.testing.assert_array_equal(renamed.labels_, names[m.labels_.astype(int)])


@pytest.mark.slow
def test_threads_and_files_change_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)
    X, Y, truth = crowd(20_000)
    one, many = (LabelCorrector(n_jobs=n).fit(X, with_gaps(Y)) for n in (1, 3))
    np.testing.assert_array_equal(one.label_distributions_, many.label_distributions_)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    there = LabelCorrector().fit(mapped, with_gaps(Y))
    np.testing.assert_array_equal(one.label_distributions_, there.label_distributions_)
    assert (one.labels_ == truth).mean() > 0.95


def test_without_features_annotators_are_judged_by_each_other():
    _, Y, truth = crowd(2000, accuracies=(0.95, 0.95, 0.3, 0.3, 0.3), votes=5)
    m = LabelCorrector().fit(y=with_gaps(Y))
    counts = (Y[:, :, None] == np.arange(3)).sum(axis=1)
    majority = (counts.argmax(axis=1) == truth).mean()
    assert (m.labels_ == truth).mean() > majority + 0.02
    accuracy = [one.accuracy for one in m.annotators_]
    assert min(accuracy[:2]) > 0.9 > 0.65 > max(accuracy[2:])
    with pytest.raises(ValueError, match="without embeddings"):
        m.predict(np.zeros((2, 8)))


def test_rules_that_abstain_are_annotators():
    """Each rule names one class, on a part of the rows."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 6)) + 1.5 * truth[:, None]
    rates = [(0, 0.5, 0.1), (0, 0.4, 0.15), (1, 0.5, 0.05), (1, 0.3, 0.1)]
    Y = np.full((800, 4), -1)
    for a, (label, hit, slip) in enumerate(rates):
        speaks = rng.random(800) < np.where(truth == label, hit, slip)
        Y[speaks, a] = label
    m = LabelCorrector().fit(X, with_gaps(Y))
    assert (m.labels_ == truth).mean() > 0.93
    silent = (Y < 0).all(axis=1)
    assert set(m.action_[silent]) == {"fill"}
    assert (m.labels_[silent] == truth[silent]).mean() > 0.85


def test_locked_rows_are_certain_and_teach_annotators(fitted):
    X, Y, truth, _ = fitted
    locked = np.arange(len(X)) < 200
    y = np.where(locked, truth, Y.max(axis=1))
    m = LabelCorrector().fit(X, y, annotations=long_table(Y), locked=locked)
    np.testing.assert_array_equal(m.labels_[locked], truth[locked])
    assert (m.confidence_[locked] == 1.0).all()
    errors = [
        abs(one.accuracy - (Y[Y[:, a] >= 0, a] == truth[Y[:, a] >= 0]).mean())
        for a, one in enumerate(m.annotators_)
    ]
    assert max(errors) < 0.04


def test_verified_rows_are_right_and_say_how_many_others_are(fitted):
    X, Y, truth, m = fitted
    rows = np.random.default_rng(0).choice(len(X), 150, replace=False)
    verified = np.full(len(X), None, dtype=object)
    verified[rows] = truth[rows].astype(float)
    audited = LabelCorrector().fit(X, with_gaps(Y), verified=verified)
    np.testing.assert_array_equal(audited.labels_[rows], truth[rows])
    assert (audited.confidence_[rows] == 1.0).all()
    others = np.setdiff1d(np.arange(len(X)), rows)
    right = [(one.labels_ == truth)[others].mean() for one in (m, audited)]
    assert right[1] > right[0] - 0.01
    low, high = audited.estimated_accuracy_.after_interval
    assert low <= (audited.labels_ == truth).mean() <= high
    assert audited.audit_.num_rows == 150
    with pytest.raises(ValueError, match="verified labels that no row of y has: 9"):
        LabelCorrector().fit(X, with_gaps(Y), verified=np.full(len(X), 9.0))


def test_probabilities_of_ones_own_model_instead_of_features(fitted):
    X, Y, truth, m = fitted
    P = m.predict_proba(X)
    own = LabelCorrector().fit(y=with_gaps(Y), pred_probs=P)
    assert (own.labels_ == truth).mean() > 0.93
    frame = pd.DataFrame(P[:, ::-1], columns=[2, 1, 0])
    other = LabelCorrector().fit(annotations=long_table(Y), pred_probs=frame)
    np.testing.assert_allclose(
        other.label_distributions_, own.label_distributions_, atol=1e-5
    )


@pytest.mark.slow
def test_many_classes_keep_the_most_probable_ones():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(260), 4)
    X = rng.normal(size=(260, 24))[truth] + 0.3 * rng.normal(size=(1040, 24))
    wrong = rng.integers(0, 260, (1040, 3))
    Y = np.where(rng.random((1040, 3)) < 0.7, truth[:, None], wrong)
    m = LabelCorrector().fit(X, Y)
    assert (m.labels_ == truth).mean() > 0.9


def test_random_features_leave_it_to_the_annotators():
    _, Y, truth = crowd()
    X = np.random.default_rng(5).normal(size=(600, 4))
    m = LabelCorrector().fit(X, with_gaps(Y))
    alone = LabelCorrector().fit(y=with_gaps(Y))
    assert (m.labels_ == truth).mean() >= (alone.labels_ == truth).mean() - 0.02


def votes(**change):
    return {
        "row": [0, 1, 2, 3],
        "annotator": list("abab"),
        "label": [0, 1, 1, 0],
    } | change


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"annotations": votes(row=[0, 1, 2, 9])}, "rows that X does not have: 9"),
        (
            {"annotations": votes(row=[0, 0, 0, 0])},
            "annotator a gives row 0 two labels",
        ),
        ({"annotations": votes(label=[1, 1, 1, 1])}, "one label only"),
        ({"annotations": votes(label=[None] * 4)}, "no annotator has given a label"),
        (
            {"annotations": votes(annotator=["a", "b", None, "b"])},
            "without an annotator",
        ),
        ({"annotations": {"row": [0], "label": [1]}}, "there is no 'annotator'"),
        ({"annotations": votes(row=["x"] * 4)}, "row numbers from 0"),
        ({"annotations": votes(label=[0])}, "differ in length"),
        ({"annotations": votes(), "y": [0, 0, 2, 2]}, "labels that y does not have: 1"),
        ({"annotations": votes(), "y": np.zeros((4, 2))}, "not both"),
        ({"annotations": votes(), "transition_matrix": np.eye(2)}, "one label per row"),
        ({"y": np.full((4, 2), np.nan)}, "no annotator has given a label"),
        ({"y": np.zeros((3, 2)) + [0, 1]}, "4 rows but labels of 3"),
        ({"y": [[0, 1], [1], [0], [1]]}, "different length"),
    ],
)
def test_bad_votes_are_refused(keywords, message):
    X = np.random.default_rng(0).normal(size=(4, 2))
    with pytest.raises(ValueError, match=message):
        LabelCorrector().fit(X, **keywords)


def test_rows_that_nobody_labelled_need_features():
    Y = np.array([[0, 1], [1, 1], [np.nan, np.nan], [0, 0]])
    with pytest.raises(ValueError, match="no annotator has labelled row 2"):
        LabelCorrector().fit(y=Y)
    with pytest.raises(ValueError, match="several take 'loo'"):
        LabelCorrector("split").fit(np.eye(4), Y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table without labels, its embeddings, and votes in both forms."""
    path = tmp_path_factory.mktemp("votes")
    X, Y, truth = crowd(300)
    names = np.array(["cat", "dog", "fox"])
    np.save(path / "e.npy", X)
    with (path / "t.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "a", "b", "c", "d", "e"])
        for i, row in enumerate(Y):
            out.writerow([f"p{i}", *(names[v] if v >= 0 else "" for v in row)])
    with (path / "votes.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "annotator", "label"])
        for i, a in zip(*np.nonzero(Y >= 0), strict=True):
            out.writerow([f"p{i}", "abcde"[a], names[Y[i, a]]])
    return path, names[truth]


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.slow
def test_command_line(folder):
    path, truth = folder
    run = ("correct", "t.csv", "--embeddings", "e.npy")
    done = stct(*run, "--annotations", "votes.csv", "-o", "one", cwd=path)
    assert done.returncode == 0, done.stderr
    assert "5 annotators gave 900 labels" in " ".join(done.stdout.split())
    labels = rows_of(path / "one" / "labels.csv")
    right = np.mean([row["label"] == t for row, t in zip(labels, truth, strict=True)])
    assert right > 0.95
    table = rows_of(path / "one" / "annotators.csv")
    assert {row["annotator"] for row in table} == set("abcde")
    accuracy = {row["annotator"]: float(row["accuracy"]) for row in table}
    assert accuracy["a"] > 0.85 > 0.75 > accuracy["e"]
    summary = json.loads((path / "one" / "summary.json").read_text())
    assert len(summary["annotators"]) == 5
    assert "annotators.csv" in summary["files"]
    assert summary["inputs"]["annotations"]["file"] == "votes.csv"
    assert '"annotators":[{' in (path / "one" / "report.html").read_text()
    done = stct(*run, "--label-columns", "a,b,c,d,e", "-o", "two", cwd=path)
    same = [(path / name / "labels.csv").read_bytes() for name in ("one", "two")]
    assert same[0] == same[1]
    alone = stct(
        "correct", "t.csv", "--annotations", "votes.csv", "-o", "three", cwd=path
    )
    assert alone.returncode == 0, alone.stderr
    assert "from the annotators alone" in " ".join(alone.stdout.split())


def test_bad_file_of_votes_is_one_line(folder, tmp_path):
    path, _ = folder
    extra = tmp_path / "votes.csv"
    extra.write_text((path / "votes.csv").read_text() + "zz,a,dog")
    done = stct(
        *("correct", "t.csv", "--embeddings", "e.npy", "--annotations", str(extra)),
        *("-o", str(tmp_path / "out")),
        cwd=path,
    )
    assert_error(done, "there is no id 'zz' in t.csv")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        ("p1,a,dog\np1,a,cat", {}, "annotator a gives row p1 two labels, cat and dog"),
        ("p1,,dog", {}, r"row 900 \(.*\): no annotator"),
        ("", {"label_columns": "a,b"}, "not both"),
        ("", {"label_column": "kind"}, "no column 'kind'"),
        ("", {"label_column": "a"}, "column of .* does not have: fox"),
        ("", {"annotations": None, "label_columns": "a,q"}, "no column 'q'"),
        ("", {"annotations": None, "label_columns": "a,a"}, "'a' comes twice"),
    ],
)
def test_bad_votes_in_files(folder, tmp_path, line, change, message):
    path, _ = folder
    extra, table = tmp_path / "votes.csv", tmp_path / "t.csv"
    extra.write_text((path / "votes.csv").read_text() + line)
    text = (path / "t.csv").read_text()
    only_two = "label_column" in change and change["label_column"] == "a"
    table.write_text(text.replace("fox", "dog") if only_two else text)
    keywords = {
        "annotations": extra,
        "label_columns": None,
        "label_column": "label",
        "id_column": None,
    }
    with pytest.raises(ValueError, match=message):
        read_votes(table, **keywords | change)
