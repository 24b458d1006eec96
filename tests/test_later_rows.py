"""Later batches: judged by an earlier fit, compared with its rows, added to it."""

import numpy as np
import pytest
from noisy_rows import blobs
from scipy.optimize import minimize

from stct import LabelCorrector
from stct.correction.fit_record import Columns, light_axes
from stct.correction.given_labels import Labels
from stct.correction.later_rows import sum_rows
from stct.correction.resemblance import (
    LEVEL,
    compare,
    compare_means,
    compare_shares,
    weighted_chi_squared,
)
from stct.correction.update import add_rows, update
from stct.numeric.centring import CentredRows
from stct.numeric.engine import Local
from stct.numeric.hat_matrix import Axes

OLD, NEW = slice(0, 600), slice(600, 1000)


def overlapping(n=1000, seed=0, C=3, d=6, rate=0.25, apart=1.0):
    """Classes that overlap; labels that are wrong independently of each other."""
    centres = np.random.default_rng(99).normal(size=(C, d))
    rng = np.random.default_rng([5, seed])
    truth = rng.integers(0, C, n)
    X = rng.normal(size=(n, d)) + apart * centres[truth]
    wrong = rng.random(n) < rate
    given = np.where(wrong, (truth + rng.integers(1, C, n)) % C, truth)
    return X.astype(np.float32), given, truth


@pytest.fixture(scope="module")
def earlier():
    X, given, truth = overlapping()
    return LabelCorrector().fit(X[OLD], given[OLD]), X, given, truth


def softmax(L):
    E = np.exp(L - L.max(axis=1, keepdims=True))
    return E / E.sum(axis=1, keepdims=True)


def parts_of(corrector):
    """Weights, intercept and noise model in the order of classes_, from the file."""
    model, record = corrector._fitted.model, corrector._fitted.fit
    order = model.order
    return model.model.weights[:, order], model.model.intercept[order], record


def test_a_batch_is_judged_by_bayes_rule(earlier):
    corrector, X, given, truth = earlier
    batch = corrector.judge(X[NEW], given[NEW])
    W, b, record = parts_of(corrector)
    noise, T = record.noise, record.noise.transition
    Q = np.empty((400, 3))
    for i, (x, g) in enumerate(zip(X[NEW], given[NEW], strict=True)):
        logits = x @ W + b
        clean = softmax(logits[None])[0]
        P = softmax(noise.annotators * logits[None])[0]
        for y in range(3):
            said = T[y, g] + noise.ambiguous[y] * (P[g] - (y == g))
            Q[i, y] = clean[y] * said
        Q[i] *= noise.errors / Q[i].sum()
        Q[i, g] += 1.0 - noise.errors
    np.testing.assert_allclose(batch.label_distributions_, Q, atol=1e-5)
    assert batch.termination_condition_ == "judged"
    assert (batch.labels_ == truth[NEW]).mean() > (given[NEW] == truth[NEW]).mean()
    low, high = batch.estimated_accuracy_.before_interval
    assert low < (given[NEW] == truth[NEW]).mean() < high
    np.testing.assert_array_equal(
        batch.predict_proba(X), corrector.predict_proba(X)
    )  # nothing was fitted


def test_rows_of_the_fit_get_what_leave_one_out_said(earlier):
    """Otherwise they are nearly the same, and kept too often: the model knows them."""
    corrector, X, given, _ = earlier
    old = corrector.label_distributions_
    rows = np.arange(600)
    again = corrector.judge(X[OLD], given[OLD], seen=(rows, old))
    np.testing.assert_array_equal(again.label_distributions_, old)
    assert again.labels_.tolist() == corrector.labels_.tolist()
    assert again.action_.tolist() == corrector.action_.tolist()

    in_sample = corrector.judge(X[OLD], given[OLD])
    assert (in_sample.labels_ == corrector.labels_).mean() > 0.97
    own = old[rows, given[OLD]]
    assert (in_sample.label_distributions_[rows, given[OLD]] - own).mean() > 0.0


