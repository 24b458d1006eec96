"""Variants of the default for `benchmarks/battery.py --ablate`.

A variant says which fields of which stage of the settings are other than the default.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from stct import LabelCorrector

Array = NDArray
Variant = Callable[[Array, Array, int], Array]

# name: {stage: {field: value}}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "no Fourier": {"scores": {"fourier": False}},
    "flat prior": {"calibration": {"usual_rows": 0.0}},
    "one scale": {"calibration": {"rows_per_weight": 1e12}},
    "no refit": {"refit": {"enabled": False}},
    "no residual": {"residual": {"enabled": False}},
    "no ambiguity": {"noise": {"share": 0.0}},
    "all ambiguity": {"noise": {"elasticity": (-2.0, -1.0), "unknown": 1.0}},
    "T always": {"noise": {"known": (-1.0, 0.0)}},
}


def ablations() -> dict[str, Variant]:
    """Give the default and every variant: X, given labels and C to new labels."""
    variants: dict[str, Variant] = {"default": corrector()}
    if not VARIANTS:
        return variants
    if find_spec("stct.correction.settings") is None:
        raise SystemExit("this version of stct has no settings to vary")
    default = import_module("stct.correction.settings").Settings()
    for name, stages in VARIANTS.items():
        changed = {s: replace(getattr(default, s), **f) for s, f in stages.items()}
        variants[name] = corrector(settings=replace(default, **changed))
    return variants


def corrector(**parameters: Any) -> Variant:
    def correct(X: Array, given: Array, C: int) -> Array:
        return LabelCorrector(**parameters).fit(X, given).labels_

    return correct


def compare(rows: pd.DataFrame) -> str:
    """Tabulate right labels of the default by features, and what each variant adds."""
    right = 100 * rows.pivot(
        index=["features", "cell", "seed"], columns="method", values="right"
    )
    names = ["default", *(name for name in VARIANTS if name in right)]
    cells = right[names].dropna().groupby(["features", "cell"]).mean()
    means = cells.groupby("features").mean()
    means.loc["all cells"] = cells.mean()
    more = means.drop(columns="default").sub(means["default"], axis=0)
    table = pd.concat([means[["default"]].round(2), more.map("{:+.2f}".format)], axis=1)
    table.index.name = table.columns.name = None
    return table.to_string()
