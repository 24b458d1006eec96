"""Twins: rows so close together that they show the same thing, as witnesses.

Where the features know little of a class, nothing that is learnt from them can say
whether labels that disagree with them are wrong. Two pictures of one car can: they are
of one class whatever the features make of it, and how often such twins were given the
same label says how good the labels are. Photographs from crawls, frames of a film and
repeated measurements have twins; half a dozen pairs are enough to be careful. A pair
counts if it is far closer than the density around it explains, along the leading axes
as they are and with equal variance. Legend: t rows, d columns, m pairs, C classes;
T[clean, given].
"""

from typing import NamedTuple

import numpy as np

from stct.noise_model.transition import quality, raise_quality
from stct.numeric.hat_matrix import Axes
from stct.numeric.probabilities import known_beyond_chance
from stct.numeric.tiles import side_by_side
from stct.numeric.types import Floats, Ints

MOST_AXES = 64
PIECE = 256  # rows whose distances to all others are in memory at once, for each thread
REFERENCE, NEAREST = 2048, 8  # so many rows, and the nearest of them, tell the density
BY_CHANCE = 10  # pairs that may be so close, were rows spread evenly
LEAST_PAIRS = 6  # fewer say nothing
TRUE_TWINS = 0.9  # of the pairs that are found: the others only look alike
FIT_ERROR = 0.35  # of the logarithm of the quality that weak features make likely
EM_STEPS = 30
LEAST_PSEUDO, PSEUDO = 0.5, 0.05  # pairs of each class, and for each class there is
ERRORS = 4.0  # standard errors above the mean that leave right labels in doubt
GRID = np.linspace(0.02, 0.995, 40)  # of qualities
KNOWN_LITTLE, KNOWN_WELL = 0.55, 0.7  # share of the classes that features know


class Twins(NamedTuple):
    """How good the labels are, as twins say."""

    expected: float  # quality of the annotator
    most: float  # that cannot be excluded
    num_pairs: int


def ignorance(P: Floats) -> float:
    """How little features know: 1 where twins are to be believed instead, 0 nowhere.

    ``P`` (n, C) is Pr[clean | x]; its mean largest entry beyond chance is the share of
    the rows whose class the features know.
    """
    known = known_beyond_chance(float(P.max(axis=1).mean(dtype=np.float64)), P.shape[1])
    return float(np.clip((KNOWN_WELL - known) / (KNOWN_WELL - KNOWN_LITTLE), 0.0, 1.0))


def hear_twins(
    X: Floats, given: Ints, axes: Axes, T: Floats, shares: Floats
) -> Twins | None:
    """Ask the twins among centred rows X (t, d), all of which have a label.

    ``T`` is the annotator as he was found, and ``shares`` (C,) those of the clean
    classes: what is asked is how far T lies between random labels and no errors. How
    far it was found to lie counts a little, too: where most labels are wrong, twins are
    rarely labelled alike and say little. None, if there are too few of them.
    """
    first, second = find_twins(X, axes).T
    if len(first) < LEAST_PAIRS:
        return None
    pairs = given[first], given[second]
    frequency = np.bincount(given, minlength=len(T)) / len(given)
    at, random = quality(T, shares), np.tile(shares / shares.sum(), (len(T), 1))
    annotators = [
        raise_quality(T, shares, q) if q > at else (q * T + (at - q) * random) / at
        for q in GRID
    ]
    logs = np.array([pair_likelihood(one, *pairs, frequency) for one in annotators])
    logs -= 0.5 * (np.log(GRID / max(at, GRID[0])) / FIT_ERROR) ** 2
    weights = np.exp(logs - logs.max())
    mean = float(np.average(GRID, weights=weights))
    error = float(np.sqrt(np.average((GRID - mean) ** 2, weights=weights)))
    # The better labels are, the more there is to lose; wrong ones are not worth it.
    most = min(mean + ERRORS * mean**2 * error, float(GRID[-1]))
    return Twins(mean, most, len(first))


