"""Does a later batch look like the rows of the fit? Three tests.

Label shares, means of the columns, and the share of labels that the model predicts.
Together they are wrong about a batch from the same population in at most `LEVEL` of
the cases (Bonferroni). Legend: n rows of the fit, m of the batch, k columns, C classes;
R correlation matrix of the columns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from stct.correction.fit_record import Columns, FitRecord
from stct.correction.later_rows import BatchSums
from stct.numeric.types import Floats, Ints

LEVEL = 0.01  # of all tests of a batch together
FEWEST = 20  # rows; the tests are approximate
LEAST_EXPECTED = 5.0  # rows of a class in either set; fewer are counted together


class Difference(NamedTuple):
    """How far a batch is from the rows of the fit in one respect."""

    what: str  # "label shares", "feature means" or "agreement"
    size: float  # see `compare`
    p_value: float
    differs: bool  # at its part of the level


def compare(record: FitRecord, batch: BatchSums) -> list[Difference]:
    """Test a batch against the rows of the fit.

    The size of a difference is the total variation distance of the label shares, the
    root mean square of the shifts of the columns in standard deviations, and the
    difference of the shares of labels that the model predicts.
    """
    found: list[tuple[str, float, float]] = []
    columns = record.columns
    if columns.axes is not None and min(batch.num_rows, columns.num_rows) >= FEWEST:
        mean = batch.total / batch.num_rows
        found.append(("feature means", *compare_means(columns, mean, batch.num_rows)))
    old, new = record.given_counts, batch.given_counts
    if min(old.sum(), new.sum()) >= FEWEST:
        found.append(("label shares", *compare_shares(old, new)))
    if min(batch.agreement[1], record.agreement[1]) >= FEWEST:
        found.append(
            ("agreement", *compare_agreement(record.agreement, batch.agreement))
        )
    each = LEVEL / max(len(found), 1)
    return [Difference(what, d, p, p < each) for what, d, p in found]


def compare_shares(old: Ints, new: Ints) -> tuple[float, float]:
    """Chi-squared test of homogeneity of label counts (C,): (distance, p value)."""
    n, m = old.sum(), new.sum()
    distance = 0.5 * float(np.abs(old / n - new / m).sum())
    table = pool_rare(np.stack([old, new]).astype(np.float64))
    if table.shape[1] < 2:
        return distance, 1.0
    return distance, float(stats.chi2_contingency(table).pvalue)


def pool_rare(table: Floats) -> Floats:
    """Join the rarest columns of a table of counts until all are large enough."""
    total = table.sum(axis=0)
    table = table[:, np.argsort(-total, kind="stable")]
    least = LEAST_EXPECTED * table.sum() / max(table.sum(axis=1).min(), 1.0)
    while table.shape[1] > 1 and table[:, -1].sum() < least:
        joined = table[:, -2] + table[:, -1]
        table = np.column_stack([table[:, :-2], joined])
    return table


def compare_agreement(
    old: tuple[int, int], new: tuple[int, int]
) -> tuple[float, float]:
    """Chi-squared test of two shares, with Yates' correction: (difference, p value)."""
    table = np.array([[same, rows - same] for same, rows in (old, new)], dtype=float)
    difference = new[0] / new[1] - old[0] / old[1]
    if not (table.sum(axis=0) > 0).all():
        return difference, 1.0
    return difference, float(stats.chi2_contingency(table).pvalue)


def compare_means(columns: Columns, mean: Floats, num_rows: int) -> tuple[float, float]:
    """Compare the means of all columns (k,): (root mean square shift, p value).

    The statistic is the sum of the squared standardised differences (Srivastava and
    Du 2008), which needs no inverse and so takes any number of columns. Under the
    null hypothesis it is a sum of chi-squared variables, weighted by the eigenvalues
    of R.

    References
    ----------
    .. [1] M. S. Srivastava and M. Du, "A test for the mean vector with fewer
       observations than the dimension", Journal of Multivariate Analysis 2008.
    """
    assert columns.axes is not None
    values, vectors = columns.axes
    variance = np.square(vectors, dtype=np.float64) @ values
    variance /= max(columns.num_rows - 1, 1) * columns.scale**2
    varied = variance > 1e-12 * max(float(variance.max(initial=0.0)), 1e-300)
    if not varied.any():
        return 0.0, 1.0
    noise = 1.0 / columns.num_rows + 1.0 / num_rows
    shift = (mean - columns.mean)[varied].astype(np.float64)
    squared = shift**2 / variance[varied]
    size = float(np.sqrt(max(float(squared.mean()) - noise, 0.0)))
    traces = correlation_traces(columns, np.sqrt(variance), varied)
    return size, weighted_chi_squared(float(squared.sum()) / noise, traces)


def correlation_traces(
    columns: Columns, deviation: Floats, varied: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Traces of R, R^2 and R^3, corrected for the rows that R was estimated with."""
    assert columns.axes is not None
    values, vectors = columns.axes
    n = max(columns.num_rows - 1, 1)
    root = vectors[varied] * np.sqrt(values / n) / columns.scale
    root = root / deviation[varied, None]  # (k, r), R = root root'
    inner = root.T @ root if root.shape[1] < root.shape[0] else root @ root.T
    square = inner @ inner
    first = float(np.trace(inner))
    second = float(np.trace(square)) - first**2 / n
    second = max(second, first**2 / len(root))
    third = float(np.vdot(square, inner)) - 3.0 * first * second / n - first**3 / n**2
    return first, second, max(third, second**2 / first)


def weighted_chi_squared(value: float, traces: tuple[float, float, float]) -> float:
    """Pr[sum of w_i chi2_1 > value], from sums of w, w^2 and w^3.

    Three cumulants are matched by those of a chi-squared variable (Buckley and
    Eagleson 1988).
    """
    first, second, third = traces
    freedom = second**3 / third**2
    standard = (value - first) / np.sqrt(2.0 * second)
    return float(stats.chi2.sf(freedom + standard * np.sqrt(2.0 * freedom), freedom))


def describe_differences(differences: list[Difference]) -> list[str]:
    """Say in what a batch does not look like the rows of the fit."""
    return [
        f"this batch does not look like the rows of the fit: {_in_words(d)} (p = "
        f"{d.p_value:.1g}; all tests together are at {LEVEL:.0%})"
        for d in differences
        if d.differs
    ]


def _in_words(difference: Difference) -> str:
    size = difference.size
    if difference.what == "label shares":
        return f"the label shares differ by {size:.1%} of the rows"
    if difference.what == "feature means":
        return f"the feature means differ by {size:.2f} standard deviations"
    more = "more" if size > 0 else "fewer"
    return f"the model predicts {more} of the given labels, by {abs(size):.1%} of them"
