"""Instance-dependent noise: its formula, and what moves the ambiguity share."""

from dataclasses import replace

import numpy as np
import pytest

from stct.correction.decision import decide
from stct.correction.instance_noise import (
    ambiguity_share,
    ambiguous_rows,
    class_average_transition,
    evidence,
    instance_posterior,
    mean_confusion,
    median_elasticity,
    pooled_elasticity,
    probability_of_errors,
    sharpened,
)
from stct.correction.posterior import NoiseModel
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
    for power in (0.0, 0.3, 1.0):
        P, given, T, _ = rows(power)
        shares[power], _ = ambiguity_share(P, T, given, NOISE)
    assert shares[0.0] < 0.03
    assert 0.1 * NOISE.share < shares[0.3] < 0.9 * NOISE.share
    assert shares[1.0] > 0.8 * NOISE.share
    assert shares[1.0] <= NOISE.share


def test_few_wrong_labels_leave_a_part_of_the_prior_share():
    P, given, T, _ = rows(0.0)
    few, _ = ambiguity_share(P[:60], T, given[:60], NOISE)
    many, _ = ambiguity_share(P, T, given, NOISE)
    assert few > 5 * many
    follow, given, T, _ = rows(1.0)
    speaks_for, _ = ambiguity_share(follow[:60], T, given[:60], NOISE)
    assert few < NOISE.unknown * NOISE.share < speaks_for < NOISE.share


def test_wrong_labels_say_as_much_as_there_are_of_them():
    """The share, written out from the two elasticities and their weights."""
    for power, n in ((0.0, 150), (0.5, 600), (1.0, 8000)):
        P, given, T, _ = rows(power, n=n)
        Q = P * T[:, given].T
        Q /= Q.sum(axis=1, keepdims=True)
        counts = np.stack([Q[given == g].sum(axis=0) for g in range(len(T))], axis=1)
        K = np.stack([q @ P / q.sum() for q in Q.T])
        sizes = counts.sum(axis=1) / n
        errors = n * float(sizes @ (1.0 - np.diagonal(T)))
        follows = evidence(pooled_elasticity(counts, K), NOISE.elasticity)
        weight = errors / (errors + NOISE.pooled_rows)
        expected = weight * follows + (1.0 - weight) * NOISE.unknown
        follows = evidence(median_elasticity(counts, K), NOISE.elasticity)
        weight = errors / (errors + NOISE.median_rows * len(T) ** 2)
        expected *= NOISE.share * (weight * follows + (1.0 - weight))
        found, confused = ambiguity_share(P, T, given, NOISE)
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-6)
        np.testing.assert_allclose(confused, K, atol=1e-4)


def test_two_classes_have_half_the_prior_share():
    P, given, T, _ = rows(1.0, C=2)
    found, _ = ambiguity_share(P, T, given, NOISE)
    assert found == NOISE.unknown * NOISE.share


def test_errors_nobody_sees_are_at_most_so_many_for_each_that_was_found():
    """With three classes or more the share may go down further, never up."""
    P, truth, _, _ = rows()
    _, K = ambiguity_share(P, np.eye(6), truth, NOISE)
    confused = 1.0 - float(np.diagonal(K).mean())
    for rate in (0.0, 0.001, 0.02):
        T = symmetric_transition(1.0 - rate, 6)
        found, _ = ambiguity_share(P, T, truth, NOISE)
        assert found * confused <= 1.1 * NOISE.hidden * rate
    P, truth, _, _ = rows(C=2)
    T = symmetric_transition(0.995, 2)
    found, K = ambiguity_share(P, T, truth, NOISE)
    sizes = np.bincount(truth) / len(truth)
    confused = float(sizes @ (1.0 - np.diagonal(K)))
    assert found == pytest.approx(
        NOISE.unknown * NOISE.share * NOISE.hidden * 0.005 / confused, rel=0.02
    )
    more = replace(NOISE, hidden=2 * NOISE.hidden)
    assert ambiguity_share(P, T, truth, more)[0] == pytest.approx(2 * found)


def test_evidence_is_the_place_between_none_and_enough():
    assert [evidence(v, (0.1, 0.5)) for v in (0.0, 0.1, 0.2, 0.5, 2.0)] == (
        pytest.approx([0.0, 0.0, 0.25, 1.0, 1.0])
    )


