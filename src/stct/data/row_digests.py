"""Is this row one of those? A digest of 64 bits for each row of embeddings.

Rows that are equal in float32 have the same digest. Others do not: of a million rows
and a million others, two are mixed up once in ten million times.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]

_ROWS = 8192  # at a time
_ODD = np.uint64(0x9E3779B97F4A7C15)


def row_digests(X: Any) -> Digests:  # noqa: N803
    """Digests of all rows of X (n, d), (n,); rows in files are read in blocks."""
    num_rows, num_columns = X.shape
    draw = np.random.default_rng(0)
    factors = draw.integers(0, 2**63, num_columns, dtype=np.uint64) * 2 + 1  # (d,)
    out = np.empty(num_rows, np.uint64)
    for start in range(0, num_rows, _ROWS):
        stop = min(start + _ROWS, num_rows)
        block = np.asarray(X[start:stop], dtype=np.float32)
        words = np.ascontiguousarray(block + np.float32(0.0)).view(np.uint32)  # no -0
        mixed = words.astype(np.uint64)
        mixed *= _ODD
        mixed ^= mixed >> np.uint64(29)
        mixed *= factors
        out[start:stop] = mixed.sum(axis=1, dtype=np.uint64)
    return out


def with_codes(digests: Digests, codes: NDArray[np.integer[Any]]) -> Digests:
    """Digests of rows together with a code of each, -1 or more."""
    mixed = (codes.astype(np.int64) + 2).astype(np.uint64) * _ODD
    return digests ^ (mixed ^ (mixed >> np.uint64(31)))


def find_digests(wanted: Digests, known: Digests) -> NDArray[np.intp]:
    """Place of each wanted digest among the known ones, -1 where there is none."""
    if not len(known):
        return np.full(len(wanted), -1, dtype=np.intp)
    order = np.argsort(known, kind="stable")
    at = np.searchsorted(known[order], wanted)
    place = order[np.minimum(at, len(known) - 1)]
    return np.where(known[place] == wanted, place, -1)
