import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from noisy_rows import blobs, noisy_digits
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from stct import LabelCorrector, noise
from stct.checks import encode_inputs
from stct.correction import paper
from stct.correction.settings import ResidualSettings, ScoreSettings, Settings
from stct.numeric.ridge import USUAL

METHODS = ["loo", "split", "paper"]


@parametrize_with_checks([LabelCorrector(), LabelCorrector(method="split")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return noisy_digits()


@pytest.mark.parametrize("method", ["loo", "split"])
def test_labels_get_better(method, digits):
    X, given, truth = digits
    labels = LabelCorrector(method, random_state=0).fit_correct(X, given)
    assert (given == truth).mean() < 0.57
    assert (labels == truth).mean() > 0.85


def test_labels_get_as_good_where_some_of_many_rows_teach(digits):
    X, given, truth = digits
    everyone = LabelCorrector().fit(X, given)
    few = Settings(
        scores=ScoreSettings(ridge=USUAL._replace(rows=500)),
        residual=ResidualSettings(rows=600, rows_per_weight=0),
    )
    some = LabelCorrector(settings=few).fit(X, given)
    differ = np.abs(some.label_distributions_ - everyone.label_distributions_)
    assert differ.max() > 1e-3  # it did make a difference
    assert (some.labels_ == truth).mean() > (everyone.labels_ == truth).mean() - 0.01


def test_paper_method_changes_next_to_nothing(digits):
    X, given, _ = digits
    labels = LabelCorrector("paper", random_state=0).fit_correct(X, given)
    assert (labels == given).mean() > 0.99


@pytest.mark.parametrize("method", METHODS)
def test_fitted_attributes_agree_with_each_other(method):
    X, given, _ = blobs()
    names = np.array(["ant", "bee", "cow"])[given]
    m = LabelCorrector(method, min_odds=3.0, random_state=0).fit(X, names)
    n, C = len(X), 3
    Q = m.label_distributions_
    assert Q.shape == (n, C)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(m.transition_matrix_.sum(axis=1), 1.0)
    assert m.classes_.tolist() == ["ant", "bee", "cow"]
    assert m.labels_.dtype == names.dtype
    column = np.searchsorted(m.classes_, m.labels_)
    np.testing.assert_allclose(m.confidence_, Q[np.arange(n), column])
    changed = m.labels_ != names
    assert (changed == (m.action_ == "relabel")).all()
    assert set(m.action_) <= {"keep", "relabel", "abstain"}
    e = m.estimated_accuracy_
    assert m.noise_rate_ == pytest.approx(1.0 - e.before)
    assert e.before_interval[0] <= e.before <= e.before_interval[1]
    assert e.after_interval[0] <= e.after <= e.after_interval[1]
    assert m.learnable_.shape == (C,)
    assert m.n_iter_ >= 1
    assert m.termination_condition_ in {"agreement", "coverage", "max_rounds"}


def test_higher_odds_relabel_fewer_and_abstain_more(digits):
    X, given, _ = digits
    counts = []
    for odds in (1.0, 30.0, 1000.0):
        action = LabelCorrector(min_odds=odds).fit(X, given).action_
        counts.append(((action == "relabel").sum(), (action == "abstain").sum()))
    relabelled, abstained = zip(*counts, strict=True)
    assert relabelled[0] > relabelled[1] > relabelled[2] > 0
    assert abstained[0] < abstained[1] < abstained[2]


def test_new_rows_are_predicted():
    X, given, truth = blobs(900)
    m = LabelCorrector().fit(X[:600], given[:600])
    assert (m.predict(X[600:]) == truth[600:]).mean() > 0.95
    P = m.predict_proba(X[600:])
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize(
    "labels",
    [
        ["x", "y", "z"],
        ["ünïcode", "", " spaced\n"],
        [10, 2, -1],
        [0.5, 1.0, 1.5],
        [("a", 1), ("b", 2), ("c", 3)],
        ["a", 1, 2.5],
    ],
    ids=["text", "odd text", "integers", "floats", "tuples", "mixed"],
)
def test_labels_of_any_type_come_back_in_that_type(labels):
    X, given, truth = blobs()
    y = [labels[c] for c in given]
    m = LabelCorrector().fit(X, y)
    expected = [labels[c] for c in truth]
    got = m.labels_.tolist()
    assert np.mean([a == b for a, b in zip(got, expected, strict=True)]) > 0.97
    assert {type(a) for a in got} == {type(a) for a in expected}


def test_boolean_and_pandas_labels():
    X, given, truth = blobs(classes=2)
    m = LabelCorrector().fit(pd.DataFrame(X).add_prefix("c"), given.astype(bool))
    assert m.labels_.dtype == bool
    assert (m.labels_ == truth.astype(bool)).mean() > 0.97
    for dtype in ("category", "string", "Int64"):
        m = LabelCorrector().fit(X, pd.Series(given.astype(str)).astype(dtype))
        assert (m.labels_.astype(int) == truth).mean() > 0.97


def test_missing_labels_are_predicted_and_marked():
    X, given, truth = blobs()
    y = np.array(["a", "b", "c"], dtype=object)[given]
    y[:50], y[50:80], y[80:90] = None, np.nan, pd.NA
    m = LabelCorrector().fit(X, y)
    assert (m.action_[:90] == "fill").all()
    assert (m.action_[90:] != "fill").all()
    assert (m.labels_[:90] == np.array(["a", "b", "c"])[truth[:90]]).mean() > 0.95
    assert any("90 rows had no label" in note for note in m.notes_)


def test_locked_rows_never_move_and_are_certain(digits):
    X, given, truth = digits
    locked = np.zeros(len(X), bool)
    locked[:300] = True
    y = np.where(locked, truth, given)
    y[0] = (truth[0] + 1) % 10  # a person says so, whatever the features say
    m = LabelCorrector().fit(X, y, locked=locked)
    np.testing.assert_array_equal(m.labels_[locked], y[locked])
    assert (m.confidence_[locked] == 1.0).all()
    assert (m.action_[locked] == "keep").all()
    assert (m.action_[~locked] == "relabel").any()


def test_rows_can_all_be_locked():
    X, given, _ = blobs()
    m = LabelCorrector().fit(X, given, locked=np.ones(len(X), bool))
    np.testing.assert_array_equal(m.labels_, given)
    assert (m.action_ == "keep").all()


def test_labels_that_have_nothing_to_do_with_the_rows_are_left_alone():
    X, _, _ = blobs(n=3000)
    y = np.random.default_rng(1).integers(0, 3, 3000)
    m = LabelCorrector().fit(X, y)
    np.testing.assert_array_equal(m.labels_, y)
    assert m.termination_condition_ == "nothing_learnt"
    assert not m.learnable_.any()
    assert any("no better than chance" in note for note in m.notes_)
    assert m.predict(X).shape == (3000,)


def test_labels_that_look_like_chance_are_left_alone_or_get_a_note():
    X, _, _ = blobs(n=3000)
    for seed in range(1, 13):  # 0 drew the clusters
        y = np.random.default_rng(seed).integers(0, 3, 3000)
        m = LabelCorrector().fit(X, y)
        if m.termination_condition_ == "nothing_learnt":
            np.testing.assert_array_equal(m.labels_, y)
        else:
            assert any("hardly better than chance" in note for note in m.notes_)


def test_probabilities_of_another_model(digits):
    X, given, truth = digits
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    P = cross_val_predict(model, X, given, method="predict_proba")
    m = LabelCorrector().fit(pred_probs=P, y=given)
    assert (m.labels_ == truth).mean() > (P.argmax(1) == truth).mean() - 0.01
    assert (m.labels_ == truth).mean() > 0.88
    with pytest.raises(ValueError, match="no model for new rows"):
        m.predict(X)
    frame = pd.DataFrame(P[:, ::-1], columns=range(9, -1, -1))
    again = LabelCorrector().fit(pred_probs=frame, y=given)
    np.testing.assert_array_equal(again.labels_, m.labels_)


def test_memorised_probabilities_are_warned_about():
    _, given, _ = blobs()
    with pytest.warns(UserWarning, match="out-of-fold"):
        LabelCorrector().fit(pred_probs=np.eye(3)[given], y=given)
    some = np.where(np.arange(len(given)) % 9, given.astype(float), np.nan)
    with pytest.warns(UserWarning, match="out-of-fold"):
        LabelCorrector().fit(pred_probs=np.eye(3)[given], y=some)


MODELS = {
    "forest": RandomForestClassifier(random_state=0),
    "network": MLPClassifier(learning_rate_init=0.01, max_iter=150, random_state=0),
    "line": LogisticRegression(C=0.1, max_iter=200),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("name", MODELS)
def test_only_models_that_have_seen_the_labels_are_warned_about(name, rate):
    X, truth = load_digits(return_X_y=True)
    given = noise.symmetric(truth, 10, rate, np.random.default_rng(0)).labels
    model, X = MODELS[name], StandardScaler().fit_transform(X)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    P = cross_val_predict(model, X, given, cv=folds, method="predict_proba")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        encode_inputs(given, P)
    if name != "line":  # a line cannot learn wrong labels by heart
        with pytest.warns(UserWarning, match="out-of-fold"):
            encode_inputs(given, model.fit(X, given).predict_proba(X))


@pytest.mark.parametrize(
    ("P", "message"),
    [
        (np.ones((600, 4)), "4 columns but y has 3"),
        (np.full((600, 3), np.nan), "finite"),
        (np.ones(600), "2-d"),
        (np.ones((10, 3)), "10 rows"),
        (pd.DataFrame(np.ones((600, 3)), columns=["a", "b", "c"]), "no column for 0"),
    ],
)
def test_bad_probabilities(P, message):
    _, given, _ = blobs()
    with pytest.raises(ValueError, match=message):
        LabelCorrector().fit(pred_probs=P, y=given)


def test_probabilities_of_a_class_that_no_row_has():
    X, given, _ = blobs()
    near = np.eye(4)[given] * 0.7 + 0.075
    frame = pd.DataFrame(near, columns=[0, 1, 2, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # they repeat the labels
        m = LabelCorrector().fit(pred_probs=frame, y=given)
    assert m.classes_.tolist() == [0, 1, 2, 3]
    assert any(note.startswith("1 of 4 classes") for note in m.notes_)


@pytest.mark.parametrize("method", ["split", "paper"])
def test_probabilities_need_the_default_method(method):
    _, given, _ = blobs()
    with pytest.raises(ValueError, match=f"method '{method}' needs X"):
        LabelCorrector(method).fit(pred_probs=np.ones((600, 3)), y=given)


def test_works_in_a_pipeline_and_clones_and_pickles():
    X, given, truth = blobs()
    pipeline = make_pipeline(StandardScaler(), LabelCorrector(min_odds=2.0))
    assert (pipeline.fit(X, given).predict(X) == truth).mean() > 0.95
    corrector = clone(pipeline[-1])
    assert corrector.min_odds == 2.0
    assert not hasattr(corrector, "labels_")
    restored = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(restored[-1].labels_, pipeline[-1].labels_)


# Input that is unusual but fine


@pytest.mark.parametrize("method", METHODS)
def test_more_columns_than_rows(method):
    X, given, truth = blobs(n=60, d=200, classes=2)
    m = LabelCorrector(method, random_state=0).fit(X, given)
    assert (m.labels_ == truth).mean() >= (given == truth).mean()


def test_noise_is_found_with_more_columns_than_rows():
    """An encoder's hundreds of columns for a small folder of images."""
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 3
    X = rng.normal(size=(120, 400))
    X[np.arange(120), truth] += 12.0
    y = noise.symmetric(truth, 3, 0.4, rng).labels
    corrector = LabelCorrector().fit(X, y)
    assert np.mean(corrector.labels_ == truth) > 0.95 > np.mean(y == truth)
    assert abs(corrector.estimated_accuracy_.before - np.mean(y == truth)) < 0.1
    pure_noise = LabelCorrector().fit(rng.normal(size=(120, 400)), y)
    assert pure_noise.termination_condition_ == "nothing_learnt"


@pytest.mark.parametrize("method", METHODS)
def test_constant_and_duplicate_columns_and_rows(method):
    X, given, truth = blobs()
    X = np.column_stack([X, X[:, 0], np.full(len(X), 7.0)])
    X, given, truth = np.tile(X, (2, 1)), np.tile(given, 2), np.tile(truth, 2)
    m = LabelCorrector(method, random_state=0).fit(X, given)
    least = 0.95 if method == "loo" else (given == truth).mean()
    assert (m.labels_ == truth).mean() >= least
    assert "1 of 8 columns are constant" in m.notes_


def test_all_columns_constant_changes_nothing():
    _, given, _ = blobs()
    m = LabelCorrector().fit(np.ones((len(given), 4)), given)
    np.testing.assert_array_equal(m.labels_, given)


def test_classes_of_one_row_and_more_classes_than_can_be_learnt():
    X, given, _ = blobs(n=200)
    y = given.astype(str).astype(object)
    y[:5] = ["p", "q", "r", "s", "t"]
    m = LabelCorrector().fit(X, y)
    assert any("fewer than 10 rows" in note for note in m.notes_)
    with pytest.raises(ValueError, match="ids or amounts"):
        LabelCorrector().fit(X, np.arange(len(X)))  # every row its own class


def test_clean_labels_are_left_alone():
    X, _, truth = blobs(n=2000)
    m = LabelCorrector().fit(X, truth)
    assert (m.labels_ == truth).mean() > 0.998
    assert m.noise_rate_ < 0.01


# Input that cannot be used


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X[:-1], y), "599 rows but y has 600"),
        (lambda X, y: (X, np.zeros(600)), "one class only"),
        (lambda X, y: (X, np.full(600, np.nan)), "no labels"),
        (lambda X, y: (X[:, 0], y), "1D array"),
        (lambda X, y: (X.astype(str), y), "X holds text"),
        (lambda X, y: (X.astype(str).astype(object), y), "X holds text"),
        (lambda X, y: (pd.DataFrame(X).astype(str), y), "X holds text"),
        (lambda X, y: (X, np.column_stack([y, y])[None]), "one label per row"),
        (lambda X, y: (None, y), "one of the two"),
        (lambda X, y: (X, None), "requires y"),
    ],
)
def test_bad_input_is_a_value_error(change, message):
    X, y, _ = blobs()
    bad_X, bad_y = change(X, y)
    with pytest.raises(ValueError, match=message):
        LabelCorrector().fit(bad_X, bad_y)


def test_infinite_embeddings_name_their_rows():
    X, y, _ = blobs()
    X[[3, 17], 0] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"2 of 600 rows \(row 3, 17\)"):
        LabelCorrector().fit(X, y)


