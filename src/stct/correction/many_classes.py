"""The default method for many classes: nothing of size n x C is ever kept.

The scores are those of `stct.correction.pipeline`, exact leave-one-out ridge, but
computed again for each block of rows that asks. The log-odds are the scores times one
sharpness, plus a correction linear in x; these and T come from a sample of rows, T by
expectation maximisation from two starts. Refits, free weights in score space and the
allowance for hard rows are left out: they cost C x C for every row. Of every row's
posterior the ``TOP`` most probable classes are kept, and the given one. Legend: n rows,
m sampled rows, d columns, C classes, t rows of a tile; S scores, T[clean, given].
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from stct.correction.choice import LIKELY, agreement_in_errors, is_better
from stct.correction.given_labels import Labels
from stct.correction.paper import ConstantModel, Correction, TopClasses
from stct.correction.residual import STEPS
from stct.correction.score_fit import highest
from stct.noise_model.likelihood import ForwardModel
from stct.noise_model.transition import (
    anchor_transition,
    curvature,
    is_learnable,
    posterior,
    proven_transition,
    symmetric_transition,
)
from stct.numeric.engine import Computed, Local, RowValues
from stct.numeric.probabilities import known_beyond_chance, one_hot, softmax
from stct.numeric.ridge import RidgeFit, RidgePath
from stct.numeric.tiles import TILE
from stct.numeric.types import Floats, Ints

MANY = 256  # classes; more come here
TOP = 8  # classes kept of a row
SAMPLED = 2**26  # scores that are looked at to find sharpness and T
BLOCK = 2**21  # scores in hand at a time
ROUNDS = 8


class Annotator(NamedTuple):
    """What the sample says: how sharp scores are, and what was made of them."""

    sharpness: float
    transition: Floats  # (C, C)


class Direct(NamedTuple):
    """Sharpened scores and a correction linear in x, fitted on a sample."""

    sharpness: float
    weights: Floats  # (d, C), for centred rows
    own: float  # of a sampled row's leverage, what its label has pulled itself
    ridge: float
    bend: float


class ManyModel(NamedTuple):
    """Pr[clean | x] for new rows: ridge scores, a correction linear in x."""

    ridge: RidgeFit
    direct: tuple[Floats, Floats]  # weights (d, C), intercept (C,)
    sharpness: tuple[float, float]  # of the scores, and of it all

    def probabilities(self, X: Floats) -> Floats:
        """Pr[clean | x], (n, C)."""
        S = X @ self.ridge.weights + self.ridge.intercept
        logits = self.sharpness[0] * S + X @ self.direct[0] + self.direct[1]
        return softmax(logits * self.sharpness[1])


def correct_many_classes(
    H: RowValues,
    labels: Labels,
    progress: Callable[[float], None],
    *,
    annotator: Floats | None = None,
) -> Correction:
    """Score rows block by block, find the annotator on a sample, keep the top.

    ``annotator`` is a T from an earlier look at the same labels.
    """
    engine, n, C = labels.engine, len(labels.given), labels.num_classes
    if isinstance(H, np.ndarray):
        H = engine.keep(H)
    path = RidgePath(H, labels.given >= 0, engine=engine)
    if len(path.axes.values) == 0:
        return nothing_learnt(labels)
    progress(0.3)
    given, locked = engine.keep(labels.given), engine.keep(labels.locked)
    Y = Computed(lambda rows: one_hot(given[rows], C), (n, C), np.float32)
    ridge = path.fit(Y, given, keep_scores=False)
    progress(0.5)
    index = sample_rows(labels, max(2 * C, SAMPLED // C))
    S = np.asarray(engine.take(ridge.scores, index), dtype=np.float32)  # (m, C)
    said = labels.given[index]
    first = find_annotator(S, said, annotator, progress)
    if first is None:
        return nothing_learnt(labels)
    centred = Computed(path.rows.__getitem__, path.rows.shape, path.rows.dtype)
    X = np.asarray(engine.take(centred, index), dtype=np.float32)  # (m, d)
    S *= np.float32(first.sharpness)
    direct, pull = fit_direct(path, X, S, said, first, n)
    leverage = path.leverage_at(direct.ridge)
    S += X @ direct.weights
    for block, sampled in zip(_tiles(index, n), _parts(index, n), strict=True):
        own = leverage(block, index[sampled] - block.start)
        S[sampled] += pull(S[sampled], said[sampled], own)
    last = _climb(S, said, first.transition)
    known = _known(S, last.sharpness)
    del S, X
    progress(0.8)
    in_sample = np.zeros(n, bool)
    in_sample[index] = True
    sampled_rows, scores, rows_of_H = engine.keep(in_sample), ridge.scores, path.rows
    T, sharpness = last.transition, last.sharpness

    def keep_top(rows: slice) -> Floats:
        """Probabilities and numbers of a tile's most probable classes."""
        L = np.asarray(scores[rows], np.float32) * np.float32(first.sharpness)
        L += np.asarray(rows_of_H[rows], np.float32) @ direct.weights
        some = np.flatnonzero(sampled_rows[rows])
        L[some] += pull(L[some], given[rows][some], leverage(rows, some))
        return top_posterior(L, given[rows], locked[rows], sharpness, T)

    top = engine.take(engine.rows(keep_top, n), None)  # (n, 2 TOP)
    progress(0.95)
    W = direct.weights * path.rows.scale
    model = ManyModel(
        ridge._replace(scores=None),
        (W, -(path.rows.mean @ W)),
        (first.sharpness, sharpness),
    )
    Q = TopClasses(top[:, :TOP], top[:, TOP:].astype(np.int32), C)
    return Correction(Q, T, is_learnable(T), model, 1, "max_rounds", known=known)


