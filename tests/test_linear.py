import numpy as np
import pytest

from stct import linear
from stct.ridge import STRENGTHS, RidgePath


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


def test_fit_is_least_squares_eq_6(rng):
    H, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 3))
    expected = np.linalg.inv(H.T @ H) @ H.T @ Y
    np.testing.assert_allclose(linear.fit(H, Y), expected, rtol=1e-10)


def test_predict_eq_7(rng):
    H_t, Y_t, H_v = (rng.normal(size=s) for s in [(30, 4), (30, 3), (7, 4)])
    expected = H_v @ np.linalg.inv(H_t.T @ H_t) @ H_t.T @ Y_t
    got = linear.predict(H_v, linear.fit(H_t, Y_t))
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(5, 20), (30, 6)])
def test_rank_deficient_fit_has_minimum_norm(rng, shape):
    H = rng.normal(size=shape)
    H[:, -1] = H[:, 0]  # a duplicate column
    Y = rng.normal(size=(shape[0], 2))
    np.testing.assert_allclose(linear.fit(H, Y), np.linalg.pinv(H) @ Y, atol=1e-9)


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


def test_simplex_rows_sum_to_one_and_keep_the_argmax(rng):
    Y = rng.normal(size=(100, 4))
    Y[0] = -1.0
    Q = linear.to_simplex(Y)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0)
    assert (Q >= 0).all()
    assert (Q.argmax(1) == Y.argmax(1))[(Y > 0).any(1)].all()
    np.testing.assert_allclose(Q[0], 0.25)