@pytest.mark.parametrize(
    "parameters",
    [
        {"method": "magic"},
        {"min_odds": 0.5},
        {"val_ratio": 1.0},
        {"step_size": 0.0},
        {"agreement": 1.5},
        {"coverage": 1.0},
        {"n_jobs": 0},
    ],
)
def test_bad_parameters_are_refused_in_fit(parameters):
    X, y, _ = blobs()
    corrector = LabelCorrector(**parameters)
    with pytest.raises(ValueError, match=next(iter(parameters))):
        corrector.fit(X, y)


def test_bad_locks_are_refused():
    X, y, _ = blobs()
    with pytest.raises(ValueError, match="one boolean per row"):
        LabelCorrector().fit(X, y, locked=[1, 2])
    unlabelled = y.astype(float)
    unlabelled[4] = np.nan
    locked = np.ones(len(y), bool)
    with pytest.raises(ValueError, match="row 4"):
        LabelCorrector().fit(X, unlabelled, locked=locked)


def test_import_brings_no_torch():
    code = "import stct, stct.cli, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_splits_do_not_repeat_the_draws_of_noise_with_the_same_seed(monkeypatch):
    """They would validate with exactly the rows whose labels are wrong."""
    real, first = paper.correct_by_splits, []

    def spy(H, Y, *, generator, **settings):
        first.append(copy.deepcopy(generator).permutation(len(H)))
        return real(H, Y, generator=generator, **settings)

    monkeypatch.setattr(paper, "correct_by_splits", spy)
    X, truth = load_digits(return_X_y=True)
    y = noise.symmetric(truth, 10, 0.5, np.random.default_rng(7)).labels
    LabelCorrector("split", random_state=7).fit(X, y)
    validation = first[0][: len(X) // 2]
    assert 0.4 < np.mean((y != truth)[validation]) < 0.5


def test_noise_that_was_found_before_is_not_forgotten():
    """Tight clusters, mostly wrong labels: noise, or features that say little?"""
    rng = np.random.default_rng(4)
    truth = np.repeat(np.arange(10), 60)
    X = 6.0 * np.eye(10)[truth] + 0.5 * rng.normal(size=(600, 10))
    wrong = rng.random(600) < 0.8
    y = np.where(wrong, rng.integers(0, 10, 600), truth)
    T = np.full((10, 10), 0.08) + 0.2 * np.eye(10)
    informed = LabelCorrector().fit(X, y, transition_matrix=T)
    assert np.mean(informed.labels_ == truth) > 0.9
    names = np.array(list("jihgfedcba"))  # the other way round when sorted
    named = LabelCorrector().fit(X, names[y], transition_matrix=T[::-1, ::-1])
    np.testing.assert_array_equal(named.labels_, names[informed.labels_])
    with pytest.raises(ValueError, match="transition_matrix must be"):
        LabelCorrector().fit(X, y, transition_matrix=T[:3, :3])
    with pytest.raises(ValueError, match="transition_matrix must be"):
        LabelCorrector().fit(X, y, transition_matrix=2 * T)
    with pytest.warns(FutureWarning, match="transition_matrix="):
        old = LabelCorrector().fit(X, y, annotator=T)
    new = LabelCorrector().fit(
        X, y, transition_matrix=T, features_fitted_to_labels=True
    )
    np.testing.assert_array_equal(old.label_distributions_, new.label_distributions_)
