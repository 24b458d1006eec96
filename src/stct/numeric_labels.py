"""`NumericLabelChecker`: measurements, ranked by how little they fit."""

from __future__ import annotations  # help() shows ArrayLike in one word

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.validation import check_is_fitted

from stct.checks import look_at_rows, validate_rows
from stct.correction.numeric_target import check_numbers, false_discovery, two_sided
from stct.correction.result import Progress
from stct.correction.settings import DEFAULT, Settings
from stct.labels import few
from stct.numeric.engine import Local
from stct.numeric.tiles import map_tiles, single_blas_thread
from stct.numeric.types import Floats, Ints

FEWEST_ROWS = 10  # with labels; of fewer there is no scale


class NumericLabelChecker(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Find numeric labels that do not fit, from embeddings or a table of numbers.

    Every label is predicted from all other rows by ridge regression, leave-one-out in
    closed form. Labels far from their prediction are suspects. Nothing is changed:
    what a measurement should have been is not known, only an interval for it.

    Parameters
    ----------
    coverage : float, default=0.9
        Share of the given labels that their intervals hold.
    false_discovery_rate : float, default=0.1
        Share of the suspects that may be right labels, if residuals are normal.
    n_jobs : int, optional
        Threads; None and -1 mean all cores. Never changes the result.
    settings : stct.correction.settings.Settings, optional
        Constants, for experiments.

    Attributes
    ----------
    predicted_ : ndarray of shape (n,)
        What the other rows say that the label is.
    intervals_ : ndarray of shape (n, 2)
        Where a label of this row usually is: low and high.
    z_scores_ : ndarray of shape (n,)
        Given minus predicted label, in standard deviations of such rows; NaN where
        there is no label.
    ranking_ : ndarray of int, shape (m,)
        Rows with labels, the one that fits least first.
    suspect_ : ndarray of bool, shape (n,)
        Rows to look at.
    explained_variance_ : float
        Share of the variance of the labels that is predicted, leave-one-out.
    notes_ : list of str
        What was unusual about the input, in sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from stct import NumericLabelChecker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X.sum(axis=1) + 0.1 * rng.normal(size=300)
    >>> y[7] += 5.0
    >>> checker = NumericLabelChecker().fit(X, y)
    >>> int(checker.ranking_[0])
    7
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "coverage": [Interval(Real, 0.0, 1.0, closed="neither")],
        "false_discovery_rate": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_jobs": [
            None,
            Options(Integral, {-1}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "settings": [Settings, None],
    }

    def __init__(
        self,
        coverage: float = 0.9,
        *,
        false_discovery_rate: float = 0.1,
        n_jobs: int | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.coverage = coverage
        self.false_discovery_rate = false_discovery_rate
        self.n_jobs = n_jobs
        self.settings = settings

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        locked: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Predict every label from the other rows, and rank the labels.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Embeddings or measurements, finite. Columns are brought to one scale.
        y : array-like of shape (n,)
            Numbers; NaN and None are missing and predicted.
        locked : array-like of bool, shape (n,), optional
            Rows that a person has checked: never suspects.
        progress : callable, optional
            Called with the share of work done.
        """
        self._validate_params()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y "
                "is None"
            )
        X = validate_rows(self, X, reset=True)
        numbers = read_numbers(y)
        engine = Local(None if self.n_jobs == -1 else self.n_jobs)
        constant = look_at_rows(X, engine)
        if len(numbers) != X.shape[0]:
            raise ValueError(
                f"there are {X.shape[0]} rows but y has {len(numbers)} labels; every "
                "row needs one"
            )
        fixed = _locks(locked, len(numbers))
        known = np.isfinite(numbers)
        self._set_scale(X)
        with single_blas_thread():
            found = check_numbers(
                self._scaled(X) if isinstance(X, np.ndarray) else X,
                numbers,
                engine,
                (self.settings or DEFAULT).scores,
                progress or (lambda _: None),
            )
        self.predicted_ = found.predicted
        self._model = found.weights, found.intercept, found.fourier
        self.explained_variance_ = max(found.explained, 0.0)
        z = (numbers - found.predicted) / found.scale
        self.z_scores_ = z
        distance = conformal_quantile(np.abs(z[known]), self.coverage)
        half = distance * found.scale
        self.intervals_ = np.stack([found.predicted - half, found.predicted + half], 1)
        self.ranking_ = _ranking(z, known)
        asked = known & ~fixed
        self.suspect_ = np.zeros(len(z), dtype=bool)
        p = two_sided(z[asked])
        self.suspect_[asked] = false_discovery(p, self.false_discovery_rate)
        self._given = numbers
        self.notes_ = self._describe(known, fixed, constant)
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the labels of new rows (n,)."""
        check_is_fitted(self)
        rows = validate_rows(self, X, reset=False)
        look_at_rows(rows, Local())
        weights, intercept, fourier = self._model

        def tile(part: slice) -> Floats:
            H = self._scaled(rows[part])
            H = H if fourier is None else fourier(H)
            return np.asarray(H @ weights + intercept, dtype=np.float64)

        return np.concatenate(list(map_tiles(tile, rows.shape[0])))

    def to_frame(self) -> pd.DataFrame:
        """Give a row for each label, the one that fits least first."""
        check_is_fitted(self)
        order = self.ranking_
        return pd.DataFrame(
            {
                "row": order,
                "given": self._given[order],
                "predicted": self.predicted_[order],
                "low": self.intervals_[order, 0],
                "high": self.intervals_[order, 1],
                "z_score": self.z_scores_[order],
                "suspect": self.suspect_[order],
            }
        )

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that X may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _set_scale(self, X: Any) -> None:
        """Remember how columns are brought to one scale; rows in files stay as is."""
        d = X.shape[1]
        self._mean, self._deviation = np.zeros(d), np.ones(d)
        if isinstance(X, np.ndarray):
            deviation = X.std(axis=0, dtype=np.float64)
            self._mean = X.mean(axis=0, dtype=np.float64)
            used = deviation > 1e-9 * np.maximum(np.abs(self._mean), 1e-30)
            self._deviation = np.where(used, deviation, 1.0)

    def _scaled(self, X: Floats) -> Floats:
        dtype = np.result_type(X.dtype, np.float32)
        return np.asarray((X - self._mean) / self._deviation, dtype=dtype)

    def _describe(
        self, known: NDArray[np.bool_], locked: NDArray[np.bool_], constant: int
    ) -> list[str]:
        """Say what is unusual."""
        notes = []
        if not known.all():
            missing = int((~known).sum())
            notes.append(f"{missing} rows had no label; theirs are predicted")
        if locked.any():
            notes.append(f"{int(locked.sum())} rows are locked and are no suspects")
        if constant:
            notes.append(f"{constant} of {self.n_features_in_} columns are constant")
        if self.explained_variance_ < 0.05:
            notes.append(
                "the features predict next to nothing of these labels "
                f"({self.explained_variance_:.1%} of their variance): only labels far "
                "from all others can be found"
            )
        return notes


def read_numbers(y: ArrayLike) -> Floats:
    """Give labels as float64; None and NaN are missing. Refuse what are no numbers."""
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is "
            "flattened",
            DataConversionWarning,
            stacklevel=3,
        )
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"y must be one number per row (1-d), got an array of shape {values.shape}"
        )
    if values.dtype.kind in "USb":
        raise ValueError(f"y must be numbers, got {few(values)} ({values.dtype})")
    try:
        numbers = np.array(
            [np.nan if v is None or v is pd.NA else v for v in values], dtype=np.float64
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numbers: {error}") from error
    if np.isinf(numbers).any():
        rows = np.flatnonzero(np.isinf(numbers))
        raise ValueError(f"y has infinite values in row {few(rows)}")
    known = numbers[~np.isnan(numbers)]
    if len(known) < FEWEST_ROWS:
        raise ValueError(
            f"y has {len(known)} samples with a label; at least {FEWEST_ROWS} are "
            "needed"
        )
    if (known == known[0]).all():
        raise ValueError(f"all labels are {known[0]:g}; there is nothing to compare")
    return numbers


def conformal_quantile(distance: Floats, coverage: float) -> float:
    """Distance that this share of the rows does not exceed, counting one row more."""
    n = len(distance)
    place = min(int(np.ceil((n + 1) * coverage)), n)
    return float(np.partition(distance, place - 1)[place - 1])


def _ranking(z: Floats, known: NDArray[np.bool_]) -> Ints:
    rows = np.flatnonzero(known)
    return rows[np.argsort(-np.abs(z[rows]), kind="stable")]


def _locks(locked: ArrayLike | None, num_rows: int) -> NDArray[np.bool_]:
    if locked is None:
        return np.zeros(num_rows, dtype=bool)
    mask = np.asarray(locked)
    if mask.shape != (num_rows,) or mask.dtype != bool:
        raise ValueError(
            f"locked must be one boolean per row, got {mask.dtype} {mask.shape} for "
            f"{num_rows} rows"
        )
    return mask
