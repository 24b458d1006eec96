import numpy as np

from stct.correction import choice
from stct.correction.choice import choose
from stct.correction.score_space import make_space


def scores(n, C=3, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, n)
    S = 0.3 * np.eye(C)[truth] + 0.1 * spread * rng.normal(size=(n, C))
    return S.astype(np.float32), truth, rng


def test_features_are_white_and_identity_gives_the_scores_back():
    S, _, _ = scores(500)
    for quadratic in (False, True):
        space = make_space(S, quadratic=quadratic)
        U = space.features(S)
        np.testing.assert_allclose(U @ space.identity, S / S.std(), atol=1e-4)
        np.testing.assert_allclose(U[:, 0], 1.0)
        covariance = np.cov(U[:, 1:4].T)
        np.testing.assert_allclose(covariance, np.eye(3), atol=0.02)


def test_scores_of_lower_rank_are_fine():
    S, _, _ = scores(500)
    S[:, 2] = 1.0 - S[:, 0] - S[:, 1]
    assert make_space(S, quadratic=False).features(S).shape == (500, 3)


def test_choose_finds_the_annotator():
    S, truth, rng = scores(4000)
    given = np.where(rng.random(4000) < 0.3, rng.integers(0, 3, 4000), truth)
    chosen = choose(S, given, np.zeros(4000, bool))
    np.testing.assert_allclose(np.diagonal(chosen.transition), 0.8, atol=0.04)


def test_choose_does_not_depend_on_the_order_of_rows():
    S, truth, rng = scores(3000)
    given = np.where(rng.random(3000) < 0.3, rng.integers(0, 3, 3000), truth)
    order = rng.permutation(3000)
    nothing = np.zeros(3000, bool)
    a, b = choose(S, given, nothing), choose(S[order], given[order], nothing)
    assert a.family == b.family
    np.testing.assert_allclose(a.transition, b.transition, atol=1e-3)


def test_few_rows_choose_few_weights():
    nothing = np.zeros(60, bool)
    drawn = [scores(60, seed=seed)[:2] for seed in range(10)]
    chosen = [choose(S, truth, nothing).family for S, truth in drawn]
    assert chosen[0].precision > 1.0
    assert sum(family.precision > 1.0 for family in chosen) >= 9


def test_bent_log_odds_choose_a_quadratic():
    x = np.random.default_rng(0).normal(size=8000)
    S = np.column_stack([x, -x]).astype(np.float32)
    bent = ((x < -0.5) | (x > 1.5)).astype(int)  # both ends are one class
    assert choose(S, bent, np.zeros(8000, bool)).family.quadratic


def test_a_glance_ends_no_trial_that_would_have_won(monkeypatch):
    S, truth, rng = scores(20_000)
    x = rng.normal(size=20_000)
    bent = ((x < -0.5) | (x > 1.5)).astype(int)
    noisy = np.where(rng.random(20_000) < 0.3, rng.integers(0, 3, 20_000), truth)
    for scored, given in ((S, noisy), (np.column_stack([x, -x]).astype("f4"), bent)):
        few = choose(scored, given, np.zeros(20_000, bool))
        with monkeypatch.context() as patch:
            patch.setattr(choice, "GLANCE", 1)  # one row: never hopeless
            every = choose(scored, given, np.zeros(20_000, bool))
        assert few.family == every.family
        np.testing.assert_array_equal(few.weights, every.weights)


def test_labels_that_the_scores_do_not_explain_are_nothing_to_learn_from():
    S, _, rng = scores(4000)
    assert choose(S, rng.integers(0, 3, 4000), np.zeros(4000, bool)) is None
