"""Where rows lie: their nearest neighbours and a flat map, in blocks of rows.

X is anything that gives an array for ``X[i:j]``; nothing of size n x n, nor d x d for
many columns, is made.
"""

from typing import Any, NamedTuple

import numpy as np

from stct.numeric.file_rows import take_rows
from stct.numeric.tiles import map_tiles, single_blas_thread
from stct.numeric.types import Floats, Ints

_RIM = 2.0**50  # float32 holds the squares of what is nearer
_QUERIES = 1_000  # at a time: their distances to a tile of rows are in memory
_SAMPLE_FOR_AXES = 10_000  # rows that decide on the axes of the map
_WIDE = 2048  # columns from which as many rows decide, by the smaller Gram matrix
_BLOCK_BYTES = 2**28  # of rows as float32 that are looked at together


class Map(NamedTuple):
    """Two coordinates for every row, and more of them for a sample."""

    points: Floats  # (n, 2)
    explained: list[float]  # share of the variance along each of the two axes
    sample: Ints  # (m,) rows
    sample_points: Floats  # (m, k) principal components, for t-SNE


class _Frame(NamedTuple):
    """Where rows are seen from: their middle, in a unit in which they are about 1.

    Rows of any size then fit into float32, and so do the squares of their distances.
    Units are powers of two, which round nothing.
    """

    centre: Floats  # (d,), in ``unit``
    unit: float
    width: float  # the largest distance from the centre, in ``unit``

    def see(self, rows: Floats) -> Floats:
        """Give rows (m, d) as float32; what is out of all proportion is at a rim."""
        with np.errstate(over="ignore", under="ignore"):
            seen = (_wide(rows) / self.unit - self.centre) / self.width
        return np.clip(seen, -_RIM, _RIM).astype(np.float32)


def _frame(some: Floats) -> _Frame:
    """Find the frame of all rows from some of them, (m, d)."""
    some = _wide(some)
    unit = _power_of_two(some)
    with np.errstate(under="ignore"):
        some = some / unit
        centre = some.mean(axis=0, dtype=np.float64).astype(some.dtype)
        return _Frame(centre, unit, _power_of_two(some - centre))


