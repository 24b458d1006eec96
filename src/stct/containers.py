"""Rows and labels as people have them: tensors, lists, Arrow, polars, sparse.

None of these libraries is imported; what comes in brings its own.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stct.numeric.tiles import single_blas_thread
from stct.numeric.types import Floats

MAX_COLUMNS = 1_024  # of a sparse matrix that is taken as it is
_MAX_NUMBERS = 2**28  # of that, written out: 1 GB
_DIRECTIONS = 512  # of the truncated SVD of a wider one
_ITERATIONS = 4


class Reduction(NamedTuple):
    """The directions that stand for the columns of a wide sparse matrix."""

    directions: Floats  # (d, k)

    def __call__(self, X: Any) -> Floats:
        """Give rows (n, k) for sparse or dense rows (n, d)."""
        return np.asarray(X @ self.directions, dtype=np.float32)

    def describe(self) -> str:
        """Say in a sentence what was done."""
        d, k = self.directions.shape
        return f"X is sparse with {d:,} columns: {k} directions of its SVD were used"


def reduce_sparse(X: Any) -> Reduction | None:
    """Learn the directions of a sparse (n, d); None if it can be taken as it is."""
    n, d = X.shape
    if d <= MAX_COLUMNS and n * d <= _MAX_NUMBERS:
        return None
    from sklearn.decomposition import TruncatedSVD

    most = max(1, min(_DIRECTIONS, n - 1, d - 1))
    svd = TruncatedSVD(most, n_iter=_ITERATIONS, random_state=0)
    with single_blas_thread():  # the same numbers for any number of threads
        svd.fit(X)
    return Reduction(np.asarray(svd.components_.T, dtype=np.float32))


def dense(X: Any) -> NDArray[Any]:
    """Write a sparse (n, d) out."""
    return np.asarray(X.toarray())


def check_finite(X: Any) -> None:
    """Refuse NaN and infinity in a sparse matrix, and name their rows."""
    bad = ~np.isfinite(X.data)
    if bad.any():
        rows = np.unique(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[bad])
        more = ", ..." if len(rows) > 5 else ""
        raise ValueError(
            f"X has NaN or infinite values in {len(rows)} of {X.shape[0]} rows (row "
            f"{', '.join(map(str, rows[:5]))}{more}); every embedding must be finite"
        )


def is_sparse(X: Any) -> bool:
    """Tell whether it is a sparse matrix or array of SciPy."""
    return bool(sparse.issparse(X))


def plain_rows(X: Any) -> Any:
    """Give tensors, Arrow, and columns of lists as an array; all else as it is."""
    library = type(X).__module__.partition(".")[0]
    if library == "torch":
        return _from_torch(X)
    if library == "pyarrow":
        return _from_arrow(X)
    if library == "polars":
        return _from_polars(X)
    if library == "pandas":
        return _from_pandas(X)
    if isinstance(X, list | tuple) and X and hasattr(X[0], "detach"):
        return np.stack([_from_torch(row) for row in X])
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        return _stacked(X) if _holds_lists(X) else X
    return X


def plain_labels(y: Any) -> Any:
    """Give tensors, Arrow and polars labels as arrays or lists; all else as it is."""
    library = type(y).__module__.partition(".")[0]
    if library == "torch":
        return _from_torch(y)
    if library == "pyarrow":
        return y.to_pylist()
    if library == "polars" and hasattr(y, "to_list"):
        return y.to_list()
    return y


def _from_torch(X: Any) -> NDArray[Any]:
    """Detach from gradients and device; what NumPy has no type for becomes float32."""
    X = X.detach()
    if str(X.layout) != "torch.strided":
        X = X.to_dense()
    X = X.cpu()
    if X.is_floating_point() and X.element_size() < 4:  # bfloat16, float8
        X = X.float()
    return np.asarray(X.numpy())


def _from_arrow(X: Any) -> Any:
    if hasattr(X, "column_names"):  # a table
        columns = [X.column(i) for i in range(X.num_columns)]
        if len(columns) == 1 and _is_arrow_list(columns[0]):
            return _stacked(columns[0].to_pylist())
        return np.column_stack([c.to_numpy() for c in columns])
    return _stacked(X.to_pylist()) if _is_arrow_list(X) else X


def _is_arrow_list(column: Any) -> bool:
    return "list" in str(column.type)


def _from_polars(X: Any) -> Any:
    columns = X.get_columns() if hasattr(X, "get_columns") else [X]
    if len(columns) == 1 and str(columns[0].dtype).startswith(("List", "Array")):
        return _stacked(columns[0].to_list())
    return X


def _from_pandas(X: Any) -> Any:
    columns = [X.iloc[:, 0]] if X.ndim == 2 and X.shape[1] == 1 else [X]
    if columns[0].ndim == 1 and _holds_lists(values := columns[0].to_numpy()):
        return _stacked(values)
    return X


def _holds_lists(values: NDArray[Any]) -> bool:
    return len(values) > 0 and any(
        isinstance(value, list | tuple | np.ndarray) or hasattr(value, "detach")
        for value in values[:20]
    )


def _stacked(rows: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Put rows of equal length on top of each other."""
    found = [_from_torch(r) if hasattr(r, "detach") else r for r in rows]
    lengths = [len(row) if hasattr(row, "__len__") else -1 for row in found]
    for row, length in enumerate(lengths):
        if length < 0 or isinstance(found[row], str):
            raise ValueError(f"X: row {row} (counting from 0) has no list of numbers")
        if length != lengths[0]:
            raise ValueError(
                f"X: row {row} (counting from 0) has {length} numbers, row 0 has "
                f"{lengths[0]}"
            )
    return np.array([np.asarray(row) for row in found])
