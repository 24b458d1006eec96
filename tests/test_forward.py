import numpy as np
import pytest
import torch

from stct.noise_model.likelihood import ForwardModel
from stct.noise_model.transition import symmetric_transition
from stct.numeric.engine import Local
from stct.numeric.tiles import TILE, some_of


def problem(n=300, k=4, C=3, seed=0, missing=20, locked=30):
    rng = np.random.default_rng(seed)
    U = np.column_stack([np.ones(n), rng.normal(size=(n, k - 1))]).astype(np.float32)
    W = rng.normal(size=(k, C))
    T = rng.dirichlet(np.ones(C), size=C)
    given = rng.integers(0, C, n)
    given[:missing] = -1
    fixed = np.zeros(n, bool)
    fixed[missing : missing + locked] = True
    return U, W, T, given, fixed


def naive(U, W, T, given, fixed):
    """Row by row, in float64: log-likelihood, P, Q, counts."""
    C = len(T)
    total, counts, all_P, all_Q = 0.0, np.zeros((C, C)), [], []
    for u, j, certain in zip(U.astype(float), given, fixed, strict=True):
        logits = u @ W
        P = np.exp(logits) / np.exp(logits).sum()
        if j < 0:
            evidence = np.ones(C)
        elif certain:
            evidence = np.eye(C)[j]
        else:
            evidence = T[:, j]
        total += np.log((P * evidence).sum())
        Q = P * evidence / (P * evidence).sum()
        if j >= 0 and not certain:
            counts[:, j] += Q
        all_P.append(P)
        all_Q.append(Q)
    return total, counts, np.array(all_P), np.array(all_Q)


def test_likelihood_counts_and_posterior_by_loops():
    U, W, T, given, fixed = problem()
    model = ForwardModel(U, given, fixed, 3)
    total, counts, P, Q = naive(U, W, T, given, fixed)
    sums = model.sums(W, T)
    assert sums.log_likelihood == pytest.approx(total, rel=1e-5)
    np.testing.assert_allclose(sums.counts, counts, rtol=1e-4)
    got_P, got_Q = model.posterior(W, T)
    np.testing.assert_allclose(got_P, P, atol=1e-5)
    np.testing.assert_allclose(got_Q, Q, atol=1e-5)
    rows = model.log_likelihood(W, T)
    assert rows.sum(dtype=float) == pytest.approx(total, rel=1e-5)


def test_some_rows_teach_and_all_are_predicted():
    U, W, T, given, fixed = problem()
    some = some_of(slice(0, 300), 4)
    model = ForwardModel(U, given, fixed, 3, stride=4)
    expected = ForwardModel(U[some], given[some], fixed[some], 3).sums(W, T)
    for got, want in zip(model.sums(W, T), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(model.logits(W)(slice(0, len(U))), U @ W, atol=1e-5)


@pytest.mark.parametrize("last", range(1, 5))
def test_a_last_tile_may_have_no_row_that_teaches(last):
    U, W, T, given, fixed = problem(n=TILE + last)
    picked = [some_of(rows, 100) for rows in (slice(0, TILE), slice(TILE, TILE + last))]
    some = np.concatenate([picked[0], TILE + picked[1]])
    sums = ForwardModel(U, given, fixed, 3, stride=100).sums(W, T)
    expected = ForwardModel(U[some], given[some], fixed[some], 3).sums(W, T)
    assert sums.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-5)


def test_gradient_is_autograd_of_the_likelihood():
    U, W, T, given, fixed = problem(missing=0, locked=0)
    w = torch.tensor(W, requires_grad=True)
    P = torch.softmax(torch.tensor(U, dtype=torch.float64) @ w, dim=1)
    noisy = P @ torch.tensor(T)
    noisy[torch.arange(len(U)), torch.tensor(given)].log().sum().backward()
    sums = ForwardModel(U, given, fixed, 3).sums(W, T)
    np.testing.assert_allclose(sums.gradient, w.grad.numpy(), rtol=1e-3, atol=1e-3)


def test_offset_is_added_to_the_logits():
    U, W, T, given, fixed = problem()
    offset = (U @ W).astype(np.float32)
    plain = ForwardModel(U, given, fixed, 3).sums(W, T)
    moved = ForwardModel(U, given, fixed, 3, offset=offset).sums(0 * W, T)
    assert moved.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-5)


def noisy_classes(n=4000, C=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, n)
    U = np.column_stack([np.ones(n), rng.normal(size=(n, 2)) * 0.7])
    U[:, 1:] += 2.0 * np.array([[0, 1], [1, -1], [-1, -1]])[truth]
    T = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.05, 0.05, 0.9]])
    given = (T[truth].cumsum(1) > rng.random(n)[:, None]).argmax(1)
    return U.astype(np.float32), given, truth, T


def test_fit_recovers_the_annotator_without_clean_labels():
    U, given, truth, T = noisy_classes()
    model = ForwardModel(U, given, np.zeros(len(U), bool), 3)
    start = symmetric_transition(0.8, 3)
    W, found = model.fit(
        np.zeros((3, 3)),
        start,
        precision=np.full(3, 0.01),
        pseudo_rows=20 * start,
        max_steps=200,
    )
    np.testing.assert_allclose(found, T, atol=0.06)
    P, Q = model.posterior(W, found)
    assert (P.argmax(1) == truth).mean() > 0.97
    assert (Q.argmax(1) == truth).mean() >= (P.argmax(1) == truth).mean()


def test_fit_climbs_and_a_fixed_transition_stays():
    U, given, _, T = noisy_classes()
    model = ForwardModel(U, given, np.zeros(len(U), bool), 3)
    W0 = np.zeros((3, 3))
    W, same = model.fit(W0, T, precision=np.ones(3), max_steps=20)
    assert same is T
    assert model.sums(W, T).log_likelihood > model.sums(W0, T).log_likelihood
    tight, _ = model.fit(W0, T, precision=np.full(3, 1e9), max_steps=20)
    np.testing.assert_allclose(tight, W0, atol=1e-3)


def test_a_basis_restricts_the_step():
    U, given, _, T = noisy_classes()
    model = ForwardModel(U, given, np.zeros(len(U), bool), 3)
    basis = np.array([[0.0], [1.0], [0.0]])
    W, _ = model.fit(np.zeros((3, 3)), T, precision=[1.0], basis=basis, max_steps=20)
    assert (W[[0, 2]] == 0).all()
    assert (W[1] != 0).any()


def test_the_same_bits_for_any_number_of_threads():
    U, W, T, given, fixed = problem(n=3 * TILE + 5)
    one = ForwardModel(U, given, fixed, 3, engine=Local(1)).sums(W, T)
    two = ForwardModel(U, given, fixed, 3, engine=Local(2)).sums(W, T)
    assert one.log_likelihood == two.log_likelihood
    np.testing.assert_array_equal(one.gradient, two.gradient)
    np.testing.assert_array_equal(one.counts, two.counts)
