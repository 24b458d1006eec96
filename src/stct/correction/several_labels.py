"""Several labels per row: annotators and features in one likelihood.

The clean class has Pr[clean | x] = softmax of leave-one-out ridge scores, as with one
label; the votes of a row have a transition matrix for each annotator. Both are
estimated in turn from ``sum_i log sum_y P_i(y) prod_a T_a[y, vote of a]``. The stages
are those of docs/annotators.md. Without features this is the estimator of Dawid and
Skene. Legend: n rows, q pairs of annotator and label, C classes; Q =
Pr[clean | x, votes].
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stct.correction.calibration import LogOdds
from stct.correction.canonical import Canonical, canonicalise
from stct.correction.given_labels import Labels, sample_rows, sample_size
from stct.correction.result import Correction
from stct.correction.scores import is_kept, leave_one_out_scores, take
from stct.correction.settings import Settings
from stct.correction.shared_errors import rise_of_disagreement, share_of_log_odds
from stct.correction.voted_rows import VotedRows, fit_log_odds
from stct.noise_model.annotators import AnnotatorModel, single_label
from stct.noise_model.hard_rows import HardRowsPrior
from stct.noise_model.votes import Votes
from stct.numeric.engine import Computed, Engine, Local, RowValues, spread_rows
from stct.numeric.models import ConstantModel, Model, SoftmaxModel
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.top_classes import MANY, TOP, TopClasses, keep_top
from stct.numeric.types import Floats, Ints

WORTH_A_NOTE = 0.9
SHARED = (
    "annotators disagree more where the features are ambiguous: some of their errors "
    "are shared, and confidence allows for it"
)
NO_FEATURES = (
    "the features explain the labels no better than chance: the result is that of the "
    "annotators alone"
)


class Fit(NamedTuple):
    """Log-odds of the clean class, and the annotators."""

    logits: Callable[[slice], Floats]  # of a tile, (t, C) float32
    annotators: AnnotatorModel
    model: Model | None = None  # for new rows
    num_rounds: int = 1
    notes: tuple[str, ...] = ()
    has_features: bool = True


def correct_several_labels(
    votes: Votes,
    certain: Ints,
    *,
    H: RowValues | None = None,
    scores: Floats | None = None,
    settings: Settings,
    engine: Engine,
    progress: Callable[[float], None],
) -> Correction:
    """Correct labels from several of them per row, and embeddings if there are any.

    Parameters
    ----------
    votes : Votes
    certain : ndarray of shape (n,)
        Labels of locked rows, -1 for all others.
    H : array of shape (n, d), optional
    scores : ndarray of shape (n, C), optional
        Logarithms of out-of-fold class probabilities, instead of H.
    """
    C, locked = votes.num_classes, certain >= 0
    given = np.where(locked, certain, votes.majority())
    if H is None:
        labels = Labels(given, locked, C, Local(getattr(engine, "num_threads", None)))
        problem = VotedRows(votes, labels, settings)
        fit = dawid_skene(problem)
        if scores is not None:
            fit = with_probabilities(problem, fit, scores)
        return as_correction(problem, fit)
    canonical = canonicalise(H, given, locked, C, engine, settings.canonical)
    ours = reordered_votes(votes, canonical)
    problem = VotedRows(ours, canonical.labels, settings)
    fit = dawid_skene(problem)
    progress(0.2)
    fit = with_features(problem, fit, canonical.H, canonical.owned, progress)
    result = as_correction(problem, fit)
    return canonical.restore(result)


def reordered_votes(votes: Votes, canonical: Canonical) -> Votes:
    """Votes of the rows that are worked on; duplicates of a row share their votes.

    Annotators are sorted by what they said, so that sums have one order.
    """
    rows, label = canonical.places[votes.rows], canonical.rank[votes.pair_label]
    said = rows * votes.num_classes + label[votes.pairs] + 1
    who, total = votes.pair_annotator[votes.pairs], np.zeros((2, votes.num_annotators))
    total[0] = np.bincount(who, minlength=votes.num_annotators)
    total[1] = np.bincount(who, said % 65521, minlength=votes.num_annotators)
    rank = np.empty(votes.num_annotators, dtype=np.intp)
    rank[np.lexsort(total)] = np.arange(votes.num_annotators)
    return Votes(
        rows,
        rank[who],
        label[votes.pairs],
        len(canonical.labels.given),
        votes.num_annotators,
        votes.num_classes,
    )


def dawid_skene(problem: VotedRows) -> Fit:
    """Estimate annotators without features, from the shares of labels in each row.

    Rules that name one class each agree with each other for want of others: two rounds
    are enough for them, and more would let the commonest class win.
    """
    votes, s = problem.votes, problem.settings.annotators
    n = len(problem.labels.given)

    def shares(rows: slice) -> Floats:
        counts = votes.count_labels(rows) + np.float32(0.01)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    single = single_label(votes, s.one_label_votes)[votes.pair_annotator[votes.pairs]]
    rounds = s.first_rounds if single.mean() < 0.5 else s.steps
    model, prior = problem.estimate(
        Computed(shares, (n, votes.num_classes), np.float32), None
    )
    logits = constant(prior)
    for _ in range(rounds):
        Q = problem.keep(problem.posterior(logits, model))
        before = model.table
        model, prior = problem.estimate(Q, model)
        logits = constant(prior)
        if np.abs(model.table - before).max() < s.tolerance:
            break
    return Fit(logits, model, ConstantModel(prior), has_features=False)


def constant(shares: Floats) -> Callable[[slice], Floats]:
    """Give the same logits to all rows."""
    row = np.log(np.maximum(shares, 1e-9)).astype(np.float32)
    return lambda rows: np.tile(row, (rows.stop - rows.start, 1))


def with_features(
    problem: VotedRows,
    first: Fit,
    H: Any,
    owned: bool,
    progress: Callable[[float], None],
) -> Fit:
    """Estimate annotators and log-odds in turn; ridge is taught each posterior."""
    engine, labels, settings = problem.engine, problem.labels, problem.settings
    n, C, s = len(labels.given), labels.num_classes, settings.annotators
    index = sample_rows(labels, sample_size(C, settings.calibration))
    Q = problem.keep(problem.posterior(first.logits, first.annotators))
    best = problem.most_probable(Q)
    labels = labels._replace(given=np.where(labels.given >= 0, best, -1))
    scores = leave_one_out_scores(H, labels, settings.scores, progress, owned=owned)
    if scores is None:
        return first._replace(notes=(NO_FEATURES,))
    strength, path, model = scores.ridge.strength, scores.path, first.annotators
    for done in range(1, s.max_rounds + 1):
        given = engine.keep(labels.given)
        ridge = path.fit(Q, given, strength=strength, keep_scores=is_kept(n, C))
        some = take(engine, ridge.scores, index)
        for _ in range(s.steps):
            evidence = problem.evidence_of(index, model)
            odds = fit_log_odds(some, evidence, settings.calibration)
            logits = logits_of(ridge.scores, odds)
            Q = problem.keep(problem.posterior(logits, model))
            model, _ = problem.estimate(Q, model)
        Q = problem.keep(problem.posterior(logits, model))
        before, best = best, problem.most_probable(Q)
        labels = labels._replace(given=np.where(labels.given >= 0, best, -1))
        progress(0.3 + 0.5 * done / s.max_rounds)
        if (best != before).mean() < s.least_changed:
            break
    weights, intercept = odds.scaled(ridge.weights), odds.scaled(ridge.intercept)
    linear = SoftmaxModel(weights, intercept + odds.offset, scores.fourier)
    return Fit(logits, model, linear, done, scores.notes)


def with_probabilities(problem: VotedRows, first: Fit, S: Floats) -> Fit:
    """Estimate annotators and one linear map of somebody's log-probabilities."""
    labels, settings, model = problem.labels, problem.settings, first.annotators
    index = sample_rows(labels, sample_size(labels.num_classes, settings.calibration))
    for _ in range(settings.annotators.max_rounds):
        evidence = problem.evidence_of(index, model)
        logits = logits_of(S, fit_log_odds(S[index], evidence, settings.calibration))
        before = model.table
        model, _ = problem.estimate(
            problem.keep(problem.posterior(logits, model)), model
        )
        if np.abs(model.table - before).max() < settings.annotators.tolerance:
            break
    return Fit(logits, model)