def test_features_that_know_few_classes_leave_wrong_labels_and_weakness_apart():
    """Right or wrong is then a coin's toss; sure features leave no doubt."""
    low, high = NOISE.known
    for known, expected in (
        (low - 0.1, 0.5),
        (low, 0.5),
        (0.5 * (low + high), 0.75),
        (high, 1.0),
        (1.0, 1.0),
    ):
        P = np.array([[known - 0.05, 1.05 - known], [0.05 + known, 0.95 - known]])
        P = np.minimum(P, 1.0) if known < 1.0 else np.eye(2)
        assert probability_of_errors(P, NOISE) == pytest.approx(expected)


def test_the_posterior_by_loops():
    rng = np.random.default_rng(0)
    n, C, share = 50, 4, 0.4
    clean, P = (rng.dirichlet(np.ones(C), size=n).astype(np.float32) for _ in "ab")
    T = symmetric_transition(0.7, C)
    T[0] = [0.3, 0.5, 0.1, 0.1]
    given = rng.integers(-1, C, n)
    m = ambiguous_rows(T, share, NOISE)
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
    m = ambiguous_rows(T, 0.3, NOISE)
    chance = [
        T + m[:, None] * (p - np.eye(len(T))) for p in P.astype(np.float64)
    ]  # of each row
    expected = np.einsum("iyg,iy->yg", np.array(chance), weights)
    K = mean_confusion(P.T @ P, P.sum(axis=0, dtype=np.float64))
    np.testing.assert_allclose(class_average_transition(T, K, m), expected, atol=1e-4)


def test_features_are_sharper_the_more_is_ambiguous():
    assert sharpened(3.0, 0.0, NOISE) == 3.0
    assert sharpened(3.0, 0.5, NOISE) == pytest.approx(3.0 / 0.75**2)
    assert sharpened(3.0, 0.2, NOISE) < sharpened(3.0, 0.3, NOISE)


def noise_model(errors, T, m):
    return NoiseModel(2.0, 3.0, T, m, errors)


def test_the_posterior_of_the_noise_model_averages_over_there_being_no_errors():
    rng = np.random.default_rng(0)
    n, C = 50, 4
    logits = rng.normal(size=(n, C)).astype(np.float32)
    given, T = rng.integers(-1, C, n), symmetric_transition(0.7, C)
    m = ambiguous_rows(T, 0.2, NOISE)
    clean, P = softmax(3.0 * logits), softmax(2.0 * logits)
    wrong = instance_posterior(clean, P, T, m, given)
    for errors in (1.0, 0.6, 0.5):
        found = noise_model(errors, T, m).posterior(logits, given)
        for row, label in enumerate(given):
            right = np.eye(C)[label] if label >= 0 else wrong[row]
            expected = errors * wrong[row] + (1.0 - errors) * right
            np.testing.assert_allclose(found[row], expected, rtol=1e-4)


def test_even_odds_that_there_are_errors_change_no_label():
    rng = np.random.default_rng(0)
    logits = 3.0 * rng.normal(size=(2000, 4)).astype(np.float32)
    given, T = rng.integers(0, 4, 2000), symmetric_transition(0.7, 4)
    changed = []
    for errors in (0.5, 1.0):
        Q = noise_model(errors, T, np.zeros(4)).posterior(logits, given)
        labels = decide(Q, given, np.ones(4, dtype=bool)).labels
        changed.append(int((labels != given).sum()))
    assert changed[0] == 0 < changed[1]


def test_the_average_transition_matrix_is_that_of_labels_that_are_drawn():
    P, _, T, rng = rows(0.5)
    m = ambiguous_rows(T, 0.3, NOISE)
    K = mean_confusion(P.T @ P, P.sum(axis=0, dtype=np.float64))
    model, C = noise_model(0.7, T, m), len(T)
    found, given = model.average_transition(K), np.zeros((C, C))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    clean = (P.cumsum(axis=1) > rng.random((len(P), 1))).argmax(axis=1)
    for p, y in zip(P.astype(np.float64), clean, strict=True):
        chance = T[y] + m[y] * (p - np.eye(C)[y])
        given[y] += 0.7 * chance + 0.3 * np.eye(C)[y]
    given /= given.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, given, atol=0.01)
