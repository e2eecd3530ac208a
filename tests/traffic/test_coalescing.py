from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.errors import InvalidValue
from mlsys.traffic.coalescing import (
    LAYOUTS,
    channel_read,
    contiguous_strides,
    layout_strides,
    line_utilization,
    offset,
    strided_addresses,
    warp_transactions,
)

element_sizes = st.sampled_from([1, 2, 4, 8, 16])
shapes = st.tuples(*[st.integers(1, 5)] * 4)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5000), min_size=1, max_size=32), element_sizes)
def test_transactions_are_the_marked_sectors_of_a_memory(addresses: list[int], size: int) -> None:
    asked = np.zeros(5120, dtype=bool)
    for address in addresses:
        asked[address : address + size] = True
    counted = warp_transactions(addresses, element_bytes=size)
    assert counted.sectors == asked.reshape(-1, 32).any(axis=1).sum()
    assert counted.lines == asked.reshape(-1, 128).any(axis=1).sum()
    assert counted.bytes_used == asked.sum()
    assert 0 < counted.efficiency <= 1


@pytest.mark.parametrize(
    ("stride", "sectors", "efficiency"),
    [(0, 1, 4 / 32), (1, 4, 1), (2, 8, 0.5), (4, 16, 0.25), (8, 32, 0.125), (32, 32, 0.125)],
)
def test_stride_of_floats_sets_sectors(stride: int, sectors: int, efficiency: float) -> None:
    access = warp_transactions(strided_addresses(stride=stride, element_bytes=4), element_bytes=4)
    assert (access.sectors, access.bytes_moved, access.efficiency) == (sectors, 32 * sectors, efficiency)


def test_a_start_off_a_sector_costs_one_more() -> None:
    shifted = strided_addresses(stride=1, element_bytes=4, base=1)
    assert warp_transactions(shifted, element_bytes=4).sectors == 5


def test_order_of_lanes_does_not_matter() -> None:
    addresses = strided_addresses(stride=3, element_bytes=4)
    assert warp_transactions(addresses, element_bytes=4) == warp_transactions(addresses[::-1], element_bytes=4)


@settings(deadline=None)
@given(shapes, st.sampled_from(LAYOUTS), st.data())
def test_offsets_are_positions_in_the_stored_tensor(shape: tuple[int, ...], layout: str, data: Any) -> None:
    index = tuple(data.draw(st.integers(0, size - 1)) for size in shape)
    tensor = np.zeros(shape)
    tensor[index] = 1
    stored = tensor.transpose(["NCHW".index(axis) for axis in layout])
    assert offset(index, shape, layout) == np.flatnonzero(stored)[0]


@settings(deadline=None)
@given(shapes, st.sampled_from(LAYOUTS))
def test_strides_are_those_of_numpy(shape: tuple[int, ...], layout: str) -> None:
    axes = ["NCHW".index(axis) for axis in layout]
    stored = np.ascontiguousarray(np.arange(np.prod(shape)).reshape([shape[axis] for axis in axes]))
    logical = stored.transpose(np.argsort(axes))
    strides = layout_strides(shape, layout)
    for index in np.ndindex(*shape):
        assert logical[index] == sum(i * stride for i, stride in zip(index, strides, strict=True))
    assert contiguous_strides(stored.shape) == tuple(stride // stored.itemsize for stride in stored.strides)


def test_layout_example_offsets() -> None:
    assert offset((0, 1, 2, 0), (1, 3, 3, 3), "NCHW") == 15
    assert offset((0, 1, 2, 0), (1, 3, 3, 3), "NHWC") == 19


def test_which_index_the_lanes_walk_decides_the_waste() -> None:
    along_row = channel_read(channels=64, layout="NHWC", element_bytes=2, walk="w")
    along_channels = channel_read(channels=64, layout="NHWC", element_bytes=2, walk="c")
    assert (along_row.sectors, along_row.bytes_used, along_row.bytes_moved) == (32, 64, 1024)
    assert (along_channels.sectors, along_channels.efficiency) == (2, 1)
    assert channel_read(channels=64, layout="NCHW", element_bytes=2, walk="w").sectors == 2
    assert channel_read(channels=64, layout="NCHW", element_bytes=2, walk="c").sectors == 32


def test_column_walk_is_as_good_as_a_row_walk_once_the_column_fits() -> None:
    columns = [line_utilization(64, 64, element_bytes=4, walk="column", lines_kept=kept) for kept in (1, 63, 64)]
    assert columns == [1 / 32, 1 / 32, 1]
    assert line_utilization(64, 64, element_bytes=4, walk="row", lines_kept=1) == 1


def test_short_rows_share_a_line() -> None:
    assert line_utilization(8, 4, element_bytes=4, walk="column", lines_kept=1) == 1
    assert line_utilization(16, 8, element_bytes=4, walk="column", lines_kept=1) == 512 / (8 * 4 * 128)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: warp_transactions([], element_bytes=4), "1 to 32 active lanes, got 0"),
        (lambda: warp_transactions(range(33), element_bytes=4), "1 to 32 active lanes, got 33"),
        (lambda: warp_transactions([-4], element_bytes=4), "address must be an integer of 0 or more, got -4"),
        (lambda: strided_addresses(stride=1, element_bytes=4, lanes=33), "lanes must be at most 32"),
        (lambda: strided_addresses(stride=-1, element_bytes=4), "stride must be an integer of 0 or more"),
        (lambda: layout_strides((1, 2, 3), "NCHW"), r"four sizes \(N, C, H, W\), got \(1, 2, 3\)"),
        (lambda: layout_strides((1, 2, 3, 4), "NCWH"), "layout must be one of 'NCHW', 'NHWC', got 'NCWH'; did you"),
        (lambda: offset((0, 3, 0, 0), (1, 3, 3, 3), "NCHW"), "index c must be below 3, got 3; the nearest is 2"),
        (lambda: offset((0, 0, 0), (1, 3, 3, 3), "NCHW"), "four indices"),
        (lambda: channel_read(channels=3, layout="NHWC", element_bytes=2, walk="c"), "at least 32"),
        (lambda: line_utilization(4, 4, element_bytes=3, walk="row", lines_kept=1), "must divide a line of 128"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        call()