def _known(S: Floats, sharpness: float) -> float:
    """Share of the sampled rows whose class the features know, beyond chance."""
    largest = sum(
        softmax(np.float32(sharpness) * S[rows]).max(axis=1).sum(dtype=np.float64)
        for rows in _blocks(*S.shape)
    )
    return known_beyond_chance(float(largest) / len(S), S.shape[1])


def fit_direct(
    path: RidgePath, X: Floats, offset: Floats, said: Ints, found: Annotator, n: int
) -> tuple[Direct, Callable[[Floats, Ints, Floats], Floats]]:
    """Fit a correction linear in x on the sample, as `residual.fit_directly` does.

    Returns it and the function that takes a sampled row's own pull back, from its
    logits, its label and its leverage among all rows. The sample's Gram matrix is
    taken for its share of the whole.
    """
    m, C = offset.shape
    T, share = found.transition, m / n
    bends = [curvature(softmax(offset[rows]), T) for rows in _blocks(m, C)]
    bend = max(float(np.concatenate(bends).mean()), 1e-6)
    penalty = float(path.axes.values.sum()) / path.num_labelled
    scale = 1.0 / np.sqrt(bend * share * path.axes.values + penalty)  # (rank,)
    model = ForwardModel(X, said, np.zeros(m, bool), C, offset=offset, engine=Local())
    W, _ = model.fit(
        np.zeros((X.shape[1], C)),
        T,
        precision=penalty * scale**2,
        basis=path.axes.vectors * scale,
        max_steps=STEPS,
    )
    direct = Direct(
        found.sharpness,
        W.astype(np.float32),
        1.0 / (share * bend),
        penalty / (bend * share),
        bend,
    )

    def pull(L: Floats, given: Ints, leverage: Floats) -> Floats:
        out = np.empty_like(L)
        for rows in _blocks(*L.shape):
            P = softmax(L[rows])
            own = np.asarray(leverage[rows] * direct.own, np.float32)
            step = own / np.maximum(1.0 - own * direct.bend, 0.05)
            out[rows] = step[:, None] * (P - posterior(P, T, given[rows]))
        return out

    return direct, pull


