"""Whether annotators err on hard rows is asked of log-odds of every linear shape."""

import numpy as np
import pytest

from stct import hardness, noise
from stct.engine import Local
from stct.given_labels import Labels
from stct.judgement import judge, trend_of_free_log_odds
from stct.probabilities import softmax
from stct.transition import count_given, posterior, symmetric_transition

C, PAIR = 8, 2.5  # classes; how much too sure the log-odds of look-alikes are


@pytest.fixture(scope="module")
def look_alikes():
    """Log-odds of eight classes in look-alike pairs, too sure within a pair."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, C, 8000)
    within = rng.normal(size=(8000, C // 2)) * 0.7  # one or the other of each pair
    between = rng.normal(size=(8000, C // 2))
    between[np.arange(8000), truth // 2] += 3.0
    within[np.arange(8000), truth // 2] += np.where(truth % 2, -0.5, 0.5)
    # Gaussian classes: these are their log-odds, but for the factor PAIR.
    mine = 3.0 * np.repeat(between, 2, axis=1)
    theirs = PAIR * (0.5 / 0.7**2) * np.repeat(within, 2, axis=1)
    theirs[:, 1::2] *= -1.0
    given = noise.symmetric(truth, C, 0.4, rng).labels
    labels = Labels(given, np.zeros(8000, dtype=bool), C, Local())
    return (mine + theirs).astype(np.float32), labels, truth


def plain_trend(logits, T, given):
    P = softmax(logits.copy())
    Q = posterior(P, T, given)
    K = hardness.mean_confusion(Q.T @ P, Q.sum(axis=0))
    return hardness.error_trend(count_given(Q, given), K)


def test_log_odds_too_sure_of_look_alikes_are_no_annotator_who_errs(look_alikes):
    logits, labels, _ = look_alikes
    T = symmetric_transition(0.6 + 0.4 / C, C)
    assert plain_trend(logits, T, labels.given).least > hardness.PROVEN[0]
    assert trend_of_free_log_odds(logits, T, labels).least < 0.005


def test_symmetric_noise_is_not_blamed_on_hard_rows(look_alikes):
    logits, labels, truth = look_alikes
    T = symmetric_transition(0.6 + 0.4 / C, C)
    judged = judge(logits, T, labels)
    np.testing.assert_allclose(judged.transition, T, atol=0.01)
    believed = judged.posterior[np.arange(8000), labels.given].mean()
    assert believed == pytest.approx((labels.given == truth).mean(), abs=0.03)
