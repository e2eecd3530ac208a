from collections.abc import Callable
from math import gcd
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.errors import InvalidValue
from mlsys.traffic.banks import bank_of, bank_passes, padded_offset, swizzled_offset

words = st.lists(st.integers(0, 2000), min_size=1, max_size=32)


@settings(deadline=None)
@given(words)
def test_passes_are_those_of_a_memory_that_serves_one_word_per_bank_and_pass(places: list[int]) -> None:
    waiting, served = set(places), 0
    while waiting:
        taken: dict[int, int] = {}
        for place in sorted(waiting):
            taken.setdefault(place % 32, place)
        waiting -= set(taken.values())
        served += 1
    assert bank_passes([4 * place for place in places], element_bytes=4) == served


@pytest.mark.parametrize("stride", range(1, 129))
def test_a_stride_of_words_needs_as_many_passes_as_its_common_divisor_with_the_banks(stride: int) -> None:
    assert bank_passes([4 * stride * lane for lane in range(32)], element_bytes=4) == gcd(stride, 32)


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_narrow_elements_of_one_word_are_served_together(element_bytes: int) -> None:
    assert bank_passes([element_bytes * lane for lane in range(32)], element_bytes=element_bytes) == 1


@pytest.mark.parametrize(("element_bytes", "lanes"), [(8, 16), (16, 8)])
def test_a_group_of_wide_lanes_side_by_side_fills_the_banks_once(element_bytes: int, lanes: int) -> None:
    assert bank_passes([element_bytes * lane for lane in range(lanes)], element_bytes=element_bytes) == 1
    assert bank_passes([128 * lane for lane in range(lanes)], element_bytes=element_bytes) == lanes


def test_banks_repeat_every_128_bytes() -> None:
    assert [bank_of(address) for address in (0, 3, 4, 127, 128, 132)] == [0, 0, 1, 31, 0, 1]


def rows_and_columns(place: Callable[[int, int], int]) -> tuple[set[int], set[int]]:
    """Passes of the rows and of the columns of a tile of 32 x 32 words."""
    rows = {bank_passes([4 * place(row, col) for col in range(32)], element_bytes=4) for row in range(32)}
    cols = {bank_passes([4 * place(row, col) for row in range(32)], element_bytes=4) for col in range(32)}
    return rows, cols


def test_padding_and_swizzling_free_the_columns_and_keep_the_rows() -> None:
    assert rows_and_columns(lambda row, col: padded_offset(row, col, cols=32, padding=0)) == ({1}, {32})
    assert rows_and_columns(lambda row, col: padded_offset(row, col, cols=32, padding=1)) == ({1}, {1})
    assert rows_and_columns(lambda row, col: padded_offset(row, col, cols=32, padding=2)) == ({1}, {2})
    assert rows_and_columns(lambda row, col: swizzled_offset(row, col, cols=32)) == ({1}, {1})


@pytest.mark.parametrize("cols", [1, 2, 8, 32, 64])
def test_a_swizzled_tile_uses_every_place_once(cols: int) -> None:
    places = np.array([[swizzled_offset(row, col, cols=cols) for col in range(cols)] for row in range(40)])
    assert sorted(places.ravel()) == list(range(40 * cols))
    assert (places // cols == np.arange(40)[:, None]).all(), "no element leaves its row"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bank_passes([], element_bytes=4), "1 to 32 lanes of 4 bytes, got 0"),
        (lambda: bank_passes(range(0, 132, 4), element_bytes=4), "1 to 32 lanes of 4 bytes, got 33"),
        (lambda: bank_passes(range(0, 512, 16), element_bytes=16), "1 to 8 lanes of 16 bytes, got 32; count it in"),
        (lambda: bank_passes([2], element_bytes=4), "address 2 is not a multiple of the 4 bytes"),
        (lambda: bank_passes([-4], element_bytes=4), "address must be an integer of 0 or more, got -4"),
        (lambda: bank_passes([0], element_bytes=3), "1, 2, 4, 8 or 16 bytes, got element_bytes = 3"),
        (lambda: padded_offset(0, 32, cols=32, padding=0), "col must be below 32, got 32; the last is 31"),
        (lambda: padded_offset(0, 0, cols=32, padding=-1), "padding must be an integer of 0 or more, got -1"),
        (lambda: swizzled_offset(0, 0, cols=33), "power of two"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        call()
