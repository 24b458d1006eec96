"""Priors of error rate and sharpness: they decide where the likelihood is flat."""

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, expit


class ErrorPrior(NamedTuple):
    """Prior of the share e of wrong labels: half a Beta distribution, half uniform.

    The Beta distribution says what is usual; the uniform one leaves everything else
    possible at a cost of about two units of log-likelihood.
    """

    wrong: float  # labels that the Beta distribution is worth: its a - 1
    right: float  # likewise, its b - 1

    def log_density(self, e: float) -> float:
        """Logarithm of the density at e."""
        return float(np.logaddexp(self._log_beta(e), 0.0) - np.log(2.0))

    def slope(self, e: float) -> float:
        """Differentiate that."""
        e = _inside(e)
        share = expit(self._log_beta(e))  # of the Beta distribution
        return float(share * (self.wrong / e - self.right / (1.0 - e)))

    def _log_beta(self, e: float) -> float:
        e = _inside(e)
        log = self.wrong * np.log(e) + self.right * np.log1p(-e)
        return float(log - betaln(self.wrong + 1.0, self.right + 1.0))


class SharpnessPrior(NamedTuple):
    """Gaussian prior of the logarithm of the sharpness."""

    centre: float
    precision: float

    def log_density(self, sharpness: float) -> float:
        """Logarithm of the density, up to a constant."""
        return -0.5 * self.precision * float(np.log(sharpness / self.centre)) ** 2

    def slope(self, sharpness: float) -> float:
        """Differentiate that in the logarithm of the sharpness."""
        return -self.precision * float(np.log(sharpness / self.centre))

    def after(self, unit: float) -> "SharpnessPrior":
        """Give the prior of the factor that is left when logits have this sharpness."""
        return self._replace(centre=self.centre / unit)


def _inside(e: float) -> float:
    return min(max(e, 1e-9), 1.0 - 1e-9)
