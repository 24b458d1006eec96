"""The cells of the battery: features, given labels and the truth they are scored by.

A cell is ``features:noise``. Features that come with the install: ``digits`` and the
tables ``iris``, ``wine``, ``cancer``, ``diabetes``; synthetic ``clusters`` (classes of
four clusters), ``moons``, ``shells``. From the folder DATA: ``labelme``, ``sentiment``,
``youtube``, ``banking77`` (``battery/*.npz``), ``cifar`` (``cifar10_embeddings.npz``,
with all columns, or the leading ones as ``cifar10c``, or some rows as ``cifar2000n``,
or with imbalance as ``cifarimb``), ``pixels`` (principal components of raw images, from
``cifar-10-batches-py``); ``catdog`` after ``cifar`` or ``pixels``: cats and dogs only,
of which the latter tell next to nothing. Noise: see `inject`; real noise is
``majority`` and ``one`` (crowd votes) and the names of the CIFAR-10N label sets.
"""

import re
import zlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct import noise

Array = NDArray
HUMAN = ("aggregate", "random1", "random2", "random3", "worst")
VOTED = ("labelme", "sentiment", "youtube")
TABLES = ("iris", "wine", "cancer", "diabetes")
CATDOG = (3, 5)  # their numbers in CIFAR-10


class Cell(NamedTuple):
    """One case; the truth is for scoring only."""

    X: Array  # (n, d)
    given: Array  # (n,)
    truth: Array  # (n,)
    num_classes: int


def names(features: str, *kinds: str) -> list[str]:
    """Give the names of cells with these features."""
    return [f"{features}:{kind}" for kind in kinds]


REAL = [
    *names("labelme", "majority", "one"),
    *names("sentiment", "majority", "one"),
    *names("youtube", "majority"),
    *names("cifar", *HUMAN),
    *names("cifar10c", "aggregate", "random1", "worst"),
    *names("cifar6c", "aggregate", "random1", "worst"),
    *names("cifar2000n", "random1", "worst"),
    *names("cifarimb", "worst"),
    *names("cifarcatdog", "random1", "worst"),
]
INJECTED = [
    *names("cifar", "clean", "sym20", "sym50", "sym80", "sym90", "asym20", "asym40"),
    *names("cifar", "near20", "near40", "idn20", "idn40", "hard20", "hard40"),
    *names("cifar", "likerandom1", "likeworst", "random"),
    *names("cifar10c", "sym20", "sym50", "asym20", "asym40", "near40", "likeworst"),
    *names("cifar6c", "clean", "sym20", "asym40", "likeworst"),
    *names("cifar500n", "clean", "sym20", "sym50"),
    *names("cifar2000n", "sym50", "likerandom1", "near40"),
    *names("cifarimb", "sym20", "sym50", "freq30"),
    *names("banking77", "clean", "sym20", "sym50", "pair30", "near40"),
    *names("banking77", "idn20", "idn40", "hard20"),
    *names("labelme", "clean", "sym20", "sym50", "idn30"),
    *names("sentiment", "clean", "sym20"),
    *names("youtube", "clean", "sym20", "sym40", "pair30"),
    *names("digits", "clean", "sym20", "sym50", "sym80", "asym40", "pair40"),
    *names("digits", "idn20", "idn40", "hard20"),
    *(n for t in TABLES for n in names(t, "clean", "sym20", "sym50", "pair30")),
    *names("iris", "sym80"),
    *names("wine", "sym80"),
    *names("cancer", "sym80"),
    *names("clusters", "clean", "sym20", "pair40"),
    *names("moons", "sym20"),
    *names("shells", "sym20"),
    *names("pixels", "clean", "sym20", "sym50", "asym40", "random1", "worst"),
    *names("cifarcatdog", "clean", "sym20", "sym60", "idn30"),
    *names("pixelscatdog", "clean", "sym20", "sym40", "random1", "worst"),
]


def seeds_of(cell: str, count: int) -> range:
    """Nothing is drawn in some cells: they need one seed only."""
    features, kind = cell.split(":")
    rows_drawn = re.search(r"\dn$|imb", features)
    fixed = kind in HUMAN or (kind == "clean" and features in (*TABLES, "digits"))
    return range(1 if fixed and not rows_drawn else count)


