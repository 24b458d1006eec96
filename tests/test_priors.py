"""Priors against scipy's distributions and finite differences."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from stct.noise_model.priors import ErrorPrior, SharpnessPrior


def slope(function, x, step):
    return (function(x + step) - function(x - step)) / (2.0 * step)


@pytest.mark.parametrize(("wrong", "right"), [(3.0, 27.0), (0.0, 0.0), (0.5, 200.0)])
def test_errors_are_half_beta_and_half_uniform(wrong, right):
    prior = ErrorPrior(wrong, right)
    beta = stats.beta(wrong + 1.0, right + 1.0)
    for e in (0.001, 0.05, 0.1, 0.3, 0.6, 0.99):
        density = 0.5 * beta.pdf(e) + 0.5 * stats.uniform.pdf(e)
        assert prior.log_density(e) == pytest.approx(np.log(density))
        expected = slope(prior.log_density, e, 1e-6)
        assert prior.slope(e) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    total, _ = quad(lambda e: np.exp(prior.log_density(e)), 0.0, 1.0, points=[0.1])
    assert total == pytest.approx(1.0, rel=1e-5)


def test_no_share_of_errors_is_impossible():
    prior = ErrorPrior(3.0, 27.0)
    for e in (0.0, 0.5, 1.0):
        assert prior.log_density(e) > np.log(0.5) - 1e-6
        assert np.isfinite(prior.slope(e))
    assert prior.log_density(0.1) - prior.log_density(0.9) < 3.0
    assert prior.slope(0.01) > 0.0 > prior.slope(0.3)
    assert prior.slope(0.1) == pytest.approx(0.0, abs=1e-9)  # its mode, 3 of 30


def test_the_logarithm_of_the_sharpness_is_gaussian():
    prior = SharpnessPrior(4.0, 2.5)
    gaussian = stats.norm(np.log(4.0), 1.0 / np.sqrt(2.5))
    for sharpness in (0.1, 1.0, 4.0, 30.0):
        known = gaussian.logpdf(np.log(sharpness)) - gaussian.logpdf(np.log(4.0))
        assert prior.log_density(sharpness) == pytest.approx(known)
        of_log = slope(lambda x: prior.log_density(np.exp(x)), np.log(sharpness), 1e-5)
        assert prior.slope(sharpness) == pytest.approx(of_log, rel=1e-6, abs=1e-9)


def test_sharpened_logits_have_the_prior_of_the_factor_that_is_left():
    prior = SharpnessPrior(4.0, 2.5)
    for unit in (0.5, 3.0):
        left = prior.after(unit)
        for factor in (0.1, 1.0, 7.0):
            assert left.log_density(factor) == pytest.approx(
                prior.log_density(unit * factor)
            )
            assert left.slope(factor) == pytest.approx(prior.slope(unit * factor))
