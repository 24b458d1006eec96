"""Leave-one-out scores of every class for every row: ridge regression, closed form.

The given labels are the targets, so a row's score is what all other rows say of it.
Legend: n rows, t rows of a tile, d columns, C classes; S scores (n, C).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stct.correction.fourier_features import (
    choose_fourier_features,
    describe_fourier,
    gained,
    least_gain,
)
from stct.correction.given_labels import Labels
from stct.correction.settings import ScoreSettings
from stct.numeric.engine import Computed, Engine, RowValues, light_rows, spread_rows
from stct.numeric.fourier import FourierFeatures
from stct.numeric.probabilities import one_hot
from stct.numeric.ridge import RidgeFit, RidgePath
from stct.numeric.types import Floats, Ints


class Scores(NamedTuple):
    """Leave-one-out scores of all rows, and what they were made from."""

    path: RidgePath
    ridge: RidgeFit
    fourier: FourierFeatures | None  # that made more columns
    notes: tuple[str, ...]


def leave_one_out_scores(
    H: RowValues,
    labels: Labels,
    settings: ScoreSettings,
    progress: Callable[[float], None],
    *,
    owned: bool,
) -> Scores | None:
    """Fit ridge to the given labels, on more columns if that predicts them better.

    None if all columns are constant, or if the scores agree with the given labels no
    better than by chance. ``owned`` lets H be overwritten.
    """
    engine, n, C = labels.engine, len(labels.given), labels.num_classes
    labelled = labels.given >= 0
    if isinstance(H, np.ndarray):
        H = engine.keep(H)
        owned = owned and isinstance(H, np.ndarray)
    else:
        owned = False
    path = RidgePath(H, labelled, strengths=settings.ridge, engine=engine, owned=owned)
    if len(path.axes.values) == 0:
        return None
    progress(0.05)
    given = engine.keep(labels.given)
    Y = light_rows(engine, lambda rows: one_hot(given[rows], C), (n, C))
    keep = is_kept(n, C)
    ridge = path.fit(Y, given, keep_scores=keep)
    progress(0.15)
    fourier = None
    known = np.flatnonzero(labelled)  # there may be few of them among many rows
    some = known[spread_rows(len(known), settings.deciding_rows)]
    S, said = engine.take(ridge.scores, some), labels.given[some]
    beyond = agreement_beyond_chance(S, said)
    if settings.fourier:
        rows = path.rows
        X = engine.take(Computed(rows.__getitem__, rows.shape, rows.dtype), some)
        tried = choose_fourier_features(X, S, said, path, settings)
        if tried is not None:
            wider = RidgePath(
                tried.rows(rows, engine),
                labelled,
                strengths=settings.ridge,
                engine=engine,
            )
            again = wider.fit(Y, given, keep_scores=keep)
            S_again = engine.take(again.scores, some)
            mean, error = gained(S_again, S, said)
            least = least_gain(agreement(S, said), said, settings)
            if mean > max(least, settings.errors * error):
                path, ridge, fourier = wider, again, tried
                beyond = agreement_beyond_chance(S_again, said)
    if beyond <= settings.learnt_errors:
        return None
    notes = (*describe_fourier(fourier), *describe_agreement(beyond, settings))
    return Scores(path, ridge, fourier, notes)


def is_kept(num_rows: int, num_classes: int) -> bool:
    """Tell whether there is memory for values of all rows and classes."""
    return num_rows * num_classes <= MAX_KEPT


MAX_KEPT = 2**25


def agreement(S: Floats, given: Ints) -> float:
    """Share of rows whose best score is at the given label."""
    return float(np.mean(S.argmax(axis=1) == given))


def agreement_beyond_chance(S: Floats, given: Ints) -> float:
    """Agreement beyond that of independent labels, in standard errors."""
    n, C = S.shape
    p, q = (np.bincount(v, minlength=C) / n for v in (S.argmax(axis=1), given))
    chance = float(p @ q)
    error = np.sqrt(max(chance * (1.0 - chance), 1e-12) / n)
    return (agreement(S, given) - chance) / float(error)


def describe_agreement(beyond: float, settings: ScoreSettings) -> tuple[str, ...]:
    """Say that there may be nothing to learn from."""
    if beyond > settings.sure_errors:
        return ()
    return (
        "the features explain the given labels hardly better than chance: labels that "
        "have nothing to do with them can look like this",
    )


def take(engine: Engine, values: RowValues, index: Ints) -> Floats:
    """Bring values of some rows into this process, float32."""
    return np.asarray(engine.take(values, index), dtype=np.float32)
