"""Look at what the user passed: one clear sentence for what cannot be used."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from stct.containers import (
    check_finite,
    dense,
    is_sparse,
    plain_rows,
    reduce_sparse,
)
from stct.label_kinds import check_kind, refuse_collections
from stct.labels import EncodedLabels, encode, few
from stct.numeric.engine import Engine
from stct.numeric.file_rows import from_memory_map
from stct.numeric.types import Floats, Ints

_FEWEST_UNSURE = 20  # rows that can show what a model has seen


def encode_inputs(
    y: ArrayLike, pred_probs: Any
) -> tuple[EncodedLabels, NDArray[np.floating] | None]:
    """Codes of y; with pred_probs also the probabilities, checked."""
    refuse_collections(y)
    encoded = encode(y)
    said = check_kind(encoded.classes, int((encoded.codes >= 0).sum()))
    if said is not None:
        warnings.warn(said, UserWarning, stacklevel=3)
    if pred_probs is None:
        return encoded, None
    P = np.asarray(pred_probs)
    if P.ndim != 2 or P.dtype.kind not in "fiu":
        raise ValueError(f"pred_probs must be 2-d numbers, got {P.dtype} {P.shape}")
    check_labels(encoded, len(P))
    if hasattr(pred_probs, "columns"):
        names = encode(list(pred_probs.columns))
        lookup = {label: code for code, label in enumerate(names.classes)}
        unknown = [c for c in encoded.classes if c not in lookup]
        if unknown:
            raise ValueError(f"pred_probs has no column for {few(unknown)}")
        P = P[:, np.argsort(names.codes)]
        moved = np.array([lookup[c] for c in encoded.classes], dtype=np.intp)
        codes = np.where(encoded.codes >= 0, moved[encoded.codes], -1)
        encoded = EncodedLabels(encoded.values, names.classes, codes)
    if P.shape[1] != len(encoded.classes):
        raise ValueError(
            f"pred_probs has {P.shape[1]} columns but y has {len(encoded.classes)} "
            "classes; there must be one column per class, in sorted label order"
        )
    if not np.isfinite(P).all() or (P < 0).any() or (P.sum(axis=1) <= 0).any():
        raise ValueError("pred_probs must be finite, non-negative, and not all 0")
    P = P / P.sum(axis=1, keepdims=True)
    if _memorised(P, encoded.codes):
        warnings.warn(
            "pred_probs repeat the given labels even where they are least sure: unless "
            "the labels are clean, they are not out-of-fold and have memorised them",
            UserWarning,
            stacklevel=3,
        )
    return encoded, P


def _memorised(P: NDArray[np.floating], codes: Ints) -> bool:
    """Tell whether a model seems to have been taught the labels that it predicts.

    It is right nearly everywhere, and no less where it is least sure: there a model
    errs on rows that it has not seen. Confidence over all rows does not tell, since
    forests doubt themselves out of fold too.
    """
    P, codes = P[codes >= 0], codes[codes >= 0]
    same, sure = P.argmax(axis=1) == codes, P.max(axis=1)
    count = max(len(P) // 10, _FEWEST_UNSURE)
    unsure = np.argsort(sure, kind="stable")[:count]
    expected = min(float(sure[unsure].mean()) + 0.05, 0.995)
    return bool(same.mean() > 0.99 and same[unsure].mean() > expected)


def validate_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check what was passed, as scikit-learn does; rows in files stay there.

    ``reset`` sets ``n_features_in_`` of the estimator, otherwise it must be the same.
    """
    if isinstance(X, np.memmap):
        X = from_memory_map(X) or X
    if reset:
        estimator._reduction = None
    if is_sparse(X):
        return _validate_sparse(estimator, X, reset=reset)
    if not is_row_source(X):
        X = plain_rows(X)
        _refuse_text(X)
        X = validate_data(
            estimator,
            X,
            dtype=[np.float64, np.float32, np.float16],
            ensure_all_finite=False,
            reset=reset,
        )
        reduction = getattr(estimator, "_reduction", None)
        return X if reduction is None else reduction(X)
    if X.dtype.kind != "f" or X.shape[0] == 0:
        raise ValueError(f"rows in files must be floats, got {X.dtype} {X.shape}")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return X


