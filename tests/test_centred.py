"""Products with centred rows, a few rows at a time, are those of the whole."""

import numpy as np
import pytest

from stct.numeric import centring
from stct.numeric.centring import CentredRows, Tile
from stct.numeric.tiles import some_of


@pytest.mark.parametrize("piece", [1, 7 * 5, 2**19])
@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("kind", ["centred", "settled", "plain"])
def test_products_are_those_of_the_whole(monkeypatch, piece, stride, kind):
    monkeypatch.setattr(centring, "PIECE", piece)
    rng = np.random.default_rng(0)
    H = rng.normal(3.0, 1.0, (60, 5)).astype(np.float32)
    rows = slice(10, 51)
    mean = H.mean(axis=0)
    expected = ((H - mean) * 0.5)[rows][some_of(rows, stride)]
    X = CentredRows(H.copy(), mean, 0.5)
    if kind == "settled":
        for start in range(0, 60, 20):
            X.settle(slice(start, start + 20))
        X.settled = True
    source = ((H - mean) * 0.5) if kind == "plain" else X
    tile = Tile(source, rows, some_of(rows, stride))
    W = rng.normal(size=(4, 5)).astype(np.float32)
    A = rng.normal(size=(4, len(expected))).astype(np.float32)
    np.testing.assert_allclose(tile.times(W), W @ expected.T, atol=1e-5)
    np.testing.assert_allclose(tile.weighted_sum(A), A @ expected, atol=1e-5)
    parts = [part for part, _ in tile]
    assert parts[0].start == 0
    assert parts[-1].stop == len(expected)
    assert all(a.stop == b.start for a, b in zip(parts, parts[1:], strict=False))
    np.testing.assert_allclose(
        np.concatenate([block for _, block in tile]), expected, atol=1e-6
    )
