from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.dataflow.row_stationary import RowMapping, energy_ratios, row_stationary
from mlsys.errors import InvalidValue

DIVIDING = RowMapping(m=8, n=2, e=3, p=2, q=2, r=2, t=2)
LAYER = {"filters": 16, "channels": 8, "kernel": 3, "output": 6, "batch": 4}


def chunks(extent: int, size: int) -> list[range]:
    return [range(start, min(start + size, extent)) for start in range(0, extent, size)]


def walked(mapping: RowMapping, filters: int, channels: int, kernel: int, output: int, stride: int, batch: int) -> Any:
    """Place every 1-D convolution on its element, and count what each level hands out."""
    side = (output - 1) * stride + kernel
    counts = {name: dict.fromkeys(("dram", "buffer", "array", "register_file"), 0) for name in ("weights", "inputs")}
    for resident in chunks(filters, mapping.m):
        counts["inputs"]["dram"] += batch * channels * side * side
        for passed in chunks(len(resident), mapping.p * mapping.t):
            for strip in chunks(output, mapping.e):
                rows = {row * stride + tap for row in strip for tap in range(kernel)}
                counts["inputs"]["buffer"] += batch * channels * len(rows) * side
                for images in chunks(batch, mapping.n):
                    counts["weights"]["buffer"] += len(passed) * channels * kernel * kernel
                    for interleaved in chunks(len(passed), mapping.p):
                        for _, _tap, _row in product(range(channels), range(kernel), strip):
                            counts["weights"]["array"] += len(interleaved) * kernel
                            counts["inputs"]["array"] += len(images) * side
                            uses = len(interleaved) * len(images) * output * kernel
                            counts["weights"]["register_file"] += uses
                            counts["inputs"]["register_file"] += uses
    counts["weights"]["dram"] = filters * channels * kernel * kernel
    return counts


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_counts_are_those_of_walking_the_elements(data: Any) -> None:
    filters, channels, kernel, output, batch = (data.draw(st.integers(1, high)) for high in (9, 6, 3, 6, 3))
    stride = data.draw(st.integers(1, kernel))
    m = data.draw(st.integers(1, filters))
    p = data.draw(st.integers(1, m))
    q = data.draw(st.integers(1, channels))
    mapping = RowMapping(
        m=m,
        n=data.draw(st.integers(1, batch)),
        e=data.draw(st.integers(1, output)),
        p=p,
        q=q,
        r=data.draw(st.integers(1, -(-channels // q))),
        t=data.draw(st.integers(1, m // p)),
    )
    layer = row_stationary(
        mapping, filters=filters, channels=channels, kernel=kernel, output=output, stride=stride, batch=batch
    )
    expected = walked(mapping, filters, channels, kernel, output, stride, batch)
    assert {name: layer.counts[name] for name in expected} == expected
    assert all(split.total * layer.values[name] == layer.macs for name, split in layer.splits.items())


def test_partial_sums_of_one_output_are_added_at_the_cheapest_level() -> None:
    sums = row_stationary(DIVIDING, **LAYER).counts["sums"]
    outputs = 4 * 16 * 6 * 6
    per_output = {level: count / outputs for level, count in sums.items()}
    # An element adds 2 channels x 3 weights; 3 rows of 2 sets pass sums on; 2 passes of 4 channels meet in the buffer.
    assert per_output == {"dram": 1, "buffer": 2, "array": 2 * (6 - 1), "register_file": 2 * 12 * (6 - 1)}


def test_splits_are_those_of_the_table_when_everything_divides() -> None:
    splits = row_stationary(DIVIDING, **LAYER).splits
    weights, sums = splits["weights"], splits["sums"]
    assert (weights.a, weights.b, weights.c, weights.d) == (1, (6 / 3) * (4 / 2), 3, 2 * 6)
    assert (sums.a, sums.b, sums.c, sums.d) == (1, 8 / (2 * 2), 3 * 2, 3 * 2)
    assert splits["inputs"].a == 16 / 8


def test_energy_weighs_each_level_by_its_published_ratio() -> None:
    layer = row_stationary(DIVIDING, **LAYER)
    ratio = {"dram": 200, "buffer": 6, "array": 2, "register_file": 1}
    for operand, energy in layer.energy.items():
        assert energy == sum(count * ratio[level] for level, count in layer.counts[operand].items())


def test_every_ratio_states_its_node_and_source() -> None:
    for ratio in energy_ratios().values():
        assert "65 nm" in ratio.condition
        assert "Eyeriss" in ratio.citation


def test_keeping_more_in_the_register_file_saves_energy() -> None:
    lean = row_stationary(RowMapping(m=8, n=1, e=3, p=1, q=1, r=1, t=1), **LAYER)
    rich = row_stationary(DIVIDING, **LAYER)
    assert sum(rich.energy.values()) < sum(lean.energy.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"m": 17}, "m must be at most 16 .the layer's filters., got 17"),
        ({"e": 0}, "e must be a positive integer, got 0"),
        ({"r": 5}, "r must be at most 4"),
        ({"t": 8}, "p t must be at most m = 8, got 16"),
    ],
)
def test_mappings_that_do_not_fit_are_named(change: dict[str, int], message: str) -> None:
    fields = {name: getattr(DIVIDING, name) for name in ("m", "n", "e", "p", "q", "r", "t")}
    with pytest.raises(InvalidValue, match=message):
        row_stationary(RowMapping(**(fields | change)), **LAYER)


def test_stride_beyond_the_kernel_is_refused() -> None:
    with pytest.raises(InvalidValue, match="stride must be at most 3"):
        row_stationary(DIVIDING, **LAYER, stride=4)
