"""Do annotators err on the same rows? What several labels per row can tell of it.

Errors that all annotators of a row share look like the truth: no number of votes shows
them. What shows is whether annotators disagree more where the features are ambiguous.
Errors that were drawn at random do not; errors of people do, and then some of them are
shared. Legend: v pairs of votes, C classes; P = Pr[clean | x].
"""

from typing import NamedTuple

import numpy as np

from stct.correction.instance_noise import evidence
from stct.correction.settings import AnnotatorSettings
from stct.noise_model.votes import Votes
from stct.numeric.types import Floats


class Rise(NamedTuple):
    """By how much disagreement rises with ambiguity, and its standard error."""

    slope: float
    error: float


def rise_of_disagreement(P: Floats, votes: Votes) -> Rise | None:
    """Regress disagreement of two votes of a row on ``1 - max P``, inside each class.

    Inside the most probable class, because classes may differ in both. None if no row
    has two votes, or if all rows are equally ambiguous.
    """
    rows, label = votes.rows, votes.pair_label[votes.pairs]
    two = np.flatnonzero(rows[1:] == rows[:-1])
    if len(two) < 3:
        return None
    disagree = (label[two] != label[two + 1]).astype(np.float64)
    P = P[rows[two]]
    ambiguity, group = 1.0 - P.max(axis=1).astype(np.float64), P.argmax(axis=1)
    x, y = (centred(v, group) for v in (ambiguity, disagree))
    total = float(x @ x)
    if total < 1e-9:
        return None
    slope = float(x @ y) / total
    rest = y - slope * x
    return Rise(slope, float(np.sqrt(rest @ rest / len(rest) / total)))


def centred(values: Floats, group: Floats) -> Floats:
    """Subtract the mean of each group."""
    size = np.maximum(np.bincount(group), 1)
    return np.asarray(values - (np.bincount(group, values) / size)[group])


def share_of_log_odds(rise: Rise | None, settings: AnnotatorSettings) -> float:
    """Factor of the posterior's log-odds: below 1 as far as errors are shared.

    The rise is combined with what is usual, in proportion to their precisions.
    """
    usual, spread = settings.usual_rise
    if rise is not None:
        own, before = 1.0 / max(rise.error, 1e-6) ** 2, 1.0 / spread**2
        usual = (own * rise.slope + before * usual) / (own + before)
    return 1.0 - settings.shared * evidence(usual, (0.0, settings.enough_rise))
