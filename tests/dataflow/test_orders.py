from collections.abc import Mapping
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.dataflow import (
    Accesses,
    LoopNest,
    compulsory,
    convolution,
    matmul,
    order_accesses,
    reuse,
    stationary_traffic,
)
from mlsys.errors import InvalidValue
from mlsys.traffic.near_memory import LRUMemory

FILTER_BANK = convolution(filters=16, kernel=3, height=8, width=8)
small = st.integers(1, 4)


def walked(nest: LoopNest, order: tuple[str, ...], accumulators: int = 1) -> Accesses:
    """Really walk the loops: one register per operand for reads, a least recently used memory for sums."""
    near = {"weights": None, "inputs": None}
    reads = {"weights": 0, "inputs": 0}
    sums = LRUMemory(accumulators)
    for indices in product(*(range(nest.extents[loop]) for loop in order)):
        at = dict(zip(order, indices, strict=True))
        for operand in near:
            address: Any = address_of(getattr(nest, operand), at)
            if address != near[operand]:
                near[operand] = address
                reads[operand] += 1
        sums.accumulate(("sum", address_of(nest.outputs, at)), 1)
    sums.flush()
    return Accesses(reads["weights"], reads["inputs"], sums.bytes_written["sum"], sums.bytes_read["sum"])


def address_of(address: tuple[Mapping[str, int], ...], at: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sum(factor * at.get(loop, 0) for loop, factor in coordinate.items()) for coordinate in address)


@settings(max_examples=60, deadline=None)
@given(small, small, small, small, small, st.integers(1, 3), st.integers(1, 3), st.integers(1, 30), st.data())
def test_order_counts_are_those_of_walking_the_loops(
    filters: int, channels: int, batch: int, p: int, q: int, kernel: int, stride: int, accumulators: int, data: Any
) -> None:
    height, width = (p - 1) * stride + kernel, (q - 1) * stride + kernel
    nest = convolution(
        filters=filters, channels=channels, batch=batch, kernel=kernel, height=height, width=width, stride=stride
    )
    order = tuple(data.draw(st.permutations(nest.loops)))
    assert order_accesses(nest, order, accumulators) == walked(nest, order, accumulators)


@settings(deadline=None)
@given(small, small, small)
def test_matmul_order_counts_are_those_of_walking_the_loops(m: int, n: int, k: int) -> None:
    nest = matmul(m, n, k)
    for order in nest.orders():
        assert order_accesses(nest, order) == walked(nest, order)


def test_loop_order_trades_weight_reads_for_partial_sums() -> None:
    filters_outside = order_accesses(FILTER_BANK, "mrspq")
    space_outside = order_accesses(FILTER_BANK, "pqmrs")
    assert (filters_outside.weights, space_outside.weights) == (144, 5184)
    assert (filters_outside.inputs, filters_outside.sums, filters_outside.total) == (5184, 9792, 15120)
    assert (space_outside.inputs, space_outside.sums, space_outside.total) == (5184, 576, 10944)
    assert order_accesses(FILTER_BANK, "mrspq", accumulators=36).total == 5904
    assert order_accesses(FILTER_BANK, "pqmrs", accumulators=36).total == 10944


def test_all_120_orders_lie_between_compulsory_and_no_reuse() -> None:
    least = compulsory(FILTER_BANK)
    counts = [order_accesses(FILTER_BANK, order) for order in FILTER_BANK.orders()]
    assert len(counts) == 120
    assert (least.weights, least.inputs, least.sums) == (144, 64, 576)
    assert all(least.weights <= count.weights <= FILTER_BANK.macs for count in counts)
    assert all(least.inputs <= count.inputs <= FILTER_BANK.macs for count in counts)
    assert all(least.sum_writes <= count.sum_writes <= FILTER_BANK.macs for count in counts)


def test_weights_by_inputs_example() -> None:
    nest = matmul(32, 512, 256)
    assert nest.macs == 4_194_304
    assert compulsory(nest) == Accesses(131_072, 8_192, 16_384, 0)
    assert reuse(nest) == {"weights": 32, "inputs": 512, "outputs": 256}