def logits_of(S: RowValues, odds: LogOdds) -> Callable[[slice], Floats]:
    """Log-odds of a tile of scores."""
    return lambda rows: odds.logits(S[rows])


def as_correction(problem: VotedRows, fit: Fit) -> Correction:
    """Posterior of all rows by the mixture of easy and hard ones, made less sure.

    Log-odds are multiplied by a number below 1 as far as annotators err on the same
    rows: it changes confidence, never which class is the most probable.
    """
    engine, labels, votes = problem.engine, problem.labels, problem.votes
    n, C, s = len(labels.given), labels.num_classes, problem.settings.annotators
    known = np.flatnonzero(votes.counts_of_rows > 0)
    index = known[spread_rows(len(known), s.hard_rows)]
    tiles = Computed(fit.logits, (n, C), np.float32)
    L = np.asarray(Local().take(tiles, index), dtype=np.float64)
    some, P = votes.some(index), softmax(L)
    mixture = HardRowsPrior(s.hard_centre, s.hard_variance).fit(L, some, fit.annotators)
    rise = rise_of_disagreement(P, some)
    factor = np.float32(share_of_log_odds(rise, s))
    tables = mixture.tables(fit.annotators, votes)
    easy, hard = (problem.evidence(t) for t in tables)
    given, locked = (engine.keep(v) for v in (labels.given, labels.locked))

    def decide(rows: slice) -> Floats:
        Q = mixture.posterior(fit.logits(rows), (easy(rows), hard(rows)))
        Q = softmax(factor * np.log(np.maximum(Q, np.float32(1e-30))))
        fixed = locked[rows]
        Q[fixed] = one_hot(given[rows][fixed], C)
        return Q if C <= MANY else keep_top(Q, given[rows])

    Q: Any = engine.take(engine.rows(decide, n), None)
    if C > MANY:
        Q = TopClasses(Q[:, :TOP], Q[:, TOP:].astype(np.int32), C)
    if not fit.has_features:  # what is known, the votes know
        E = tuple(some.log_evidence(t, slice(0, len(index))) for t in tables)
        P = softmax(float(factor) * np.log(mixture.posterior(L, (E[0], E[1])) + 1e-30))
    confusion = 1.0 - float(P.max(axis=1).mean())
    learnable = np.ones(C, dtype=bool)  # Theorem 1 is about one label per row
    notes = fit.notes
    if rise is not None and factor < WORTH_A_NOTE:
        notes = (*notes, SHARED)
    return Correction(
        Q,
        fit.annotators.pooled,
        learnable,
        fit.model,
        fit.num_rounds,
        "max_rounds",
        notes,
        confusion,
    )
