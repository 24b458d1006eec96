import numpy as np
import pytest

from stct.correction import instance_noise
from stct.correction.instance_noise import (
    Trend,
    blame_annotator,
    error_trend,
    guessed,
    guessed_share,
    mean_confusion,
    posterior_of_guesses,
    up_to_quality,
)
from stct.noise_model.transition import posterior, quality


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


def errors_in_proportion(K, share, power=1.0, rate=0.2):
    """Counts of annotators who err in proportion to a power of K, mixed with even."""
    C = len(K)
    off = np.where(np.eye(C, dtype=bool), 0.0, K**power)
    T = rate * (share * C * off / off.sum() + (1.0 - share) / (C - 1))
    np.fill_diagonal(T, 0.0)
    np.fill_diagonal(T, 1.0 - T.sum(axis=1))
    return T * 1000.0


def test_trend_by_loops():
    K, rng = confusion(4)
    counts = annotators(K, 0.3, rng)
    T = counts / counts.sum(axis=1, keepdims=True)
    cells = [(y, g) for y in range(4) for g in range(4) if y != g]
    pairs = [(a, b) for i, a in enumerate(cells) for b in cells[:i]]
    slopes = [(T[b] - T[a]) / (K[b] - K[a]) for a, b in pairs]
    one_name = [(T[b] - T[a]) / (K[b] - K[a]) for a, b in pairs if a[1] == b[1]]
    k, t = (np.array([M[cell] for cell in cells]) for M in (K, T))
    unit = k.mean() / t.mean()
    trend = error_trend(counts, K)
    assert trend.elasticity == pytest.approx(unit * np.median(slopes))
    assert trend.one_name == pytest.approx(unit * np.median(one_name))
    squares = np.polyfit(k, t, 1)[0]
    assert trend.graded == pytest.approx(min(np.median(slopes) / squares, 1.0))
    assert trend.least < trend.elasticity


@pytest.mark.parametrize("C", [8, 30])  # exact, and more cells than that
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_elasticity_is_the_share_of_errors_in_proportion_to_the_confusion(C, share):
    K, _ = confusion(C)
    trend = error_trend(errors_in_proportion(K, share), K)
    assert trend.elasticity == pytest.approx(share, abs=0.05 + 0.15 * share)
    assert (trend.least > 0.3 * share) if share else (abs(trend.least) < 0.02)


def test_errors_that_p_took_up_are_found():
    """Of errors with the elasticity of people, a part in proportion to K is missing."""
    K, _ = confusion(10, seed=1)
    whole = errors_in_proportion(K, instance_noise.ALL_ERRORS) / 1000.0
    taken = 0.3 * (1.0 - np.diagonal(whole)).mean()  # share of rows
    off = np.where(np.eye(10, dtype=bool), 0.0, K)
    left = whole - taken * 10 * off / off.sum()
    np.fill_diagonal(left, 0.0)
    np.fill_diagonal(left, 1.0 - left.sum(axis=1))
    trend = error_trend(1000.0 * left, K)
    share = guessed_share(trend, 1e6 * left, K)
    found = 1.0 - np.diagonal(blame_annotator(left, K, share)).mean()
    assert found == pytest.approx((1.0 - np.diagonal(whole)).mean(), abs=0.01)
    # Errors that are all in T, look-alikes or not, are not found twice.
    assert guessed_share(error_trend(1e6 * whole, K), 1e6 * whole, K) < 0.03


def test_nothing_was_guessed_under_symmetric_noise_or_in_single_large_entries():
    K, rng = confusion()
    counts = annotators(K, 0.0, rng)
    assert guessed_share(error_trend(counts, K), counts, K) == 0.0
    most_confused = np.where(np.eye(8, dtype=bool), -1.0, K).argsort(axis=1)[:, -2:]
    for few in (1, 2):  # look-alikes of each class
        called = counts.copy()
        for y in range(8):
            called[y, most_confused[y, :few]] += 400.0
        assert guessed_share(error_trend(called, K), called, K) == 0.0


def test_what_is_hardly_proven_counts_for_little_and_more_has_an_end():
    K, rng = confusion()
    counts = annotators(K, 0.2, rng)

    def trend(elasticity, least, graded, one_name=0.3, rows=1e6):
        return Trend(elasticity, least, one_name, graded, rows)

    surely = guessed_share(trend(0.3, 0.2, 0.5), counts, K)
    assert surely > 0.0
    assert guessed_share(trend(0.3, 0.06, 0.5), counts, K) < 0.5 * surely
    assert guessed_share(trend(0.3, 0.2, 0.22), counts, K) < 0.5 * surely
    assert guessed_share(trend(0.0, 0.2, 0.5), counts, K) == pytest.approx(
        guessed_share(trend(0.1, 0.2, 0.5), counts, K)
    )
    assert guessed_share(trend(0.8, 0.6, 0.9), counts, K) == 0.0
    assert guessed_share(trend(0.3, 0.2, 0.5, one_name=0.1), counts, K) == 0.0
    few = trend(0.3, 0.2, 0.5, rows=20 * 8 * 8)  # twenty for each entry of T
    assert guessed_share(few, counts, K) == pytest.approx(surely / 2, 0.01)