def test_missing_locked_and_verified_rows_of_a_batch(earlier):
    corrector, X, given, truth = earlier
    y = given[NEW].astype(object)
    y[:5] = None
    locked = np.zeros(400, dtype=bool)
    locked[5:50] = True
    batch = corrector.judge(X[NEW], y, locked=locked)
    assert set(batch.action_[:5]) == {"fill"}
    np.testing.assert_allclose(
        batch.label_distributions_[:5], corrector.predict_proba(X[NEW][:5]), atol=1e-5
    )
    assert batch.labels_[5:50].tolist() == given[NEW][5:50].tolist()
    assert (batch.confidence_[5:50] == 1.0).all()

    verified = np.full(400, None, dtype=object)
    verified[100:300] = truth[NEW][100:300]
    batch = corrector.judge(X[NEW], given[NEW], verified=verified)
    assert batch.labels_[100:300].tolist() == truth[NEW][100:300].tolist()
    share = (given[NEW][100:300] == truth[NEW][100:300]).mean()
    assert batch.estimated_accuracy_.before == pytest.approx(share)


def test_what_cannot_be_judged_is_refused(earlier):
    corrector, X, given, _ = earlier
    with pytest.raises(ValueError, match=r"does not know: 7; its classes are 0, 1, 2"):
        corrector.judge(X[NEW], np.where(given[NEW] == 2, 7, given[NEW]))
    with pytest.raises(ValueError, match="X has 5 features"):
        corrector.judge(X[NEW, :5], given[NEW])
    with pytest.raises(ValueError, match="there are 400 rows but y has 3 labels"):
        corrector.judge(X[NEW], given[:3])
    for rows, Q in (([400], np.ones((1, 3))), ([0], np.ones((1, 2)))):
        with pytest.raises(ValueError, match=r"seen must be rows and their"):
            corrector.judge(X[NEW], given[NEW], seen=(np.array(rows), Q))
    with pytest.raises(ValueError, match="y has no labels; predict gives"):
        corrector.judge(X[NEW], [None] * 400)
    noise = np.random.default_rng(0).normal(size=(300, 4))
    nothing = LabelCorrector().fit(noise, given[:300])
    with pytest.raises(ValueError, match="learnt nothing"):
        nothing.judge(noise, given[:300])
    assert nothing.compare_rows(noise) == []
    split = LabelCorrector("split", random_state=0).fit(X[OLD], given[OLD])
    with pytest.raises(ValueError, match="'split' has no noise model"):
        split.judge(X[NEW], given[NEW])
    probabilities = np.full((600, 3), 1 / 3)
    own = LabelCorrector().fit(pred_probs=probabilities, y=given[OLD])
    with pytest.raises(ValueError, match="no model for new rows"):
        own.judge(X[NEW], given[NEW])


def test_batches_of_the_same_kind_are_seldom_called_different():
    """25 fits, 10 batches each: at most 1% are expected to be, and 3% allowed."""
    differs, p_values = 0, []
    for seed in range(25):
        X, given, _ = overlapping(300 + 2000, seed=seed, apart=1.5)
        corrector = LabelCorrector().fit(X[:300], given[:300])
        assert corrector._fitted.fit is not None
        for rows in np.split(np.arange(300, 2300), 10):
            labels = Labels(given[rows], np.zeros(200, bool), 3, Local(1))
            model = corrector._fitted.model
            sums = sum_rows(X[rows], labels, model, np.ones(200, bool))
            found = compare(corrector._fitted.fit, sums)
            assert len(found) == 3
            differs += any(d.differs for d in found)
            p_values.append([d.p_value for d in found])
    assert LEVEL == 0.01
    assert differs <= 7
    below = (np.array(p_values) < 0.2).mean(axis=0)
    assert (below > 0.08).all()
    assert (below < 0.3).all()


