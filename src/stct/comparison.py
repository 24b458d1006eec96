"""Two corrections of the same rows beside each other."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stct.numeric.types import Ints


@dataclass(frozen=True)
class Comparison:
    """What two fits of the same rows say differently.

    Attributes
    ----------
    agreement : float
        Share of the rows that get the same label.
    differing : ndarray of int, shape (k,)
        The other rows, those of the surest labels first.
    actions : DataFrame
        Rows by what one fit did (index) and the other (columns).
    noise_rates : tuple of float
        Of one fit and the other.
    """

    agreement: float
    differing: Ints
    actions: pd.DataFrame
    noise_rates: tuple[float, float]
    _rows: pd.DataFrame = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """Give the rows that get different labels, the surest first."""
        return self._rows.iloc[self.differing]

    def __str__(self) -> str:
        one, other = self.noise_rates
        return (
            f"same label in {self.agreement:.1%} of {len(self._rows):,} rows, "
            f"{len(self.differing):,} differ; estimated wrong before {one:.1%} "
            f"and {other:.1%}"
        )


def compare_corrections(one: Any, other: Any) -> Comparison:
    """Compare two fitted correctors; both must have seen the same rows in one order."""
    n, m = len(one.labels_), len(other.labels_)
    if n != m:
        raise ValueError(
            f"one corrector was fitted to {n} rows and the other to {m}; only fits of "
            "the same rows can be compared"
        )
    same = same_labels(one.labels_, other.labels_)
    rows = pd.DataFrame(
        {
            "label": one.labels_,
            "other_label": other.labels_,
            "confidence": one.confidence_,
            "other_confidence": other.confidence_,
            "action": one.action_,
            "other_action": other.action_,
        }
    )
    sure = np.minimum(one.confidence_, other.confidence_)
    differing = np.flatnonzero(~same)
    order = np.argsort(-sure[differing], kind="stable")
    actions = pd.crosstab(
        pd.Series(one.action_, name="one"), pd.Series(other.action_, name="other")
    )
    return Comparison(
        float(same.mean()),
        differing[order],
        actions,
        (float(one.noise_rate_), float(other.noise_rate_)),
        rows,
    )


def same_labels(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which labels are equal, (n,), whatever their types."""
    return np.array(
        [bool(a == b) for a, b in zip(one.tolist(), other.tolist(), strict=True)],
        dtype=bool,
    )