def test_large_classes_that_are_named_more_often_are_no_trend():
    """Labels drawn from all labels, and features that think of large classes first."""
    K, rng = confusion()
    share = 0.6 ** np.arange(8)
    share /= share.sum()
    named = np.where(np.eye(8, dtype=bool), 0.0, K * share * 8)
    np.fill_diagonal(named, 1.0 - named.sum(axis=1))
    T = 0.7 * np.eye(8) + 0.3 * share
    counts = 50_000 * share[:, None] * T
    assert guessed_share(error_trend(counts, named), counts, named) == 0.0


def test_a_class_of_a_few_rows_is_no_trend_and_leaves_t_a_matrix():
    K, rng = confusion()
    counts = annotators(K, 0.0, rng)
    rare, odd = np.pad(counts, (0, 1)), np.pad(K, (0, 1))
    rare[8, 8] = 1.0
    odd[8, 8] = 1.0
    assert guessed_share(error_trend(rare, odd), rare, odd) == 0.0
    empty = mean_confusion(np.zeros((2, 2)), np.zeros(2))
    T = np.array([[0.8, 0.2], [0.3, 0.7]])
    np.testing.assert_allclose(blame_annotator(T, empty, 0.4).sum(axis=1), 1.0)


def test_two_classes_prove_nothing():
    K = np.array([[0.9, 0.1], [0.2, 0.8]])
    counts = np.array([[80.0, 20.0], [10.0, 90.0]])
    assert guessed_share(error_trend(counts, K), counts, K) == 0.0


def test_blame_moves_confusion_from_the_features_to_the_annotator():
    K, rng = confusion()
    T = annotators(K, 0.2, rng) / 1000.0
    assert np.allclose(blame_annotator(T, K, 0.0), T)
    moved = blame_annotator(T, K, 0.2)
    np.testing.assert_allclose(moved.sum(axis=1), 1.0)
    assert (np.diagonal(moved) < np.diagonal(T)).all()
    assert instance_noise.sharpening(0.0) == 1.0
    assert instance_noise.sharpening(0.2) > 1.0


def guesses(seed=0, n=60, C=4):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(C, 0.5), size=n)
    T = 0.8 * np.eye(C) + 0.2 * rng.dirichlet(np.ones(C), size=C)
    return P, P**2 / (P**2).sum(axis=1, keepdims=True), T, rng.integers(0, C, n)


def test_posterior_of_guesses_by_loops():
    P, clean, T, given = guesses()
    given[:5] = -1
    Q = posterior_of_guesses(clean, P, T, 0.3, given)
    for x, g in enumerate(given):
        said = np.ones(4)  # without a label
        for y in range(4):
            if g >= 0:
                said[y] = T[y, g] + 0.3 * (P[x, g] - (y == g))
        np.testing.assert_allclose(Q[x], clean[x] * said / (clean[x] @ said))


def test_who_guesses_gives_the_same_labels_as_who_knows():
    """So no likelihood of labels tells them apart, and T's average is what is shown."""
    P, _, T, _ = guesses()
    m = guessed(T, 0.3)
    np.testing.assert_allclose(m, 0.3)
    each = T + m[:, None] * (P[:, None, :] - np.eye(4))  # (n, clean, given)
    np.testing.assert_allclose(np.einsum("xy,xyg->xg", P, each), P @ T)
    K = mean_confusion(P.T @ P, P.sum(axis=0))
    average = np.einsum("xy,xyg->yg", P, each) / P.sum(axis=0)[:, None]
    np.testing.assert_allclose(average, blame_annotator(T, K, 0.3))


def test_labels_count_less_in_hard_rows_and_as_much_in_clear_ones():
    T = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    P = np.array([[0.5, 0.5, 0.0], [0.999, 0.0005, 0.0005]])
    given = np.array([0, 0])
    Q, plain = posterior_of_guesses(P, P, T, 0.4, given), posterior(P, T, given)
    assert Q[0, 0] < plain[0, 0] - 0.1
    assert abs(Q[1, 0] - plain[1, 0]) < 1e-3


def test_no_more_is_guessed_than_looks_right():
    T = np.array([[0.3, 0.7], [0.1, 0.9]])
    moved = blame_annotator(T, np.full((2, 2), 0.5), 0.66)
    assert (moved > 0.0).all()
    Q = posterior_of_guesses(np.eye(2), np.eye(2), T, 0.66, np.array([1, 0]))
    assert np.isfinite(Q).all()


def test_blame_stops_at_the_quality_that_others_bear_witness_to():
    K, rng = confusion()
    T, shares = annotators(K, 0.2, rng) / 1000.0, np.ones(8)
    full = quality(blame_annotator(T, K, 0.3), shares)
    least = 0.5 * (full + quality(T, shares))
    share = up_to_quality(0.3, T, K, shares, least)
    assert 0.0 < share < 0.3
    assert quality(blame_annotator(T, K, share), shares) == pytest.approx(least, 1e-4)
    assert up_to_quality(0.3, T, K, shares, full - 0.01) == 0.3
    assert up_to_quality(0.3, T, K, shares, 1.0) == pytest.approx(0.0, abs=1e-5)
