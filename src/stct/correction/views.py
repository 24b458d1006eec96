"""Two views of the features as witnesses of how good the given labels are.

Given labels alone cannot tell weak features from noisy labels: Pr[given | x] = P T is
the same product either way. A third witness can. The columns are split into two views
that know as little as possible of each other within a class; each predicts the labels
by itself. Two views and an annotator who err independently, given the clean class, are
three observers of it, and what they say together tells how good each of them is (Dawid
and Skene, 1979). Views that agree with the given labels more than with each other say
that the features are at fault, not the labels. Legend: n rows, d columns, C classes.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from stct.noise_model.transition import quality, symmetric_transition
from stct.numeric.ridge import RidgePath
from stct.numeric.types import Floats, Ints

ERRORS = 2.0  # standard errors below the estimate
EM_STEPS = 200
PSEUDO_ROWS = 5.0  # of an observer who knows nothing, for each class
MOST_QUALITY = 0.999


class Testimony(NamedTuple):
    """What two views say of the given labels."""

    votes: tuple[Ints, Ints, Ints]  # of the views, and the given labels, (n,) each
    low: float  # quality of an annotator who may err towards any class
    even: float  # of one who errs evenly
    agreement: float  # of the views beyond chance
    error: float | None  # relative standard error; None if nobody agrees
    association: float  # of the views among rows of one label, in standard errors


def hear_views(X: Floats, given: Ints, num_classes: int) -> Testimony:
    """Ask two views of centred rows X (n, d), all of which have a label."""
    votes = two_views(X, given, num_classes)
    error = _relative_error(*votes, num_classes)
    low = even = 0.0
    if error is not None:
        low = annotator_quality(*votes, num_classes)
        even = annotator_quality(*votes, num_classes, _even_errors(num_classes))
    agreement = beyond_chance(votes[0], votes[1], num_classes)[0]
    along = association(*votes, num_classes)
    return Testimony(votes, low, even, agreement, error, along)


def least_quality(heard: Testimony, T: Floats, weak: float = 1.0) -> float:
    """Lower bound for the chance-corrected share of right labels, 0 if unknown.

    Views and annotator may confuse the same classes, and who is to blame then nobody
    can say. `annotator_quality` therefore has two answers: a low one, if the annotator
    may err towards any class, and a high one, if his errors go where ``T`` has them.
    Where the views agree with each other the low one is believed, where they do not the
    high one: labels get the benefit of the doubt in proportion to how little the
    features know. ``weak`` is how little T itself is to be believed, from 0 to 1: he
    then errs evenly, for all that is known.
    """
    if heard.error is None:
        return 0.0
    high = heard.even
    if weak < 1.0:
        shaped = annotator_quality(*heard.votes, len(T), _where_errors_go(T))
        high = shaped ** (1.0 - weak) * high**weak
    high = max(heard.low, high)
    doubt = (1.0 - heard.agreement) ** 2
    bound = heard.low ** (1.0 - doubt) * high**doubt * np.exp(-ERRORS * heard.error)
    return float(min(bound, MOST_QUALITY))


def _even_errors(num_classes: int) -> Floats:
    return _where_errors_go(np.ones((num_classes, num_classes)))


def _where_errors_go(T: Floats) -> Floats:
    """T without its diagonal, rows summing to 1."""
    errors = np.maximum(T, 1e-9)
    np.fill_diagonal(errors, 0.0)
    return _normalised(errors)


def association(a: Ints, b: Ints, given: Ints, num_classes: int) -> float:
    """Agreement of two views among rows of one given label, in standard errors.

    Views that err independently, given the clean class, have nothing in common there if
    that label is right. What they agree in beyond chance speaks of other classes under
    one label: of errors. The standard error is that of shuffling one view's votes.
    """
    excess = variance = 0.0
    for label in range(num_classes):
        rows = given == label
        n = int(rows.sum())
        if n < 2:
            continue
        p, q = (np.bincount(v[rows], minlength=num_classes) / n for v in (a, b))
        expected = float(p @ q)
        excess += float((a[rows] == b[rows]).sum()) - n * expected
        spread = expected - float((p * q) @ (p + q)) + expected**2
        variance += n * n / (n - 1) * spread
    return excess / float(np.sqrt(max(variance, 1.0)))


def two_views(X: Floats, given: Ints, num_classes: int) -> tuple[Ints, Ints, Ints]:
    """Labels that two views predict, and those given, (n,) each, in one order."""

    def judge(first: int) -> Ints:
        # Rows that make the views do not judge them: cross-fitting.
        axes = within_class_axes(X[first::2], given[first::2], num_classes)  # (d, rank)
        rows, labels = X[1 - first :: 2], given[1 - first :: 2]
        # Neighbours in strength go to different views: 0 1 1 0 0 1 1 0 ...
        number = np.arange(axes.shape[1]) % 4
        one = (number == 0) | (number == 3)
        a, b = (
            _predict(rows @ axes[:, view], labels, num_classes) for view in (one, ~one)
        )
        return np.stack([a, b, labels])

    a, b, said = np.concatenate([judge(0), judge(1)], axis=1)
    return a, b, said


def within_class_axes(X: Floats, given: Ints, num_classes: int) -> Floats:
    """Directions (d, rank) along which rows of one given class vary independently."""
    classes = np.zeros((len(X), num_classes), dtype=np.float32)
    classes[np.arange(len(X)), given] = 1.0
    size = np.maximum(classes.sum(axis=0), 1.0)
    means = (X.T @ classes) / np.sqrt(size)  # (d, C)
    if len(X) < X.shape[1]:  # the same from the rows themselves
        within = X - (classes / np.sqrt(size)) @ means.T
        _, spread, rows = np.linalg.svd(within.astype(np.float64), full_matrices=False)
        keep = spread**2 > max(spread.max() ** 2 * 1e-9, 1e-30)
        return np.asarray(rows[keep].T, dtype=np.float32)
    values, vectors = np.linalg.eigh((X.T @ X - means @ means.T).astype(np.float64))
    keep = values > max(values.max() * 1e-9, 1e-30)
    return np.asarray(vectors[:, keep][:, ::-1], dtype=np.float32)


def _predict(Z: Floats, given: Ints, num_classes: int) -> Ints:
    """Best class of each row by leave-one-out ridge, (n,)."""
    path = RidgePath(Z, np.ones(len(Z), dtype=bool), owned=True)
    if len(path.axes.values) == 0:
        return np.zeros(len(Z), dtype=np.intp)
    target = np.zeros((len(Z), num_classes), dtype=np.float32)
    target[np.arange(len(Z)), given] = 1.0
    scores = path.fit(target, given).scores
    assert scores is not None
    return np.asarray(scores.argmax(axis=1))


def annotator_quality(
    a: Ints, b: Ints, given: Ints, num_classes: int, errors: Floats | None = None
) -> float:
    """Quality of the annotator that makes what three observers said most likely.

    EM over the clean class. The views err as they like; so does the annotator, or his
    errors go where ``errors`` (C, C) says, whose rows sum to 1.
    """
    C, n = num_classes, len(given)
    kinds, counts = np.unique((a * C + b) * C + given, return_counts=True)
    seen = [kinds // (C * C), kinds // C % C, kinds % C]  # a, b, given of each kind
    said_by = [_one_hot(values, C) for values in seen]  # (C, kinds) each
    k_a, k_b, k_ab = (
        max(beyond_chance(one, other, C)[0], 1e-3)
        for one, other in ((a, given), (b, given), (a, b))
    )
    start = float(np.clip(np.sqrt(k_a * k_b / k_ab), 0.05, 0.97))
    observers = [_even(k / start, C) for k in (k_a, k_b, start**2)]
    prior = np.bincount(given, minlength=C) / n
    last = -np.inf
    for _ in range(EM_STEPS):
        joint = np.tile(prior, (len(kinds), 1))
        for T, values in zip(observers, seen, strict=True):
            joint *= np.take(np.ascontiguousarray(T.T), values, axis=0)
        total = joint @ np.ones(C)  # (kinds,)
        likelihood = float(counts @ np.log(total)) / n
        if likelihood - last < 1e-6:
            break
        last = likelihood
        Q = joint * (counts / total)[:, None]  # (kinds, C)
        together = [(said @ Q).T for said in said_by]  # (C, C) clean and said
        observers = [_normalised(rows + PSEUDO_ROWS / C) for rows in together]
        if errors is not None:
            right = float(np.trace(together[2])) / n
            observers[2] = right * np.eye(C) + (1.0 - right) * errors
        prior = Q.sum(axis=0) / n
    return max(quality(observers[2], prior), 1e-6)


def _relative_error(a: Ints, b: Ints, given: Ints, num_classes: int) -> float | None:
    """Give the standard error of the log of the quality; None if nobody agrees.

    That of ``sqrt(k(a, given) k(b, given) / k(a, b))``, which the quality would be if
    all observers erred evenly.
    """
    variance = 0.0
    for one, other in ((a, given), (b, given), (a, b)):
        agreed, error = beyond_chance(one, other, num_classes)
        if agreed <= ERRORS * error:
            return None
        variance += (0.5 * error / agreed) ** 2
    return float(np.sqrt(variance))


def _even(beyond: float, num_classes: int) -> Floats:
    """Confusion of an observer who is right ``beyond`` chance and errs evenly."""
    beyond = min(max(beyond, 0.02), 0.97)
    return symmetric_transition(beyond + (1.0 - beyond) / num_classes, num_classes)


def _one_hot(values: Ints, num_classes: int) -> csr_array:
    """One row for each class, (C, n): of hundreds of classes few cells are not 0."""
    shape, columns = (num_classes, len(values)), np.arange(len(values))
    return csr_array((np.ones(len(values)), (values, columns)), shape=shape)


def _normalised(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def beyond_chance(one: Ints, other: Ints, num_classes: int) -> tuple[float, float]:
    """Cohen's kappa of two labellings (n,), and its standard error."""
    n = len(one)
    shares = [np.bincount(v, minlength=num_classes) / n for v in (one, other)]
    chance = min(float(shares[0] @ shares[1]), 1.0 - 1e-9)
    agreed = float(np.mean(one == other))
    error = np.sqrt(max(agreed * (1.0 - agreed), 1.0 / n) / n)
    return (agreed - chance) / (1.0 - chance), float(error) / (1.0 - chance)
