"""L-BFGS: of many parameters with a preconditioner, of two or three to the end."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.optimize import root as find_root

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


def minimise_bounded(
    objective: Objective,
    start: Floats,
    bounds: Sequence[tuple[float, float | None]],
    *,
    exact: bool = True,
) -> Floats:
    """Go down, and then to where the slopes are 0: float32 knows that place better.

    Legend: p parameters, up to three.
    """
    look = _Remember(objective)
    options = {"maxiter": 60, "ftol": 1e-9 if exact else 1e-6, "gtol": 1e-6}
    best = minimize(
        look, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    low, high = np.array([(a, np.inf if b is None else b) for a, b in bounds]).T
    inside = (best.x > low) & (best.x < high)
    if not exact or not inside.all():
        return np.asarray(best.x)
    settings = {"maxfev": 8 * len(start), "eps": 1e-3}

    def slopes(x: Floats) -> Floats:  # a step may lead anywhere
        return look(np.clip(x, low, high))[1]

    place = find_root(slopes, best.x, tol=1e-6, options=settings).x
    if not ((place > low) & (place < high)).all():
        return np.asarray(best.x)
    better = np.linalg.norm(look(place)[1]) <= np.linalg.norm(look(best.x)[1])
    near = look(place)[0] <= look(best.x)[0] + 1e-6
    return np.asarray(place if better and near else best.x)


class _Remember:
    """A function that is not called twice at one place."""

    def __init__(self, function: Objective) -> None:
        self._function = function
        self._values: dict[bytes, tuple[float, Floats]] = {}

    def __call__(self, place: Floats) -> tuple[float, Floats]:
        key = np.asarray(place).tobytes()
        if key not in self._values:
            self._values[key] = self._function(place)
        return self._values[key]
