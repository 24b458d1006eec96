"""Instance-dependent noise: its formula, and what moves the ambiguity share."""

from dataclasses import replace

import numpy as np
import pytest

from stct.correction.instance_noise import (
    ambiguity_share,
    ambiguous,
    class_average_transition,
    instance_posterior,
    mean_confusion,
    median_elasticity,
    pooled_elasticity,
    sharpening,
)
from stct.correction.settings import DEFAULT
from stct.noise_model.transition import symmetric_transition
from stct.numeric.probabilities import softmax

NOISE = DEFAULT.noise


def confusion(C=8, seed=0):
    rng = np.random.default_rng(seed)
    K = rng.gamma(0.5, 0.03, size=(C, C)) + 1e-4
    np.fill_diagonal(K, 0.0)
    np.fill_diagonal(K, 1.0 - K.sum(axis=1))
    return K


def errors_like(K, power, rate=0.2, rows=1000.0):
    """Counts whose errors go to other classes in proportion to a power of K."""
    off = np.where(np.eye(len(K), dtype=bool), 0.0, K**power)
    T = rate * off / off.sum(axis=1, keepdims=True)
    np.fill_diagonal(T, 1.0 - T.sum(axis=1))
    return rows * T


def test_mean_confusion_by_loops():
    rng = np.random.default_rng(0)
    P, Q = rng.dirichlet(np.ones(3), size=40), rng.dirichlet(np.ones(3), size=40)
    for y in range(3):
        expected = sum(q[y] * p for p, q in zip(P, Q, strict=True)) / Q[:, y].sum()
        np.testing.assert_allclose(mean_confusion(Q.T @ P, Q.sum(0))[y], expected)
    nobody = mean_confusion(np.zeros((2, 2)), np.array([0.0, 0.0]))
    np.testing.assert_array_equal(nobody, np.eye(2))


@pytest.mark.parametrize("power", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("C", [3, 8, 40])
def test_pooled_elasticity_is_the_exponent(power, C):
    K = confusion(C)
    found = pooled_elasticity(errors_like(K, power), K)
    assert found == pytest.approx(power, abs=0.01)


def test_median_elasticity_by_loops():
    K = confusion(4)
    counts = errors_like(K, 0.6)
    T = counts / counts.sum(axis=1, keepdims=True)
    cells = [(y, g) for y in range(4) for g in range(4) if y != g]
    slopes = [
        (T[b] - T[a]) / (K[b] - K[a]) for i, a in enumerate(cells) for b in cells[:i]
    ]
    k, t = (np.mean([M[cell] for cell in cells]) for M in (K, T))
    assert median_elasticity(counts, K) == pytest.approx(np.median(slopes) * k / t)


@pytest.mark.parametrize("C", [6, 40])  # exact, and more entries than that
def test_one_large_entry_a_row_is_no_trend(C):
    K = confusion(C)
    T = 0.7 * np.eye(C) + 0.3 * np.roll(np.eye(C), 1, axis=1)
    assert median_elasticity(1000 * T, K) == 0.0
    assert median_elasticity(errors_like(K, 1.0), K) > 0.5


def rows(power=None, rate=0.3, n=8000, C=6, seed=0):
    """P of overlapping classes, and labels with errors of a kind."""
    rng = np.random.default_rng(seed)
    means = 1.3 * rng.normal(size=(C, 4))
    truth = rng.integers(0, C, n)
    X = means[truth] + rng.normal(size=(n, 4))
    logits = X @ means.T - 0.5 * (means**2).sum(axis=1)
    P = softmax(logits.astype(np.float32))
    if power is None:
        return P, truth, np.eye(C), rng
    K = mean_confusion(P.T @ P, P.sum(axis=0, dtype=np.float64))
    T = errors_like(K, power, rate, rows=1.0)
    given = (T[truth].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return P, given, T, rng


def test_errors_that_go_anywhere_speak_against_instance_dependent_noise():
    shares = {}
    for power in (0.0, 1.0):
        P, given, T, _ = rows(power)
        shares[power], _ = ambiguity_share(P, T, given, NOISE)
    assert shares[0.0].share < 0.03
    assert shares[1.0].share > 0.8 * NOISE.share
    assert shares[1.0].high - shares[1.0].low < 0.3  # it is known, then
    low, share, high = shares[0.0]
    assert low <= share <= high < 0.1


def test_few_wrong_labels_leave_the_prior_and_a_wide_range():
    P, given, T, _ = rows(0.0)
    few, _ = ambiguity_share(P[:60], T, given[:60], NOISE)
    many, _ = ambiguity_share(P, T, given, NOISE)
    assert few.share > 5 * many.share
    assert few.high - few.low > 4 * (many.high - many.low)


def test_two_classes_have_the_prior_share():
    P, given, T, _ = rows(1.0, C=2)
    found, _ = ambiguity_share(P, T, given, NOISE)
    assert found == (0.0, NOISE.share, NOISE.widest)


def test_the_share_is_limited_where_the_features_know_little_and_no_error_was_found():
    P, truth, T, _ = rows()
    found, K = ambiguity_share(P, T, truth, NOISE)
    unseen = found.share * (1.0 - float(np.diagonal(K).mean()))
    assert unseen == pytest.approx(NOISE.share * NOISE.unseen, rel=0.2)
    more, _ = ambiguity_share(P, T, truth, replace(NOISE, unseen=2 * NOISE.unseen))
    assert more.share == pytest.approx(2 * found.share, rel=0.01)


def test_the_posterior_by_loops():
    rng = np.random.default_rng(0)
    n, C, share = 50, 4, 0.4
    clean, P = (rng.dirichlet(np.ones(C), size=n).astype(np.float32) for _ in "ab")
    T = symmetric_transition(0.7, C)
    T[0] = [0.3, 0.5, 0.1, 0.1]
    given = rng.integers(-1, C, n)
    m = ambiguous(T, share, NOISE.most_of_right)
    np.testing.assert_allclose(m, [NOISE.most_of_right * 0.3, 0.4, 0.4, 0.4])
    found = instance_posterior(clean, P, T, m, given)
    for row, label in enumerate(given):
        # Pr[label | x, y] = T + m (P - [y is label]): a distribution for each y.
        chance = T + m[:, None] * (P[row] - np.eye(C))
        np.testing.assert_allclose(chance.sum(axis=1), 1.0, rtol=1e-6)
        assert (chance >= 0).all()
        joint = clean[row] * (chance[:, label] if label >= 0 else 1.0)
        np.testing.assert_allclose(found[row], joint / joint.sum(), rtol=1e-4)


def test_the_transition_matrix_is_the_average_over_rows():
    P, _, T, _ = rows(0.5)
    weights = P / P.sum(axis=0)
    m = ambiguous(T, 0.3, NOISE.most_of_right)
    chance = [
        T + m[:, None] * (p - np.eye(len(T))) for p in P.astype(np.float64)
    ]  # of each row
    expected = np.einsum("iyg,iy->yg", np.array(chance), weights)
    K = mean_confusion(P.T @ P, P.sum(axis=0, dtype=np.float64))
    np.testing.assert_allclose(class_average_transition(T, K, m), expected, atol=1e-4)


def test_sharpening_grows_with_the_share():
    assert sharpening(0.0) == 1.0
    assert sharpening(0.5) == pytest.approx(1.0 / 0.75**2)
