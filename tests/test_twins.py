"""Rows that are almost the same say how good labels are where features cannot."""

import numpy as np
import pytest
from noisy_rows import half_known

from stct import LabelCorrector, noise
from stct.correction.twins import (
    LEAST_PAIRS,
    find_twins,
    hear_twins,
    ignorance,
    pair_likelihood,
)
from stct.noise_model.transition import odds_in_doubt, quality, symmetric_transition
from stct.numeric.hat_matrix import Axes


def axes_of(X):
    return Axes(*np.linalg.eigh(X.T @ X))


def rows_with_twins(rng, n, pairs, columns=12, near=0.03):
    """Rows of no structure; the last ones are almost those of ``of``, in order."""
    X = rng.normal(size=(n, columns)) * np.geomspace(3.0, 0.3, columns)
    of = rng.permutation(n)[:pairs]
    X = np.concatenate([X, X[of] + near * rng.normal(size=(pairs, columns))])
    return (X - X.mean(axis=0)).astype(np.float32), of


@pytest.mark.parametrize("n", [300, 2500])
def test_rows_that_are_almost_the_same_are_found_and_few_others(n):
    X, of = rows_with_twins(np.random.default_rng(0), n, 40)
    found = {tuple(pair) for pair in find_twins(X, axes_of(X)).tolist()}
    planted = {(int(a), n + i) for i, a in enumerate(of)}
    assert len(found & planted) >= 38
    assert len(found - planted) <= 3


def test_rows_drawn_by_chance_have_hardly_any_twins():
    for seed, columns in enumerate((2, 6, 20, 100)):
        X, _ = rows_with_twins(np.random.default_rng(seed), 3000, 0, columns)
        assert len(find_twins(X, axes_of(X))) < LEAST_PAIRS  # nobody is asked


def test_twins_do_not_hang_on_the_order_scale_or_rotation_of_the_data():
    rng = np.random.default_rng(1)
    X, _ = rows_with_twins(rng, 800, 30)
    pairs = find_twins(X, axes_of(X))
    order = rng.permutation(len(X))
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    moved = (1e3 * X[order] @ turn).astype(np.float32)
    again = np.sort(order[find_twins(moved, axes_of(moved))], axis=1)
    same = set(map(tuple, pairs.tolist())) & set(map(tuple, again.tolist()))
    assert len(same) >= len(pairs) - 2


