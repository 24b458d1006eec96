"""More than 256 classes: nothing of size n x C, and labels that are as good."""

import numpy as np
import pytest
from scipy.sparse import issparse

from stct import LabelCorrector, estimator
from stct.correction import canonical, decision, posterior, result, scores
from stct.correction.decision import decide
from stct.noise_model.transition import symmetric_transition
from stct.numeric import engine, tiles
from stct.numeric.top_classes import TOP, TopClasses, keep_top


def problem(n=6000, d=40, C=300, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(C, d))
    means *= 7.0 / np.linalg.norm(means, axis=1, keepdims=True)
    truth = np.arange(n) % C
    X = (rng.normal(size=(n, d)) + means[truth]).astype(np.float32)
    given = np.where(rng.random(n) < noise, rng.integers(0, C, n), truth)
    return X, given, truth


@pytest.fixture(scope="module")
def fitted():
    X, given, truth = problem()
    return LabelCorrector().fit(X, given), X, given, truth


def test_labels_are_corrected(fitted):
    corrector, X, given, truth = fitted
    before, after = (given == truth).mean(), (corrector.labels_ == truth).mean()
    assert after > 0.9 > 0.75 > before
    assert corrector.estimated_accuracy_.before == pytest.approx(before, abs=0.05)
    assert (corrector.predict(X) == truth).mean() > 0.9
    assert any("300 classes" in note for note in corrector.notes_)


def test_distributions_are_probabilities(fitted):
    corrector, _, given, _ = fitted
    Q = corrector.label_distributions_
    np.testing.assert_allclose(Q.sum(axis=1), 1.0, atol=1e-3)
    moved = corrector.action_ == "relabel"
    assert (corrector.labels_[~moved] == given[~moved]).all()
    np.testing.assert_array_equal(Q.argmax(axis=1)[moved], corrector.labels_[moved])


def test_large_results_are_sparse_with_the_same_labels(fitted, monkeypatch):
    corrector, X, given, _ = fitted
    monkeypatch.setattr(estimator, "MAX_DENSE", 0)
    again = LabelCorrector().fit(X, given)
    assert issparse(again.label_distributions_)
    assert again.label_distributions_.nnz == len(X) * TOP
    np.testing.assert_array_equal(again.labels_, corrector.labels_)
    row = again.label_distributions_[[5]].toarray()[0]
    assert row[given[5]] == pytest.approx(
        corrector.label_distributions_[5, given[5]], abs=1e-6
    )


def test_locked_rows_stay_and_missing_labels_are_filled():
    X, given, truth = problem()
    labels = given.astype(float)
    labels[:20] = np.nan
    locked = np.zeros(len(X), bool)
    locked[20:40] = True
    corrector = LabelCorrector().fit(X, labels, locked=locked)
    assert set(corrector.action_[:20]) == {"fill"}
    assert (corrector.labels_[:20] == truth[:20]).mean() > 0.8
    np.testing.assert_array_equal(corrector.labels_[20:40], given[20:40])
    np.testing.assert_allclose(corrector.confidence_[20:40], 1.0)


def test_clean_labels_are_left_alone_and_noise_is_recognised():
    X, _, truth = problem()
    assert (LabelCorrector().fit(X, truth).labels_ == truth).mean() > 0.995
    nonsense = np.random.default_rng(0).integers(0, 300, len(X))
    corrector = LabelCorrector().fit(X, nonsense)
    assert corrector.termination_condition_ == "nothing_learnt"
    np.testing.assert_array_equal(corrector.labels_, nonsense)


def test_rows_as_they_come_in_small_tiles_and_a_small_sample(monkeypatch, tmp_path):
    X, given, truth = problem()
    monkeypatch.setattr(canonical, "MAX_SORTED", 0)
    monkeypatch.setattr(scores, "MAX_KEPT", 0)  # all is computed again
    for module in (tiles, engine):
        monkeypatch.setattr(module, "TILE", 512)
    monkeypatch.setattr(engine, "UNIT", 1024)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    a, b = LabelCorrector().fit(X, given), LabelCorrector().fit(mapped, given)
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_array_equal(a.confidence_, b.confidence_)
    assert (a.labels_ == truth).mean() > 0.85


def test_the_top_of_a_posterior_is_that_of_all_of_it():
    rng = np.random.default_rng(0)
    C = 30
    S = rng.normal(size=(50, C)).astype(np.float32)
    given, T = rng.integers(0, C, 50), symmetric_transition(0.7, C)
    P = np.exp(2.0 * S) / np.exp(2.0 * S).sum(axis=1, keepdims=True)
    Q = P * T[:, given].T
    Q /= Q.sum(axis=1, keepdims=True)
    out = keep_top(Q, given)
    np.testing.assert_array_equal(out[:, TOP], Q.argmax(axis=1))
    np.testing.assert_allclose(out[:, 0], Q.max(axis=1), rtol=1e-4)
    assert (out[:, TOP:] == given[:, None]).any(axis=1).all()
    top = TopClasses(out[:, :TOP], out[:, TOP:].astype(np.int32), C)
    learnable = np.ones(C, bool)
    got = decision.decide_among_top(top, given, learnable, 1.0)
    np.testing.assert_array_equal(got.labels, decide(Q, given, learnable).labels)
    np.testing.assert_allclose(top.dense().sum(axis=1), 1.0, atol=1e-4)


def test_classes_of_two_rows_teach_nothing():
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(300), 2)
    m = LabelCorrector().fit(rng.normal(size=(len(y), 16)), y)
    assert m.termination_condition_ == "nothing_learnt"
    assert any("mean nothing" in note for note in m.notes_)
    np.testing.assert_array_equal(m.labels_, y)


def test_what_is_computed_again_is_what_was_kept(monkeypatch):
    """One method: many classes and many rows differ in what is stored only."""
    X, given, _ = problem(n=3000, C=12)
    kept = LabelCorrector().fit(X, given)
    monkeypatch.setattr(scores, "MAX_KEPT", 0)
    monkeypatch.setattr(engine, "FEW", 0)
    again = LabelCorrector().fit(X, given)
    np.testing.assert_array_equal(kept.labels_, again.labels_)
    np.testing.assert_allclose(kept.confidence_, again.confidence_, atol=1e-4)


def test_an_earlier_transition_matrix_is_taken_up_with_many_classes(monkeypatch):
    """Rounds of training bring T along: no n x C matrix for it."""
    for module in (result, posterior):
        monkeypatch.setattr(module, "MANY", 9)
    X, given, truth = problem(n=3000, C=12)
    first = LabelCorrector().fit(X, given)
    T = first.transition_matrix_
    again = LabelCorrector().fit(X, given, transition_matrix=T)
    assert any("12 classes" in note for note in again.notes_)
    assert np.mean(again.labels_ == truth) > 0.95
