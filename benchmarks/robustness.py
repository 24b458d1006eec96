"""One table of cases that the default method was and was not made for.

    python benchmarks/robustness.py --embeddings FILE.npz [--images CIFAR-10]
        [--seeds 3] [--cells NAME ...]

FILE.npz is the file of benchmarks/correct.py. A cell is `features:noise`. Features:
all columns, the first few (`cols6`), a random projection (`proj16`), few rows (`n500`),
class imbalance 1:50 (`imb`), two classes, each row twice with labels of their own
(`twice`) or with one label (`copied`), 100 classes made by splitting each class in ten
(`k100`), the digits of scikit-learn. Features that a line cannot follow: classes of
four clusters each (`clusters`), two `moons`, `shells` around each other. Small tables:
`iris`, `wine`, `cancer`, and `diabetes`, of which the features know little. Classes
that are Gaussian balls (`gauss`) are what the method assumes. With --images features of
10,000 images that know little: principal components (`pixels128`), their own `patches`
as filters, `colours`, grey `thumbnails`, `edges`, random weights (`random300`). Noise:
`sym20` .. `sym90`, `asym20`, `asym40`, `pair40`, `idn20`, `idn40`, `clean`, `random`
(labels that have nothing to do with the rows), `clf` (labels by a weak second
classifier), `bad0` (70% of class 0 called class 1: Theorem 1 fails there), `near20` and
`near40` (one of the three classes whose means are nearest), `freq30` (the label of a
row drawn from all, so large classes are named most), the `human_*` arrays, and
`likeworst` and so on: as often wrong, class by class, as those, but on rows by lot.

Columns: share of right labels given, by the linear probe, by anchors (top 20% margins
and one sharpness) and by `LabelCorrector()`, mean over seeds; the worst seed against
the given labels; error of the two accuracy estimates, in points, and how many of 100
of their intervals hold the truth; calibration error.
True labels are for injecting noise and scoring only.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from image_features import FEATURES
from numpy.typing import NDArray

from stct import LabelCorrector, noise
from stct.data.images import read_images
from stct.noise_model.transition import anchor_transition, posterior
from stct.numeric.probabilities import one_hot, softmax
from stct.numeric.ridge import RidgePath
from stct.numeric.tiles import single_blas_thread

Array = NDArray

STRONG = "sym20 sym50 sym80 sym90 asym20 asym40 idn20 idn40 aggregate random1 worst"
WEAK = "sym20 sym50 asym20 asym40 aggregate random1 worst"
CELLS = [f"all:{n}" for n in STRONG.split()]
CELLS += [f"cols{c}:{n}" for c in (10, 6) for n in WEAK.split()]
CELLS += [
    "digits:sym20",
    "digits:sym50",
    "digits:sym80",
    "k100:sym20",
    "k100:sym80",
    "k100:pair40",
    "all:clean",
    "cols6:clean",
    "cols3:clean",
    "digits:clean",
    "all:random",
    "all:clf",
    "all:bad0",
    "two:sym20",
    "two:sym40",
    "imb:sym20",
    "imb:sym50",
    "imb:worst",
    "n500:sym20",
    "n500:sym50",
    "n2000:sym50",
    "n2000:worst",
    "n10000:random1",
    "twice:sym50",
    "copied:sym50",
    "proj16:sym20",
    "proj16:asym20",
    "proj64:asym40",
    "cols30:worst",
    "cols30:sym50",
    "cols3:sym20",
    "gauss:sym20",
    "gauss:sym50",
    "clusters:clean",
    "clusters:sym20",
    "clusters:sym50",
    "clusters:pair40",
    "moons:clean",
    "moons:sym20",
    "shells:clean",
    "shells:sym20",
]
HUMAN = ("aggregate", "random1", "worst")
ALIKE = ["near20", "near40", *(f"like{h}" for h in HUMAN)]
CELLS += [f"{f}:{n}" for f in ("all", "cols10", "n2000") for n in ALIKE]
CELLS += [f"cols6:{n}" for n in ALIKE] + ["imb:likerandom1", "imb:freq30"]
TABLES = ("iris", "wine", "cancer", "diabetes")
CELLS += [f"{t}:{n}" for t in TABLES for n in ("clean", "sym20", "sym40", "pair30")]
IMAGE_NOISE = [
    "clean",
    "sym20",
    "sym50",
    "sym80",
    "asym40",
    "idn20",
    "aggregate",
    "random1",
    "worst",
]
IMAGE_CELLS = [f"{f}:{n}" for f in FEATURES for n in IMAGE_NOISE]


def load(path: str, images: str | None = None) -> dict[str, Array]:
    with np.load(path) as file:
        data = {"H": file["train"].astype(np.float32), "y": file["y_train"]}
        for name in file.files:
            if name.startswith("human_"):
                data[name.removeprefix("human_")] = file[name].astype(np.intp)
    data["y"] = data["y"].astype(np.intp)
    if images:
        read = read_images(Path(images))
        names = np.array(read.labels[:10_000])
        data["images"] = read.images[:10_000].astype(np.float32) / 255.0
        data["y_images"] = np.unique(names, return_inverse=True)[1].astype(np.intp)
    return data


def make(
    cell: str, data: dict[str, Array], seed: int
) -> tuple[Array, Array, Array, int] | None:
    """Embeddings, given labels, true labels, classes; None if the file lacks it."""
    features, kind = cell.split(":")
    rng = np.random.default_rng([seed, 7])
    found = other_data(features, data, seed)
    if found is not None:
        (H, y), human = found, {}
        rows = np.arange(len(y))
        if features in FEATURES and np.array_equal(y, data["y"][: len(y)]):
            human = human_labels(data)
    elif features in FEATURES:
        return None
    else:
        H, y, rows, human = some_of(features, data, rng)
    H, y = np.ascontiguousarray(H[rows]), y[rows]
    C = int(y.max()) + 1
    if kind in human:
        return H, human[kind][rows], y, C
    if kind in HUMAN or kind.startswith("like"):
        if kind.removeprefix("like") not in human:
            return None
        T = np.zeros((C, C))
        np.add.at(T, (y, human[kind.removeprefix("like")][rows]), 1.0)
        given = noise.from_matrix(y, T / T.sum(axis=1, keepdims=True), rng).labels
    else:
        given = inject(kind, H, y, C, rng)
    if features == "copied":
        H, given, y = np.tile(H, (2, 1)), np.tile(given, 2), np.tile(y, 2)
    return H, given, y, C


def other_data(
    features: str, data: dict[str, Array], seed: int
) -> tuple[Array, Array] | None:
    """Rows that are not of the file, and their true labels."""
    if features == "digits":
        from sklearn.datasets import load_digits

        H, y = load_digits(return_X_y=True)
        return H.astype(np.float32), y.astype(np.intp)
    if features in TABLES:
        return table(features)
    if features in ("gauss", "clusters", "moons", "shells"):
        return synthetic(features, seed)
    if features in FEATURES and "images" in data:
        if features not in data:
            data[features] = FEATURES[features](data["images"])
        return data[features], data["y_images"]
    return None


def human_labels(data: dict[str, Array]) -> dict[str, Array]:
    return {k: v for k, v in data.items() if v.ndim == 1 and not k.startswith("y")}


def some_of(
    features: str, data: dict[str, Array], rng: np.random.Generator
) -> tuple[Array, Array, Array, dict[str, Array]]:
    """Columns, true labels, which rows of the file, and human labels."""
    human, H, y = human_labels(data), data["H"], data["y"]
    rows = np.arange(len(y))
    if features.startswith("cols"):
        H = H[:, : int(features[4:])]
    elif features.startswith("proj"):
        H = H @ rng.normal(size=(H.shape[1], int(features[4:]))).astype(np.float32)
    elif features == "k100":
        y, human = hundred_classes(data), {}
    elif features == "two":
        rows, human = np.flatnonzero(np.isin(y, (3, 5))), {}
        y = (y == 5).astype(np.intp)
    elif features == "imb":
        sizes = (5000 * 50 ** (-np.arange(10) / 9)).astype(int)
        members = [rng.permutation(np.flatnonzero(y == c)) for c in range(10)]
        rows = np.concatenate([m[:s] for m, s in zip(members, sizes, strict=True)])
    elif features == "twice":
        rows = np.concatenate([rng.permutation(rows)[:5000]] * 2)
    elif features == "copied":
        rows = rng.permutation(rows)[:5000]
    elif features.startswith("n"):
        rows = rng.permutation(rows)[: int(features[1:])]
    return H, y, rows, human


def table(name: str) -> tuple[Array, Array]:
    from sklearn import datasets

    loader = "breast_cancer" if name == "cancer" else name
    H, y = getattr(datasets, f"load_{loader}")(return_X_y=True)
    if name == "diabetes":  # a measurement, cut in three
        y = np.digitize(y, np.quantile(y, [0.33, 0.66]))
    return ((H - H.mean(0)) / H.std(0)).astype(np.float32), y.astype(np.intp)


def synthetic(features: str, seed: int) -> tuple[Array, Array]:
    from sklearn import datasets

    if features == "clusters":
        H, y = datasets.make_classification(
            6000, 20, n_informative=8, n_redundant=4, n_classes=4, flip_y=0,
            n_clusters_per_class=4, random_state=seed,
        )  # fmt: skip
    elif features == "moons":
        H, y = datasets.make_moons(4000, noise=0.25, random_state=seed)
    elif features == "shells":
        H, y = datasets.make_gaussian_quantiles(
            n_samples=6000, n_features=10, n_classes=3, random_state=seed
        )
    else:
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 4, 6000)
        H = rng.normal(size=(6000, 12)) + 0.7 * rng.normal(size=(4, 12))[y]
    return H.astype(np.float32), y.astype(np.intp)


def inject(kind: str, H: Array, y: Array, C: int, rng: np.random.Generator) -> Array:
    if kind == "clean":
        return y.copy()
    if kind == "random":
        return rng.integers(0, C, len(y))
    if kind == "bad0":
        return noise.asymmetric(y, 0.7, rng, {0: 1}).labels
    if kind == "clf":
        from sklearn.linear_model import LogisticRegression

        some, columns = rng.permutation(len(y))[:300], slice(0, 20)
        model = LogisticRegression(max_iter=200).fit(H[some, columns], y[some])
        return model.predict(H[:, columns])
    rate = int(kind[-2:]) / 100
    if kind.startswith("freq"):
        drawn = rng.random(len(y)) < rate
        return np.where(drawn, y[rng.integers(0, len(y), len(y))], y)
    if kind.startswith("sym"):
        return noise.symmetric(y, C, rate, rng).labels
    if kind.startswith("asym"):
        return noise.asymmetric(y, rate, rng).labels
    if kind.startswith("pair"):
        return noise.pair(y, C, rate, rng).labels
    if kind.startswith("near"):
        return noise.from_matrix(y, near_classes(H, y, C, rate), rng).labels
    if kind.startswith("idn"):
        return noise.instance_dependent(y, H, C, rate, rng).labels
    raise SystemExit(f"unknown noise {kind!r}")


def near_classes(H: Array, y: Array, C: int, rate: float) -> Array:
    """T (C, C) of an annotator who takes a class for one of its three nearest."""
    means = np.stack([H[y == c].mean(axis=0) for c in range(C)])
    T = (1.0 - rate) * np.eye(C)
    for c in range(C):
        away = np.linalg.norm(means - means[c], axis=1)
        nearest = np.argsort(away)[1:4]
        T[c, nearest] = rate / len(nearest)
    return T


def hundred_classes(data: dict[str, Array]) -> Array:
    from sklearn.cluster import MiniBatchKMeans

    y = np.zeros(len(data["y"]), dtype=np.intp)
    for c in range(10):
        rows = np.flatnonzero(data["y"] == c)
        parts = MiniBatchKMeans(10, random_state=0, n_init=1)
        y[rows] = 10 * c + parts.fit_predict(data["H"][rows, :64])
    return y


def probe_and_anchors(H: Array, given: Array, C: int) -> tuple[Array, Array]:
    """Two simple rules: argmax of the scores; T from anchors and one sharpness."""
    with single_blas_thread():
        path = RidgePath(H, np.ones(len(H), bool))
        S = path.fit(one_hot(given, C), given).scores
    T = anchor_transition(S, given)
    rows, S = np.arange(len(S)), S / S.std()
    best, labels = -np.inf, given
    for sharpness in 2.0 ** np.arange(-0.5, 4.1, 0.5):
        P = softmax(S * np.float32(sharpness))
        likelihood = np.log(np.maximum((P @ T)[rows, given], 1e-12)).mean()
        if likelihood > best:
            best, labels = likelihood, posterior(P, T, given).argmax(axis=1)
    return S.argmax(axis=1), labels


def calibration_error(confidence: Array, right: Array, bins: int = 15) -> float:
    index = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(confidence[index == b].sum() - right[index == b].sum()) for b in range(bins)
    ]
    return sum(gaps) / len(right)


def holds(interval: tuple[float, float], value: float) -> bool:
    return bool(interval[0] <= value <= interval[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--embeddings", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--images", help="CIFAR-10: folder or .tar.gz")
    parser.add_argument("--cells", nargs="*", default=CELLS + IMAGE_CELLS)
    args = parser.parse_args()
    data = load(args.embeddings, args.images)
    print(
        f"{'cell':17s}{'n':>2s}{'given':>7s}{'probe':>7s}{'anchor':>7s}{'stct':>7s}"
        f"{'worst':>7s}{'before':>8s}{'after':>7s}{'held':>6s}{'ECE':>7s}{'s':>7s}"
    )
    for cell in args.cells:
        human = cell.split(":")[1] in data
        drawn = cell.split(":")[0].rstrip("0123456789")  # rows or columns, at random
        sampled = drawn in ("n", "imb", "proj", "two", "twice")
        seeds = args.seeds if not human or sampled else 1
        rows = []
        for seed in range(seeds):
            case = make(cell, data, seed)
            if case is None:
                break
            H, given, y, C = case
            probe, anchored = probe_and_anchors(H, given, C)
            start = time.perf_counter()
            m = LabelCorrector().fit(H, given)
            seconds = time.perf_counter() - start
            before, after = (given == y).mean(), (m.labels_ == y).mean()
            e = m.estimated_accuracy_
            held = holds(e.before_interval, before) + holds(e.after_interval, after)
            error = calibration_error(m.confidence_, m.labels_ == y)
            right = [before, (probe == y).mean(), (anchored == y).mean(), after]
            off = [after - before, e.before - before, e.after - after]
            rows.append([*right, *off, held / 2, error, seconds])
        if not rows:
            print(f"{cell:17s} not in this file")
            continue
        table = np.array(rows)
        mean = 100 * table.mean(axis=0)
        print(
            f"{cell:17s}{len(rows):2d}{mean[0]:7.1f}{mean[1]:7.1f}{mean[2]:7.1f}"
            f"{mean[3]:7.2f}{100 * table[:, 4].min():+7.1f}{mean[5]:+8.1f}"
            f"{mean[6]:+7.1f}{mean[7]:6.0f}{mean[8] / 100:7.3f}{mean[9] / 100:7.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
