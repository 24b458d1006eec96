"""Few steps along long valleys."""

import numpy as np
import pytest
import torch

from stct.correction.score_fit import FAMILIES, ScoreFit, fit_all
from stct.correction.score_space import make_space
from stct.noise_model.likelihood import ForwardModel
from stct.noise_model.optimiser import descend, information
from stct.noise_model.transition import posterior, symmetric_transition


class Valley:
    """A parabola, long in one direction and narrow across, that counts its calls."""

    def __init__(self, size=30):
        axes, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))
        self.curvature = (axes * np.logspace(0, -5, size)) @ axes.T
        self.lowest = np.linspace(-1.0, 2.0, size)
        self.calls = 0

    def __call__(self, place):
        self.calls += 1
        slope = self.curvature @ (place - self.lowest)
        return float(0.5 * (place - self.lowest) @ slope), slope


def go_down(valley, curvature, tolerance=1e-15):
    start = np.zeros(len(valley.lowest))
    return descend(valley, start, curvature, max_steps=1000, tolerance=tolerance)


def test_a_known_curvature_saves_nearly_all_steps():
    plain, known = Valley(), Valley()
    low = [plain(go_down(plain, None))[0], known(go_down(known, known.curvature))[0]]
    assert known.calls < 30 < 300 < plain.calls
    assert low[1] <= low[0] + 1e-12


def test_a_diagonal_will_do_where_nothing_else_is_there():
    valley = Valley()
    valley.curvature = np.diag(np.logspace(3, -3, 30))
    end = go_down(valley, np.diagonal(valley.curvature))
    assert valley.calls <= 6
    np.testing.assert_allclose(end, valley.lowest, atol=1e-5)


@pytest.mark.parametrize(
    "curvature", [np.eye(30), np.full((30, 30), 1e-9), np.full((30, 30), np.nan)]
)
def test_a_wrong_curvature_costs_steps_and_nothing_else(curvature):
    valley = Valley()
    valley.curvature = np.eye(30) + np.diag(np.arange(30.0))
    np.testing.assert_allclose(go_down(valley, curvature), valley.lowest, atol=1e-4)


def test_a_curvature_that_rounding_made_negative_is_read_along_the_axes():
    valley = Valley(size=2)
    valley.curvature = np.diag([4.0, 1.0])
    end = go_down(valley, np.array([[4.0, 3.0], [3.0, 1.0]]))
    np.testing.assert_allclose(end, valley.lowest, atol=1e-5)


def test_who_is_at_the_bottom_stays():
    valley = Valley()
    end = descend(
        valley, valley.lowest.copy(), valley.curvature, max_steps=10, tolerance=1e-9
    )
    np.testing.assert_array_equal(end, valley.lowest)


@pytest.mark.parametrize("with_T", [True, False])
def test_information_is_the_sum_of_squared_gradients_of_rows(with_T):
    rng = np.random.default_rng(0)
    n, k, C = 25, 3, 4
    U, W = rng.normal(size=(n, k)), rng.normal(size=(k, C))
    T = rng.dirichlet(np.ones(C), size=C)
    given = rng.integers(0, C, n)
    given[:5] = -1
    expected = 0.0
    for u, j in zip(U, given, strict=True):
        w = torch.tensor(W, requires_grad=True)
        log_T = torch.tensor(np.log(T), requires_grad=True)
        P = torch.softmax(torch.tensor(u) @ w, dim=0)
        rows = torch.softmax(log_T, dim=1)
        (
            (P @ rows[:, j]).log() if j >= 0 else 0.0 * P.sum() + 0.0 * rows.sum()
        ).backward()
        parts = [w.grad.numpy().ravel(), log_T.grad.numpy().ravel()]
        slope = np.concatenate(parts if with_T else parts[:1])
        expected = expected + np.outer(slope, slope)
    P = np.exp(U @ W) / np.exp(U @ W).sum(axis=1, keepdims=True)
    Q = posterior(P, T, given)
    found = information(U, P, Q, given, T if with_T else None)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_the_annotator_is_the_same_wherever_the_fit_began():
    """Weak features: plain L-BFGS stayed at 0.97 where it began at 0.97."""
    rng = np.random.default_rng(0)
    n, C = 30_000, 6
    truth = rng.integers(0, C, n)
    S = (rng.normal(size=(n, C)) + 1.3 * np.eye(C)[truth]).astype(np.float32)
    T = symmetric_transition(0.8, C)
    given = (T[truth].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    space = make_space(S, quadratic=False)
    model = ForwardModel(space.features(S), given, np.zeros(n, bool), C)
    ends = []
    for right, sharpness in ((0.5, 3.0), (0.97, 0.5)):
        start = symmetric_transition(right, C)
        fit = ScoreFit(FAMILIES[2], space, sharpness * space.identity, start)
        ends.append(np.diagonal(fit_all(model, fit)[1]))
    np.testing.assert_allclose(ends, 0.8, atol=0.05)
