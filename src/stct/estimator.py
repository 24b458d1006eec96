"""`LabelCorrector`: noisy meta correction behind the scikit-learn contract."""

from __future__ import annotations  # help() shows ArrayLike, not its forty lines

import warnings
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from stct.annotations import Annotations, read_annotations
from stct.audit import (
    AuditResult,
    check_verified,
    design_based_accuracy,
    judge_audit,
    with_verified,
)
from stct.checks import (
    check_labels,
    check_lengths,
    check_locked,
    check_transition,
    describe_reduction,
    encode_inputs,
    look_at_rows,
    validate_rows,
)
from stct.correction.annotator_estimates import Annotator
from stct.correction.audit import Verified
from stct.correction.correct import METHODS, correct_labels, correct_probabilities
from stct.correction.decision import (
    decide_rows,
    estimate_accuracy,
    with_before,
)
from stct.correction.given_labels import Labels
from stct.correction.later_rows import (
    as_seen,
    correct_later_rows,
    sum_rows,
    why_not_judged,
)
from stct.correction.paper import SplitSettings
from stct.correction.pipeline import Prior
from stct.correction.resemblance import Difference, compare, describe_differences
from stct.correction.result import Correction, Progress
from stct.correction.settings import DEFAULT, Settings
from stct.corrector_file import (
    SavedCorrector,
    read_corrector,
    write_corrector,
)
from stct.inspection import Inspection, row_index
from stct.labels import EncodedLabels, decode, encode_known
from stct.notes import describe_input, describe_result
from stct.numeric.engine import Engine, Local
from stct.numeric.models import LogOddsModel, Model
from stct.numeric.ray_engine import RayEngine
from stct.numeric.tiles import map_tiles, single_blas_thread
from stct.numeric.top_classes import TopClasses
from stct.numeric.types import Floats, Ints
from stct.several import fit_several

MAX_DENSE = 2**27  # probabilities of all rows and classes; more are kept sparse


