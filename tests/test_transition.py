import numpy as np
import pytest
import torch

from stct.correction.decision import decide
from stct.noise_model import theorems, transition


def test_accuracy_under_noise_by_simulation():
    rng = np.random.default_rng(0)
    prior = np.array([0.5, 0.3, 0.2])
    T = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
    confusion = np.array([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1], [0.0, 0.1, 0.9]])
    n = 200_000
    clean = rng.choice(3, n, p=prior)
    given = (T[clean].cumsum(1) > rng.random(n)[:, None]).argmax(1)
    predicted = (confusion[clean].cumsum(1) > rng.random(n)[:, None]).argmax(1)
    expected = (given == predicted).mean()
    got = theorems.accuracy_under_noise(prior, T, confusion)
    assert got == pytest.approx(expected, abs=0.005)


def test_theorem_1_the_perfect_classifier_is_best_on_noisy_labels():
    rng = np.random.default_rng(1)
    T = rng.dirichlet(np.ones(4), size=4)
    T[np.arange(4), np.arange(4)] = T.max(axis=1) + 0.1
    T /= T.sum(axis=1, keepdims=True)
    prior = rng.dirichlet(np.ones(4))
    perfect = theorems.accuracy_under_noise(prior, T, np.eye(4))
    assert perfect == pytest.approx((prior * np.diagonal(T)).sum())
    for _ in range(200):
        other = rng.dirichlet(np.ones(4), size=4)
        assert theorems.accuracy_under_noise(prior, T, other) < perfect


def test_learnable_is_checked_for_each_class():
    T = np.array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0], [0.4, 0.2, 0.4]])
    assert theorems.is_learnable(T).tolist() == [True, False, False]


def test_theorem_2_bound_and_interval_are_inverses():
    assert theorems.hoeffding_bound(1000, 0.05) == pytest.approx(2 * np.exp(-5.0))
    half = theorems.hoeffding_interval(1000, 0.95)
    assert theorems.hoeffding_bound(1000, half) == pytest.approx(0.05)
    assert theorems.hoeffding_bound(1, 0.1) == 1.0


def test_posterior_is_bayes_rule():
    rng = np.random.default_rng(0)
    P, T = rng.dirichlet(np.ones(3), size=5), rng.dirichlet(np.ones(3), size=3)
    given = np.array([0, 1, 2, 0, -1])
    got = transition.posterior(P, T, given)
    for i, j in enumerate(given):
        weights = [P[i, c] * (T[c, j] if j >= 0 else 1.0) for c in range(3)]
        np.testing.assert_allclose(got[i], np.array(weights) / sum(weights))


def test_posterior_of_an_impossible_label_falls_back_on_the_features():
    P, T = np.array([[1.0, 0.0]]), np.eye(2)
    np.testing.assert_array_equal(transition.posterior(P, T, np.array([1])), P)


def test_count_transition_by_loops():
    rng = np.random.default_rng(0)
    Q, given = rng.dirichlet(np.ones(3), size=50), rng.integers(-1, 3, 50)
    counts = np.zeros((3, 3))
    for q, j in zip(Q, given, strict=True):
        if j >= 0:
            counts[:, j] += q
    expected = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(transition.count_transition(Q, given), expected)


def test_count_transition_of_a_class_nobody_belongs_to():
    T = transition.count_transition(np.array([[1.0, 0.0]]), np.array([0]))
    np.testing.assert_array_equal(T, np.eye(2))


def sample_counts(T, rows, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(rows, row) for row in T]).astype(float)


def test_sparse_transition_pools_what_is_only_chance():
    T = transition.symmetric_transition(0.7, 20)
    counts = sample_counts(T, rows=100)
    proven = transition.sparse_transition(counts, 2000)
    raw = counts / counts.sum(axis=1, keepdims=True)
    assert np.abs(proven - T).max() < 0.02 < np.abs(raw - T).max()


def test_sparse_transition_keeps_what_stands_out():
    T = transition.symmetric_transition(0.9, 10)
    T[3] = 0.01
    T[3, 3], T[3, 5] = 0.5, 0.42  # one class, mostly called one other
    proven = transition.sparse_transition(sample_counts(T, rows=500), 5000)
    assert proven[3, 3] == pytest.approx(0.5, abs=0.06)
    assert proven[3, 5] == pytest.approx(0.42, abs=0.06)
    np.testing.assert_allclose(proven.sum(axis=1), 1.0)
    others = np.delete(np.diagonal(proven), 3)
    np.testing.assert_allclose(others, 0.9, atol=0.05)


def test_anchors_are_the_clearest_rows_of_each_predicted_class():
    S = np.array([[9.0, 0], [8, 0], [1, 0], [0.5, 0], [0.1, 0]] * 200)
    S = np.vstack([S, S[:, ::-1]])
    given = (S[:, 1] > S[:, 0]).astype(int)
    unclear = np.abs(S[:, 0] - S[:, 1]) < 8.5
    given[unclear] = 1 - given[unclear]  # only the clearest fifth is labelled right
    T = transition.anchor_transition(S, given)
    assert (np.diagonal(T) > 0.95).all()


Q = np.array(
    [
        [0.7, 0.2, 0.1],  # best 0
        [0.5, 0.4, 0.1],  # best 0, odds 1.25 against 1
        [0.1, 0.1, 0.8],  # best 2
        [0.3, 0.6, 0.1],
    ]
)
GIVEN = np.array([0, 1, 0, -1])
LEARNABLE = np.ones(3, bool)


def test_decision_at_odds_of_one():
    got = decide(Q, GIVEN, LEARNABLE, 1.0)
    assert got.action.tolist() == ["keep", "relabel", "relabel", "fill"]
    assert got.labels.tolist() == [0, 0, 2, 1]
    np.testing.assert_allclose(got.confidence, [0.7, 0.5, 0.8, 0.6])


def test_decision_abstains_below_the_odds_and_keeps_the_given_label():
    got = decide(Q, GIVEN, LEARNABLE, 2.0)
    assert got.action.tolist() == ["keep", "abstain", "relabel", "fill"]
    assert got.labels.tolist() == [0, 1, 2, 1]
    assert got.confidence[1] == pytest.approx(0.4)


def test_decision_abstains_where_theorem_1_fails():
    got = decide(Q, GIVEN, np.array([True, True, False]), 1.0)
    assert got.action.tolist() == ["keep", "relabel", "abstain", "fill"]
    assert got.labels[2] == 0
    got = decide(Q, GIVEN, np.array([False, True, True]), 1.0)
    assert got.action.tolist() == ["abstain", "abstain", "abstain", "fill"]
    assert got.labels.tolist() == [0, 1, 0, 1]


def test_curvature_is_the_fisher_information_of_a_given_label_by_autograd():
    rng = np.random.default_rng(0)
    T = rng.dirichlet(np.ones(4), size=4)
    logits = rng.normal(size=(6, 4))
    for row in logits:
        z = torch.tensor(row, requires_grad=True)
        total = 0.0
        for given in range(4):
            q = (torch.softmax(z, 0) @ torch.tensor(T))[given]
            (slope,) = torch.autograd.grad(torch.log(q), z)
            total += q.item() * (slope**2).sum().item()  # E[(d log q / dz)^2]
        P = np.exp(row) / np.exp(row).sum()
        assert transition.curvature(P[None], T)[0] == pytest.approx(total / 3)
