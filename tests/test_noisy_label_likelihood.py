"""The noisy-label likelihood against loops, autograd and known answers."""

import numpy as np
import pytest
import torch

from stct.noise_model.likelihood import LinearLogits, ScaledLogits
from stct.noise_model.likelihood_tile import LabelCodes
from stct.noise_model.optimiser import minimise, minimise_bounded
from stct.noise_model.priors import ErrorPrior, SharpnessPrior
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


def linear(U, given, fixed, threads=1, **more):
    engine = Local(threads)
    return LinearLogits(U, LabelCodes(given, fixed, 3, engine), engine, **more)


def scaled(parts, given, fixed, C=3):
    return ScaledLogits(parts, LabelCodes(given, fixed, C, Local()), Local())


def naive(logits, T, given, fixed):
    """Log-likelihood and counts, row by row in float64."""
    C = len(T)
    total, counts = 0.0, np.zeros((C, C))
    for row, j, certain in zip(logits.astype(float), given, fixed, strict=True):
        P = np.exp(row) / np.exp(row).sum()
        evidence = np.ones(C) if j < 0 else np.eye(C)[j] if certain else T[:, j]
        total += np.log((P * evidence).sum())
        if j >= 0 and not certain:
            counts[:, j] += P * evidence / (P * evidence).sum()
    return total, counts


def test_likelihood_and_counts_by_loops():
    U, W, T, given, fixed = problem()
    total, counts = naive(U @ W, T, given, fixed)
    assert linear(U, given, fixed).sums(W, T).log_likelihood == pytest.approx(
        total, rel=1e-5
    )
    logits = (U @ W).astype(np.float32)
    sums = scaled([0.3 * logits, 0.7 * logits], given, fixed).sums(
        np.ones(2), T, locked=True
    )
    assert sums.log_likelihood == pytest.approx(total, rel=1e-5)
    np.testing.assert_allclose(sums.counts, counts, rtol=1e-4)


def test_locked_rows_are_as_good_as_no_label_unless_asked():
    U, W, T, given, fixed = problem()
    logits = (U @ W).astype(np.float32)
    sums = scaled([logits], given, fixed).sums(np.ones(1), T)
    free = naive(logits, T, np.where(fixed, -1, given), np.zeros(300, bool))
    assert sums.log_likelihood == pytest.approx(free[0], rel=1e-5)


@pytest.mark.parametrize("locked", [0, 30])
def test_gradients_are_those_of_autograd(locked):
    U, W, T, given, fixed = problem(missing=0, locked=locked)
    w = torch.tensor(W, requires_grad=True)
    P = torch.softmax(torch.tensor(U, dtype=torch.float64) @ w, dim=1)
    rows = torch.arange(300), torch.tensor(given)
    noisy = torch.where(torch.tensor(fixed), P[rows], (P @ torch.tensor(T))[rows])
    noisy.log().sum().backward()
    sums = linear(U, given, fixed).sums(W, T)
    np.testing.assert_allclose(sums.gradient, w.grad.numpy(), rtol=1e-3, atol=1e-3)


def test_gradient_in_the_scales_is_that_of_autograd():
    U, W, T, given, fixed = problem(missing=0, locked=0)
    parts = [(U @ W).astype(np.float32), U[:, :3].copy()]
    scales = torch.tensor([0.8, 0.4], dtype=torch.float64, requires_grad=True)
    logits = sum(
        s * torch.tensor(part, dtype=torch.float64)
        for s, part in zip(scales, parts, strict=True)
    )
    noisy = torch.softmax(logits, dim=1) @ torch.tensor(T)
    noisy[torch.arange(300), torch.tensor(given)].log().sum().backward()
    sums = scaled(parts, given, fixed).sums(np.array([0.8, 0.4]), T)
    np.testing.assert_allclose(sums.gradient, scales.grad.numpy(), rtol=1e-4)


def test_some_rows_teach_and_all_are_predicted():
    U, W, T, given, fixed = problem()
    some = some_of(slice(0, 300), 4)
    model = linear(U, given, fixed, stride=4)
    expected = linear(U[some], given[some], fixed[some]).sums(W, T)
    for got, want in zip(model.sums(W, T)[:2], expected[:2], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(model.logits(W)(slice(0, len(U))), U @ W, atol=1e-5)


@pytest.mark.parametrize("last", range(1, 5))
def test_a_last_tile_may_have_no_row_that_teaches(last):
    U, W, T, given, fixed = problem(n=TILE + last)
    picked = [some_of(rows, 100) for rows in (slice(0, TILE), slice(TILE, TILE + last))]
    some = np.concatenate([picked[0], TILE + picked[1]])
    sums = linear(U, given, fixed, stride=100).sums(W, T)
    expected = linear(U[some], given[some], fixed[some]).sums(W, T)
    assert sums.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-5)


def test_offset_is_added_to_the_logits():
    U, W, T, given, fixed = problem()
    offset = (U @ W).astype(np.float32)
    plain = linear(U, given, fixed).sums(W, T)
    moved = linear(U, given, fixed, offset=offset).sums(0 * W, T)
    assert moved.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-5)