def test_other_batches_are_called_different(earlier):
    corrector, X, given, _ = earlier

    def notes(X, y):
        return " ".join(corrector.judge(X, y).notes_)

    assert notes(X[NEW], given[NEW]) == ""
    assert "feature means differ by 0.2" in notes(X[NEW] + 0.3, given[NEW])
    rest = given[NEW] != 0
    assert "label shares differ by 3" in notes(X[NEW][rest], given[NEW][rest])
    shuffled = np.random.default_rng(0).permutation(given[NEW])
    text = notes(X[NEW], shuffled)
    assert "predicts fewer of the given labels" in text
    assert "p = " in text
    assert "1%" in text
    assert any(d.differs for d in corrector.compare_rows(X[NEW] + 0.3))
    assert not any(d.differs for d in corrector.compare_rows(X[NEW]))


@pytest.mark.parametrize("weights", [[1.0] * 5, [5.0, 1.0, 0.1], np.arange(1, 60.0)])
def test_sums_of_weighted_chi_squared_variables(weights):
    """The approximation by three moments, against draws."""
    w = np.asarray(weights)
    rng = np.random.default_rng(0)
    draws = (rng.normal(size=(100_000, len(w))) ** 2) @ w
    traces = (w.sum(), (w**2).sum(), (w**3).sum())
    for share in (0.5, 0.05, 0.003):
        value = float(np.quantile(draws, 1.0 - share))
        assert weighted_chi_squared(value, traces) == pytest.approx(share, rel=0.2)


@pytest.mark.parametrize("n", [40, 400])
def test_the_test_of_means_keeps_its_level_where_columns_are_many(n):
    """80 correlated columns of different units, more or fewer of them than rows."""
    rng = np.random.default_rng(n)
    mix = rng.normal(size=(10, 80)) * np.logspace(-3, 3, 80)
    rejected = 0
    for _ in range(200):
        X, batch = (
            rng.normal(size=(m, 10)) @ mix + rng.normal(size=(m, 80)) for m in (n, 50)
        )
        mean = X.mean(axis=0)
        _, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
        columns = Columns(n, mean, 1.0, Axes(s**2, Vt.T))
        rejected += compare_means(columns, batch.mean(axis=0), 50)[1] < 0.05
    assert 2 <= rejected <= 22


def test_rare_classes_are_counted_together():
    old, new = np.array([500, 490, 3, 2, 2]), np.array([101, 99, 1, 0, 0])
    assert compare_shares(old, new)[1] > 0.5
    assert compare_shares(np.array([5, 0]), np.array([3, 1])) == (0.25, 1.0)
    distance, p = compare_shares(np.array([500, 500]), np.array([80, 20]))
    assert distance == pytest.approx(0.3)
    assert p < 1e-6


def test_mean_and_gram_matrix_of_both_are_those_of_all_rows():
    X, given, _ = overlapping(300)
    given[250:260] = -1  # rows without a label teach nothing

    def columns_of(rows):
        mean = X[rows].mean(axis=0, dtype=np.float64)
        values, V = np.linalg.eigh((X[rows] - mean).T @ (X[rows] - mean))
        return Columns(len(X[rows]), mean, 1.0, light_axes(Axes(values, V)))

    old = columns_of(slice(0, 200))
    labels = Labels(given[200:], np.zeros(100, bool), 3, Local(1))
    both = add_rows(old, CentredRows(X[200:], old.mean, 1.0), labels)
    wanted = columns_of(np.r_[0:250, 260:300])
    assert both.num_rows == 290
    np.testing.assert_allclose(both.mean, wanted.mean, atol=1e-6)
    for kept in (both, wanted):
        assert kept.axes.vectors.dtype == np.float32
    grams = [
        (c.axes.vectors * c.axes.values) @ c.axes.vectors.T for c in (both, wanted)
    ]
    np.testing.assert_allclose(*grams, rtol=1e-3, atol=0.05)


