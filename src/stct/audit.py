"""Verified labels as `LabelCorrector.fit` takes them, and the estimates from them.

Legend: n rows, m verified ones.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stct.correction.audit import Verified
from stct.correction.decision import EstimatedAccuracy, decide
from stct.correction.design_based import ShareEstimate, estimate_share
from stct.correction.result import Correction
from stct.labels import EncodedLabels, encode, few
from stct.numeric.types import Ints


class AuditResult(NamedTuple):
    """What the verified rows say."""

    num_rows: int
    before: ShareEstimate  # share of given labels that are right
    after: ShareEstimate  # share of labels that are right, verified rows included
    threshold: float  # log-odds against the given label from which it changes
    sharpness: float  # factor of the log-odds of all rows

    @property
    def more_rows(self) -> int:
        """Rows to verify in addition for intervals half as wide."""
        return self.before.more_rows


def check_verified(
    verified: ArrayLike | None, weight: ArrayLike | None, encoded: EncodedLabels
) -> Verified | None:
    """Give verified rows as codes; None if there are none.

    Raises
    ------
    ValueError
        If there is not one value for each row, a verified label is no class of the
        given labels, or a weight is not positive.
    """
    if verified is None:
        if weight is not None:
            raise ValueError("verified_weight goes with verified")
        return None
    seen = encode(verified)
    n = len(encoded.codes)
    if len(seen.codes) != n:
        raise ValueError(
            f"verified must be one label per row (None where nobody looked), got "
            f"{len(seen.codes)} for {n} rows"
        )
    place = {label: code for code, label in enumerate(encoded.classes)}
    strange = [label for label in seen.classes if label not in place]
    if strange:
        raise ValueError(
            f"verified labels that no row of y has: {few(strange)}; "
            f"allowed are {few(encoded.classes)}"
        )
    rows = np.flatnonzero(seen.codes >= 0)
    if not len(rows):
        raise ValueError("verified has no label: nobody looked at any row")
    ours = np.array([place[label] for label in seen.classes], dtype=np.intp)
    return Verified(
        rows,
        encoded.codes[rows],
        ours[seen.codes[rows]],
        check_weight(weight, rows, n),
    )


def with_verified(
    codes: Ints, locked: NDArray[np.bool_], verified: Verified
) -> tuple[Ints, NDArray[np.bool_]]:
    """Put the verified labels in their places, and lock their rows."""
    codes, locked = codes.copy(), locked.copy()
    codes[verified.rows], locked[verified.rows] = verified.clean, True
    return codes, locked


def check_weight(
    weight: ArrayLike | None, rows: NDArray[np.intp], num_rows: int
) -> NDArray[np.float64]:
    """Give the weights of the verified rows; only these must be positive."""
    if weight is None:
        return np.ones(len(rows))
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (num_rows,):
        raise ValueError(
            f"verified_weight must be one number per row, got {values.shape} for "
            f"{num_rows} rows"
        )
    bad = rows[~((values[rows] > 0.0) & np.isfinite(values[rows]))]
    if len(bad):
        raise ValueError(
            f"verified_weight must be positive, not {values[bad[0]]:g} (row {bad[0]})"
        )
    return values[rows]


def judge_audit(
    result: Correction, given: NDArray[Any], verified: Verified, min_odds: float
) -> AuditResult:
    """Estimate accuracy before and after from verified rows alone.

    What a verified row would have got had nobody looked at it stands for the rows
    that nobody looked at.
    """
    assert result.audit is not None
    n, m = len(given), len(verified.rows)
    labelled = verified.given >= 0
    weight = verified.weight
    if labelled.any():
        right = verified.given[labelled] == verified.clean[labelled]
        total = int((given >= 0).sum())
        before = estimate_share(right, weight[labelled], total)
    else:
        before = ShareEstimate(np.nan, (0.0, 1.0), 0, n)
    honest = decide(
        result.audit.probabilities, verified.given, result.learnable, min_odds
    )
    right = honest.labels == verified.clean
    # The verified rows themselves are right now.
    after = estimate_share(right, weight, n).plus((m - float(right.sum())) / n)
    calibration = result.audit.calibration
    return AuditResult(m, before, after, calibration.threshold, calibration.sharpness)


def design_based_accuracy(audit: AuditResult) -> EstimatedAccuracy:
    """Give these estimates the form of the others."""
    before, after = audit.before, audit.after
    return EstimatedAccuracy(before.value, after.value, before.interval, after.interval)
