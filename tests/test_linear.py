import numpy as np
import pytest

from stct.numeric import linear


@pytest.fixture
def rng():
    return np.random.default_rng(0)


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


def test_simplex_rows_sum_to_one_and_keep_the_argmax(rng):
    Y = rng.normal(size=(100, 4))
    Y[0] = -1.0
    Q = linear.to_simplex(Y)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0)
    assert (Q >= 0).all()
    assert (Q.argmax(1) == Y.argmax(1))[(Y > 0).any(1)].all()
    np.testing.assert_allclose(Q[0], 0.25)
