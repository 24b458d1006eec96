"""Wrong numbers found: `NumericLabelChecker` beside cleanlab's regression module.

    python benchmarks/numeric.py

A twentieth of the targets is corrupted: ``swap`` gives them the target of another row,
``shift`` moves them by one to three standard deviations. Average precision of the
ranking, mean of the seeds. cleanlab's `CleanLearning` ranks with its default model
(linear regression) and with histogram gradient boosting, each as it comes.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import average_precision_score

from stct import NumericLabelChecker

Array = NDArray
RESULTS = Path(__file__).parent / "results"
WRONG = 0.05


def houses(rng: np.random.Generator) -> tuple[Array, Array]:
    """5,000 districts: price by income, age, rooms, crowding, coast and two cities."""
    n = 5_000
    income = np.exp(rng.normal(1.2, 0.45, n))
    age = rng.uniform(1.0, 52.0, n)
    rooms = np.exp(rng.normal(1.6, 0.25, n))
    bedrooms = 1.0 + 0.1 * rng.normal(size=n)
    people = np.exp(rng.normal(7.0, 0.7, n))
    crowding = np.exp(rng.normal(1.05, 0.25, n))
    north = rng.uniform(32.5, 42.0, n)
    inland = rng.uniform(0.0, 6.0, n)
    east = -124.0 + 0.6 * (42.0 - north) + inland
    coast = np.exp(-inland / 1.5)
    cities = np.exp(-((north - 34.0) ** 2 + (east + 118.3) ** 2) / 1.2)
    cities += np.exp(-((north - 37.7) ** 2 + (east + 122.3) ** 2) / 0.8)
    price = 0.42 * income + 0.8 * coast + 1.1 * cities + 0.006 * age
    price += 0.2 * np.log(rooms) - 0.35 * np.log(crowding) + 0.12 * income * coast
    price *= np.exp(0.22 * rng.normal(size=n))
    columns = [income, age, rooms, bedrooms, people, crowding, north, east]
    return np.stack(columns, axis=1), np.clip(price, 0.15, 5.0)


def diabetes(rng: np.random.Generator) -> tuple[Array, Array]:
    """442 patients, ten measurements; scikit-learn's own."""
    X, y = load_diabetes(return_X_y=True)
    return X, y


def friedman(rng: np.random.Generator) -> tuple[Array, Array]:
    """2,000 rows of Friedman's first function, five of ten columns used."""
    return make_friedman1(2_000, 10, noise=1.0, random_state=int(rng.integers(2**31)))


def corrupt(y: Array, kind: str, rng: np.random.Generator) -> tuple[Array, Array]:
    rows = rng.choice(len(y), round(WRONG * len(y)), replace=False)
    bad, mask = y.copy(), np.zeros(len(y), dtype=bool)
    mask[rows] = True
    if kind == "swap":
        bad[rows] = rng.choice(y, len(rows))
    else:
        size = rng.choice([-1.0, 1.0], len(rows)) * rng.uniform(1.0, 3.0, len(rows))
        bad[rows] += size * y.std()
    return bad, mask


def ours(X: Array, y: Array) -> Array:
    return np.abs(NumericLabelChecker().fit(X, y).z_scores_)


def residual(X: Array, y: Array) -> Array:
    return np.abs(y - NumericLabelChecker().fit(X, y).predicted_)


def cleanlab(model: object) -> Callable[[Array, Array], Array]:
    def rank(X: Array, y: Array) -> Array:
        from cleanlab.regression.learn import CleanLearning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = CleanLearning(model, seed=0).find_label_issues(X, y)
        return -found["label_quality"].to_numpy()

    return rank


METHODS = {
    "cleanlab, linear": cleanlab(LinearRegression()),
    "cleanlab, boosting": cleanlab(HistGradientBoostingRegressor(random_state=0)),
    "residual": residual,
    "stct": ours,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "numeric.csv")
    parser.add_argument("--data", nargs="*", default=["diabetes", "friedman", "houses"])
    options = parser.parse_args()
    seeds = {"diabetes": 10, "houses": 3, "friedman": 3}
    rows = []
    for name in options.data:
        for kind in ("swap", "shift"):
            for method, rank in METHODS.items():
                precision, seconds = [], []
                for seed in range(seeds[name]):
                    rng = np.random.default_rng(seed)
                    X, y = globals()[name](rng)
                    bad, wrong = corrupt(y, kind, rng)
                    start = time.perf_counter()
                    precision.append(average_precision_score(wrong, rank(X, bad)))
                    seconds.append(time.perf_counter() - start)
                row = {
                    "data": name,
                    "wrong": kind,
                    "method": method,
                    "seeds": seeds[name],
                    "average_precision": f"{np.mean(precision):.3f}",
                    "deviation": f"{np.std(precision, ddof=1):.3f}",
                    "seconds": f"{np.mean(seconds):.2f}",
                }
                print(row, flush=True)
                rows.append(row)
                with options.output.open("w", newline="") as file:  # so far
                    writer = csv.DictWriter(file, rows[0])
                    writer.writeheader()
                    writer.writerows(rows)


if __name__ == "__main__":
    main()