def noisy_classes(n=4000, C=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, n)
    U = np.column_stack([np.ones(n), rng.normal(size=(n, 2)) * 0.7])
    U[:, 1:] += 2.0 * np.array([[0, 1], [1, -1], [-1, -1]])[truth]
    T = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.05, 0.05, 0.9]])
    given = (T[truth].cumsum(1) > rng.random(n)[:, None]).argmax(1)
    return U.astype(np.float32), given, truth, T


def test_a_fit_climbs_as_far_as_its_prior_lets_it():
    U, given, truth, T = noisy_classes()
    model = linear(U, given, np.zeros(len(U), bool))
    W0 = np.zeros((3, 3))
    free = model.fit(W0, T, precision=np.full(3, 0.01), max_steps=100)
    assert ((U @ free).argmax(axis=1) == truth).mean() > 0.97
    tight = model.fit(W0, T, precision=np.full(3, 1e9), max_steps=20)
    np.testing.assert_allclose(tight, W0, atol=1e-3)
    curved = model.fit(
        W0, T, precision=np.ones(3), curvature=np.full(3, 500.0), max_steps=100
    )
    plain = model.fit(W0, T, precision=np.ones(3), max_steps=300, tolerance=1e-12)
    np.testing.assert_allclose(curved, plain, atol=0.05)


def test_a_basis_restricts_the_step():
    U, given, _, T = noisy_classes()
    basis = np.array([[0.0], [1.0], [0.0]])
    model = linear(U, given, np.zeros(len(U), bool))
    W = model.fit(np.zeros((3, 3)), T, precision=[1.0], basis=basis, max_steps=20)
    assert (W[[0, 2]] == 0).all()
    assert (W[1] != 0).any()


ANY_SHARPNESS, ANY_ERRORS = SharpnessPrior(1.0, 0.0), ErrorPrior(0.0, 0.0)


def gaussian_classes(T, n=20_000, factor=0.5):
    """True log-odds of overlapping classes, times a factor, and noise by T."""
    rng, C = np.random.default_rng(0), len(T)
    truth = rng.integers(0, C, n)
    X = rng.normal(size=(n, C)) + 2.0 * np.eye(C)[truth]
    given = (T[truth].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    logits = (factor * 2.0 * X).astype(np.float32)
    return scaled([logits], given, np.zeros(n, bool), C)


SYMMETRIC = symmetric_transition(0.6, 4)


def test_sharpness_and_the_error_rate_are_found_together():
    likelihood = gaussian_classes(SYMMETRIC)
    start = symmetric_transition(0.9, 4)
    for exact in (True, False):
        sharpness, found = likelihood.fit_sharpness(
            0.5, start, prior=ANY_SHARPNESS, errors=ANY_ERRORS, exact=exact
        )
        assert sharpness == pytest.approx(2.0, rel=0.08)
        np.testing.assert_allclose(found, SYMMETRIC, atol=0.02)


def test_without_a_prior_of_errors_the_transition_matrix_stays():
    likelihood = gaussian_classes(SYMMETRIC)
    sharpness, same = likelihood.fit_sharpness(0.5, SYMMETRIC, prior=ANY_SHARPNESS)
    assert sharpness == pytest.approx(2.0, rel=0.08)
    np.testing.assert_allclose(same, SYMMETRIC)


@pytest.mark.parametrize("rates", [(0.05, 0.4), (0.4, 0.05), (0.0, 0.3), (0.2, 0.2)])
def test_of_two_classes_each_has_an_error_rate_of_its_own(rates):
    T = np.array([[1.0 - rates[0], rates[0]], [rates[1], 1.0 - rates[1]]])
    sharpness, found = gaussian_classes(T).fit_sharpness(
        0.5, symmetric_transition(0.8, 2), prior=ANY_SHARPNESS, errors=ANY_ERRORS
    )
    assert sharpness == pytest.approx(2.0, rel=0.15)
    np.testing.assert_allclose(found, T, atol=0.03)


def test_of_more_classes_all_diagonal_entries_have_one_factor():
    T = np.array([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.0, 0.1, 0.9]])
    start = T * np.where(np.eye(3), 3.0, 1.0)
    start /= start.sum(axis=1, keepdims=True)
    _, found = gaussian_classes(T).fit_sharpness(
        2.0, start, prior=ANY_SHARPNESS, errors=ANY_ERRORS
    )
    np.testing.assert_allclose(found, T, atol=0.02)
    odds = np.diagonal(found) / (1.0 - np.diagonal(found))
    before = np.diagonal(start) / (1.0 - np.diagonal(start))
    np.testing.assert_allclose(odds / before, odds[0] / before[0], rtol=1e-6)


