"""Leave-one-out scores of every class for every row: ridge, closed-form.

The given labels are the targets, so a row's score is what all other rows say of it.
Legend: n rows, t witnesses, d columns, C classes; S scores (n, C).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stct.correction.fourier_features import SAMPLE as LIFT_ROWS
from stct.correction.fourier_features import Lift, choose_lift, least_gain
from stct.correction.given_labels import Labels
from stct.numeric.engine import Computed, Engine, RowValues, light_rows, spread_rows
from stct.numeric.hat_matrix import Axes
from stct.numeric.probabilities import one_hot
from stct.numeric.ridge import RidgeFit, RidgePath
from stct.numeric.types import Floats, Ints

MAX_WITNESSES = 2**14  # rows that say how good features and labels are


class Scored(NamedTuple):
    """Leave-one-out scores of all rows, and what they were made from."""

    path: RidgePath
    ridge: RidgeFit
    agreed: float  # share of rows whose best score is at the given label
    lift: Lift | None  # that made more columns
    witnesses: "Witnesses"


class Witnesses(NamedTuple):
    """Some rows that have a label, and the axes of all rows."""

    rows: Floats  # (t, d), centred
    given: Ints  # (t,)
    axes: Axes


def score(
    H: RowValues, labels: Labels, progress: Callable[[float], None], *, owned: bool
) -> Scored | None:
    """Fit ridge to the given labels, on more columns if that predicts them better."""
    engine, n = labels.engine, len(labels.given)
    labelled = labels.given >= 0
    if isinstance(H, np.ndarray):
        H = engine.keep(H)
    owned = owned and isinstance(H, np.ndarray)
    path = RidgePath(H, labelled, engine=engine, owned=owned)
    if len(path.axes.values) == 0:
        return None
    progress(0.2)
    given = engine.keep(labels.given)
    C = labels.num_classes
    Y = light_rows(engine, lambda rows: one_hot(given[rows], C), (n, C))
    ridge = path.fit(Y, given)
    agreed = agreement(ridge.scores, given, engine)
    progress(0.3)
    known = np.flatnonzero(labelled)  # there may be few of them among many rows
    some = known[spread_rows(len(known), MAX_WITNESSES)]
    rows = path.rows
    X = engine.take(Computed(rows.__getitem__, rows.shape, rows.dtype), some)
    witnesses = Witnesses(X, labels.given[some], path.axes)
    few = slice(None, None, -(-len(some) // LIFT_ROWS))
    S = engine.take(ridge.scores, some[few])
    lift = choose_lift(X[few], S, labels.given[some[few]], path)
    if lift is not None:
        lifted = RidgePath(lift.rows(rows, engine), labelled, engine=engine)
        again = lifted.fit(Y, given)
        agrees = agreement(again.scores, given, engine)
        of_labelled = n / path.num_labelled
        least = least_gain(agreed * of_labelled, labels.given[labelled])
        if (agrees - agreed) * of_labelled > least:
            return Scored(lifted, again, agrees, lift, witnesses)
    return Scored(path, ridge, agreed, None, witnesses)


def agreement(S: RowValues, given: RowValues, engine: Engine) -> float:
    """Share of rows whose best score is at the given label."""

    def same(rows: slice) -> tuple[int]:
        return (int((S[rows].argmax(axis=1) == given[rows]).sum()),)

    n = S.shape[0]
    return float(engine.sum(same, n, wide=False)[0]) / n


def agrees_more(
    new: RowValues, old: RowValues, given: RowValues, engine: Engine, errors: float
) -> bool:
    """Tell whether new scores agree more, by standard errors of the difference."""

    def moved(rows: slice) -> tuple[int, int]:
        ours = new[rows].argmax(axis=1) == given[rows]
        theirs = old[rows].argmax(axis=1) == given[rows]
        return int((ours & ~theirs).sum()), int((theirs & ~ours).sum())

    won, lost = engine.sum(moved, new.shape[0], wide=False)
    return bool(won - lost > errors * np.sqrt(won + lost))
