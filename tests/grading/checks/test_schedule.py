import pytest

from mlsys.grading import WrongAnswer, assert_schedule

PROBLEM = (256, 256, 256, 16 * 1024)


def test_thin_slices_beside_a_large_tile_of_c_are_right():
    assert_schedule((64, 61, 1), *PROBLEM)


def test_equal_squares_move_too_much():
    with pytest.raises(WrongAnswer, match=r"1\.7\d? times the best known"):
        assert_schedule((36, 36, 36), *PROBLEM)


def test_tiles_that_do_not_fit_are_listed():
    with pytest.raises(WrongAnswer, match="do not fit.*C 16,384"):
        assert_schedule((64, 64, 1), *PROBLEM)


@pytest.mark.parametrize("tiles", [None, 64, (64, 64), (64, 61, 1.0), ("64", 61, 1), (64, 61, True)])
def test_anything_but_three_ints_is_refused(tiles):
    with pytest.raises(WrongAnswer, match="three ints"):
        assert_schedule(tiles, *PROBLEM)


@pytest.mark.parametrize("tiles", [(0, 64, 1), (64, -64, 1)])
def test_sizes_below_one_are_refused(tiles):
    with pytest.raises(WrongAnswer, match="1 or more"):
        assert_schedule(tiles, *PROBLEM)
