"""Sharpness of log-odds from the shape of the scores: no label is read."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from stct.correction.separation import geary_ratio, sharpness_of_shape
from stct.correction.settings import DEFAULT

SETTINGS = DEFAULT.calibration


def log_odds(mu, n, rng, sizes=(0.5, 0.5)):
    """Log-odds of two normal classes, as two columns of scores."""
    side = rng.choice([1.0, -1.0], n, p=sizes)
    z = side * mu + np.sqrt(2.0 * mu) * rng.normal(size=n)
    return np.stack([z / 2, -z / 2], axis=1)


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0, 9.0])
def test_geary_ratio_is_that_of_the_mixture(mu):
    mixture = stats.norm(mu, np.sqrt(2.0 * mu))  # the other half is its mirror image
    absolute = integrate.quad(lambda z: abs(z) * mixture.pdf(z), -np.inf, np.inf)[0]
    ratio = absolute / np.sqrt(mu**2 + 2.0 * mu)
    assert geary_ratio(np.array(mu)) == pytest.approx(ratio, rel=1e-6)


@pytest.mark.parametrize("mu", [1.0, 3.0, 8.0])
@pytest.mark.parametrize("unit", [0.01, 1.0, 40.0])
def test_the_sharpness_of_normal_classes_is_found(mu, unit):
    S = log_odds(mu, 40_000, np.random.default_rng(0)) / unit
    assert sharpness_of_shape(S, SETTINGS) == pytest.approx(unit, rel=0.1)


def test_scores_with_one_mode_are_soft():
    S = np.random.default_rng(0).standard_t(5, size=(5_000, 2))
    margin = S[:, 0] - S[:, 1]
    soft = np.sqrt(0.1 * 2.1) / margin.std()  # the least separation
    assert sharpness_of_shape(S, SETTINGS) == pytest.approx(soft, rel=1e-6)


def test_every_pair_of_classes_counts_by_its_rows():
    rng = np.random.default_rng(1)
    clear, vague = log_odds(6.0, 20_000, rng), log_odds(1.0, 20_000, rng) / 3.0
    low = np.full((20_000, 2), -99.0)  # the other pair
    S = np.concatenate([np.hstack([clear, low]), np.hstack([low, vague])])
    both = sharpness_of_shape(S, SETTINGS)
    assert sharpness_of_shape(S[:, [3, 1, 0, 2]], SETTINGS) == pytest.approx(both)
    alone = [sharpness_of_shape(part, SETTINGS) for part in (clear, vague)]
    assert alone[0] < both < alone[1]
    most = np.concatenate([S[:20_000], S[20_000:21_000]])
    assert sharpness_of_shape(most, SETTINGS) == pytest.approx(alone[0], rel=0.1)


def test_few_rows_of_a_pair_say_nothing():
    S = log_odds(3.0, 10, np.random.default_rng(2))
    assert sharpness_of_shape(S[:9], SETTINGS) == pytest.approx(1.0 / S[:9].std())
    assert sharpness_of_shape(S, SETTINGS) != pytest.approx(1.0 / S.std())
    fewer = replace(SETTINGS, rows_per_pair=9)
    assert sharpness_of_shape(S[:9], fewer) != pytest.approx(1.0 / S[:9].std())
    assert np.isfinite(sharpness_of_shape(np.zeros((30, 3)), SETTINGS))


def test_uncertainty_of_the_scores_blurs_the_classes():
    rng = np.random.default_rng(3)
    S = log_odds(2.0, 40_000, rng)
    noise = rng.normal(size=40_000)  # as much as the variance within the classes
    blurred = S + np.stack([noise, -noise], axis=1)
    assert sharpness_of_shape(blurred, SETTINGS) < 0.6
    variance = np.full(2, 2.0)  # of the margin, half of it for each class
    known = sharpness_of_shape(blurred, SETTINGS, variance)
    assert known == pytest.approx(1.0, rel=0.1)
    most = sharpness_of_shape(blurred, SETTINGS, 50.0 * variance)
    assert most == pytest.approx(4.0 * sharpness_of_shape(blurred, SETTINGS))


def test_rows_that_hesitate_one_way_only_still_show_two_modes():
    """Each class takes another one for its second best: rows of a pair are of both."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 3, 3_000)
    S = 0.1 * rng.normal(size=(3_000, 3))
    S[np.arange(3_000), truth] += 2.0
    S[np.arange(3_000), (truth + 1) % 3] += 1.0
    assert sharpness_of_shape(S, SETTINGS) > 10.0
