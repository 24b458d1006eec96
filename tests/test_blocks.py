import threading

import numpy as np
import pytest

from stct.blocks import RUN, TILE, map_tiles, side_by_side, some_of


@pytest.mark.parametrize("num_threads", [1, 2, 5])
@pytest.mark.parametrize("num_rows", [1, TILE, TILE + 1, 7 * TILE + 3])
def test_tiles_cover_all_rows_once_in_order(num_threads, num_rows):
    tiles = list(map_tiles(lambda rows: rows, num_rows, num_threads=num_threads))
    rows = [i for tile in tiles for i in range(tile.start, tile.stop)]
    assert rows == list(range(num_rows))


def test_work_is_spread_over_threads():
    both_at_once = threading.Barrier(2, timeout=30)
    list(map_tiles(lambda rows: both_at_once.wait(), 2 * TILE, num_threads=2))


def test_an_error_in_a_tile_reaches_the_caller():
    def fail(rows):
        raise RuntimeError(rows.start)

    with pytest.raises(RuntimeError, match="0"):
        list(map_tiles(fail, 5 * TILE, num_threads=2))


def test_side_by_side_is_map_in_order():
    assert side_by_side(pow, (2, 3, 4), (5, 2, 1)) == [32, 9, 4]
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda x: 1 / x, (1, 0))


@pytest.mark.parametrize("count", [1, 5, 47, 100, TILE])
@pytest.mark.parametrize("stride", [2, 7, 60])
def test_some_rows_of_a_tile_are_about_one_in_so_many(count, stride):
    rows = slice(3 * TILE, 3 * TILE + count)
    index = some_of(rows, stride)
    assert len(index) > 0
    assert (np.diff(index) > 0).all()
    assert index[0] >= 0
    assert index[-1] < count
    assert len(index) <= count / stride + RUN
    if count > 20 * stride:
        assert len(index) >= 0.8 * count / stride
    np.testing.assert_array_equal(index, some_of(rows, stride))
    assert some_of(rows, 1) == slice(None)