def test_exact_copies_are_no_witnesses():
    """Only those that were given different labels are left: they would slander."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 10)).astype(np.float32)
    X = np.concatenate([X, X[:100]])
    assert len(find_twins(X, axes_of(X))) <= 3


def test_very_few_rows_have_no_twins():
    X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    assert find_twins(X, axes_of(X)).shape == (0, 2)


def test_likelihood_of_pairs_is_the_sum_over_classes():
    """Against loops; classes of the twins are fitted by the same steps."""
    rng = np.random.default_rng(3)
    T = rng.dirichlet(np.ones(3), size=3)
    first, second = rng.integers(0, 3, (2, 25))
    frequency = np.array([0.5, 0.3, 0.2])
    prior = [1 / 3] * 3
    for _ in range(30):
        counts = [0.5] * 3
        for a, b in zip(first, second, strict=True):
            joint = [prior[c] * 0.9 * T[c, a] * T[c, b] for c in range(3)]
            total = sum(joint) + 0.1 * frequency[a] * frequency[b]
            for c in range(3):
                counts[c] += joint[c] / total
        prior = [count / sum(counts) for count in counts]
    expected = 0.0
    for a, b in zip(first, second, strict=True):
        together = sum(prior[c] * T[c, a] * T[c, b] for c in range(3))
        expected += np.log(0.9 * together + 0.1 * frequency[a] * frequency[b])
    got = pair_likelihood(T, first, second, frequency)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("common", [False, True])
def test_twins_know_how_good_labels_are_that_features_know_nothing_of(rate, common):
    """Also if most twins are of one class, and if the fit was far off."""
    rng = np.random.default_rng(4)
    X, of = rows_with_twins(rng, 3000, 300)
    truth = rng.integers(0, 5, 3000)
    truth[of[: 200 if common else 0]] = 0
    truth = np.concatenate([truth, truth[of]])
    given = noise.symmetric(truth, 5, rate, rng).labels
    true = quality(symmetric_transition(1 - 0.8 * rate, 5), np.ones(5))
    for right in (0.4, 0.9):
        T = symmetric_transition(right, 5)
        heard = hear_twins(X, given, axes_of(X), T, np.ones(5))
        assert abs(heard.expected - true) < 0.1
        assert true - 0.03 < heard.most <= 0.995


def test_a_pair_for_each_class_is_not_enough_to_know_which_classes_have_twins():
    """Else the few pairs that are alike by chance would be all there is to explain."""
    rng = np.random.default_rng(4)
    X, of = rows_with_twins(rng, 3000, 100)
    truth = rng.integers(0, 100, 3000)
    truth = np.concatenate([truth, truth[of]])
    said = []
    for _ in range(8):
        given = noise.symmetric(truth, 100, 0.8, rng).labels
        T = symmetric_transition(0.2 + 0.8 / 100, 100)
        twins = hear_twins(X, given, axes_of(X), T, np.full(100, 0.01))
        said.append(twins.expected)
    assert np.mean(said) == pytest.approx(0.2, abs=0.06)


def test_errors_that_follow_a_rule_are_known_by_the_shape_of_t():
    """Every class but the first is called the next one in 40 of 100 rows."""
    rng = np.random.default_rng(5)
    X, of = rows_with_twins(rng, 3000, 300)
    T = np.eye(5)
    for c in range(1, 5):
        T[c, c], T[c, (c + 1) % 5] = 0.6, 0.4
    truth = rng.integers(0, 5, 3000)
    truth = np.concatenate([truth, truth[of]])
    given = (T[truth].cumsum(axis=1) > rng.random((3300, 1))).argmax(axis=1)
    heard = hear_twins(X, given, axes_of(X), T, np.ones(5))
    assert abs(heard.expected - quality(T, np.ones(5))) < 0.08


def test_few_twins_say_nothing():
    rng = np.random.default_rng(6)
    X, _ = rows_with_twins(rng, 1000, 3)
    given = rng.integers(0, 3, len(X))
    T = symmetric_transition(0.7, 3)
    assert hear_twins(X, given, axes_of(X), T, np.ones(3)) is None


def test_ignorance_is_what_the_features_do_not_know():
    assert ignorance(np.full((10, 4), 0.25)) == 1.0
    assert ignorance(np.tile([0.97, 0.01, 0.01, 0.01], (10, 1))) == 0.0
    between = ignorance(np.tile([0.72, 0.1, 0.1, 0.08], (10, 1)))
    assert 0.0 < between < 1.0


def test_odds_in_doubt_are_those_of_the_better_annotator():
    """Whatever P is, what they let through is the more probable label there, too."""
    rng = np.random.default_rng(7)
    T = 0.6 * np.eye(4) + 0.4 * rng.dirichlet(np.ones(4), size=4)
    shares = np.array([4.0, 3.0, 2.0, 1.0])
    towards = [(1 - part) * T + part * np.eye(4) for part in np.linspace(0, 1, 2001)]
    better = next(one for one in towards if quality(one, shares) >= 0.9)
    asked = odds_in_doubt(T, shares, 0.9)
    P = rng.dirichlet(np.ones(4), size=500)
    for given, new in np.argwhere(~np.eye(4, dtype=bool)):
        Q, there = P * T[:, given], P * better[:, given]
        clear = abs(np.log(there[:, new] / there[:, given])) > 0.01
        passed = Q[:, new] >= asked[given, new] * Q[:, given]
        np.testing.assert_array_equal(
            passed[clear], (there[:, new] > there[:, given])[clear]
        )
    np.testing.assert_allclose(odds_in_doubt(T, shares, 0.0), 1.0)


def test_weak_features_leave_clean_labels_alone_if_twins_vouch_for_them():
    """Without twins 95.1% of them were in the worst of these seeds."""
    for seed in range(4):
        X, truth, _ = half_known(seed)
        corrector = LabelCorrector().fit(X, truth)
        assert (corrector.labels_ == truth).mean() > 0.985
        assert corrector.estimated_accuracy_.before > 0.9


def test_rows_abstain_where_twins_leave_open_who_is_right():
    X, truth, rng = half_known(1)
    given = noise.symmetric(truth, 3, 0.4, rng).labels
    corrector = LabelCorrector().fit(X, given)
    abstained = corrector.action_ == "abstain"
    assert 0.01 < abstained.mean() < 0.5
    np.testing.assert_array_equal(corrector.labels_[abstained], given[abstained])
    Q = corrector.label_distributions_[abstained]
    assert (Q.argmax(axis=1) != given[abstained]).all()
    assert any("almost the same" in note for note in corrector.notes_)


def test_strong_features_do_not_ask_twins():
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 4, 2000)
    X = 4.0 * np.eye(4)[truth] + rng.normal(size=(2000, 4))
    X = np.concatenate([X, X[:200] + 0.01 * rng.normal(size=(200, 4))])
    truth = np.concatenate([truth, truth[:200]])
    given = noise.symmetric(truth, 4, 0.4, rng).labels
    given[2000:] = given[:200]  # the same error twice: twins would call it right
    corrector = LabelCorrector().fit(X, given)
    assert (corrector.labels_ == truth).mean() > 0.9
    assert not any("almost the same" in note for note in corrector.notes_)


def test_features_that_were_taught_labels_do_not_ask_twins():
    """They put rows of one label together, right or wrong."""
    X, truth, rng = half_known(1)
    given = noise.symmetric(truth, 3, 0.4, rng).labels
    before = symmetric_transition(0.73, 3)
    corrector = LabelCorrector().fit(X, given, annotator=before)
    assert not any("almost the same" in note for note in corrector.notes_)
    assert not (corrector.action_ == "abstain").any()