def pair_likelihood(T: Floats, first: Ints, second: Ints, frequency: Floats) -> float:
    """Log-likelihood of the labels (m,) and (m,) that twins were given.

    Both are of one class, and the annotator labels them one by one; but some pairs are
    no twins, and their labels have nothing to do with each other. Twins may be common
    in some classes and rare in others, so the shares of their classes are fitted, too.
    """
    C = len(T)
    apart = (1.0 - TRUE_TWINS) * frequency[first] * frequency[second]  # (m,)
    together = TRUE_TWINS * T[:, first] * T[:, second]  # (C, m)
    # Of many classes few pairs tell no shares, but would like those of pairs alike.
    pseudo = max(LEAST_PSEUDO, PSEUDO * C)
    prior = np.full(C, 1.0 / C)
    for _ in range(EM_STEPS):
        joint = prior[:, None] * together
        prior = (joint / (joint.sum(axis=0) + apart)).sum(axis=1) + pseudo
        prior /= prior.sum()
    return float(np.log(prior @ together + apart).sum())


def find_twins(X: Floats, axes: Axes) -> Ints:
    """Pairs of rows (m, 2) of X (t, d) that are closer than chance explains.

    By chance a few are expected, fewer as both looks must name the same partner. Exact
    copies are left out: of these only such as were given different labels are here.
    """
    leading = np.argsort(-axes.values, kind="stable")[:MOST_AXES]
    spread = np.sqrt(axes.values[leading]).astype(np.float32)
    Z = (X @ axes.vectors[:, leading].astype(X.dtype)).astype(np.float32)  # (t, axes)
    rows = np.arange(len(Z))
    if len(Z) <= 2 * NEAREST:
        return np.empty((0, 2), dtype=np.intp)
    partner = rows
    for places in (Z, Z / spread):  # the second look is at few rows
        nearest, chance = _closest(places / max(places.std(), 1e-12), rows)
        same = (chance < BY_CHANCE / len(Z)) & (
            (partner == nearest) | (partner == rows)
        )
        rows, partner = rows[same], nearest[same]
    different = (X[rows] != X[partner]).any(axis=1)
    pairs = np.sort(np.stack([rows, partner], axis=1)[different], axis=1)
    return np.unique(pairs, axis=0)


def _closest(Z: Floats, rows: Ints) -> tuple[Ints, Floats]:
    """Give the nearest row of each of some rows of Z, and how many chance puts there.

    Within a distance of a row as many others are expected as its power to the dimension
    of the data says, measured against the nearest of some rows.
    """
    norms = np.einsum("ij,ij->i", Z, Z)
    stride = -(-len(Z) // REFERENCE)
    reference = np.arange(0, len(Z), stride)

    def to_all(some: Ints) -> Floats:
        squares = Z[some] @ Z.T  # (s, t)
        squares *= -2.0
        squares += norms
        squares += norms[some, None]
        squares[np.arange(len(some)), some] = np.inf  # itself
        return squares

    def to_reference(squares: Floats) -> Floats:
        near = np.partition(squares[:, reference], NEAREST - 1, axis=1)[:, :NEAREST]
        return np.maximum(np.sort(near, axis=1), 1e-12)  # (s, NEAREST)

    def look(start: int) -> tuple[Ints, Floats]:
        squares = to_all(rows[start : start + PIECE])
        nearest = squares.argmin(axis=1)
        closest = np.maximum(squares[np.arange(len(squares)), nearest], 0.0)
        return nearest, closest / to_reference(squares)[:, -1]

    # Levina and Bickel's dimension, by MacKay and Ghahramani's mean.
    near = to_reference(to_all(reference))
    growth = 0.5 * np.log(near[:, -1:] / near[:, :-1]).mean(dtype=np.float64)
    power = 0.5 / max(float(growth), 1e-3)  # half of it: of squares
    looks = side_by_side(look, range(0, len(rows), PIECE))
    nearest = np.concatenate([np.empty(0, dtype=np.intp), *(one for one, _ in looks)])
    ratio = np.concatenate([np.empty(0), *(one for _, one in looks)])
    return nearest, stride * NEAREST * ratio**power
