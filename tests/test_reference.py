"""The default method and a plain second implementation of it say the same.

Both compute the same numbers in different ways, the package partly in float32. Where
Fourier features are used each draws its own frequencies, so results differ by as much
as two draws do. Between them the data sets are meant to use every stage: two and many
classes, weak and strong features, errors that go anywhere, to one class or to where the
features are ambiguous, rows that are there twice, few rows, and labels that mean
nothing.
"""

import numpy as np
import pytest
from reference import MAX_FREQUENCIES, ROWS_PER_FREQUENCY, correct
from scipy.special import softmax
from sklearn import datasets

from stct import LabelCorrector, noise

# Mean difference of posteriors, largest of entries of T, difference of the accuracy,
# share of labels that differ although they are no tie.
CLOSE = 2e-4, 1e-3, 4e-4, 0.002


def standard(X):
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def real(name, kind, rate, n=1000):
    X, truth = getattr(datasets, f"load_{name}")(return_X_y=True)
    X, truth = standard(X[:n]), truth[:n]
    rng = np.random.default_rng(0)
    return X, getattr(noise, kind)(truth, truth.max() + 1, rate, rng).labels


def repeated():
    """Rows that are there twice, with the same label or with another one."""
    X, y = real("iris", "symmetric", 0.3)
    X = np.concatenate([X, X[::3], X[::5]])
    return X, np.concatenate([y, y[::3], (y[::5] + 1) % 3])


