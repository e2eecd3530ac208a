from itertools import product
from math import ceil, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys import traffic
from mlsys.errors import InvalidValue, UnknownName
from mlsys.traffic.near_memory import LRUMemory

FLOAT = 4


class PlainLRU:
    """The same memory in the slowest and most obvious way: a list in order of last use."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.tiles, self.moved = capacity, [], 0
        self.changed, self.in_dram = set(), set()

    def use(self, key, size, adds):
        found = [tile for tile in self.tiles if tile[0] == key]
        self.tiles = [tile for tile in self.tiles if tile[0] != key]
        while sum(tile[1] for tile in self.tiles) + size > self.capacity:
            self.drop(self.tiles.pop(0))
        if not found and (not adds or key in self.in_dram):
            self.moved += size
        if adds:
            self.changed.add(key)
        self.tiles.append((key, size))

    def drop(self, tile):
        if tile[0] in self.changed:
            self.moved += tile[1]
            self.changed.discard(tile[0])
            self.in_dram.add(tile[0])


@given(
    accesses=st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 4)), max_size=80),
    sizes=st.lists(st.integers(1, 10), min_size=5, max_size=5),
    capacity=st.integers(10, 40),
)
def test_lru_memory_agrees_with_a_plain_list(accesses, sizes, capacity):
    memory, plain = LRUMemory(capacity), PlainLRU(capacity)
    for operand, index in accesses:
        (memory.accumulate if operand == "C" else memory.read)((operand, index), sizes[index])
        plain.use((operand, index), sizes[index], adds=operand == "C")
    memory.flush()
    for tile in plain.tiles:
        plain.drop(tile)
    assert memory.bytes_read.total() + memory.bytes_written.total() == plain.moved


@given(
    rows=st.integers(1, 5), cols=st.integers(1, 5), depth=st.integers(2, 5), tile=st.tuples(*[st.integers(1, 6)] * 3)
)
def test_each_band_is_read_once_per_tile_when_only_three_tiles_fit(rows, cols, depth, tile):
    tile_m, tile_n, tile_k = tile
    m, n, k = rows * tile_m, cols * tile_n, depth * tile_k
    working_set = FLOAT * (tile_m * tile_k + tile_k * tile_n + tile_m * tile_n)
    # With equal tiles "holds three tiles" means one of each operand, and nothing of an earlier step survives.
    found = traffic.tiled_matmul(m, n, k, *tile, memory_bytes=working_set)
    assert found.working_set == working_set
    assert found.written == {"C": FLOAT * m * n}
    assert found.read["A"] <= FLOAT * m * k * cols
    assert found.read["B"] <= FLOAT * k * n * rows
    if tile_m == tile_n == tile_k:
        assert found.read == {"A": FLOAT * m * k * cols, "B": FLOAT * k * n * rows}


@given(st.tuples(*[st.integers(1, 24)] * 3), st.tuples(*[st.integers(1, 12)] * 3), st.sampled_from(traffic.ORDERS))
def test_no_schedule_beats_the_compulsory_bound(sizes, tiles, order):
    least = traffic.compulsory_bytes(*sizes)
    room = FLOAT * 3 * 12 * 12
    assert traffic.tiled_matmul(*sizes, *tiles, memory_bytes=room, order=order).total_bytes >= least
    assert traffic.tiled_matmul(*sizes, *tiles, memory_bytes=least, order=order).total_bytes == least


def test_sums_are_spilled_and_read_again_when_k_is_outermost():
    # 2 x 2 x 2 tiles of 2 x 2: four tiles of C, each visited twice, all pushed out before the second visit.
    found = traffic.tiled_matmul(4, 4, 4, 2, 2, 2, memory_bytes=3 * 16, order="kmn")
    assert found.written["C"] == 2 * 4 * 16
    assert found.read["C"] == 4 * 16


def test_ragged_edge_tiles_have_their_real_size():
    # Tile rows of 3 and 2; the only tile of B stays. A tile padded to 3 x 2 would make it 12 elements of A, not 10.
    found = traffic.tiled_matmul(5, 3, 2, 3, 3, 2, memory_bytes=FLOAT * (6 + 6 + 9))
    assert found.read == {"A": FLOAT * 5 * 2, "B": FLOAT * 2 * 3}
    assert found.written == {"C": FLOAT * 5 * 3}


def test_untiled_traffic_of_4096_in_fp16_is_275_gb():
    assert traffic.untiled(4096, 4096, 4096, "fp16").bytes_read.m_as("GB") == pytest.approx(275, rel=1e-2)


@pytest.mark.parametrize(("m", "n", "k", "memory_bytes"), [(12, 10, 9, 160), (9, 16, 14, 256), (13, 13, 13, 400)])
def test_best_schedule_is_within_two_percent_of_trying_every_tile(m, n, k, memory_bytes):
    totals = [
        traffic.tiled_matmul(m, n, k, *tiles, memory_bytes=memory_bytes).total_bytes
        for tiles in product(range(1, m + 1), range(1, n + 1), range(1, k + 1))
        if FLOAT * (tiles[0] * tiles[2] + tiles[2] * tiles[1] + tiles[0] * tiles[1]) <= memory_bytes
    ]
    best = traffic.best_schedule(m, n, k, memory_bytes=memory_bytes)
    assert best.traffic.total_bytes <= 1.02 * min(totals)
    assert best.traffic.working_set <= memory_bytes


@settings(max_examples=20, deadline=None)
@given(st.integers(100, 160), st.integers(100, 160), st.integers(150, 200), st.integers(200, 1500))
def test_best_schedule_stays_near_the_square_root_law(m, n, k, elements):
    # No schedule reads fewer than 2 m n k / sqrt(memory) - 2 memory elements, up to lower-order terms
    # (Smith, Lowery, Langou and van de Geijn, A tight I/O lower bound for matrix multiplication, 2019).
    best = traffic.best_schedule(m, n, k, memory_bytes=FLOAT * elements)
    bound = 2 * m * n * k / sqrt(elements) - 2 * elements
    moved = best.traffic.total_bytes / FLOAT
    assert bound <= moved
    side = int(sqrt(elements + 1)) - 1  # a square tile of C, with slices of thickness 1
    assert moved <= m * k * ceil(n / side) + k * n * ceil(m / side) + m * n


def test_four_times_the_memory_halves_the_reads():
    small, large = (traffic.best_schedule(1024, 1024, 1024, memory_bytes=2**x).traffic for x in (14, 16))
    ratio = (small.bytes_read / large.bytes_read).m_as("")
    assert ratio == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("bad", [{"tile_m": 0}, {"tile_k": 2.0}, {"m": -3}, {"memory_bytes": 0}])
def test_sizes_that_are_no_positive_integers_are_refused(bad):
    arguments = {"m": 8, "n": 8, "k": 8, "tile_m": 4, "tile_n": 4, "tile_k": 4, "memory_bytes": 4096} | bad
    with pytest.raises(ValueError, match=next(iter(bad))):
        traffic.tiled_matmul(**arguments)


def test_a_tile_larger_than_the_memory_is_refused_with_both_sizes():
    with pytest.raises(InvalidValue, match=r"256 bytes; the memory holds 100"):
        traffic.tiled_matmul(8, 8, 8, 8, 8, 8, memory_bytes=100)


def test_an_unknown_order_is_refused_with_the_known_ones():
    with pytest.raises(UnknownName, match="mnk"):
        traffic.tiled_matmul(8, 8, 8, 4, 4, 4, memory_bytes=4096, order="ijk")


def test_a_memory_that_holds_no_three_elements_is_refused():
    with pytest.raises(InvalidValue, match="use 12 bytes or more"):
        traffic.best_schedule(8, 8, 8, memory_bytes=8)