@pytest.mark.parametrize("T", [SYMMETRIC, np.array([[0.9, 0.1], [0.4, 0.6]])])
def test_the_fit_is_where_the_posterior_density_is_highest(T):
    """Priors of few rows count: no other place nearby is better."""
    likelihood = gaussian_classes(T, n=200)
    prior, errors = SharpnessPrior(4.0, 30.0), ErrorPrior(30.0, 270.0)
    sizes = likelihood.labels.sizes / 200

    def log_posterior(sharpness, rows):
        value = likelihood.sums(np.array([sharpness]), rows).log_likelihood
        value += prior.log_density(sharpness)
        return value + errors.log_density(float(sizes @ (1.0 - np.diagonal(rows))))

    sharpness, found = likelihood.fit_sharpness(1.0, T, prior=prior, errors=errors)
    best = log_posterior(sharpness, found)
    for factor in (0.95, 1.05):
        assert log_posterior(sharpness * factor, found) < best
        for of in ([0], [1]) if len(T) == 2 else (range(len(T)),):
            rows = found.copy()
            rows[of, of] *= factor
            rows /= rows.sum(axis=1, keepdims=True)
            assert log_posterior(sharpness, rows) < best


def test_the_prior_of_the_sharpness_pulls():
    likelihood = gaussian_classes(SYMMETRIC)
    tight, _ = likelihood.fit_sharpness(1.0, SYMMETRIC, prior=SharpnessPrior(3.0, 1e7))
    assert tight == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_the_usual_error_rate_moves_few_rows_and_leaves_many_alone(rate):
    usual, known = ErrorPrior(5.0, 95.0), SharpnessPrior(2.0, 100.0)
    true, start = symmetric_transition(1.0 - rate, 4), symmetric_transition(0.95, 4)
    rates = {}
    for n in (40, 20_000):
        likelihood = gaussian_classes(true, n)
        for errors in (ANY_ERRORS, usual):
            _, T = likelihood.fit_sharpness(2.0, start, prior=known, errors=errors)
            rates[n, errors] = 1.0 - T[0, 0]
    assert rates[20_000, usual] == pytest.approx(rate, abs=0.02)
    assert rates[20_000, usual] == pytest.approx(rates[20_000, ANY_ERRORS], abs=2e-3)
    if rate < 0.3:  # not too far from what is usual
        assert 0.05 < rates[40, usual] < 0.5 * rates[40, ANY_ERRORS]


def test_a_part_that_says_nothing_gets_no_weight():
    T = SYMMETRIC
    likelihood = gaussian_classes(T)
    logits = likelihood._parts[0]
    rng = np.random.default_rng(1)
    nonsense = rng.normal(size=logits.shape).astype(np.float32)
    both = ScaledLogits([logits, nonsense], likelihood.labels, Local())
    scales = both.fit_scales(np.array([0.5, 0.5]), T)
    assert scales[0] == pytest.approx(2.0, rel=0.08)
    assert 0.0 <= scales[1] < 0.05
    twice = ScaledLogits([logits, -logits], likelihood.labels, Local())
    assert twice.fit_scales(np.array([0.5, 0.5]), T)[1] >= 0.0


def test_the_same_bits_for_any_number_of_threads():
    U, W, T, given, fixed = problem(n=3 * TILE + 5, k=70)
    one, two = (linear(U, given, fixed, threads=t).sums(W, T) for t in (1, 2))
    assert one.log_likelihood == two.log_likelihood
    np.testing.assert_array_equal(one.gradient, two.gradient)


def test_a_known_curvature_saves_nearly_all_steps():
    scales, lowest = np.logspace(3, -3, 30), np.linspace(-1.0, 2.0, 30)
    calls = [0, 0]

    def valley(number):
        def objective(place):
            calls[number] += 1
            slope = scales * (place - lowest)
            return float(0.5 * (place - lowest) @ slope), slope

        return objective

    start = np.zeros(30)
    minimise(valley(0), start, None, max_steps=1000, tolerance=1e-15)
    end = minimise(valley(1), start, scales, max_steps=1000, tolerance=1e-15)
    np.testing.assert_allclose(end, lowest, atol=1e-5)
    assert calls[1] <= 6 < 60 < calls[0]


def test_a_bounded_descent_ends_where_the_slopes_are_0_or_at_a_bound():
    """Values have the precision of float32, slopes know the place better."""
    lowest = np.array([0.3, -2.0, 5.0])

    def valley(place):
        step = place - lowest
        value = np.float32(100.0 + 0.5 * step @ step + 0.1 * (step**4).sum())
        return float(value), step + 0.4 * step**3

    inside = minimise_bounded(valley, np.zeros(3), [(-8.0, 8.0)] * 3)
    np.testing.assert_allclose(inside, lowest, atol=1e-5)
    bounds = [(-8.0, 8.0), (0.0, None), (-8.0, 4.0)]
    for exact in (True, False):
        end = minimise_bounded(valley, np.ones(3), bounds, exact=exact)
        np.testing.assert_allclose(end, [0.3, 0.0, 4.0], atol=0.02)
        assert (end[1:] == [0.0, 4.0]).all()


def test_the_last_step_asks_for_nothing_outside_the_bounds():
    """The slope is 0 at 100 only; there the factors of T would overflow."""
    asked = []

    def objective(place):
        asked.append(float(place[0]))
        return -1e-7 * place[0] + 5e-10 * place[0] ** 2, -1e-7 + 1e-9 * place

    best = minimise_bounded(objective, np.zeros(1), [(-8.0, 8.0)])
    assert max(map(abs, asked)) <= 8.0
    assert abs(best[0]) <= 8.0
