import numpy as np
import pytest

from stct import hardness
from stct.hardness import (
    blame_annotator,
    confusion_slope,
    guessed,
    mean_confusion,
    posterior_of_guesses,
    up_to_quality,
)
from stct.transition import posterior, quality


def confusion(C=8, seed=0):
    rng = np.random.default_rng(seed)
    K = rng.gamma(0.5, 0.03, size=(C, C))
    np.fill_diagonal(K, 0.0)
    np.fill_diagonal(K, 1.0 - K.sum(axis=1))
    return K, rng


def annotators(K, share, rng, background=0.01):
    T = background + share * K + rng.normal(0, 0.001, K.shape)
    np.fill_diagonal(T, 0.0)
    np.fill_diagonal(T, 1.0 - T.sum(axis=1))
    return T * 1000.0  # counts


def test_mean_confusion_by_loops():
    rng = np.random.default_rng(0)
    P, Q = rng.dirichlet(np.ones(3), size=40), rng.dirichlet(np.ones(3), size=40)
    for y in range(3):
        expected = sum(q[y] * p for p, q in zip(P, Q, strict=True)) / Q[:, y].sum()
        np.testing.assert_allclose(mean_confusion(Q.T @ P, Q.sum(0))[y], expected)


@pytest.mark.parametrize("C", [8, 30])  # exact, and more cells than that
def test_slope_is_found_where_annotators_share_the_confusion(C):
    K, rng = confusion(C)
    assert 0.1 < confusion_slope(annotators(K, 0.25, rng), K) < 0.25


def test_no_slope_for_symmetric_noise_or_for_single_large_entries():
    K, rng = confusion()
    assert confusion_slope(annotators(K, 0.0, rng), K) < 0.02
    counts = annotators(K, 0.0, rng)
    most_confused = np.where(np.eye(8, dtype=bool), -1.0, K).argmax(axis=1)[:3]
    counts[np.arange(3), most_confused] += 400.0  # a look-alike
    assert confusion_slope(counts, K) < 0.02


def test_two_classes_prove_nothing():
    K = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert confusion_slope(np.array([[80.0, 20.0], [10.0, 90.0]]), K) == 0.0


def test_blame_moves_confusion_from_the_features_to_the_annotator():
    K, rng = confusion()
    T = annotators(K, 0.2, rng) / 1000.0
    assert np.allclose(blame_annotator(T, K, 0.0), T)
    moved = blame_annotator(T, K, 0.2)
    np.testing.assert_allclose(moved.sum(axis=1), 1.0)
    assert (np.diagonal(moved) < np.diagonal(T)).all()
    assert hardness.sharpening(0.0) == 1.0
    assert hardness.sharpening(0.2) > 1.0


def guesses(seed=0, n=60, C=4):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(C, 0.5), size=n)
    T = 0.8 * np.eye(C) + 0.2 * rng.dirichlet(np.ones(C), size=C)
    return P, P**2 / (P**2).sum(axis=1, keepdims=True), T, rng.integers(0, C, n)


def test_posterior_of_guesses_by_loops():
    P, clean, T, given = guesses()
    given[:5] = -1
    Q = posterior_of_guesses(clean, P, T, 0.15, given)
    for x, g in enumerate(given):
        said = np.ones(4)  # without a label
        for y in range(4):
            if g >= 0:
                said[y] = T[y, g] + 0.3 * (P[x, g] - (y == g))
        np.testing.assert_allclose(Q[x], clean[x] * said / (clean[x] @ said))


def test_who_guesses_gives_the_same_labels_as_who_knows():
    """So no likelihood of labels tells them apart, and T's average is what is shown."""
    P, _, T, _ = guesses()
    m = guessed(T, 0.15)
    np.testing.assert_allclose(m, 0.3)
    each = T + m[:, None] * (P[:, None, :] - np.eye(4))  # (n, clean, given)
    np.testing.assert_allclose(np.einsum("xy,xyg->xg", P, each), P @ T)
    K = mean_confusion(P.T @ P, P.sum(axis=0))
    average = np.einsum("xy,xyg->yg", P, each) / P.sum(axis=0)[:, None]
    np.testing.assert_allclose(average, blame_annotator(T, K, 0.15))


def test_labels_count_less_in_hard_rows_and_as_much_in_clear_ones():
    T = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    P = np.array([[0.5, 0.5, 0.0], [0.999, 0.0005, 0.0005]])
    given = np.array([0, 0])
    Q, plain = posterior_of_guesses(P, P, T, 0.2, given), posterior(P, T, given)
    assert Q[0, 0] < plain[0, 0] - 0.1
    assert abs(Q[1, 0] - plain[1, 0]) < 1e-3


def test_no_more_is_guessed_than_looks_right():
    T = np.array([[0.3, 0.7], [0.1, 0.9]])
    moved = blame_annotator(T, np.full((2, 2), 0.5), 0.33)
    assert (moved > 0.0).all()
    Q = posterior_of_guesses(np.eye(2), np.eye(2), T, 0.33, np.array([1, 0]))
    assert np.isfinite(Q).all()


def test_blame_stops_at_the_quality_that_others_bear_witness_to():
    K, rng = confusion()
    T, shares = annotators(K, 0.2, rng) / 1000.0, np.ones(8)
    full = quality(blame_annotator(T, K, 0.3), shares)
    least = 0.5 * (full + quality(T, shares))
    slope = up_to_quality(0.3, T, K, shares, least)
    assert 0.0 < slope < 0.3
    assert quality(blame_annotator(T, K, slope), shares) == pytest.approx(least, 1e-4)
    assert up_to_quality(0.3, T, K, shares, full - 0.01) == 0.3
    assert up_to_quality(0.3, T, K, shares, 1.0) == pytest.approx(0.0, abs=1e-5)
