"""Rows for an audit, drawn at random from strata of action and confidence.

Doubtful rows are drawn with a higher probability, by up to a factor of two. The
inclusion probability stands beside each row, so that estimates stay unbiased. Legend:
N rows, n drawn, h a stratum.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.data.check_files import encoded_or_empty, own_columns
from stct.data.corrected import Corrected
from stct.data.summary import ACTIONS
from stct.data.tables import Column, Table
from stct.numeric.types import Floats, Ints

LEAST = 2  # rows of a stratum, where it has so many
PARTS = 3  # of each action, by confidence
HEDGE = 0.1  # variance added to that which the confidence claims: it may be wrong


class AuditSample(NamedTuple):
    """Rows to verify, in random order."""

    rows: Ints  # (n,)
    probability: Floats  # (n,) of being drawn

    @property
    def weight(self) -> Floats:
        """1 / inclusion probability, (n,)."""
        return np.asarray(1.0 / self.probability)


def draw_audit(corrected: Corrected, num_rows: int, seed: int) -> AuditSample:
    """Draw rows without replacement from each stratum.

    With the same seed a larger draw from the same folder contains the smaller one.

    Raises
    ------
    ValueError
        If there are fewer rows than asked for, or fewer than 2 are asked for.
    """
    total = len(corrected.ids)
    if not 2 <= num_rows <= total:
        raise ValueError(
            f"{corrected.folder}: -n must be from 2 to {total:,}, the rows there are; "
            f"got {num_rows:,}"
        )
    groups = strata(corrected.action, corrected.confidence)
    sizes = np.array([len(rows) for rows in groups])
    shares = drawing_shares(groups, corrected.confidence)
    drawn = allocate(num_rows, sizes, shares)
    rows, probability = [], []
    for h, (group, count) in enumerate(zip(groups, drawn.tolist(), strict=True)):
        order = np.random.default_rng([seed, h]).permutation(len(group))
        rows.append(group[order[:count]])
        probability.append(np.full(count, count / len(group)))
    mixed = np.random.default_rng([seed, len(groups)]).permutation(num_rows)
    return AuditSample(np.concatenate(rows)[mixed], np.concatenate(probability)[mixed])


def strata(action: NDArray[np.str_], confidence: Floats) -> list[Ints]:
    """Rows of one action and a third of its range of confidence each."""
    groups = []
    for name in ACTIONS:
        rows = np.flatnonzero(action == name)
        ordered = rows[np.argsort(confidence[rows], kind="stable")]
        groups += [part for part in np.array_split(ordered, PARTS) if len(part)]
    return groups


def drawing_shares(groups: list[Ints], confidence: Floats) -> Floats:
    """Give each stratum its size times the standard deviation of being right."""
    spread = [np.mean(p * (1.0 - p)) for p in (confidence[rows] for rows in groups)]
    sizes = np.array([len(rows) for rows in groups])
    return np.asarray(sizes * np.sqrt(np.array(spread) + HEDGE))


def allocate(num_rows: int, sizes: Ints, share: Floats) -> Ints:
    """Rows to draw from each stratum: in proportion to ``share``, at least two.

    By the divisor method of Sainte-Lague, so that more rows never take one away.
    """
    drawn = np.zeros(len(sizes), dtype=np.intp)
    for _ in range(num_rows):
        claim = share / (drawn + 0.5)
        claim[drawn < LEAST] *= 1e6
        claim[drawn >= sizes] = -1.0
        drawn[claim.argmax()] += 1
    return drawn


def audit_table(corrected: Corrected, sample: AuditSample) -> Table:
    """Make the table to fill in: the given label, and an empty place beside it."""
    table, rows = corrected.table, sample.rows.tolist()
    given = table.values("given")
    columns: dict[str, Column] = {
        "id": [corrected.ids[row] for row in rows],
        "given": [encoded_or_empty(corrected, given[row]) for row in rows],
        "verified": [""] * len(rows),
        "weight": [f"{value:.6f}" for value in sample.weight],
        "probability": [f"{value:.6f}" for value in sample.probability],
    }
    return Table("csv", columns | own_columns(corrected, rows, columns), len(rows))