def test_the_update_is_the_most_probable_model_given_both(earlier):
    """Against a naive maximisation: the old fit as a Gaussian prior of the weights."""
    corrector, X, given, _ = earlier
    model, record = corrector._fitted.model, corrector._fitted.fit
    H, g = X[NEW].astype(np.float64), given[NEW]
    labels = Labels(g, np.zeros(400, bool), 3, Local(1))
    found = update(X[NEW], labels, model, record)
    T, columns = found.record.noise.transition, record.columns
    W, b, _ = parts_of(corrector)
    soft = record.noise.annotators
    values, V = columns.axes
    penalty = values.sum() / columns.num_rows
    precision = (V * (record.curvature * values + penalty)) @ V.T

    def objective(step):
        D = step.reshape(6, 3)
        P = softmax(soft * (H @ W + b) + (H - columns.mean) @ D)
        fit = np.log((P @ T)[np.arange(400), g]).sum()
        return 0.5 * np.sum(D * (precision @ D)) - fit

    best = minimize(objective, np.zeros(18), method="BFGS").x.reshape(6, 3)
    ours = soft * (found.model.weights - W)
    assert objective(ours) < objective(best) + 0.05
    np.testing.assert_allclose(ours, best, atol=0.02)
    before = objective(np.zeros(18))
    assert before - objective(best) > 0.5  # there was something to learn
    counts = found.record.given_counts
    assert counts.tolist() == np.bincount(given, minlength=3).tolist()


def test_an_update_comes_near_a_fit_to_all_rows():
    X, given, truth = overlapping(4000, C=4, d=20, rate=0.4, apart=0.9)
    old, new, test = slice(0, 400), slice(400, 2400), slice(2400, 4000)
    corrector = LabelCorrector().fit(X[old], given[old])
    updated = corrector.judge(X[new], given[new], refit=True)
    whole = LabelCorrector().fit(X[:2400], given[:2400])

    def right(c):
        return (c.predict(X[test]) == truth[test]).mean()

    assert right(updated) > right(corrector) + 0.01
    assert right(updated) > right(whole) - 0.015
    assert (updated.labels_ == truth[new]).mean() > (
        whole.labels_[400:] == truth[new]
    ).mean() - 0.02
    assert updated.termination_condition_ == "updated"
    assert updated._fitted.fit.columns.num_rows == 2400
    # The corrector that was asked has not changed.
    assert corrector._fitted.fit.columns.num_rows == 400


def test_duplicates_in_an_update_count_once(earlier):
    corrector, X, given, _ = earlier
    once = corrector.judge(X[NEW], given[NEW], refit=True)
    rows = np.r_[600:1000, 600:1000]
    twice = corrector.judge(X[rows], given[rows], refit=True)
    np.testing.assert_allclose(twice.predict_proba(X), once.predict_proba(X), atol=1e-4)
    Q = twice.label_distributions_
    np.testing.assert_array_equal(Q[:400], Q[400:])
    np.testing.assert_allclose(Q[:400], once.label_distributions_, atol=1e-4)


def test_an_update_by_rows_without_labels_changes_nothing(earlier):
    corrector, X, given, _ = earlier
    y = np.full(400, None, dtype=object)
    y[0] = 0
    seen = (np.arange(1), corrector.label_distributions_[:1])
    batch = corrector.judge(X[NEW], y, refit=True, seen=seen)
    np.testing.assert_allclose(
        batch.predict_proba(X), corrector.predict_proba(X), atol=1e-5
    )


def test_order_of_classes_and_many_classes():
    """Labels renamed so that their order turns around; and more than 256 classes."""
    X, given, _ = blobs(900)
    names = np.array(["c", "b", "a"])
    one = LabelCorrector().fit(X[:600], given[:600]).judge(X[600:], given[600:])
    renamed = LabelCorrector().fit(X[:600], names[given[:600]])
    other = renamed.judge(X[600:], names[given[600:]])
    assert names[one.labels_].tolist() == other.labels_.tolist()

    rng = np.random.default_rng(0)
    C = 260
    truth = np.tile(np.arange(C), 8)
    X = rng.normal(size=(len(truth), 24)) + 6.0 * rng.normal(size=(C, 24))[truth]
    given = np.where(
        rng.random(len(truth)) < 0.1, rng.integers(0, C, len(truth)), truth
    )
    given[:C] = np.arange(C)  # all classes are in the fit
    half = len(truth) // 2
    many = LabelCorrector().fit(X[:half], given[:half])
    batch = many.judge(X[half:], given[half:])
    assert (batch.labels_ == truth[half:]).mean() > 0.95