def clouds(seed, n, d, C, distance):
    """Gaussian clouds, their classes, and log-odds of the classes of each row."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(C, d))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    truth = rng.integers(0, C, n)
    X = centres[truth] + rng.normal(size=(n, d))
    return rng, X, truth, -((X[:, None] - centres) ** 2).sum(axis=2) / 2


def annotators(seed, C, distance, share, temperature):
    """A share of the labels is drawn from what can be seen of the class."""
    rng, X, truth, odds = clouds(seed, 500, 8, C, distance)
    P = softmax(odds * temperature, axis=1)
    labels = [
        rng.choice(C, p=p) if rng.random() < share else y
        for p, y in zip(P, truth, strict=True)
    ]
    return X, np.array(labels)


def errors_by_class(seed, C, rate, sparsity, sizes=(1.0,) * 10):
    """Errors go where they like; classes differ in size."""
    rng, X, truth, _ = clouds(seed, 500, 8, C, 3.0)
    kept = rng.random(500) < np.array(sizes)[truth]
    X, truth = X[kept], truth[kept]
    T = (1 - rate) * np.eye(C) + rate * rng.dirichlet(np.full(C, sparsity), size=C)
    return X, np.array([rng.choice(C, p=T[y]) for y in truth])


def own_rates():
    """Two classes have far more errors than the others."""
    rng, X, truth, _ = clouds(1, 700, 12, 6, 4.0)
    T = np.eye(6) + 0.1 * rng.dirichlet(np.full(6, 0.5), size=6)
    T[1, 4], T[2, 5] = 0.5, 1.0
    T /= T.sum(axis=1, keepdims=True)
    return X, np.array([rng.choice(6, p=T[y]) for y in truth])


def wide():
    """More columns than rows."""
    rng, X, truth, _ = clouds(2, 120, 150, 3, 8.0)
    return X, noise.symmetric(truth, 3, 0.3, rng).labels


def meaningless(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(300, 5)), rng.integers(0, 3, 300)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(repeated, id="repeated rows"),
        pytest.param(lambda: real("wine", "symmetric", 0.2), id="wine"),
        pytest.param(lambda: real("digits", "symmetric", 0.4, 500), id="digits"),
        pytest.param(lambda: real("digits", "symmetric", 0.2, 150), id="few digits"),
        pytest.param(lambda: real("digits", "pair", 0.3, 500), id="pairs"),
        pytest.param(lambda: real("digits", "pair", 0.3, 300), id="fewer pairs"),
        pytest.param(lambda: real("breast_cancer", "symmetric", 0.3), id="cancer"),
        pytest.param(lambda: real("breast_cancer", "pair", 0.1), id="cancer pairs"),
        pytest.param(lambda: annotators(0, 2, 1.0, 0.5, 0.3), id="annotators, 2"),
        pytest.param(lambda: annotators(0, 3, 1.0, 0.5, 1.0), id="annotators, 3"),
        pytest.param(lambda: annotators(0, 5, 2.0, 0.5, 0.3), id="annotators, 5"),
        pytest.param(lambda: annotators(1, 8, 1.0, 0.5, 1.0), id="annotators, 8"),
        pytest.param(lambda: annotators(2, 5, 4.0, 0.8, 0.05), id="bad annotators"),
        pytest.param(lambda: annotators(4, 5, 4.0, 0.8, 0.05), id="worse annotators"),
        pytest.param(own_rates, id="own rates"),
        pytest.param(lambda: errors_by_class(0, 3, 0.6, 0.3), id="60% errors, 3"),
        pytest.param(lambda: errors_by_class(0, 6, 0.6, 0.3), id="60% errors, 6"),
        pytest.param(
            lambda: errors_by_class(3, 6, 0.3, 1.0, (1, 0.8, 0.6, 0.5, 0.12, 0.06)),
            id="rare classes",
        ),
        pytest.param(
            lambda: errors_by_class(7, 6, 0.3, 1.0, (1, 0.8, 0.6, 0.5, 0.12, 0.05)),
            id="rarer classes",
        ),
        pytest.param(wide, id="wide"),
        pytest.param(lambda: meaningless(7), id="learnt by chance"),
        pytest.param(lambda: meaningless(10), id="nothing learnt"),
    ],
)
def test_the_package_does_what_the_page_says(data):
    corrector = compare(*data(), CLOSE)
    assert not any("Fourier" in note for note in corrector.notes_)


def spheres():
    """Two spheres, one inside the other, in three columns."""
    rng = np.random.default_rng(5)
    truth, X = rng.integers(0, 2, 2200), rng.normal(size=(2200, 3))
    radius = 1 + truth + rng.normal(0, 0.3, 2200)
    X *= (radius / np.linalg.norm(X, axis=1))[:, None]
    return X, noise.symmetric(truth, 2, 0.1, rng).labels


def moons():
    X, truth = datasets.make_moons(1500, noise=0.2, random_state=0)
    return X, noise.symmetric(truth, 2, 0.2, np.random.default_rng(0)).labels


def curved(n, bend):
    """Two classes with a border that is hardly curved, and no errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    across = X[:, 0] + bend * (X[:, 1] ** 2 - 1) + 0.02 * rng.normal(size=n)
    return X, (across > 0).astype(int)


@pytest.mark.parametrize(
    ("data", "close"),
    [
        pytest.param(spheres, (5e-3, 5e-3, 3e-3, 0.01), id="spheres"),
        pytest.param(moons, (0.01, 5e-3, 3e-3, 0.01), id="moons"),
        pytest.param(lambda: curved(2000, 0.06), (2e-3, 3e-3, 2e-3, 0.01), id="curved"),
    ],
)
def test_fourier_features_are_used_where_the_page_says(data, close):
    X, given = data()
    corrector = compare(X, given, close)
    columns = 2 * min(MAX_FREQUENCIES, len(X) // ROWS_PER_FREQUENCY)
    assert any(note.startswith(f"{columns} Fourier") for note in corrector.notes_)


def compare(X, given, close):
    """Both implementations agree on these data; give the package's."""
    corrector = LabelCorrector().fit(X, given)
    Q, T, accuracy = correct(X, given)
    ours = corrector.label_distributions_
    assert np.abs(Q - ours).mean() < close[0]
    assert np.abs(T - corrector.transition_matrix_).max() < close[1]
    assert abs(accuracy - corrector.estimated_accuracy_.before) < close[2]
    best = np.sort(Q, axis=1)
    clear = best[:, -1] - best[:, -2] > 2e-3
    assert np.mean(clear & (Q.argmax(axis=1) != ours.argmax(axis=1))) < close[3]
    return corrector
