"""Votes, annotators and the likelihood, against naive versions."""

import numpy as np
import pytest
from crowds import crowd
from scipy.optimize import check_grad
from scipy.special import gammaln
from scipy.stats import norm

from stct.correction.settings import DEFAULT
from stct.correction.shared_errors import rise_of_disagreement, share_of_log_odds
from stct.noise_model import hard_rows
from stct.noise_model.annotators import (
    CONCENTRATIONS,
    AnnotatorPrior,
    concentration,
    fit_annotators,
    fit_tilts,
    tilted_entries,
)
from stct.noise_model.hard_rows import HardRowsPrior, log_posterior, unpack
from stct.noise_model.vote_likelihood import vote_likelihood, vote_posterior
from stct.noise_model.votes import Votes
from stct.numeric.probabilities import softmax

PRIOR = AnnotatorPrior(0.2, 10.0, 10, 100.0)
HARD = HardRowsPrior(DEFAULT.annotators.hard_centre, DEFAULT.annotators.hard_variance)


def votes_of(Y, C):
    rows, who = np.nonzero(Y >= 0)
    return Votes(rows, who, Y[rows, who], len(Y), Y.shape[1], C)


def matrices(votes, model):
    """The pairs' table as (a, C, C), NaN where an annotator never gave a label."""
    T = np.full((votes.num_annotators, votes.num_classes, votes.num_classes), np.nan)
    T[votes.pair_annotator, :, votes.pair_label] = model.table
    return T


@pytest.fixture
def problem():
    _, Y, truth = crowd(200)
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(200, 3))
    Q = softmax(rng.normal(size=(200, 3)) + 3.0 * np.eye(3)[truth])
    votes = votes_of(Y, 3)
    model = fit_annotators(votes, votes.count_clean(Q), Q.mean(axis=0), PRIOR)
    return Y, logits, Q, votes, model


def test_counts_and_evidence_are_sums_over_votes(problem):
    Y, _, Q, votes, model = problem
    T = matrices(votes, model)
    evidence = votes.log_evidence(np.log(model.table), slice(0, len(Y)))
    counts = np.zeros_like(T)
    naive = np.zeros((len(Y), 3))
    for i, a in zip(*np.nonzero(Y >= 0), strict=True):
        naive[i] += np.log(T[a, :, Y[i, a]])
        counts[a, :, Y[i, a]] += Q[i]
    np.testing.assert_allclose(evidence, naive, rtol=1e-5)
    pairs = votes.pair_annotator, slice(None), votes.pair_label
    np.testing.assert_allclose(votes.count_clean(Q), counts[pairs])
    few = votes.some(np.array([3, 7, 150]))
    np.testing.assert_allclose(
        few.log_evidence(np.log(model.table), slice(0, 3)),
        naive[[3, 7, 150]],
        rtol=1e-5,
    )


def test_many_pairs_are_counted_alike(problem, monkeypatch):
    _, _, Q, votes, _ = problem
    counts = votes.count_clean(Q)
    monkeypatch.setattr("stct.noise_model.votes.FEW_PAIRS", 0)
    np.testing.assert_allclose(votes.count_clean(Q), counts)


def test_majority_takes_the_commonest_of_equals_and_none_for_none():
    Y = np.array([[0, 1, 1], [0, 1, -1], [2, 0, -1], [-1, -1, -1], [1, 1, 0]])
    assert votes_of(Y, 3).majority().tolist() == [1, 1, 0, -1, 1]


def test_likelihood_and_posterior_are_those_of_the_definition(problem):
    Y, logits, _, votes, model = problem
    T, P = matrices(votes, model), softmax(logits)
    evidence = votes.log_evidence(np.log(model.table), slice(0, len(Y)))
    joint = P.copy()
    for i, a in zip(*np.nonzero(Y >= 0), strict=True):
        joint[i] *= T[a, :, Y[i, a]]
    value, slope = vote_likelihood(logits, evidence.astype(np.float64))
    assert value == pytest.approx(np.log(joint.sum(axis=1)).sum(), rel=1e-6)
    Q = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(slope, Q - P, atol=1e-5)
    np.testing.assert_allclose(vote_posterior(logits, evidence), Q, atol=1e-5)
    step = 1e-5 * np.eye(3)[1]
    ahead, behind = (
        vote_likelihood(logits + s, evidence.astype(np.float64))[0]
        for s in (step, -step)
    )
    assert (ahead - behind) / 2e-5 == pytest.approx(slope[:, 1].sum(), rel=1e-4)


def test_tilt_is_the_most_probable_one():
    M = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    n, hits = np.array([[10.0, 20.0, 5.0]]), np.array([31.0])

    def log_posterior(u):
        right = np.diagonal(M) * np.exp(u)
        total = right + 1.0 - np.diagonal(M)
        value = hits[0] * u - (n[0] * np.log(total)).sum()
        return value + norm.logpdf(u, 0.0, 0.5)

    grid = np.linspace(-3.0, 3.0, 6001)
    found, _ = fit_tilts(M, n, hits, 0.5)
    assert found[0] == pytest.approx(
        grid[np.argmax([log_posterior(u) for u in grid])], abs=1e-3
    )


