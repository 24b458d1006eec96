"""The default method and a plain second implementation of it say the same."""


import numpy as np
from scipy.special import softmax
from sklearn import datasets

from stct import noise


def standard(X):
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def iris():
    """Some rows are there twice, with the same label or with another one."""
    X, truth = datasets.load_iris(return_X_y=True)
    y = noise.symmetric(truth, 3, 0.3, np.random.default_rng(0)).labels
    X = np.concatenate([standard(X), standard(X)[::3], standard(X)[::5]])
    return X, np.concatenate([y, y[::3], (y[::5] + 1) % 3])


def wine():
    X, truth = datasets.load_wine(return_X_y=True)
    return standard(X), noise.symmetric(truth, 3, 0.2, np.random.default_rng(0)).labels


def digits(kind, rate):
    X, truth = datasets.load_digits(return_X_y=True)
    make = {"symmetric": noise.symmetric, "pair": noise.pair}[kind]
    y = make(truth[:500], 10, rate, np.random.default_rng(0)).labels
    return standard(X[:500]), y


def cancer(kind, rate):
    X, truth = datasets.load_breast_cancer(return_X_y=True)
    make = {"symmetric": noise.symmetric, "pair": noise.pair}[kind]
    return standard(X), make(truth, 2, rate, np.random.default_rng(0)).labels


def clouds(seed, n, d, C, distance):
    """Gaussian clouds, their centres and what is known of the class of each row."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(C, d))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    truth = rng.integers(0, C, n)
    X = centres[truth] + rng.normal(size=(n, d))
    return rng, X, truth, -((X[:, None] - centres) ** 2).sum(axis=2) / 2


def annotators(seed, C, distance, temperature):
    """Half of the labels are drawn from what can be seen: errors follow confusion."""
    rng, X, truth, odds = clouds(seed, 500, 8, C, distance)
    P = softmax(odds * temperature, axis=1)
    drawn = [
        rng.choice(C, p=p) if rng.random() < 0.5 else y
        for p, y in zip(P, truth, strict=True)
    ]
    return X, np.array(drawn)


def own_rates():
    """Classes differ in size, in their error rate and in where their errors go."""
    rng, X, truth, _ = clouds(1, 900, 12, 6, 4.0)
    kept = rng.random(900) < np.array([1.0, 0.9, 0.8, 0.6, 0.5, 0.4])[truth]
    X, truth = X[kept], truth[kept]
    T = np.eye(6) + 0.1 * rng.dirichlet(np.full(6, 0.5), size=6)
    T[1, 4], T[2, 5] = 0.5, 1.0
    T /= T.sum(axis=1, keepdims=True)
    return X, np.array([rng.choice(6, p=T[y]) for y in truth])


def wide():
    """More columns than rows."""
    rng, X, truth, _ = clouds(2, 120, 150, 3, 8.0)
    return X, noise.symmetric(truth, 3, 0.3, rng).labels


def rings():
    """Not linear in the columns."""
    rng = np.random.default_rng(2)
    truth, angle = rng.integers(0, 3, 1500), rng.uniform(0, 2 * np.pi, 1500)
    radius = 1 + truth + rng.normal(0, 0.2, 1500)
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X, noise.symmetric(truth, 3, 0.3, rng).labels


CASES = {
    "iris": iris,
    "wine": wine,
    "digits": lambda: digits("symmetric", 0.4),
    "digits pairs": lambda: digits("pair", 0.3),
    "cancer": lambda: cancer("symmetric", 0.3),
    "cancer pairs": lambda: cancer("pair", 0.1),
    "annotators 2": lambda: annotators(0, 2, 1.0, 0.3),
    "annotators 3": lambda: annotators(0, 3, 1.0, 1.0),
    "annotators 5": lambda: annotators(0, 5, 2.0, 0.3),
    "annotators 8": lambda: annotators(1, 8, 1.0, 1.0),
    "own rates": own_rates,
    "wide": wide,
}
