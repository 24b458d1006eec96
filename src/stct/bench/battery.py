"""Noise of known kind into trusted labels, every method on it, and its scores."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stct import noise
from stct.bench.inputs import Subject
from stct.bench.measure import measure
from stct.bench.methods import METHODS, is_installed
from stct.numeric.types import Floats, Ints

KINDS = ("symmetric", "symmetric-strict", "asymmetric", "pair", "instance")


class Case(NamedTuple):
    """Given labels with noise in them."""

    noise: str  # such as symmetric:0.5, or the name of a column
    seed: int
    given: Ints  # (n,)


class Score(NamedTuple):
    """One method on one case; NaN where something does not apply."""

    noise: str
    method: str
    seed: int
    actual_noise: float  # share of wrong labels before
    label_accuracy: float  # share of right labels after
    f1: float  # of finding the wrong labels: a changed label is a find
    auroc: float  # of ranking the wrong labels first
    seconds: float
    peak_mb: float
    failure: str


def parse_noise(text: str) -> list[str]:
    """Check a list such as ``symmetric:0.5,asymmetric:0.4``; ``none`` is empty."""
    names = [] if text == "none" else [name.strip() for name in text.split(",")]
    for name in names:
        kind, _, rate = name.partition(":")
        if kind not in KINDS:
            raise ValueError(
                f"--noise: no kind {kind!r}; it is KIND:RATE with {', '.join(KINDS)}"
            )
        try:
            good = 0.0 <= float(rate) <= 1.0
        except ValueError:
            good = False
        if not good:
            raise ValueError(f"--noise: {name!r} needs a rate from 0 to 1: {kind}:0.4")
    return _once(names)


def _once(names: Sequence[str]) -> list[str]:
    """Drop what says the same again (0.5, .50): it would count as another seed."""
    first: dict[tuple[str, float], str] = {}
    for name in names:
        kind, _, rate = name.partition(":")
        first.setdefault((kind, float(rate)), name)
    return list(first.values())


def parse_methods(text: str | None) -> tuple[list[str], list[str]]:
    """Give the methods to run, and notes; without a list, all that are installed."""
    names = list(METHODS) if text is None else [n.strip() for n in text.split(",")]
    names = list(dict.fromkeys(names))
    for name in names:
        if name not in METHODS:
            raise ValueError(f"--methods: no {name!r}; there are {', '.join(METHODS)}")
    missing = [name for name in names if not is_installed(name)]
    notes = [f"{n} is not installed: pip install 'stct[bench]'" for n in missing]
    return [name for name in names if name not in missing], notes


def nearest_classes(H: Floats, truth: Ints, C: int) -> dict[int, int]:
    """Map each class to the one with the nearest mean: whom people would confuse."""
    means = np.array([H[truth == c].mean(axis=0, dtype=np.float64) for c in range(C)])
    squared = ((means[:, None] - means) ** 2).sum(axis=2)  # (C, C)
    np.fill_diagonal(squared, np.inf)
    return {c: int(squared[c].argmin()) for c in range(C)}


def make_cases(
    subject: Subject,
    noises: Sequence[str],
    num_seeds: int,
    flips: Mapping[int, int] | None = None,
) -> list[Case]:
    """Draw the noise of every seed; then labels that came with the data, once."""
    C = len(subject.classes)
    flips = flips or nearest_classes(subject.H, subject.truth, C)
    cases = []
    for name in noises:
        kind, _, rate = name.partition(":")
        for seed in range(num_seeds):
            rng = np.random.default_rng(seed)
            noisy = _inject(subject, kind, float(rate), flips, rng)
            cases.append(Case(name, seed, noisy.labels))
    return cases + [Case(name, 0, given) for name, given in subject.noisy.items()]


def _inject(
    subject: Subject,
    kind: str,
    rate: float,
    flips: Mapping[int, int],
    rng: np.random.Generator,
) -> noise.NoisyLabels:
    truth, C = subject.truth, len(subject.classes)
    if kind == "asymmetric":
        return noise.asymmetric(truth, rate, rng, flips)
    if kind == "pair":
        return noise.pair(truth, C, rate, rng)
    if kind == "instance":
        return noise.instance_dependent(truth, subject.H, C, rate, rng)
    return noise.symmetric(truth, C, rate, rng, redraw_true=kind == "symmetric")


def run(
    subject: Subject,
    cases: Sequence[Case],
    methods: Sequence[str],
    progress: Callable[[float], None],
) -> Iterator[Score]:
    """Run every method on every case, one process each."""
    total = len(cases) * len(methods)
    C = len(subject.classes)
    for i, case in enumerate(cases):
        for j, name in enumerate(methods):
            done = measure(name, subject.H, case.given, C)
            accuracy = f1 = auroc = math.nan
            if done.verdict is not None:
                labels, doubt = done.verdict
                accuracy = float(np.mean(labels == subject.truth))
                f1 = detection_f1(case.given, labels, subject.truth)
                auroc = detection_auroc(case.given, doubt, subject.truth)
            yield Score(
                case.noise,
                name,
                case.seed,
                float(np.mean(case.given != subject.truth)),
                accuracy,
                f1,
                auroc,
                done.seconds,
                done.peak_mb,
                done.failure,
            )
            progress((i * len(methods) + j + 1) / total)


def detection_f1(given: Ints, labels: Ints, truth: Ints) -> float:
    """Harmonic mean of precision and recall: changed labels against wrong ones."""
    flagged, wrong = labels != given, given != truth
    hit = int((flagged & wrong).sum())
    return 2.0 * hit / max(int(flagged.sum()) + int(wrong.sum()), 1)


def detection_auroc(given: Ints, doubt: Floats | None, truth: Ints) -> float:
    """Chance that a wrong label is doubted more than a right one."""
    from sklearn.metrics import roc_auc_score

    wrong = given != truth
    if doubt is None or wrong.all() or not wrong.any():
        return math.nan
    return float(roc_auc_score(wrong, doubt))
