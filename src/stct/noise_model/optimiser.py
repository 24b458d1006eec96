"""Minimise in coordinates in which few steps are enough.

Sharpness of the features and errors of the annotator explain the same labels, so the
likelihood has long valleys: in plain coordinates L-BFGS takes hundreds of steps along
them, and where it stops depends on where it began. Legend: p parameters.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from stct.numeric.types import Floats, Ints

FIRST_STEP = 0.5  # of the whole way, if the curvature was right
DAMPING = 1e-3  # of the mean curvature, for directions that nothing is known of

Objective = Callable[[Floats], tuple[float, Floats]]


def descend(
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
    curvature : ndarray of shape (p, p) or (p,), or None
        About that of the objective, or its diagonal. None, or not finite: coordinates
        stay as they are.
    tolerance : float
        Stop when a step gains less, as a share of the value.
    """
    if curvature is not None and not np.isfinite(curvature).all():
        curvature = None
    first = objective(start)
    whiten, colour = _coordinates(curvature)
    # L-BFGS-B begins with a step of length 1. That should be about the right one.
    unit = 1.0
    if curvature is not None:
        unit = max(FIRST_STEP * float(np.linalg.norm(whiten(first[1]))), 1e-30)

    def scaled(place: Floats) -> tuple[float, Floats]:
        here = objective(start + unit * colour(place)) if place.any() else first
        return here[0], unit * whiten(here[1])

    options = {"maxiter": max_steps, "ftol": tolerance, "gtol": 1e-6}
    nowhere = np.zeros(len(start))
    best = minimize(scaled, nowhere, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(start + unit * colour(best.x))


def _coordinates(
    curvature: Floats | None,
) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """Give maps to coordinates of curvature 1: of a gradient there, of a place back."""
    if curvature is None:
        return np.asarray, np.asarray
    if curvature.ndim == 1:
        root = np.sqrt(curvature)
        return (lambda slope: slope / root), (lambda place: place / root)
    diagonal = np.diagonal(curvature)
    damped = curvature + np.diag(np.full(len(diagonal), DAMPING * diagonal.mean()))
    try:
        factor = cholesky(damped, lower=True)
    except np.linalg.LinAlgError:  # rounding: a direction of no curvature
        return _coordinates(np.diagonal(damped))
    # Used at every step: one inversion is less work than all the solving.
    inverse = solve_triangular(factor, np.eye(len(factor)), lower=True)
    return inverse.__matmul__, inverse.T.__matmul__


def information(
    U: Floats, P: Floats, Q: Floats, given: Ints, T: Floats | None
) -> Floats:
    """Empirical Fisher information of weights, and of log T unless that is None.

    The sum over rows of the outer product of their gradients, (p, p), where p is
    k C or k C + C C. What it says of the curvature is right where the model is.

    Parameters
    ----------
    U : ndarray of shape (n, k)
    P, Q : ndarray of shape (n, C)
        Pr[clean | x], Pr[clean | x, given].
    given : ndarray of shape (n,)
        -1 in rows that say nothing of T.
    """
    n, C = Q.shape
    rows = (U[:, :, None] * (Q - P)[:, None, :]).reshape(n, -1)
    if T is not None:
        of_T = Q[:, :, None] * -T.astype(Q.dtype)
        of_T[np.arange(n), :, given] += Q
        of_T[given < 0] = 0.0
        rows = np.concatenate([rows, of_T.reshape(n, -1)], axis=1)
    return np.asarray(rows.T @ rows, dtype=np.float64)