def _power_of_two(values: Floats) -> float:
    """Give one that is about as large as the largest value."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    lowest = -100 if values.dtype == np.float32 else -1000  # 1 / it must be a number
    return float(2.0 ** max(exponent - 1, lowest))


def _wide(rows: Any) -> Floats:
    """Give rows as float32 or more: float16 has no room for a large value."""
    return np.asarray(rows, np.promote_types(rows.dtype, np.float32))


def nearest(X: Any, rows: Ints, k: int) -> Ints:
    """Find the k nearest other rows of each of ``rows``, nearest first, (R, k).

    Euclidean, exact, ties to the lower row. k is cut to n - 1.
    """
    k = min(k, X.shape[0] - 1)
    parts = [
        _nearest(X, rows[first : first + _QUERIES], k)
        for first in range(0, len(rows), _QUERIES)
    ]
    return np.concatenate([np.zeros((0, k), np.intp), *parts])


def _nearest(X: Any, rows: Ints, k: int) -> Ints:
    n = X.shape[0]
    some = take_rows(X, rows)  # (R, d)
    frame = _frame(some)  # its centre keeps the squares small
    queries = frame.see(some)

    def best_of_all(tile: slice) -> tuple[Floats, Ints]:
        found = [best_of(piece) for piece in _pieces(tile, X.shape[1])]
        distances, places = zip(*found, strict=True)
        return np.concatenate(distances, axis=1), np.concatenate(places, axis=1)

    def best_of(tile: slice) -> tuple[Floats, Ints]:
        block = frame.see(X[tile])  # (t, d)
        squares = np.einsum("ij,ij->i", block, block)
        distances = squares - 2.0 * (queries @ block.T)  # (R, t), up to a constant
        inside = np.flatnonzero((rows >= tile.start) & (rows < tile.stop))
        distances[inside, rows[inside] - tile.start] = np.inf
        keep = min(k, distances.shape[1])
        found = np.argpartition(distances, keep - 1, axis=1)[:, :keep]
        found.sort(axis=1)
        return np.take_along_axis(distances, found, 1), found + tile.start

    distances = np.full((len(rows), 0), np.inf, np.float32)
    places = np.zeros((len(rows), 0), np.intp)
    with single_blas_thread():
        for more, where in map_tiles(best_of_all, n):
            distances = np.concatenate([distances, more], axis=1)
            places = np.concatenate([places, where], axis=1)
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
            distances = np.take_along_axis(distances, order, 1)
            places = np.take_along_axis(places, order, 1)
    return places


def draw_map(X: Any, num_sample: int, num_components: int = 50) -> Map:
    """Project all rows on the two main axes of an even sample of them (PCA)."""
    n = X.shape[0]
    sample = _evenly(n, num_sample)
    d = X.shape[1]
    most = _SAMPLE_FOR_AXES if d <= _WIDE else min(_WIDE, _block_rows(d))
    some = take_rows(X, _evenly(n, most))
    frame = _frame(some)
    some = frame.see(some)

    def project(rows: Any, axes: Floats) -> Floats:
        pieces = _pieces(slice(0, len(rows)), d)
        return np.concatenate([frame.see(rows[piece]) @ axes for piece in pieces])

    # Any number of threads outside of here gives the same bits.
    with single_blas_thread():
        values, axes = _principal_axes(some, num_components)
        # The sign of an axis is arbitrary: make its largest entry positive.
        largest = np.abs(axes).argmax(axis=0)
        axes = axes * np.sign(axes[largest, np.arange(axes.shape[1])])
        main = np.zeros((X.shape[1], 2), axes.dtype)
        main[:, : axes.shape[1]] = axes[:, :2]
        tiles = map_tiles(lambda tile: project(X[tile], main), n)
        points = np.concatenate(list(tiles))
        parts = _pieces(slice(0, len(sample)), d)
        sample_points = np.concatenate(
            [project(take_rows(X, sample[part]), axes) for part in parts]
        )
    total = max(float(values.sum()), 1e-12)
    explained = [max(float(v), 0.0) / total for v in values[:2]]
    return Map(points, explained, sample, sample_points)


def _principal_axes(rows: Floats, count: int) -> tuple[Floats, Floats]:
    """Give all variances, largest first, and the main axes (d, k) of rows (m, d).

    From the smaller of the two Gram matrices.
    """
    if rows.shape[1] <= _WIDE:
        values, axes = np.linalg.eigh(rows.T @ rows)  # (d,), (d, d)
        return values[::-1], axes[:, ::-1][:, :count]
    values, parts = np.linalg.eigh(rows @ rows.T)  # (m,), (m, m)
    values, parts = values[::-1], parts[:, ::-1][:, :count]
    axes = rows.T @ parts  # (d, k)
    lengths = np.linalg.norm(axes, axis=0)
    return values, axes / np.where(lengths > 0.0, lengths, 1.0).astype(axes.dtype)


def _block_rows(d: int) -> int:
    return max(_BLOCK_BYTES // (4 * max(d, 1)), 1)


def _pieces(rows: slice, d: int) -> list[slice]:
    """Divide rows of many columns, so that a piece of them fits into memory."""
    step = _block_rows(d)
    starts = range(rows.start, rows.stop, step)
    return [slice(start, min(start + step, rows.stop)) for start in starts]


def tsne(points: Floats) -> Floats:
    """Lay out a sample by t-SNE, (m, 2); always the same for the same points."""
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(points) - 1) / 3.0)
    layout = TSNE(perplexity=perplexity, init="pca", random_state=0)
    with single_blas_thread():
        return np.asarray(layout.fit_transform(points.astype(np.float32)))


def _evenly(n: int, count: int) -> Ints:
    """Give up to ``count`` of n rows, evenly spaced."""
    if n <= count:
        return np.arange(n)
    return np.linspace(0, n - 1, count).astype(np.intp)