def make(cell: str, data: Path | None, seed: int) -> Cell | None:
    """Make a cell; None if DATA does not have its file."""
    features, kind = cell.split(":")
    rng = np.random.default_rng([seed, zlib.crc32(features.encode()), 7])
    try:
        if features.endswith("catdog"):
            whole = load(features.removesuffix("catdog"), data, seed, rng)
            X, truth, voted = of_classes(CATDOG, *whole)
        else:
            X, truth, voted = load(features, data, seed, rng)
    except (FileNotFoundError, TypeError):
        return None
    C = int(truth.max()) + 1
    if kind in voted:
        given = voted[kind]
        X, truth, given = X[given >= 0], truth[given >= 0], given[given >= 0]
    elif kind.startswith("like"):
        T = np.zeros((C, C))
        np.add.at(T, (truth, voted[kind.removeprefix("like")]), 1.0)
        given = noise.from_matrix(truth, T / T.sum(axis=1, keepdims=True), rng).labels
    else:
        given = inject(kind, X, truth, C, rng)
    return Cell(np.ascontiguousarray(X, np.float32), given, truth, C)


def load(
    features: str, data: Path | None, seed: int, rng: np.random.Generator
) -> tuple[Array, Array, dict[str, Array]]:
    """Features, true labels, and the real labels that come with them."""
    if features == "digits" or features in TABLES:
        return *table(features), {}
    if features in ("clusters", "moons", "shells"):
        return *synthetic(features, seed), {}
    data = Path(data)  # type: ignore[arg-type]
    if features in VOTED:
        with np.load(data / "battery" / f"{features}.npz") as file:
            X, votes, truth = file["X"], file["votes"], file["truth"].astype(np.intp)
        real = {"majority": majority(votes, rng), "one": one_vote(votes, rng)}
        keep = real["majority"] >= 0
        return X[keep], truth[keep], {k: v[keep] for k, v in real.items()}
    if features == "banking77":
        with np.load(data / "battery" / "banking77.npz") as file:
            return file["X"], np.unique(file["label"], return_inverse=True)[1], {}
    if features == "pixels":
        X, truth = pixels(data)
        human = {k: v[: len(truth)] for k, v in cifar(data)[2].items()}
        return X, truth, human
    return some_of_cifar(features, data, rng)


def of_classes(
    classes: tuple[int, ...], X: Array, truth: Array, real: dict[str, Array]
) -> tuple[Array, Array, dict[str, Array]]:
    """Rows of some classes, numbered anew; a label of another class is none, -1."""
    code = np.full(int(truth.max()) + 1, -1)
    code[list(classes)] = np.arange(len(classes))
    rows = code[truth] >= 0
    return X[rows], code[truth[rows]], {k: code[v[rows]] for k, v in real.items()}


def majority(votes: Array, rng: np.random.Generator) -> Array:
    """Most common vote of each row, ties at random, -1 for none."""
    C = votes.max() + 1
    counts = np.stack([(votes == c).sum(axis=1) for c in range(C)], axis=1)
    best = (counts + 0.5 * rng.random(counts.shape)).argmax(axis=1)
    return np.where(counts.sum(axis=1) > 0, best, -1)


def one_vote(votes: Array, rng: np.random.Generator) -> Array:
    """One of the votes of each row, at random, -1 for none."""
    draw = np.where(votes >= 0, rng.random(votes.shape), -1.0)
    return votes[np.arange(len(votes)), draw.argmax(axis=1)].astype(np.intp)


@cache
def cifar(data: Path) -> tuple[Array, Array, dict[str, Array]]:
    """All rows of the embeddings, and human labels."""
    with np.load(data / "cifar10_embeddings.npz") as file:
        X, truth = file["train"].astype(np.float32), file["y_train"].astype(np.intp)
        real = {h: file[f"human_{h}"] for h in HUMAN if f"human_{h}" in file.files}
    if (data / "CIFAR-10_human.pt").exists():
        from stct.data.cifar_n import read_cifar_n

        sets = read_cifar_n(data / "CIFAR-10_human.pt")
        real |= {h: sets[h].labels for h in HUMAN}
    return X, truth, {k: v.astype(np.intp) for k, v in real.items()}


def some_of_cifar(
    features: str, data: Path, rng: np.random.Generator
) -> tuple[Array, Array, dict[str, Array]]:
    """Leading columns, some rows, or classes of 1 : 50."""
    X, truth, real = cifar(data)
    what = re.fullmatch(r"cifar(\d*)([cn]?|imb)", features)
    if what is None:
        raise SystemExit(f"unknown features {features!r}")
    rows = np.arange(len(truth))
    if what[2] == "c":
        X = X[:, : int(what[1])]
    elif what[2] == "n":
        rows = rng.permutation(rows)[: int(what[1])]
    elif what[2] == "imb":
        sizes = (5000 * 50 ** (-np.arange(10) / 9)).astype(int)
        members = [rng.permutation(np.flatnonzero(truth == c)) for c in range(10)]
        rows = np.concatenate([m[:s] for m, s in zip(members, sizes, strict=True)])
    return X[rows], truth[rows], {k: v[rows] for k, v in real.items()}


