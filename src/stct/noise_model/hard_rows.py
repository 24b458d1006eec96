"""Easy and hard rows: in a hard row features and annotators both know less.

Errors of people follow what the row shows, so that they are not independent given the
clean class. A mixture of two kinds of rows takes up what several labels of one row can
tell of it. Legend: m rows, a annotators, q pairs, C classes; L logits (m, C).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from stct.noise_model.annotators import AnnotatorModel
from stct.noise_model.optimiser import minimise
from stct.noise_model.vote_likelihood import row_logsumexp
from stct.noise_model.votes import Votes
from stct.numeric.probabilities import softmax
from stct.numeric.types import Floats


class HardRows(NamedTuple):
    """A mixture of easy and hard rows: sharpness and odds of a right label of each."""

    share: float  # of the hard ones
    sharpness: tuple[float, float]  # factors of the logits, easy and hard
    tilt: tuple[float, float]  # log-factors of annotators' odds, easy and hard

    def tables(self, model: AnnotatorModel, votes: Votes) -> tuple[Floats, Floats]:
        """Log-probability of a vote by pair (q, C), in easy and in hard rows."""
        easy, hard = (np.log(model.tilted(votes, u)) for u in self.tilt)
        return easy, hard

    def joint(self, L: Floats, evidence: tuple[Floats, Floats]) -> tuple[Floats, ...]:
        """Log of Pr[kind of row, clean, votes | x], easy and hard, each (m, C)."""
        shares = (1.0 - self.share, self.share)
        parts = []
        for share, s, E in zip(shares, self.sharpness, evidence, strict=True):
            scaled = L.dtype.type(s) * L
            scaled -= row_logsumexp(scaled)
            parts.append(scaled + E + L.dtype.type(np.log(share)))
        return tuple(parts)

    def posterior(self, L: Floats, evidence: tuple[Floats, Floats]) -> Floats:
        """Pr[clean | x, votes], (m, C)."""
        return softmax(np.logaddexp(*self.joint(L, evidence)))


class HardRowsPrior(NamedTuple):
    """Normal priors of the five numbers of `unpack`."""

    centre: tuple[float, ...]
    variance: tuple[float, ...]

    def fit(self, L: Floats, votes: Votes, model: AnnotatorModel) -> HardRows:
        """Most probable mixture, from some rows and their votes."""
        start = np.array(self.centre)

        def objective(theta: Floats) -> tuple[float, Floats]:
            value, slope = log_posterior(theta, L, votes, model, self)
            return -value / max(len(L), 1), -slope / max(len(L), 1)

        best = minimise(objective, start, None, max_steps=40, tolerance=1e-7)
        return unpack(best)


def unpack(theta: Floats) -> HardRows:
    """Give the mixture for log-odds of the share, two log sharpnesses and two tilts."""
    share = float(np.clip(expit(theta[0]), 1e-6, 1.0 - 1e-6))
    easy, hard = (float(v) for v in np.exp(theta[1:3]))
    return HardRows(share, (easy, hard), (float(theta[3]), float(theta[4])))


def log_posterior(
    theta: Floats,
    L: Floats,
    votes: Votes,
    model: AnnotatorModel,
    prior: HardRowsPrior,
) -> tuple[float, Floats]:
    """Log-likelihood of the votes with the log-priors, and its gradient, (5,)."""
    rows, matrix = unpack(theta), votes.matrix(slice(0, votes.num_rows))
    tables = rows.tables(model, votes)
    parts = rows.joint(L, (matrix @ tables[0], matrix @ tables[1]))
    total = row_logsumexp(np.logaddexp(*parts))  # (m, 1)
    slope = np.zeros(5)
    who, label = votes.pair_annotator, votes.pair_label
    counted = ~np.isnan(model.tilt)[who]
    for kind, part in enumerate(parts):
        Q = np.exp(part - total)  # (m, C) of this kind
        weight = Q.sum(axis=1, keepdims=True)
        scaled = rows.sharpness[kind] * L
        P = np.exp(scaled - row_logsumexp(scaled))
        slope[1 + kind] = float(np.vdot(Q - weight * P, scaled))
        if kind == 1:
            slope[0] = float((weight - rows.share).sum())
        N = matrix.T @ Q  # (q, C)
        factor = np.exp(rows.tilt[kind])
        right = model.right * factor / (1.0 + model.right * (factor - 1.0))
        hits = N[np.arange(len(label)), label]
        slope[3 + kind] = hits[counted].sum() - (N * right[who])[counted].sum()
    centre, variance = np.array(prior.centre), np.array(prior.variance)
    value = float(total.sum(dtype=np.float64))
    value -= 0.5 * float(((theta - centre) ** 2 / variance).sum())
    return value, slope - (theta - centre) / variance