def test_matrices_are_counts_with_the_tilted_pooled_one_as_prior(problem):
    _, _, Q, votes, model = problem
    M, C = model.pooled, 3
    naive = np.empty((votes.num_annotators, C, C))
    counts = np.zeros_like(naive)
    counts[votes.pair_annotator, :, votes.pair_label] = votes.count_clean(Q)
    for a in range(votes.num_annotators):
        prior = M * np.exp(model.tilt[a] * np.eye(C))
        prior /= prior.sum(axis=1, keepdims=True)
        total = counts[a] + model.concentration * prior
        naive[a] = total / total.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(matrices(votes, model), naive, rtol=1e-6)
    np.testing.assert_allclose(model.right, np.einsum("ayy->ay", naive), rtol=1e-6)
    u = 0.7
    tilted = naive * np.exp(u * np.eye(C))
    tilted /= tilted.sum(axis=2, keepdims=True)
    pairs = votes.pair_annotator, slice(None), votes.pair_label
    np.testing.assert_allclose(model.tilted(votes, u), tilted[pairs], rtol=1e-6)


def test_concentration_maximises_the_dirichlet_multinomial(problem):
    _, _, Q, votes, model = problem
    N = votes.count_clean(Q)
    expected = tilted_entries(model.pooled, model.tilt, votes)
    n = np.zeros((votes.num_annotators, 3))
    np.add.at(n, votes.pair_annotator, N)

    def naive(k):
        value = 0.0
        for a in range(votes.num_annotators):
            mine = votes.pair_annotator == a
            for y in range(3):
                alpha = k * expected[mine, y]
                value += (gammaln(alpha + N[mine, y]) - gammaln(alpha)).sum()
                value += gammaln(k) - gammaln(k + n[a, y])
        return value

    best = max(CONCENTRATIONS, key=naive)
    for start in (2.0, 32.0, 512.0):
        assert concentration(N, expected, n, start) == best
    apart = np.where(np.arange(len(N))[:, None] % 2 == 0, 1.9 * N, 0.1 * N)
    assert concentration(apart, expected, n, 32.0) < 100.0


def test_an_annotator_of_one_label_says_how_the_classes_share_its_votes():
    """A rule that says 'spam' whenever it speaks; 30 of its 40 rows are."""
    Y = np.full((100, 3), -1)
    truth = np.arange(100) % 2
    Y[:, 0] = Y[:, 1] = truth
    rule = np.concatenate(
        [np.flatnonzero(truth == 1)[:30], np.flatnonzero(truth == 0)[:10]]
    )
    Y[rule, 2] = 1
    votes = votes_of(Y, 2)
    prior = PRIOR._replace(one_label_rows=1e-3)
    Q = np.eye(2)[truth]
    model = fit_annotators(votes, votes.count_clean(Q), Q.mean(axis=0), prior)
    pair = np.flatnonzero(votes.pair_annotator == 2)
    np.testing.assert_allclose(model.table[pair], [[0.25, 0.75]], atol=1e-3)
    assert np.isnan(model.tilt[2])
    np.testing.assert_array_equal(model.tilted(votes, 1.0)[pair], model.table[pair])


def test_gradient_of_the_mixture_of_hard_rows(problem):
    _, logits, _, votes, model = problem
    for theta in ([-1.0, 0.3, -0.3, 0.5, -1.0], [0.4, -0.2, 0.6, -0.4, 0.3]):
        error = check_grad(
            lambda t: log_posterior(t, logits, votes, model, HARD)[0],
            lambda t: log_posterior(t, logits, votes, model, HARD)[1],
            np.array(theta),
            epsilon=1e-4,
        )
        scale = np.linalg.norm(
            log_posterior(np.array(theta), logits, votes, model, HARD)[1]
        )
        assert error < 1e-3 * scale + 0.05


def test_mixture_is_the_sum_of_both_kinds(problem):
    Y, logits, _, votes, model = problem
    rows = unpack(np.array([0.2, 0.4, -0.5, 0.6, -0.8]))
    naive = np.zeros_like(logits)
    everything = slice(0, len(Y))
    tables = rows.tables(model, votes)
    evidence = tuple(votes.log_evidence(table, everything) for table in tables)
    for share, s, E in zip(
        (1 - rows.share, rows.share), rows.sharpness, evidence, strict=True
    ):
        naive += share * softmax(s * logits) * np.exp(E)
    naive /= naive.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows.posterior(logits, evidence), naive, atol=1e-6)
    found = HARD.fit(logits, votes, model)
    best = hard_rows.log_posterior(
        np.array(
            [
                np.log(found.share / (1 - found.share)),
                *np.log(found.sharpness),
                *found.tilt,
            ]
        ),
        logits,
        votes,
        model,
        HARD,
    )[0]
    assert best > log_posterior(np.array(HARD.centre), logits, votes, model, HARD)[0]


@pytest.mark.parametrize(
    ("follows", "least", "most"), [(True, 0.25, 1.5), (False, -0.1, 0.1)]
)
def test_disagreement_rises_with_ambiguity_only_where_errors_follow_it(
    follows, least, most
):
    rng = np.random.default_rng(0)
    n = 4000
    p = rng.uniform(0.5, 1.0, n)
    P = np.column_stack([p, 1.0 - p])
    wrong = (1.0 - p) if follows else np.full(n, 0.25)
    Y = (rng.random((n, 3)) < wrong[:, None]).astype(int)
    rise = rise_of_disagreement(P, votes_of(Y, 2))
    assert least < rise.slope < most
    assert rise.error < 0.06
    factor = share_of_log_odds(rise, DEFAULT.annotators)
    assert factor < 0.5 if follows else factor > 0.8
    assert 0.5 < share_of_log_odds(None, DEFAULT.annotators) < 0.9
