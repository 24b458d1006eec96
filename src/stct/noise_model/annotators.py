"""A transition matrix for every annotator, shrunk to the pooled one.

Three levels, each estimated from the one above by empirical Bayes: the pooled matrix M
of all annotators; for annotator a one number u_a that multiplies the odds of a right
label; a Dirichlet prior with mean M_a = M tilted by u_a and one concentration for all
annotators, around which T_a is counted. An annotator of a single label (a rule that
names one class, or abstains) has no such matrix: conditional on having voted it always
says the same. What it says is how the clean classes share its votes. Legend:
a annotators, q pairs (see `stct.noise_model.votes`), C classes; N expected votes by
pair and clean class (q, C); n votes by annotator and clean class (a, C).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from stct.noise_model.transition import sparse_transition
from stct.noise_model.votes import Votes
from stct.numeric.types import Floats, Ints

LEAST = 1e-9  # probability of any vote
NEWTON_STEPS = 25
# Rows that the prior of T_a may be worth.
CONCENTRATIONS = tuple(2.0**k for k in np.arange(1.0, 9.5, 0.5).tolist())


class AnnotatorPrior(NamedTuple):
    """What is known of annotators before they are counted."""

    errors: float  # share of wrong votes of one annotator
    rows: float  # that this is worth for all of them together
    one_label_votes: int  # from which an annotator of one label is one by nature
    one_label_rows: float  # that the pooled matrix is worth for such an annotator


class AnnotatorModel(NamedTuple):
    """Pr[vote | clean] by pair, and what it was made from."""

    table: Floats  # (q, C)
    pooled: Floats  # (C, C)
    right: Floats  # (a, C) diagonal of each T_a
    tilt: Floats  # (a,) log-factor of the odds of a right label; NaN: of one label
    spread: float  # standard deviation of the tilts
    concentration: float  # rows that the tilted pooled matrix is worth

    def tilted(self, votes: Votes, more: float) -> Floats:
        """Multiply everybody's odds of a right label by ``exp(more)``, (q, C).

        What annotators of one label say is left as it is, since they have no odds.
        """
        factor = np.exp(more)
        who, label = votes.pair_annotator, votes.pair_label
        table = self.table / (1.0 + self.right[who] * (factor - 1.0))
        table[np.arange(len(label)), label] *= factor
        single = np.isnan(self.tilt)[who]
        table[single] = self.table[single]
        return np.asarray(np.maximum(table, LEAST))


def fit_annotators(
    votes: Votes,
    N: Floats,
    shares: Floats,
    prior: AnnotatorPrior,
    before: AnnotatorModel | None = None,
) -> AnnotatorModel:
    """Estimate all matrices from expected votes by pair and clean class (q, C).

    Parameters
    ----------
    shares : ndarray of shape (C,)
        Of the clean classes.
    before : AnnotatorModel, optional
        An earlier estimate, where this one begins.
    """
    spread, k = (1.0, 32.0) if before is None else (before.spread, before.concentration)
    who, label = votes.pair_annotator, votes.pair_label
    single = single_label(votes, prior.one_label_votes)[who]  # (q,)
    counted = np.where(single[:, None], 0.0, N)
    M = pooled_transition(counted, votes, prior)
    n = sum_by(who, counted, votes.num_annotators)  # (a, C)
    at = np.arange(len(label))
    hits = np.bincount(who, counted[at, label], votes.num_annotators).astype(float)
    tilt, spread = fit_tilts(M, n, hits, spread)
    expected = tilted_entries(M, tilt, votes)  # M_a by pair
    k = concentration(counted[~single], expected[~single], n, k)
    table = (counted + k * expected) / (n[who] + k)
    own = np.zeros_like(n)
    np.add.at(own, (who, label), counted[at, label])
    factor, diagonal = np.exp(tilt)[:, None], np.diagonal(M)
    own += k * diagonal * factor / (1.0 + diagonal * (factor - 1.0))
    right = own / (n + k)
    if single.any():
        table[single] = shared_votes(
            N[single], M[:, label[single]].T, shares, prior.one_label_rows
        )
        tilt[who[single]] = np.nan
    return AnnotatorModel(np.maximum(table, LEAST), M, right, tilt, spread, k)


def single_label(votes: Votes, least: int) -> NDArray[np.bool_]:
    """Tell which annotators gave one label only, and that often enough, (a,)."""
    a = votes.num_annotators
    number = np.bincount(votes.pair_annotator, minlength=a)
    given = np.bincount(votes.pair_annotator, votes.votes_of_pairs, minlength=a)
    return np.asarray((number == 1) & (given >= least))


def pooled_transition(N: Floats, votes: Votes, prior: AnnotatorPrior) -> Floats:
    """M[clean, given] of all annotators together, that the counts prove, (C, C)."""
    C = N.shape[1]
    counts = sum_by(votes.pair_label, N, C).T
    shares = (counts.sum(axis=1) + 1.0) / (counts.sum() + C)
    even = (1.0 - np.eye(C)) * prior.errors / (C - 1) + np.eye(C) * (1.0 - prior.errors)
    counts += prior.rows * shares[:, None] * even
    return sparse_transition(counts, int(counts.sum()) + 2)


def sum_by(group: Ints, values: Floats, size: int) -> Floats:
    """Sum rows of ``values`` (q, C) by their group, (size, C)."""
    total = np.zeros((size, values.shape[1]))
    np.add.at(total, group, values)
    return total


def fit_tilts(
    M: Floats, n: Floats, hits: Floats, spread: float
) -> tuple[Floats, float]:
    """Most probable tilt of each annotator, normal around 0, and their spread.

    Parameters
    ----------
    n : ndarray of shape (a, C)
        Votes by annotator and clean class.
    hits : ndarray of shape (a,)
        How many of them are expected to be right.
    """
    u, odds = np.zeros(len(n)), np.diagonal(M)
    precision = 1.0 / spread**2
    for _ in range(NEWTON_STEPS):
        factor = np.exp(u)[:, None]
        right = odds * factor / (1.0 + odds * (factor - 1.0))
        slope = hits - (n * right).sum(axis=1) - precision * u
        bend = (n * right * (1.0 - right)).sum(axis=1) + precision
        u = u + np.clip(slope / bend, -1.0, 1.0)
    seen = n.sum(axis=1) > 0.0
    if not seen.any():
        return u, spread
    # One step of expectation maximisation; the caller comes again with new counts.
    return u, float(max(np.sqrt(np.mean((u**2 + 1.0 / bend)[seen])), 0.1))


def tilted_entries(M: Floats, tilt: Floats, votes: Votes) -> Floats:
    """Entries of each annotator's tilted M by pair, (q, C)."""
    who, label = votes.pair_annotator, votes.pair_label
    factor = np.exp(tilt)[who]
    entries = M[:, label].T / (1.0 + np.diagonal(M) * (factor[:, None] - 1.0))
    entries[np.arange(len(label)), label] *= factor
    return np.asarray(entries)