def test_batch_of_one_uses_each_weight_once_in_every_dataflow() -> None:
    for dataflow in ("ws", "os", "is"):
        assert stationary_traffic(1, 64, 64, dataflow=dataflow, buffer=256).accesses.weights == 64 * 64


def stationary_walk(sizes: dict[str, int], dataflow: str, tile: tuple[int, int]) -> Accesses:
    """Tile by tile and step by step: what enters and leaves the buffer beside the tile that stays."""
    held, stream = {"ws": ("kn", "m"), "os": ("mn", "k"), "is": ("mk", "n")}[dataflow]
    moved = {"weights": 0, "inputs": 0, "writes": 0, "reads": 0}
    begun: set[tuple[int, int]] = set()
    for first in product(*(range(0, sizes[x], size) for x, size in zip(held, tile, strict=True))):
        at = {x: range(start, min(start + size, sizes[x])) for x, start, size in zip(held, first, tile, strict=True)}
        for step in [*range(sizes[stream]), None]:  # None: the tile itself crosses once
            here = at | ({} if step is None else {stream: range(step, step + 1)})
            crosses = {"ws": "kn", "os": "mn", "is": "mk"}[dataflow]
            for name, loops in (("weights", "kn"), ("inputs", "mk"), ("outputs", "mn")):
                if (step is None) != (loops == crosses):
                    continue
                for element in product(here[loops[0]], here[loops[1]]):
                    if name != "outputs":
                        moved[name] += 1
                        continue
                    moved["writes"] += 1
                    moved["reads"] += element in begun
                    begun.add(element)
    return Accesses(moved["weights"], moved["inputs"], moved["writes"], moved["reads"])


@settings(deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 7), st.sampled_from(["ws", "os", "is"]), st.integers(3, 70))
def test_stationary_traffic_is_the_least_of_all_tiles_that_fit(
    m: int, n: int, k: int, dataflow: str, buffer: int
) -> None:
    sizes = {"m": m, "n": n, "k": k}
    best = stationary_traffic(m, n, k, dataflow=dataflow, buffer=buffer)
    assert best.accesses == stationary_walk(sizes, dataflow, best.tile)
    rows, cols = {"ws": "kn", "os": "mn", "is": "mk"}[dataflow]
    fitting = [
        (u, v) for u, v in product(range(1, sizes[rows] + 1), range(1, sizes[cols] + 1)) if u * v + u + v <= buffer
    ]
    assert best.tile in fitting
    assert best.accesses.total == min(stationary_walk(sizes, dataflow, tile).total for tile in fitting)


@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
def test_a_buffer_for_everything_leaves_compulsory_traffic(dataflow: str) -> None:
    traffic = stationary_traffic(32, 512, 256, dataflow=dataflow, buffer=1 << 20)
    assert traffic.accesses == compulsory(matmul(32, 512, 256))


def test_output_size_follows_stride_and_padding() -> None:
    nest = convolution(filters=64, channels=3, batch=1, kernel=7, height=224, width=224, stride=2, padding=3)
    assert (nest.extents["p"], nest.extents["q"], nest.macs) == (112, 112, 118_013_952)


def test_order_must_name_each_loop_once() -> None:
    for order in ("mnm", "mn", "mnkx"):
        with pytest.raises(InvalidValue, match="each of the loops m, n, k once"):
            order_accesses(matmul(2, 2, 2), order)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": 9}, r"kernel must be at most 8 \(height with padding\), got 9; the nearest is 8"),
        ({"filters": 0}, "filters must be a positive integer, got 0"),
        ({"stride": 0}, "stride must be a positive integer, got 0"),
        ({"padding": -1}, "padding must be an integer of 0 or more, got -1"),
    ],
)
def test_impossible_convolutions_are_named(change: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        convolution(**({"filters": 16, "kernel": 3, "height": 8, "width": 8} | change))


def test_buffer_below_three_elements_is_refused() -> None:
    with pytest.raises(InvalidValue, match="a buffer of 2 elements .* use 3 or more"):
        stationary_traffic(4, 4, 4, dataflow="ws", buffer=2)


def test_orders_are_all_permutations() -> None:
    assert set(matmul(2, 2, 2).orders()) == set(permutations("mnk"))