def _validate_sparse(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Write a narrow sparse matrix out; reduce a wide one as in `fit`."""
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        reset=reset,
    )
    check_finite(X)
    if reset:
        estimator._reduction = reduce_sparse(X)
    reduction = getattr(estimator, "_reduction", None)
    return dense(X) if reduction is None else reduction(X)


def _refuse_text(X: Any) -> None:
    """Refuse text, out of which NumPy would read numbers without a word."""
    values = np.asarray(X)
    mixed = values.dtype.kind == "O"
    if values.dtype.kind in "UST" or (
        mixed and any(isinstance(cell, str | bytes) for cell in values.flat)
    ):
        raise ValueError("X holds text; embeddings must be numbers")


def describe_reduction(estimator: Any) -> list[str]:
    """Say how a wide sparse matrix was reduced."""
    reduction = getattr(estimator, "_reduction", None)
    return [] if reduction is None else [reduction.describe()]


def look_at_rows(X: Any, engine: Engine) -> int:
    """Refuse NaN and infinite embeddings, and name their rows; count constant columns.

    One pass: NaN and infinity show in the extremes.
    """
    first = np.array(X[0:1])

    def look(rows: slice) -> tuple[int, Floats]:
        block = X[rows]
        fine = np.isfinite(block.max()) and np.isfinite(block.min())
        bad = 0 if fine else int((~np.isfinite(block).all(axis=1)).sum())
        return bad, (block != first).any(axis=0)

    n = X.shape[0]
    num_bad, differs = engine.sum(look, n)
    if num_bad:
        finite = engine.rows(lambda rows: np.isfinite(X[rows]).all(axis=1), n)
        bad = np.flatnonzero(~engine.take(finite, None))
        names = [name_row(X, int(row)) for row in bad[:6]]
        raise ValueError(
            f"X has NaN or infinite values in {len(bad)} of {n} rows "
            f"(row {few(names)}); every embedding must be finite"
        )
    return int((differs == 0).sum())


def name_row(X: Any, row: int) -> str:
    """Say which row, and in which file where rows are in files."""
    return str(X.name_row(row)) if is_row_source(X) else str(row)


def is_row_source(X: Any) -> bool:
    """Tell whether rows stay in files and are read as they are needed."""
    return getattr(X, "is_row_source", False) is True


def check_labels(encoded: EncodedLabels, num_rows: int) -> None:
    """Refuse labels that do not belong to the rows, or of one class."""
    check_lengths(encoded, num_rows)
    check_classes(encoded.classes, "y")


def check_lengths(encoded: EncodedLabels, num_rows: int) -> None:
    """Refuse labels that do not belong to the rows."""
    if len(encoded.codes) != num_rows:
        raise ValueError(
            f"there are {num_rows} rows but y has {len(encoded.codes)} labels; "
            "every row needs one"
        )


def check_classes(classes: Any, where: str) -> None:
    """Refuse fewer than two classes; ``where`` says whose they are."""
    if len(classes) < 2:
        found = f"one class only ({few(classes)})" if len(classes) else "no labels"
        raise ValueError(f"{where} has {found}; at least two classes are needed")


def check_locked(locked: ArrayLike | None, given: Ints) -> NDArray[np.bool_]:
    """Give one boolean per row; a locked row must have a label."""
    if locked is None:
        return np.zeros(len(given), dtype=bool)
    mask = np.asarray(locked)
    if mask.shape != given.shape or mask.dtype != bool:
        raise ValueError(
            f"locked must be one boolean per row, got {mask.dtype} {mask.shape} for "
            f"{len(given)} rows"
        )
    unlabelled = np.flatnonzero(mask & (given < 0))
    if len(unlabelled):
        raise ValueError(f"locked rows must have a label; row {few(unlabelled)} not")
    return mask


def check_transition(matrix: ArrayLike | None, num_classes: int) -> Floats | None:
    """Give a T that can be started from: probabilities, no zeros, rows sum to 1."""
    if matrix is None:
        return None
    T = np.array(matrix, dtype=np.float64)
    wanted = (num_classes, num_classes)
    if T.shape != wanted or not (T >= 0).all() or not np.allclose(T.sum(axis=1), 1.0):
        raise ValueError(
            f"transition_matrix must be {wanted}, of probabilities with rows that sum "
            f"to 1, got {T.shape}"
        )
    T = np.maximum(T, 1e-6)
    return np.asarray(T / T.sum(axis=1, keepdims=True))
