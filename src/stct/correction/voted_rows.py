"""Rows with several labels: what the votes say, and what is fitted to them.

Legend: n rows, m sampled rows, t rows of a tile, q pairs of annotator and label,
C classes; P, Q = Pr[clean | x], Pr[clean | x, votes].
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stct.correction.calibration import LogOdds, whitening
from stct.correction.given_labels import Labels
from stct.correction.scores import is_kept
from stct.correction.separation import sharpness_of_shape
from stct.correction.settings import CalibrationSettings, Settings
from stct.noise_model.annotators import AnnotatorModel, AnnotatorPrior, fit_annotators
from stct.noise_model.priors import SharpnessPrior
from stct.noise_model.vote_likelihood import (
    fit_vote_sharpness,
    fit_vote_weights,
    vote_posterior,
)
from stct.noise_model.votes import Votes
from stct.numeric.engine import Computed, Engine, RowValues
from stct.numeric.probabilities import one_hot
from stct.numeric.types import Floats, Ints

CERTAIN = 80.0  # log-odds of a locked label


class VotedRows(NamedTuple):
    """Votes of the rows that are worked on, and where."""

    votes: Votes
    labels: Labels  # locked ones, and which rows have any
    settings: Settings

    @property
    def engine(self) -> Engine:
        """Where rows are worked on."""
        return self.labels.engine

    def evidence(self, log_table: Floats) -> Callable[[slice], Floats]:
        """Log-probability of the votes of a tile, (t, C); locked rows are certain."""
        votes, (given, locked) = self.votes, self.labels[:2]
        table, C = log_table.astype(np.float32), self.labels.num_classes

        def tile(rows: slice) -> Floats:
            E = votes.log_evidence(table, rows)
            fixed = locked[rows]
            E[fixed] = CERTAIN * (one_hot(given[rows][fixed], C) - 1.0)
            return E

        return tile

    def evidence_of(self, index: Ints, model: AnnotatorModel) -> Floats:
        """Log-probability of the votes of some rows, (m, C)."""
        some = VotedRows(self.votes.some(index), self.labels.some(index), self.settings)
        return some.evidence(np.log(model.table))(slice(0, len(index)))

    def posterior(
        self, logits: Callable[[slice], Floats], model: AnnotatorModel
    ) -> Callable[[slice], Floats]:
        """Pr[clean | x, votes] of a tile, (t, C) float32."""
        evidence = self.evidence(np.log(model.table))
        return lambda rows: vote_posterior(logits(rows), evidence(rows))

    def estimate(
        self, Q: RowValues, before: AnnotatorModel | None
    ) -> tuple[AnnotatorModel, Floats]:
        """Estimate all annotators, and the shares of the clean classes."""
        s, known = self.settings.annotators, self.labels.given >= 0

        def total(rows: slice) -> tuple[Floats]:
            return (Q[rows][known[rows]].sum(axis=0, dtype=np.float64),)

        shares = self.engine.sum(total, len(known), wide=False)[0]
        shares /= shares.sum()
        prior = AnnotatorPrior(
            s.errors, s.errors_rows, s.one_label_votes, s.one_label_rows
        )
        N = self.votes.count_clean(Q)
        return fit_annotators(self.votes, N, shares, prior, before), shares

    def most_probable(self, Q: RowValues) -> Ints:
        """Most probable class of all rows, (n,)."""
        best = self.engine.rows(lambda rows: Q[rows].argmax(axis=1), Q.shape[0])
        return np.asarray(self.engine.take(best, None))

    def keep(self, function: Callable[[slice], Floats]) -> Any:
        """Values of all rows and classes: kept if there is memory for them."""
        n, C = len(self.labels.given), self.labels.num_classes
        if is_kept(n, C):
            return self.engine.rows(function, n)
        return Computed(function, (n, C), np.float32)


def fit_log_odds(S: Floats, evidence: Floats, settings: CalibrationSettings) -> LogOdds:
    """Log-odds of scores (m, C): a sharpness; of many rows any linear map near it.

    The same priors as with one label, the transition matrices fixed.
    """
    C = S.shape[1]
    prior = SharpnessPrior(1.0, settings.sharpness_precision)
    odds = LogOdds(np.array(sharpness_of_shape(S, settings)), np.zeros(C))
    odds = odds.times(fit_vote_sharpness(odds.logits(S), evidence, prior))
    if len(S) < settings.rows_per_weight * C * C:
        return odds
    mean, whiten, colour = whitening(S)
    U = np.concatenate([np.ones((len(S), 1), S.dtype), (S - mean) @ whiten], axis=1)
    matrix = odds.matrix * np.eye(C)
    start = np.vstack([mean @ matrix + odds.offset, colour @ matrix])
    W = fit_vote_weights(
        U, start, evidence, settings.weight_precision, settings.weight_steps
    )
    matrix = whiten @ W[1:]
    odds = LogOdds(matrix, W[0] - mean @ matrix)
    return odds.times(fit_vote_sharpness(odds.logits(S), evidence, prior))
