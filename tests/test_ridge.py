import numpy as np
import pytest

from stct.numeric import ridge
from stct.numeric.ridge import STRENGTHS, RidgePath
from stct.numeric.tiles import some_of


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def naive_ridge(H, Y, ridge):
    """Ridge with an unpenalised intercept, by the normal equations of [1, H]."""
    A = np.column_stack([np.ones(len(H)), H])
    penalty = ridge * np.eye(A.shape[1])
    penalty[0, 0] = 0.0
    return np.linalg.solve(A.T @ A + penalty, A.T @ Y)


def naive_leave_one_out(H, Y, ridge):
    """Refit without each row, means and all; add the label mean of all rows."""
    out = np.empty_like(Y)
    for i in range(len(H)):
        rest = np.arange(len(H)) != i
        Hc, Yc = H[rest] - H[rest].mean(axis=0), Y[rest] - Y[rest].mean(axis=0)
        W = np.linalg.solve(Hc.T @ Hc + ridge * np.eye(H.shape[1]), Hc.T @ Yc)
        out[i] = Y.mean(axis=0) + (H[i] - H[rest].mean(axis=0)) @ W
    return out


@pytest.mark.parametrize("n", [40, 12])  # more rows than columns, and fewer
def test_scores_are_exact_leave_one_out_ridge(rng, n):
    H = rng.normal(size=(n, 15)) + 5.0
    given = rng.integers(0, 3, n)
    Y = np.eye(3)[given]
    fit = RidgePath(H, np.ones(n, bool)).fit(Y, given)
    centred = H - H.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred)
    values = values[values > 1e-9]
    expected = naive_leave_one_out(H, Y, fit.strength * values.mean())
    np.testing.assert_allclose(fit.scores, expected, atol=1e-8)


def test_scores_do_not_give_a_label_away(rng):
    """A mean without just this row's label would: its own class scores lowest."""
    given = rng.integers(0, 2, 400)
    fit = RidgePath(rng.normal(size=(400, 3)), np.ones(400, bool)).fit(
        np.eye(2)[given], given
    )
    own = fit.scores[np.arange(400), given]
    other = fit.scores[np.arange(400), 1 - given]
    assert abs(np.mean(own - other)) < 3 * np.std(own - other) / 20


@pytest.mark.parametrize("num_columns", [39, 40, 200])
def test_more_columns_than_rows_do_not_give_a_label_away(rng, num_columns):
    """Centred rows sum to zero, so each is known from the others; its label is not."""
    given = rng.integers(0, 2, 40)
    H = rng.normal(size=(40, num_columns))
    path = RidgePath(H, np.ones(40, bool))
    for strength in STRENGTHS:
        scores = path.fit(np.eye(2)[given], given, strength=strength).scores
        assert np.mean(scores.argmax(axis=1) == given) < 0.8


def test_strength_is_the_one_that_agrees_most_with_the_given_labels(rng):
    H = rng.normal(size=(60, 20))
    given = (H[:, 0] + rng.normal(size=60) > 0).astype(int)
    Y = np.eye(2)[given]
    fit = RidgePath(H, np.ones(60, bool)).fit(Y, given)
    centred = H - H.mean(axis=0)
    scale = np.linalg.eigvalsh(centred.T @ centred).mean()
    agreement = {
        s: (naive_leave_one_out(H, Y, s * scale).argmax(1) == given).mean()
        for s in STRENGTHS
    }
    assert agreement[fit.strength] == max(agreement.values())


def test_weights_and_intercept_are_the_full_ridge_fit(rng):
    H, given = rng.normal(size=(50, 5)) * 3 + 1, rng.integers(0, 2, 50)
    Y = np.eye(2)[given]
    fit = RidgePath(H, np.ones(50, bool)).fit(Y, given)
    centred = H - H.mean(axis=0)
    scale = np.linalg.eigvalsh(centred.T @ centred).mean()
    W = naive_ridge(H, Y, fit.strength * scale)
    np.testing.assert_allclose(fit.intercept, W[0], atol=1e-9)
    np.testing.assert_allclose(fit.weights, W[1:], atol=1e-9)


def test_rows_without_a_label_teach_nothing_and_are_predicted(rng):
    H, given = rng.normal(size=(50, 5)), rng.integers(0, 2, 50)
    given[40:] = -1
    Y = np.zeros((50, 2))
    Y[np.arange(40), given[:40]] = 1
    all_rows = RidgePath(H, given >= 0).fit(Y, given)
    labelled = RidgePath(H[:40], np.ones(40, bool)).fit(Y[:40], given[:40])
    np.testing.assert_allclose(all_rows.weights, labelled.weights, atol=1e-10)
    np.testing.assert_allclose(all_rows.scores[:40], labelled.scores, atol=1e-10)
    np.testing.assert_allclose(
        all_rows.scores[40:],
        H[40:] @ labelled.weights + labelled.intercept,
        atol=1e-10,
    )


