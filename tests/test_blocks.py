import threading

import numpy as np
import pytest

from stct.numeric.tiles import MAX_STRIDE, TILE, map_tiles, side_by_side, some_of


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


@pytest.mark.parametrize("stride", [2, 7, 60, MAX_STRIDE])
def test_some_rows_are_one_in_so_many_and_any_of_them(stride):
    tiles = [slice(start, start + TILE) for start in range(0, 200 * TILE, TILE)]
    index = [some_of(rows, stride) for rows in tiles]
    for one, rows in zip(index, tiles, strict=True):
        assert (np.diff(one) > 0).all()
        assert one[-1] < TILE
        np.testing.assert_array_equal(one, some_of(rows, stride))
    share = np.concatenate(index).size / (200 * TILE) * stride
    assert share == pytest.approx(1.0, abs=0.05)
    # Classes that take turns in a circle of 32 all have their share.
    turns = np.bincount(np.concatenate(index) % 32, minlength=32)
    assert turns.min() > 0.7 * turns.mean()


def test_all_rows_and_the_few_of_a_short_tile():
    assert some_of(slice(0, 5), 1) == slice(None)
    assert len(some_of(slice(TILE, TILE + 1), 2)) <= 1
