"""How good the annotator may be, from all who can say: labels get benefit of the doubt.

The T that fits best is a guess where the features know little or rows are few: wrong
labels and weak features explain the same disagreement. Two views of the features, the
rows that a fit did not see, and rows that are almost the same each have a say. Legend:
n rows, C classes; S scores (n, C), T[clean, given].
"""

from typing import NamedTuple

from stct.correction.given_labels import Labels
from stct.correction.innocence import expected_quality
from stct.correction.residual import LogOdds, clean_shares, hold_quality
from stct.correction.score_fit import ScoreFit
from stct.correction.scores import Witnesses
from stct.correction.twins import Twins, hear_twins, ignorance
from stct.correction.views import Testimony, least_quality
from stct.noise_model.transition import odds_in_doubt, quality
from stct.numeric.probabilities import softmax
from stct.numeric.types import Floats

SAID = 0.05  # of quality that labels get by the benefit of the doubt: it is said


class Benefit(NamedTuple):
    """Log-odds and T after all were heard, and what they leave open."""

    odds: LogOdds
    transition: Floats
    shares: Floats  # (C,) of the clean classes
    least: float  # quality that the annotator has at least
    weak: float  # how far twins are to be believed, 0 if they were not asked
    most: float  # quality that twins cannot exclude
    notes: tuple[str, ...] = ()

    def asked(self, T: Floats) -> Floats | None:
        """Odds (C, C) of a new label, by given and new one, for T as it is at last."""
        if self.weak == 0.0:
            return None
        found = quality(T, self.shares)
        most = found + self.weak * max(self.most - found, 0.0)
        return odds_in_doubt(T, self.shares, most)


def give_benefit(
    S: Floats,
    labels: Labels,
    chosen: ScoreFit,
    odds: LogOdds,
    T: Floats,
    heard: Testimony,
    witnesses: Witnesses | None,
) -> Benefit:
    """Hold T at the quality that views, twins and rows held out leave to it.

    ``witnesses`` are None if their features were taught labels: these put rows of one
    label together, right or wrong, and would call them twins.
    """
    shares = clean_shares(S, labels, odds, T)
    if chosen.known:  # with allowance for hard rows: that is not made twice
        return Benefit(odds, T, shares, 1.0, 0.0, 1.0)
    expected = expected_quality(S, labels, T, shares, heard.association)
    weak = ignorance(softmax(odds.logits(S)))
    least = least_quality(heard, T, weak)
    twins = None
    if weak > 0.0 and witnesses is not None:
        twins = hear_twins(*witnesses, T, shares)
    if twins is None:
        weak, most = 0.0, 1.0
    else:
        least, most = max(least, least + weak * (twins.expected - least)), twins.most
    odds, held = hold_quality(S, labels, chosen, odds, T, max(least, expected))
    notes = []
    if expected > max(least, quality(T, shares) + SAID):
        notes.append(
            "so few rows leave open how many labels are wrong: the mean of what they "
            "allow was taken, fewer than the likeliest number"
        )
    if held is not T and least >= expected:
        notes.append(_describe_held(twins))
    if twins is not None:
        notes.append(
            "the features know little, and rows that are almost the same say how good "
            "labels are: a row abstains if only worse labels would have it changed"
        )
    return Benefit(odds, held, shares, least, weak, most, tuple(notes))


def _describe_held(twins: Twins | None) -> str:
    """Say who spoke better of the labels than the fit."""
    fit = "the fit alone would call more labels wrong"
    if twins is None:
        return (
            f"{fit}; two separate views of the features speak better of them, and were "
            "believed"
        )
    return (
        f"{fit}; {twins.num_pairs} pairs of rows that are almost the same were "
        "labelled alike more often than that allows, and were believed"
    )