def _tiles(index: Ints, n: int) -> list[slice]:
    """Tiles that hold sampled rows."""
    starts = np.unique(index // TILE) * TILE
    return [slice(int(start), min(int(start) + TILE, n)) for start in starts]


def _parts(index: Ints, n: int) -> list[slice]:
    """Where the sampled rows of each of these tiles are in the sample."""
    edges = [
        np.searchsorted(index, (tile.start, tile.stop)) for tile in _tiles(index, n)
    ]
    return [slice(int(low), int(high)) for low, high in edges]


def nothing_learnt(labels: Labels) -> Correction:
    """Say that the features do not explain the labels: no class is learnable."""
    given, C = labels.given, labels.num_classes
    counts = np.bincount(given[given >= 0], minlength=C)
    model = ConstantModel(counts / counts.sum())
    top = np.tile(np.argsort(-counts, kind="stable")[:TOP], (len(given), 1))
    missing = (given >= 0) & (top != given[:, None]).all(axis=1)
    top[missing, -1] = given[missing]
    shares = model.shares[top].astype(np.float32)
    Q = TopClasses(shares, top.astype(np.int32), C)
    T, learnable = np.full((C, C), 1.0 / C), np.zeros(C, dtype=bool)
    return Correction(Q, T, learnable, model, 1, "nothing_learnt")


def sample_rows(labels: Labels, size: int) -> Ints:
    """Free rows with a label, spread over all rows, in order."""
    free = np.flatnonzero((labels.given >= 0) & ~labels.locked)
    if len(free) <= size:
        return free
    stride = len(free) / size
    jump = np.random.default_rng(0).random(size)
    return np.asarray(free[((np.arange(size) + jump) * stride).astype(np.intp)])


def find_annotator(
    S: Floats,
    given: Ints,
    annotator: Floats | None,
    progress: Callable[[float], None],
) -> Annotator | None:
    """Sharpness and T that make the given labels of the sample (m, C) likely.

    Two starts, as in `stct.correction.choice`: anchors, and a careful annotator, or the
    one of an earlier look, who must be clearly better on rows that were not looked at.
    None if neither beats the frequencies of the labels there, or if the best scores are
    right by chance only.
    """
    C = S.shape[1]
    unit = max(float(S.std()), 1e-30)
    S = S / np.float32(unit)
    learn, test = slice(0, None, 2), slice(1, None, 2)
    other = symmetric_transition(0.9, C) if annotator is None else annotator
    starts = (anchor_transition(S[learn], given[learn]), other)
    fits = [_climb(S[learn], given[learn], T) for T in starts]
    tests = [log_likelihood(S[test], given[test], fit) for fit in fits]
    best = 1 if is_better(tests[1], tests[0]) else 0
    counts = np.bincount(given[learn], minlength=C) + 1.0
    chance = np.log(counts / counts.sum())[given[test]]
    progress(0.7)
    if not is_better(tests[best], chance) or agreement_in_errors(S, given) <= LIKELY:
        return None
    fit = _climb(S, given, fits[best].transition)
    return Annotator(fit.sharpness / unit, fit.transition)


def _climb(S: Floats, given: Ints, T: Floats) -> Annotator:
    """Sharpness and T in turn, until T stays."""
    sharpness = 1.0
    for _ in range(ROUNDS):
        before = T
        sharpness = _sharpest(S, given, T)
        T = proven_transition(_count(S, given, Annotator(sharpness, T)), len(given))
        if abs(np.diagonal(T) - np.diagonal(before)).max() < 1e-3:
            break
    return Annotator(sharpness, T)


def _sharpest(S: Floats, given: Ints, T: Floats) -> float:
    def likelihood(step: int) -> float:
        fit = Annotator(2.0 ** (step / 2), T)
        return float(log_likelihood(S, given, fit).sum(dtype=np.float64))

    return float(2.0 ** (highest(likelihood, start=4, limit=14) / 2))


def _blocks(num_rows: int, num_classes: int) -> Iterator[slice]:
    size = max(1, BLOCK // num_classes)
    return (slice(i, min(i + size, num_rows)) for i in range(0, num_rows, size))


def _explain(
    S: Floats, given: Ints, fit: Annotator, evidence: Floats
) -> tuple[Floats, Floats, Floats]:
    """Softmax E (t, C) without its norm, the norm (t,), and E times the evidence."""
    E = S * np.float32(fit.sharpness)
    E -= E.max(axis=1, keepdims=True)
    np.exp(E, out=E)
    return E, E.sum(axis=1), E * evidence[given]


def log_likelihood(S: Floats, given: Ints, fit: Annotator) -> Floats:
    """Log-likelihood of each row's label, (m,), for scores S (m, C)."""
    evidence = _evidence(fit.transition)
    out = np.empty(len(S), np.float32)
    for rows in _blocks(*S.shape):
        _, norm, joint = _explain(S[rows], given[rows], fit, evidence)
        out[rows] = np.log(np.maximum(joint.sum(axis=1), 1e-30) / norm)
    return out


def _count(S: Floats, given: Ints, fit: Annotator) -> Floats:
    """Count expected rows of each clean and given class, (C, C)."""
    C, evidence = S.shape[1], _evidence(fit.transition)
    counts = np.zeros((C, C))  # [given, clean]
    for rows in _blocks(*S.shape):
        _, _, joint = _explain(S[rows], given[rows], fit, evidence)
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), 1e-30)
        order = np.argsort(given[rows], kind="stable")
        said, starts = np.unique(given[rows][order], return_index=True)
        counts[said] += np.add.reduceat(joint[order], starts, axis=0)
    return np.asarray(counts.T)


def _evidence(T: Floats) -> Floats:
    """Pr[given | clean] with a row for each given class; the last: no label."""
    return np.vstack([T.T, np.ones(len(T))]).astype(np.float32)


def top_posterior(
    S: Floats, given: Ints, locked: Any, sharpness: float, T: Floats
) -> Floats:
    """Probabilities and numbers of the most probable classes, (t, 2 TOP) float32.

    The given class is among them, in the last place if it is not probable.
    """
    fit, evidence = Annotator(sharpness, T), _evidence(T)
    out = np.empty((len(S), 2 * TOP), np.float32)
    for rows in _blocks(*S.shape):
        said = given[rows]
        _, _, Q = _explain(S[rows].astype(np.float32), said, fit, evidence)
        Q /= np.maximum(Q.sum(axis=1, keepdims=True), 1e-30)
        Q[locked[rows]] = one_hot(said[locked[rows]], Q.shape[1])
        top = np.argpartition(Q, -TOP, axis=1)[:, -TOP:]
        at = np.arange(len(Q))[:, None]
        order = np.lexsort((top, -Q[at, top]), axis=1)
        top = np.take_along_axis(top, order, axis=1)
        missing = (said >= 0) & (top != said[:, None]).all(axis=1)
        top[missing, -1] = said[missing]
        out[rows, :TOP], out[rows, TOP:] = Q[at, top], top
    return out
