"""Preconditioned L-BFGS: minimise in coordinates in which few steps are enough."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from stct.numeric.types import Floats

FIRST_STEP = 0.5  # of the whole way, if the curvature was right

Objective = Callable[[Floats], tuple[float, Floats]]


def minimise(
    objective: Objective,
    start: Floats,
    curvature: Floats | None,
    *,
    max_steps: int,
    tolerance: float,
) -> Floats:
    """Go down from ``start`` (p,) and give the lowest place found, (p,).

    Parameters
    ----------
    objective : callable
        Value and gradient (p,) at a place.
    curvature : ndarray of shape (p,), optional
        About the diagonal of the Hessian. None: coordinates stay as they are.
    tolerance : float
        Stop when a step gains less, as a share of the value.
    """
    first = objective(start)
    root = np.ones(len(start)) if curvature is None else np.sqrt(curvature)
    # L-BFGS-B begins with a step of length 1. That should be about the right one.
    unit = 1.0
    if curvature is not None:
        unit = max(FIRST_STEP * float(np.linalg.norm(first[1] / root)), 1e-30)

    def scaled(place: Floats) -> tuple[float, Floats]:
        here = objective(start + unit * place / root) if place.any() else first
        return here[0], unit * here[1] / root

    options = {"maxiter": max_steps, "ftol": tolerance, "gtol": 1e-6}
    nowhere = np.zeros(len(start))
    best = minimize(scaled, nowhere, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(start + unit * best.x / root)