def concentration(N: Floats, expected: Floats, n: Floats, start: float) -> float:
    """Give the most likely worth of the prior mean in rows (Dirichlet-multinomial).

    One of ``CONCENTRATIONS``, found by climbing from ``start``, one of them, too.

    Parameters
    ----------
    N, expected : ndarray of shape (q, C)
    n : ndarray of shape (a, C)
        Votes by annotator and clean class.
    """
    some, values = n[n > 0.0], [float(k) for k in CONCENTRATIONS]

    @cache
    def log_likelihood(place: int) -> float:
        if not 0 <= place < len(values):
            return -np.inf
        k = values[place]
        alpha = k * expected
        value = (gammaln(alpha + N) - gammaln(alpha)).sum()
        return float(value - (gammaln(k + some) - gammaln(k)).sum())

    place = values.index(start)
    for step in (1, -1):
        while log_likelihood(place + step) > log_likelihood(place):
            place += step
    return values[place]


def shared_votes(N: Floats, likely: Floats, shares: Floats, rows: float) -> Floats:
    """Evidence of votes of annotators of one label: Pr[clean | vote] / Pr[clean].

    Parameters
    ----------
    N : ndarray of shape (q, C)
    likely : ndarray of shape (q, C)
        The pooled matrix at these labels.
    rows : float
        That the pooled matrix is worth.
    """
    before = shares * likely
    before /= before.sum(axis=1, keepdims=True)
    after = (N + rows * before) / (N.sum(axis=1, keepdims=True) + rows)
    ratio = after / np.maximum(shares, LEAST)
    return np.asarray(ratio / ratio.sum(axis=1, keepdims=True))
