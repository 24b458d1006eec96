"""Where rows lie: their nearest neighbours and a flat map, in blocks of rows.

X is anything that gives an array for ``X[i:j]``; nothing of size n x n is made.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stct.blocks import map_tiles, single_blas_thread

Ints = NDArray[np.intp]
Floats = NDArray[np.floating]

_SAMPLE_FOR_AXES = 10_000  # rows that decide on the axes of the map


class Map(NamedTuple):
    """Two coordinates for every row, and more of them for a sample."""

    points: Floats  # (n, 2)
    explained: list[float]  # share of the variance along each of the two axes
    sample: Ints  # (m,) rows
    sample_points: Floats  # (m, k) principal components, for t-SNE


def nearest(X: Any, rows: Ints, k: int) -> Ints:
    """Find the k nearest other rows of each of ``rows``, nearest first, (R, k).

    Euclidean, exact, ties to the lower row. k is cut to n - 1.
    """
    n = X.shape[0]
    k = min(k, n - 1)
    queries = take(X, rows)  # (R, d)
    centre = queries.mean(axis=0, keepdims=True)  # keeps the squares small
    queries = queries - centre

    def best_of(tile: slice) -> tuple[Floats, Ints]:
        block = _block(X, tile) - centre  # (t, d)
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
        for more, where in map_tiles(best_of, n):
            distances = np.concatenate([distances, more], axis=1)
            places = np.concatenate([places, where], axis=1)
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
            distances = np.take_along_axis(distances, order, 1)
            places = np.take_along_axis(places, order, 1)
    return places


def draw_map(X: Any, num_sample: int, num_components: int = 50) -> Map:
    """Project all rows on the two main axes of an even sample of them (PCA)."""
    n = X.shape[0]
    some = take(X, _evenly(n, _SAMPLE_FOR_AXES))
    mean = some.mean(axis=0)
    some = some - mean
    scale = float(np.abs(some).max()) or 1.0
    values, axes = np.linalg.eigh((some / scale).T @ (some / scale))  # (d,), (d, d)
    axes = axes[:, ::-1][:, :num_components]
    # The sign of an axis is arbitrary: make its largest entry positive.
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest, np.arange(axes.shape[1])])
    main = np.zeros((len(mean), 2), axes.dtype)
    main[:, : axes.shape[1]] = axes[:, :2]

    def project(tile: slice) -> Floats:
        return np.asarray((_block(X, tile) - mean) @ main)

    with single_blas_thread():
        points = np.concatenate(list(map_tiles(project, n)))
    total = max(float(values.sum()), 1e-12)
    explained = [max(float(v), 0.0) / total for v in values[::-1][:2]]
    sample = _evenly(n, num_sample)
    return Map(points, explained, sample, (take(X, sample) - mean) @ axes)


def tsne(points: Floats) -> Floats:
    """Lay out a sample by t-SNE, (m, 2); always the same for the same points."""
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(points) - 1) / 3.0)
    layout = TSNE(perplexity=perplexity, init="pca", random_state=0)
    return np.asarray(layout.fit_transform(points.astype(np.float32)))


def take(X: Any, rows: Ints) -> Floats:
    """Take single rows through blocks, as float32; they may be stored in shards."""
    if isinstance(X, np.ndarray):
        return np.asarray(X[rows], np.float32)
    taken = np.empty((len(rows), X.shape[1]), np.float32)
    order = np.argsort(rows, kind="stable")
    tile = 8192
    edges = np.searchsorted(rows[order], np.arange(0, X.shape[0] + tile, tile))
    for i in range(len(edges) - 1):
        here = order[edges[i] : edges[i + 1]]
        if len(here):
            taken[here] = X[i * tile : (i + 1) * tile][rows[here] - i * tile]
    return taken


def _block(X: Any, tile: slice) -> Floats:
    return np.asarray(X[tile], np.float32)


def _evenly(n: int, count: int) -> Ints:
    """Give up to ``count`` of n rows, evenly spaced."""
    if n <= count:
        return np.arange(n)
    return np.linspace(0, n - 1, count).astype(np.intp)
