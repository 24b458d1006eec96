"""Several labels per row: each label is a problem of two classes on one Gram matrix.

Whether a label belongs to a row is class 1 or 0. The stages are those of
`stct.correction.pipeline`, with their own log-odds and 2 x 2 transition matrix for
each label; the factorisation of the rows, and with it the hat matrix, is shared.
Legend: n rows, d columns, L labels; Y indicator matrix (n, L).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stct.correction.given_labels import Labels, sample_rows, sample_size
from stct.correction.pipeline import correct_by_scores
from stct.correction.result import Correction, Progress, nothing_learnt
from stct.correction.scores import Scores, take
from stct.correction.settings import DEFAULT, Settings
from stct.correction.squared_error import LeftOut, choose_features
from stct.numeric.engine import Engine, RowValues
from stct.numeric.probabilities import one_hot
from stct.numeric.types import Floats


def correct_each_label(
    H: RowValues,
    Y: NDArray[np.int8],
    locked: NDArray[np.bool_],
    engine: Engine,
    progress: Progress,
    settings: Settings = DEFAULT,
) -> Iterator[Correction]:
    """Correct the columns of an indicator matrix, one `Correction` for each.

    Parameters
    ----------
    H : array of shape (n, d)
    Y : ndarray of int8, shape (n, L)
        1 where a label belongs to a row, 0 where not, -1 in rows without labels.
    locked : ndarray of bool, shape (n,)
        Rows that are certain.
    """
    n, L = Y.shape
    labelled = Y[:, 0] >= 0
    shared = choose_features(
        H, standardised(Y, labelled), labelled, engine, settings.scores
    )
    progress(0.2)
    for column in range(L):
        given = Y[:, column].astype(np.intp)
        yield _correct_one(shared, Labels(given, locked, 2, engine), settings)
        progress(0.2 + 0.8 * (column + 1) / L)


def standardised(Y: NDArray[np.int8], labelled: NDArray[np.bool_]) -> Floats:
    """Give indicators mean 0 and variance 1, (n, L) float32; 0 where unknown."""
    known = Y[labelled].astype(np.float32)
    deviation = known.std(axis=0)
    scaled = (Y - known.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    return np.asarray(scaled * labelled[:, None], dtype=np.float32)


def _correct_one(shared: LeftOut, labels: Labels, settings: Settings) -> Correction:
    """Correct one label from log-odds of its own."""
    path, index = shared.path, sample_rows(labels, sample_size(2, settings.calibration))
    sample = labels.some(index)
    if sample.given.min() == sample.given.max():
        return nothing_learnt(labels.given, 2)
    Y = one_hot(labels.given, 2)
    ridge = path.fit(Y, labels.given, shared.strength)
    S = take(labels.engine, ridge.scores, index)
    if evidence_of_label(S[:, 1], sample.given) <= settings.scores.sure_errors:
        return nothing_learnt(labels.given, 2)
    # Of a rare label a score of 1/2 is no border: the log-odds would begin far off.
    move = 0.5 - discriminant_border(S[:, 1], sample.given)
    both = np.array([-move, move], dtype=np.float32)
    ridge = ridge._replace(
        scores=np.asarray(ridge.scores) + both, intercept=ridge.intercept + both
    )
    scores = Scores(path, ridge, shared.fourier, ())
    return correct_by_scores(scores, labels, _silent, settings=settings)


def _silent(_: float) -> None:
    """Report progress to nobody: labels are counted, not stages."""


def evidence_of_label(scores: Floats, given: NDArray[np.intp]) -> float:
    """Correlation of leave-one-out scores (m,) with a label, in standard errors."""
    if float(scores.std()) == 0.0:
        return 0.0
    return float(np.corrcoef(scores, given)[0, 1] * np.sqrt(len(given)))


def discriminant_border(scores: Floats, given: NDArray[np.intp]) -> float:
    """Score (m,) at which 0 and 1 are as probable: linear discriminant analysis.

    Both are normal with one variance, and as frequent as given.
    """
    one, zero = scores[given == 1], scores[given == 0]
    share = len(one) / len(scores)
    variance = float(share * one.var() + (1.0 - share) * zero.var())
    apart = float(one.mean() - zero.mean())
    odds = float(np.log((1.0 - share) / share))
    return float(one.mean() + zero.mean()) / 2.0 + variance / apart * odds