class LabelCorrector(Inspection, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Correct noisy labels from embeddings, without clean data or a noise rate.

    Parameters
    ----------
    method : {"loo", "split", "paper"}, default="loo"
        ``"loo"``: closed-form leave-one-out, transition matrix and posterior.
        ``"split"``: the paper's random splits with the minimum-norm minimiser of its
        objective. ``"paper"``: Eq. (9) to the letter, which hardly moves a label.
    min_odds : float, default=1.0
        Relabel only when another label is at least this many times as probable as the
        given one. Higher is more careful; rows in between abstain.
    val_ratio, step_size, agreement, coverage : float
        The paper's r, eta, delta and beta; used by ``"split"`` and ``"paper"`` only.
    n_jobs : int, optional
        Threads of the passes over rows; None and -1 mean all cores. Never changes the
        result. (Two short steps on a few thousand rows run beside each other anyway.)
    engine : {"local", "ray"} or engine, default="local"
        Where rows are worked on: threads of this process, or the tasks of a Ray
        cluster (`stct.numeric.ray_engine.RayEngine` takes its address). Never changes
        the result.
    settings : stct.correction.settings.Settings, optional
        Constants of ``"loo"``, for experiments; the default ones are documented there.
    random_state : int, numpy Generator or None, default=None
        For the random splits. ``"loo"`` draws nothing.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The label to use for each row, in y's own type: the most probable one for keep
        and relabel rows, the given one for abstain rows, the predicted one for fill.
    label_distributions_ : ndarray or sparse array of shape (n, C)
        Pr[clean label | features, given label], columns as in ``classes_``. With more
        than 256 classes only the most probable ones of a row are known, and above
        2**27 entries they are all that is kept, in a sparse array.
    confidence_ : ndarray of shape (n,)
        Probability of ``labels_``.
    action_ : ndarray of str, shape (n,)
        "keep", "relabel", "abstain", or "fill" where the label was missing.
    classes_ : ndarray of shape (C,)
    transition_matrix_ : ndarray of shape (C, C)
        Pr[given | clean], on the average of each clean class's rows.
    noise_rate_ : float
        Estimated share of wrong given labels.
    estimated_accuracy_ : EstimatedAccuracy
        Share of right labels before and after, with intervals.
    audit_ : AuditResult or None
        Estimates from ``verified`` rows: `before` and `after` (value, interval,
        more_rows: how many more rows would halve the interval), and the calibration.
    learnable_ : ndarray of bool, shape (C,)
        Theorem 1's condition: is the right label the class's most common given one?
    n_iter_ : int
        Refits or splits that were run.
    termination_condition_ : str
        Why it stopped: "max_rounds", "agreement" (another split changed no more
        labels), "coverage" (all splits were run), "nothing_learnt" (the features do not
        explain the labels); of a later batch "judged" or "updated" (see `judge`).
    annotators_ : list of Annotator
        Of several labels per row: name, number of labels, estimated accuracy with
        interval, accuracy by chance, agreement with others, most common errors. Empty
        with one label per row.
    notes_ : list of str
        What was unusual about the input, in sentences.
    differences_ : list of Difference
        Of a later batch only (see `judge`): the tests against the rows of the fit, each
        with what was compared, the size of the difference, its p value, and whether it
        differs.

    Examples
    --------
    >>> import numpy as np
    >>> from stct import LabelCorrector
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(["cat", "dog"], 200)
    >>> X = rng.normal(size=(400, 8)) + 3.0 * (truth == "dog")[:, None]
    >>> y = truth.copy()
    >>> y[:60] = "dog"  # 60 cats were called dogs
    >>> corrector = LabelCorrector().fit(X, y)
    >>> bool(np.mean(corrector.labels_ == truth) > 0.98)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions(set(METHODS))],
        "min_odds": [Interval(Real, 1.0, None, closed="left")],
        "val_ratio": [Interval(Real, 0.0, 1.0, closed="neither")],
        "step_size": [Interval(Real, 0.0, None, closed="neither")],
        "agreement": [Interval(Real, 0.0, 1.0, closed="right")],
        "coverage": [Interval(Real, 0.0, 1.0, closed="neither")],
        "n_jobs": [
            None,
            Options(Integral, {-1}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "engine": [StrOptions({"local", "ray"}), HasMethods(["sum", "rows", "take"])],
        "settings": [Settings, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        method: str = "loo",
        *,
        min_odds: float = 1.0,
        val_ratio: float = 0.5,
        step_size: float = 0.2,
        agreement: float = 0.998,
        coverage: float = 0.9999,
        n_jobs: int | None = None,
        engine: Any = "local",
        settings: Settings | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.min_odds = min_odds
        self.val_ratio = val_ratio
        self.step_size = step_size
        self.agreement = agreement
        self.coverage = coverage
        self.n_jobs = n_jobs
        self.engine = engine
        self.settings = settings
        self.random_state = random_state

    def fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        locked: ArrayLike | None = None,
        verified: ArrayLike | None = None,
        verified_weight: ArrayLike | None = None,
        pred_probs: Any = None,
        annotations: Any = None,
        transition_matrix: ArrayLike | None = None,
        features_fitted_to_labels: bool = False,
        annotator: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Estimate what the labels should be.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Embeddings of any modality, float or integer, finite. A memory map or
            `stct.numeric.file_rows.FileRows` is read as it is needed. A tensor, a
            column of lists (pandas, polars, Arrow) or a sparse matrix will do; of a
            sparse one with more than 1,024 columns a truncated SVD is used.
        y : array-like of shape (n,) or (n, k)
            Labels of any hashable type. None, NaN and NA are missing labels. Of shape
            (n, k): a column for each of k annotators, of which each labels some rows.
        locked : array-like of bool, shape (n,), optional
            Rows that a person has checked: they never move and count as certain.
        verified : array-like of shape (n,), optional
            The right label of rows that were drawn at random and looked at by a
            person, None elsewhere. ``y`` keeps what was given. These rows are locked,
            the pairs of labels calibrate the noise model, and the estimates of
            accuracy come from them alone, with an exact interval.
        verified_weight : array-like of shape (n,), optional
            1 / inclusion probability of the verified rows, up to a factor; the same
            for all by default. Rows of one weight are a stratum.
        pred_probs : array-like of shape (n, C), optional
            Class probabilities of your own model instead of X, columns in sorted label
            order (or a DataFrame with the labels as columns). They must be
            out-of-fold: a model that has seen a row's label repeats it.
        annotations : DataFrame, mapping, or three sequences, optional
            Several labels per row as a long table with the columns ``row`` (a number
            from 0; or ``id``, which the index of X holds), ``annotator`` and ``label``.
            With it y may be left out, or be the label that each row has now; it is not
            counted as one of the votes. X may be left out as well: then annotators are
            estimated from each other alone, as by Dawid and Skene.
        transition_matrix : array-like of shape (C, C), optional
            Pr[given | clean] from an earlier fit of the same labels, or another prior
            estimate. It weighs as much as 20 rows for each of its entries: where there
            are fewer rows it is taken over, of more it moves little.
        features_fitted_to_labels : bool, default=False
            The features were learnt from an earlier correction of these labels. They
            repeat its errors, which are then not taken for confirmed: no refit.
        annotator : array-like of shape (C, C), optional
            Deprecated: ``transition_matrix`` and ``features_fitted_to_labels=True``.
        progress : callable, optional
            Called with the share of work done.
        """
        self._validate_params()
        if annotator is not None:
            warnings.warn(
                "annotator= is deprecated; use transition_matrix= and "
                "features_fitted_to_labels=True",
                FutureWarning,
                stacklevel=2,
            )
            transition_matrix, features_fitted_to_labels = annotator, True
        engine = self._engine()
        several, y = read_annotations(X, y, annotations, pred_probs)
        if several is not None and not several.single:
            one_label_only = {
                "transition_matrix": transition_matrix is not None,
                "features_fitted_to_labels": features_fitted_to_labels,
            }
            self._refuse_with_several(one_label_only)
            return self._fit_several(
                several,
                X,
                progress or _silent,
                y=y,
                pred_probs=pred_probs,
                locked=locked,
                verified=verified,
                verified_weight=verified_weight,
                engine=engine,
            )
        if (X is None) == (pred_probs is None):
            raise ValueError("pass embeddings X or pred_probs, one of the two")
        if pred_probs is not None and self.method != "loo":
            raise ValueError(f"method {self.method!r} needs X; pred_probs take 'loo'")
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y "
                "is None"
            )
        constant, index = 0, row_index(y, X)
        if X is not None:
            X = validate_rows(self, X, reset=True)
            constant = look_at_rows(X, engine)
        encoded, P = encode_inputs(y, pred_probs)
        check_labels(encoded, len(X if P is None else P))
        fixed = check_locked(locked, encoded.codes)
        seen = check_verified(verified, verified_weight, encoded)
        if seen is not None and self.method != "loo":
            raise ValueError(f"verified rows need method 'loo', not {self.method!r}")
        codes = encoded.codes
        if seen is not None:
            codes, fixed = with_verified(codes, fixed, seen)
        report = progress or _silent
        with single_blas_thread():
            if P is None:
                T = check_transition(transition_matrix, len(encoded.classes))
                prior = Prior(T, features_fitted_to_labels)
                known = encoded._replace(codes=codes)
                result = self._correct(X, known, fixed, seen, prior, engine, report)
            else:
                given = Labels(codes, fixed, P.shape[1], Local(), seen)
                result = correct_probabilities(P, given, self._settings())
        columns = 0 if X is None else X.shape[1]
        self.notes_ = describe_input(encoded, fixed, columns, constant)
        self.notes_ += describe_reduction(self)
        self._decide(result, encoded, codes, fixed, seen)
        self.annotators_: list[Annotator] = []
        if several is not None:
            self.annotators_ = several.describe(result.posterior)
        self._index = index
        report(1.0)
        return self

    def _fit_several(
        self, annotations: Annotations, X: Any, progress: Progress, **keywords: Any
    ) -> Self:
        """Fit to several labels per row; X may be None."""
        constant, index = 0, row_index(keywords["y"], X)
        if X is not None:
            X = validate_rows(self, X, reset=True)
            constant = look_at_rows(X, keywords["engine"])
        with single_blas_thread():
            found = fit_several(
                annotations,
                X=X,
                settings=self._settings(),
                progress=progress,
                **keywords,
            )
        columns = 0 if X is None else X.shape[1]
        self.notes_ = describe_input(found.encoded, found.locked, columns, constant)
        self.notes_ += found.notes
        self.notes_ += describe_reduction(self)
        self._decide(
            found.result,
            found.encoded,
            found.codes,
            found.locked,
            found.verified,
            found.accuracy,
        )
        self.annotators_ = found.annotators
        self._index = index
        progress(1.0)
        return self

    def _refuse_with_several(self, passed: dict[str, bool]) -> None:
        """Refuse what takes one label per row."""
        if self.method != "loo":
            raise ValueError(
                f"method {self.method!r} takes one label per row; several take 'loo'"
            )
        for name, is_there in passed.items():
            if is_there:
                raise ValueError(f"{name} goes with one label per row, not several")

    def fit_correct(
        self, X: Any = None, y: ArrayLike | None = None, **keywords: Any
    ) -> NDArray[Any]:
        """Fit and return the corrected labels (n,)."""
        return self.fit(X, y, **keywords).labels_

    def judge(
        self,
        X: Any,
        y: ArrayLike,
        *,
        locked: ArrayLike | None = None,
        verified: ArrayLike | None = None,
        verified_weight: ArrayLike | None = None,
        seen: tuple[Ints, Any] | None = None,
        refit: bool = False,
    ) -> Self:
        """Correct the labels of a later batch with this model, without a new fit.

        Model, noise model and transition matrix stay as they are. A batch that does
        not look like the rows of the fit gets a note.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Embeddings, made as those of the fit.
        y : array-like of shape (n,)
            Labels, all among ``classes_``, or missing.
        locked : array-like of bool, shape (n,), optional
            Rows that a person has checked.
        verified, verified_weight : array-like of shape (n,), optional
            Verified rows of the batch, as `fit` takes them.
        seen : (rows, probabilities), optional
            Rows that were in the fit, and their ``label_distributions_`` there. The
            model has learnt from their labels and would confirm them too often.
        refit : bool, default=False
            Let weights and transition matrix learn from the batch as well, with the
            earlier fit as their prior. It is kept as sums, so no old row is needed.

        Returns
        -------
        LabelCorrector
            Fitted attributes are those of the batch; it predicts and judges as this
            one does. ``differences_`` has the tests of the batch against the fit.
        """
        check_is_fitted(self)
        self._needed_model()
        if self._fitted.fit is None:
            raise ValueError(why_not_judged(self.method, self._fitted.stop))
        X = validate_rows(self, X, reset=False)
        engine = self._engine()
        look_at_rows(X, engine)
        encoded = encode_known(y, self.classes_)
        check_lengths(encoded, len(X))
        if not (encoded.codes >= 0).any():
            raise ValueError("y has no labels; predict gives the labels of such rows")
        fixed = check_locked(locked, encoded.codes)
        looked_at = check_verified(verified, verified_weight, encoded)
        codes = encoded.codes
        if looked_at is not None:
            codes, fixed = with_verified(codes, fixed, looked_at)
        labels = Labels(codes, fixed, len(self.classes_), engine, looked_at)
        with single_blas_thread():
            result, sums = correct_later_rows(
                X, labels, self._fitted, as_seen(seen, labels), refit=refit
            )
        batch: Self = clone(self)
        batch.n_features_in_ = self.n_features_in_
        batch._reduction = getattr(self, "_reduction", None)
        batch.differences_ = compare(self._fitted.fit, sums)
        batch.notes_ = describe_input(encoded, fixed, X.shape[1], 0)
        batch.notes_ += describe_differences(batch.differences_)
        batch._decide(result, encoded, codes, fixed, looked_at)
        batch.annotators_ = []
        return batch

    def compare_rows(self, X: Any) -> list[Difference]:
        """Test whether rows without labels look like those of the fit.

        Empty where there is nothing to compare with; `judge` compares labels as well.
        """
        check_is_fitted(self)
        record, X = self._fitted.fit, validate_rows(self, X, reset=False)
        if record is None:
            return []
        labels = Labels(
            np.full(len(X), -1, dtype=np.intp),
            np.zeros(len(X), dtype=bool),
            len(self.classes_),
            self._engine(),
        )
        model = cast(LogOddsModel, self._needed_model())
        with single_blas_thread():
            sums = sum_rows(X, labels, model, np.ones(len(X), dtype=bool))
        return compare(record, sums)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted corrector to an .npz file, for `load`.

        Model, noise model and sums of the rows are in it, and no row: no labels of
        single rows and no ``settings``. Classes must be text, numbers or booleans.
        """
        check_is_fitted(self)
        if getattr(self, "_reduction", None) is not None:
            raise ValueError(
                "fitted to a wide sparse X, whose SVD has no place in the file: reduce "
                "it with scikit-learn's TruncatedSVD before fit, and save both"
            )
        parameters = {**self.get_params(), "settings": None}
        if not isinstance(self.engine, str):
            parameters["engine"] = "local"
        if not isinstance(self.random_state, int):
            parameters["random_state"] = None
        saved = SavedCorrector(
            self.classes_,
            getattr(self, "n_features_in_", 0),
            parameters,
            self.estimated_accuracy_,
            self.notes_,
            self._fitted,
        )
        write_corrector(Path(path), saved)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a corrector that `save` wrote; nothing in the file is ever run.

        It predicts and judges as the saved one does, to the byte. What belongs to
        single rows of the fit (``labels_`` and so on) is not there.
        """
        saved = read_corrector(Path(path))
        corrector = cls()
        try:
            corrector.set_params(**saved.parameters)
            corrector._validate_params()
        except ValueError as error:
            raise ValueError(f"{path}: not a readable corrector: {error}") from error
        corrector.classes_ = saved.classes
        if saved.num_features:
            corrector.n_features_in_ = saved.num_features
        corrector.notes_ = saved.notes
        corrector._keep(saved.fitted)
        corrector.estimated_accuracy_ = saved.accuracy
        corrector.noise_rate_ = 1.0 - corrector.estimated_accuracy_.before
        return corrector

    def predict_proba(self, X: Any) -> Floats:
        """Pr[clean | x] for new rows (n, C), from the linear model."""
        check_is_fitted(self)
        rows, model = validate_rows(self, X, reset=False), self._needed_model()
        look_at_rows(rows, Local())
        tiles = map_tiles(lambda tile: model.probabilities(rows[tile]), rows.shape[0])
        return np.concatenate(list(tiles))

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable clean label of new rows (n,)."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _needed_model(self) -> Model:
        """Give the model for new rows."""
        if self._fitted.model is None:
            raise ValueError(
                "fitted from pred_probs, or without embeddings: there is no model for "
                "new rows; predict with the model that made them"
            )
        return self._fitted.model

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that X may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _settings(self) -> Settings:
        return self.settings or DEFAULT

    def _engine(self) -> Engine:
        """Where the rows are worked on."""
        if self.engine == "local":
            return Local(None if self.n_jobs == -1 else self.n_jobs)
        if self.engine == "ray":
            return RayEngine()
        engine: Engine = self.engine
        return engine

    def _correct(
        self,
        X: Any,
        encoded: EncodedLabels,
        locked: NDArray[np.bool_],
        verified: Verified | None,
        prior: Prior,
        engine: Engine,
        progress: Progress,
    ) -> Correction:
        return correct_labels(
            X,
            encoded.codes,
            len(encoded.classes),
            method=self.method,
            locked=locked,
            splits=SplitSettings(
                self.val_ratio, self.step_size, self.agreement, self.coverage
            ),
            prior=prior,
            settings=self._settings(),
            verified=verified,
            engine=engine,
            generator=_generator(self.random_state),
            progress=progress,
        )

    def _decide(
        self,
        result: Correction,
        encoded: EncodedLabels,
        given: Ints,
        locked: NDArray[np.bool_],
        verified: Verified | None,
        before: float | None = None,
    ) -> None:
        """Set every fitted attribute from the posterior.

        ``given`` are the labels with those of verified rows in place, ``before`` an
        estimate of the accuracy of labels that were put together.
        """
        Q = result.posterior
        decision = decide_rows(result, given, locked, self.min_odds)
        self.label_distributions_ = Q
        if isinstance(Q, TopClasses):
            small = len(given) * Q.num_classes <= MAX_DENSE
            self.label_distributions_ = Q.dense() if small else Q.sparse()
        self.classes_ = encoded.classes
        self._given, self._index = encoded.values, None
        self._keep(result)
        self.action_ = decision.action
        self.labels_ = decode(encoded, decision.labels)
        self.confidence_ = decision.confidence
        accuracy = estimate_accuracy(
            result, given, decision.confidence, locked, self._settings().interval
        )
        if before is not None:
            accuracy = with_before(accuracy, before)
        self.estimated_accuracy_ = accuracy
        self.audit_: AuditResult | None = None
        if verified is not None:
            self.audit_ = judge_audit(result, encoded.codes, verified, self.min_odds)
            self.estimated_accuracy_ = design_based_accuracy(self.audit_)
            moved = verified.rows[verified.given != verified.clean]
            missing = encoded.codes[moved] < 0
            self.action_[moved] = np.where(missing, "fill", "relabel")
        self.noise_rate_ = 1.0 - self.estimated_accuracy_.before
        self.notes_ += describe_result(result, encoded.classes, self.method)

    def _keep(self, result: Correction) -> None:
        """Set what does not belong to single rows."""
        self.transition_matrix_ = result.transition
        self.learnable_ = result.learnable
        self.n_iter_ = result.num_rounds
        self.termination_condition_ = result.stop
        self._fitted = result._replace(posterior=None, audit=None)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _silent(_: float) -> None:
    """Report progress to nobody."""