@cache
def pixels(data: Path) -> tuple[Array, Array]:
    """128 principal components of 10,000 raw images: they know little."""
    from stct.data.images import read_images

    read = read_images(data / "cifar-10-batches-py")
    X = read.images[:10_000].astype(np.float32).reshape(10_000, -1) / 255.0
    X -= X.mean(axis=0)
    vectors = np.linalg.eigh(X.T @ X)[1]
    truth = np.unique(np.array(read.labels[:10_000]), return_inverse=True)[1]
    return X @ vectors[:, ::-1][:, :128], truth.astype(np.intp)


@cache
def table(name: str) -> tuple[Array, Array]:
    """Standardised columns of a data set of scikit-learn."""
    from sklearn import datasets

    loader = "breast_cancer" if name == "cancer" else name
    X, y = getattr(datasets, f"load_{loader}")(return_X_y=True)
    if name == "diabetes":  # a measurement, cut in three
        y = np.digitize(y, np.quantile(y, [0.33, 0.66]))
    if name != "digits":
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y.astype(np.intp)


def synthetic(features: str, seed: int) -> tuple[Array, Array]:
    """Classes that a line cannot follow."""
    from sklearn import datasets

    if features == "clusters":
        X, y = datasets.make_classification(
            6000, 20, n_informative=8, n_redundant=4, n_classes=4, flip_y=0,
            n_clusters_per_class=4, random_state=seed,
        )  # fmt: skip
    elif features == "moons":
        X, y = datasets.make_moons(4000, noise=0.25, random_state=seed)
    else:
        X, y = datasets.make_gaussian_quantiles(
            n_samples=6000, n_features=10, n_classes=3, random_state=seed
        )
    return X, y.astype(np.intp)


def inject(kind: str, X: Array, y: Array, C: int, rng: np.random.Generator) -> Array:
    """Noise of a kind and a rate in per cent.

    ``sym`` draws from all classes; ``asym`` is CIFAR-10's (on other data: every second
    class to the next); ``pair`` to the next class; ``near`` to the three classes with
    the nearest means; ``freq`` draws the label of any row; ``idn`` flips by random
    projections of the features; ``hard`` flips the rows of which a classifier of the
    true labels is least sure, to its second choice. ``like`` before a set of human
    labels: their class-level errors, on rows by lot. ``clean``; ``random`` labels.
    """
    if kind == "clean":
        return y.copy()
    if kind == "random":
        return rng.integers(0, C, len(y))
    family, rate = kind[:-2], int(kind[-2:]) / 100
    if family == "sym":
        return noise.symmetric(y, C, rate, rng).labels
    if family == "asym":
        flips = noise.CIFAR10_FLIPS
        if len(y) < 40_000 and C != 10:
            flips = {c: (c + 1) % C for c in range(0, C, 2)}
        return noise.asymmetric(y, rate, rng, flips).labels
    if family == "pair":
        return noise.pair(y, C, rate, rng).labels
    if family == "near":
        return noise.from_matrix(y, near_classes(X, y, C, rate), rng).labels
    if family == "freq":
        drawn = rng.random(len(y)) < rate
        return np.where(drawn, y[rng.integers(0, len(y), len(y))], y)
    if family == "idn":
        return noise.instance_dependent(y, X, C, rate, rng).labels
    if family == "hard":
        return hard_rows(X, y, rate, rng)
    raise SystemExit(f"unknown noise {kind!r}")


def near_classes(X: Array, y: Array, C: int, rate: float) -> Array:
    """T (C, C) that takes a class for one of its three nearest."""
    means = np.stack([X[y == c].mean(axis=0) for c in range(C)])
    T = (1.0 - rate) * np.eye(C)
    for c in range(C):
        nearest = np.argsort(np.linalg.norm(means - means[c], axis=1))[1:4]
        T[c, nearest] = rate / len(nearest)
    return T


def hard_rows(X: Array, y: Array, rate: float, rng: np.random.Generator) -> Array:
    """Flip the rows with the smallest margin (and some noise) to the second class."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    model = LogisticRegression(max_iter=100)
    P = cross_val_predict(model, X / X.std(), y, cv=2, method="predict_proba")
    own = P[np.arange(len(y)), y]
    P[np.arange(len(y)), y] = -1.0
    doubt = P.max(axis=1) - own + 0.3 * rng.normal(size=len(y))
    flipped = np.argsort(-doubt)[: round(rate * len(y))]
    given = y.copy()
    given[flipped] = P[flipped].argmax(axis=1)
    return given
