from math import gcd

import pytest

from mlsys.errors import InvalidValue
from mlsys.traffic.banks import BANKS, bank_passes

LANES = range(32)


@pytest.mark.parametrize("stride", range(1, 130))
def test_a_stride_conflicts_as_often_as_its_common_divisor_with_the_banks(stride: int) -> None:
    """Lanes i and j meet in a bank when 32 divides (i - j) stride, so 32 / gcd banks serve gcd lanes each."""
    assert bank_passes(lane * stride for lane in LANES) == gcd(stride, BANKS)


def test_lanes_that_need_the_same_word_are_served_together() -> None:
    assert bank_passes([7] * 32) == 1
    assert bank_passes([lane // 2 for lane in LANES]) == 1
    assert bank_passes([7, 39, 7, 39, 71]) == 3


def test_a_column_of_a_tile_conflicts_until_its_rows_are_padded() -> None:
    assert bank_passes(row * 32 + 5 for row in LANES) == 32
    assert bank_passes(row * 33 + 5 for row in LANES) == 1


def test_idle_lanes_need_nothing() -> None:
    assert bank_passes([0, 32]) == 2
    assert bank_passes([64]) == 1


@pytest.mark.parametrize("words", [[], [0] * 33, [-1], [0.5]])
def test_what_is_no_load_of_a_warp_is_refused(words: list[int]) -> None:
    with pytest.raises(InvalidValue):
        bank_passes(words)