def test_float32_far_from_the_origin_keeps_its_precision(rng):
    H = rng.normal(size=(300, 8))
    given = (H[:, 0] > 0).astype(int)
    Y = np.eye(2, dtype=np.float32)[given]
    near = RidgePath(H, np.ones(300, bool)).fit(Y, given)
    far = RidgePath((H + 1000.0).astype(np.float32), np.ones(300, bool)).fit(Y, given)
    np.testing.assert_allclose(far.scores, near.scores, atol=2e-3)


@pytest.mark.parametrize("rank", [70, 60, 20])
def test_many_rows_have_the_scores_and_strength_of_few(rng, monkeypatch, rank):
    """Leverages at one strength by a triangular product; some rows choose."""
    H = rng.normal(size=(600, 70)).astype(np.float32)
    # The others are below the cutoff, not nothing.
    H[:, rank:] = H[:, np.arange(70 - rank) % rank] + 1e-4 * H[:, rank:]
    given = np.where(rng.random(600) < 0.7, H[:, :3].argmax(axis=1), 0)
    given[::50] = -1  # rows that are only predicted
    Y = np.eye(3, dtype=np.float32)[given]
    few = RidgePath(H, given >= 0)
    assert len(few.axes.values) == rank
    monkeypatch.setattr(ridge, "ROWS_PER_COLUMN", 0)
    monkeypatch.setattr(ridge, "CHOOSING_ROWS", 200)
    many = RidgePath(H, given >= 0)
    for strength in STRENGTHS:
        expected = few.fit(Y, given, strength=strength).scores
        scores = many.fit(Y, given, strength=strength).scores
        np.testing.assert_allclose(scores, expected, atol=2e-5)
    best, chosen = few.fit(Y, given).scores, many.fit(Y, given).scores
    agree = [(S.argmax(axis=1) == given).mean() for S in (best, chosen)]
    assert agree[1] > agree[0] - 0.03


@pytest.mark.parametrize("most", [10, 10**6])  # rows are many; rows are few
def test_leverage_at_any_ridge_is_the_hat_diagonal(rng, monkeypatch, most):
    monkeypatch.setattr(ridge, "ROWS_PER_COLUMN", 0)
    monkeypatch.setattr(ridge, "CHOOSING_ROWS", most)
    H = rng.normal(size=(400, 20))
    path = RidgePath(H, np.arange(400) >= 40)
    Hc = H[40:] - H[40:].mean(axis=0)
    hat = Hc @ np.linalg.solve(Hc.T @ Hc + 30.0 * np.eye(20), Hc.T)
    some = np.arange(0, 400, 7)
    own = path.leverage_at(30.0)(slice(0, 400), some)
    assert (own[some < 40] == 0).all()
    expected = np.diagonal(hat)[some[some >= 40] - 40]
    # Of few rows it is interpolated between strengths.
    np.testing.assert_allclose(
        own[some >= 40], expected, rtol=1e-9 if most == 10 else 0.1
    )


def test_many_rows_few_of_them_labelled_all_choose(rng, monkeypatch):
    monkeypatch.setattr(ridge, "ROWS_PER_COLUMN", 0)
    monkeypatch.setattr(ridge, "CHOOSING_ROWS", 100)
    H = rng.normal(size=(3000, 20))
    given = np.full(3000, -1)
    given[::50] = (H[::50, 0] > 0).astype(int)
    Y = np.eye(2)[given]
    strength = RidgePath(H, given >= 0).fit(Y, given).strength
    alone = RidgePath(H[::50], np.ones(60, bool)).fit(Y[::50], given[::50]).strength
    assert strength == alone


def test_constant_rows_have_no_leverage(monkeypatch):
    monkeypatch.setattr(ridge, "ROWS_PER_COLUMN", 0)
    monkeypatch.setattr(ridge, "CHOOSING_ROWS", 10)
    given = np.arange(100) % 2
    fit = RidgePath(np.ones((100, 3)), np.ones(100, bool)).fit(np.eye(2)[given], given)
    np.testing.assert_allclose(fit.scores, 0.5, atol=1e-12)


def test_classes_that_take_turns_all_choose_the_strength(rng, monkeypatch):
    """Every third row would be of one class, and any strength right for it."""
    monkeypatch.setattr(ridge, "ROWS_PER_COLUMN", 0)
    monkeypatch.setattr(ridge, "CHOOSING_ROWS", 300)
    given = np.arange(900) % 3
    H = np.eye(3)[given] @ rng.normal(size=(3, 40)) + rng.normal(size=(900, 40))
    fit = RidgePath(H, np.ones(900, bool)).fit(np.eye(3)[given], given)
    assert (fit.scores.argmax(axis=1) == given).mean() > 0.95
    picked = some_of(slice(0, 900), 3)
    assert np.bincount(given[picked], minlength=3).min() > 70
