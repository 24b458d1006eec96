"""`MultiLabelCorrector`: rows that have several labels, or none."""

from __future__ import annotations  # help() shows ArrayLike in one word

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.validation import check_is_fitted

from stct.checks import check_locked, look_at_rows, validate_rows
from stct.correction.decision import EstimatedAccuracy, decide_rows, estimate_accuracy
from stct.correction.multi_label import correct_each_label
from stct.correction.result import Correction, Progress
from stct.correction.settings import DEFAULT, Settings
from stct.label_sets import LabelSets, read_label_sets
from stct.labels import few
from stct.numeric.engine import Local
from stct.numeric.tiles import map_tiles, single_blas_thread
from stct.numeric.types import Floats


class MultiLabelCorrector(BaseEstimator):  # type: ignore[misc]
    """Correct noisy labels of rows that have several labels each, or none.

    Whether a label belongs to a row is a question of two classes for each label, with
    a transition matrix of its own. All of them share one factorisation of the
    embeddings.

    Parameters
    ----------
    separator : str, optional
        Between the labels of a row, if ``y`` is text such as ``"cat|dog"``.
    min_odds : float, default=1.0
        Add or remove a label only when that is at least this many times as probable as
        the entry that was given.
    n_jobs : int, optional
        Threads; None and -1 mean all cores. Never changes the result.
    settings : stct.correction.settings.Settings, optional
        Constants, for experiments.

    Attributes
    ----------
    labels_ : same form as y
        Corrected labels: an indicator matrix, or a list, tuple, set or text for each
        row.
    classes_ : ndarray of shape (L,)
        The labels; of an indicator matrix its column names or numbers.
    label_probabilities_ : ndarray of shape (n, L)
        Pr[label belongs to the row | features, given labels].
    added_, removed_ : ndarray of bool, shape (n, L)
        Entries that were changed.
    transition_matrices_ : ndarray of shape (L, 2, 2)
        Pr[given | clean] of each label; row and column 1: the label belongs to the row.
    noise_rates_ : ndarray of shape (L,)
        Estimated share of wrong entries of each label; NaN where it cannot be learnt.
    estimated_accuracy_ : EstimatedAccuracy
        Share of right entries before and after, with intervals, of the labels that can
        be learnt.
    learnable_ : ndarray of bool, shape (L,)
        Theorem 1's condition. Labels that fail it are left as they are.
    notes_ : list of str
        What was unusual about the input, in sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from stct import MultiLabelCorrector
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((600, 3)) < 0.3
    >>> X = 4.0 * truth @ rng.normal(size=(3, 16)) + rng.normal(size=(600, 16))
    >>> given = truth ^ (rng.random(truth.shape) < 0.1)  # a tenth is flipped
    >>> corrector = MultiLabelCorrector().fit(X, given)
    >>> bool(np.mean(corrector.labels_ == truth) > 0.99)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "separator": [str, None],
        "min_odds": [Interval(Real, 1.0, None, closed="left")],
        "n_jobs": [
            None,
            Options(Integral, {-1}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "settings": [Settings, None],
    }

    def __init__(
        self,
        separator: str | None = None,
        *,
        min_odds: float = 1.0,
        n_jobs: int | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.separator = separator
        self.min_odds = min_odds
        self.n_jobs = n_jobs
        self.settings = settings

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        locked: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Estimate which labels each row should have.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Embeddings, finite.
        y : indicator matrix of shape (n, L), or n collections or texts of labels
            An indicator matrix (array, data frame, sparse) holds 0 and 1. A row of NaN
            or None is unknown and is filled in; an empty one has no labels.
        locked : array-like of bool, shape (n,), optional
            Rows that a person has checked: they never change and count as certain.
        progress : callable, optional
            Called with the share of work done.
        """
        self._validate_params()
        sets = read_label_sets(y, self.separator)
        X = validate_rows(self, X, reset=True)
        engine = Local(None if self.n_jobs == -1 else self.n_jobs)
        constant = look_at_rows(X, engine)
        if len(sets.Y) != X.shape[0]:
            raise ValueError(
                f"there are {X.shape[0]} rows but y has {len(sets.Y)}; every row needs "
                "its labels"
            )
        fixed = check_locked(locked, sets.Y[:, 0].astype(np.intp))
        self._start(sets)
        self._models: list[Any] = []
        Y = sets.Y.copy()
        estimates = []
        settings = self.settings or DEFAULT
        with single_blas_thread():
            corrections = correct_each_label(
                X, sets.Y, fixed, engine, progress or (lambda _: None), settings
            )
            for column, result in enumerate(corrections):
                given = sets.Y[:, column].astype(np.intp)
                decision = decide_rows(result, given, fixed, self.min_odds)
                Y[:, column] = decision.labels
                estimates.append(
                    estimate_accuracy(
                        result, given, decision.confidence, fixed, settings.interval
                    )
                )
                self._keep(column, result)
        self.labels_ = sets.decode(Y)
        known = sets.Y >= 0
        self.added_ = (Y == 1) & (sets.Y != 1)
        self.removed_ = known & (Y == 0) & (sets.Y == 1)
        rates = np.array([1.0 - e.before for e in estimates])
        self.noise_rates_ = np.where(self.learnable_, rates, np.nan)
        learnt = [e for e, ok in zip(estimates, self.learnable_, strict=True) if ok]
        self.estimated_accuracy_ = mean_accuracy(learnt)
        self.notes_ = self._describe(sets, fixed, constant)
        return self

    def fit_correct(self, X: Any, y: Any, **keywords: Any) -> Any:
        """Fit and return the corrected labels, in the form of y."""
        return self.fit(X, y, **keywords).labels_

    def predict_proba(self, X: Any) -> Floats:
        """Pr[label belongs to the row | x] for new rows, (n, L)."""
        check_is_fitted(self)
        rows = validate_rows(self, X, reset=False)
        look_at_rows(rows, Local())

        def tile(part: slice) -> Floats:
            found = [model.probabilities(rows[part])[:, 1] for model in self._models]
            return np.stack(found, axis=1)

        return np.concatenate(list(map_tiles(tile, rows.shape[0])))

    def predict(self, X: Any) -> NDArray[np.int8]:
        """Labels of new rows, as an indicator matrix (n, L)."""
        return (self.predict_proba(X) > 0.5).astype(np.int8)

    def to_frame(self) -> pd.DataFrame:
        """List the changes: row, label, add or remove, and its probability.

        The most probable changes come first.
        """
        check_is_fitted(self)
        rows, columns = np.nonzero(self.added_ | self.removed_)
        added = self.added_[rows, columns]
        P = self.label_probabilities_[rows, columns]
        frame = pd.DataFrame(
            {
                "row": rows,
                "label": self.classes_[columns],
                "change": np.where(added, "add", "remove"),
                "probability": np.where(added, P, 1.0 - P),
            }
        )
        order = np.argsort(-frame["probability"].to_numpy(), kind="stable")
        return frame.iloc[order].reset_index(drop=True)

    def summary_frame(self) -> pd.DataFrame:
        """Give a row for each label: rows before and after, changes, noise rate."""
        check_is_fitted(self)
        added, removed = self.added_.sum(axis=0), self.removed_.sum(axis=0)
        return pd.DataFrame(
            {
                "label": self.classes_,
                "rows_before": self._sizes,
                "rows_after": self._sizes + added - removed,
                "added": added,
                "removed": removed,
                "noise_rate": self.noise_rates_,
                "wrongly_missing": self.transition_matrices_[:, 1, 0],
                "wrongly_present": self.transition_matrices_[:, 0, 1],
                "learnable": self.learnable_,
            }
        )

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that X may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _start(self, sets: LabelSets) -> None:
        """Make room for what is known of each label."""
        n, L = sets.Y.shape
        self.classes_ = sets.classes
        self.label_probabilities_ = np.empty((n, L), np.float32)
        self.transition_matrices_ = np.empty((L, 2, 2))
        self.learnable_ = np.empty(L, dtype=bool)
        self._sizes = (sets.Y == 1).sum(axis=0)

    def _keep(self, column: int, result: Correction) -> None:
        """Keep what was found of one label."""
        self.label_probabilities_[:, column] = result.posterior[:, 1]
        self.transition_matrices_[column] = result.transition
        self.learnable_[column] = result.learnable.all()
        self._models.append(result.model)

    def _describe(
        self, sets: LabelSets, locked: NDArray[np.bool_], constant: int
    ) -> list[str]:
        """Say what is unusual."""
        notes = []
        unknown = int((sets.Y[:, 0] < 0).sum())
        if unknown:
            notes.append(f"{unknown} rows had no labels at all; theirs are predicted")
        if locked.any():
            count = int(locked.sum())
            notes.append(f"{count} rows are locked and were left as they are")
        if constant:
            notes.append(f"{constant} of {self.n_features_in_} columns are constant")
        failed = self.classes_[~self.learnable_]
        if len(failed):
            notes.append(
                f"{len(failed)} of {len(self.classes_)} labels cannot be learnt from "
                f"these features and are left as they are: {few(failed)}"
            )
        return notes


def mean_accuracy(estimates: list[EstimatedAccuracy]) -> EstimatedAccuracy:
    """Share of right entries of all labels, from those of each; NaN of none."""
    if not estimates:
        nan = float("nan")
        return EstimatedAccuracy(nan, nan, (0.0, 1.0), (0.0, 1.0))
    before, after = (float(np.mean([e[i] for e in estimates])) for i in (0, 1))
    low_high = [np.mean([e[i] for e in estimates], axis=0) for i in (2, 3)]
    first, second = ((float(low), float(high)) for low, high in low_high)
    return EstimatedAccuracy(before, after, first, second)
