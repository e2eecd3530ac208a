from itertools import combinations, permutations, product
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.dataflow.loop_nest import LoopNest, convolution, matmul
from mlsys.dataflow.search import (
    exhaustive_search,
    loop_orders,
    memory_placements,
    parallel_choices,
    pruned_search,
    search_space,
)
from mlsys.dataflow.tiles import tile_footprint, tiled_accesses
from mlsys.errors import InvalidValue


def elements(nest: LoopNest, operand: str, ranges: dict[str, range]) -> set[tuple[int, ...]]:
    """The addresses that an operand really needs while the loops run over `ranges`."""
    found = set()
    for indices in product(*ranges.values()):
        at = dict(zip(ranges, indices, strict=True))
        found.add(
            tuple(sum(f * at.get(loop, 0) for loop, f in coordinate.items()) for coordinate in getattr(nest, operand))
        )
    return found


def walked_total(nest: LoopNest, order: tuple[str, ...], tile: dict[str, int]) -> int:
    """Walk the loops over tiles and fetch a tile whenever one of its loops has moved."""
    depends = {name: {x for c in getattr(nest, name) for x in c} for name in ("weights", "inputs", "outputs")}
    near: dict[str, Any] = dict.fromkeys(depends)
    begun: set[Any] = set()
    total = 0
    for starts in product(*(range(0, nest.extents[loop], tile[loop]) for loop in order)):
        at = dict(zip(order, starts, strict=True))
        ranges = {x: range(start, min(start + tile[x], nest.extents[x])) for x, start in at.items()}
        for operand, loops in depends.items():
            key = tuple(at[x] for x in sorted(loops & set(order)))
            if key == near[operand]:
                continue
            near[operand] = key
            size = len(elements(nest, operand, ranges))
            total += size
            if operand == "outputs":
                total += size if key in begun else 0
                begun.add(key)
    return total


small_convolutions = st.builds(
    lambda filters, channels, p, q, kernel, stride: convolution(
        filters=filters,
        channels=channels,
        kernel=kernel,
        height=(p - 1) * stride + kernel,
        width=(q - 1) * stride + kernel,
        stride=stride,
    ),
    *[st.integers(1, 4)] * 4,
    st.integers(1, 3),
    st.integers(1, 2),
)
nests = st.one_of(st.builds(matmul, *[st.integers(1, 7)] * 3), small_convolutions)


def test_space_sizes_count_what_can_be_listed() -> None:
    assert loop_orders(4) == len(list(permutations(range(4))))
    assert loop_orders(3, levels=2) == len(list(product(permutations(range(3)), repeat=2)))
    assert parallel_choices(5, 2) == len(list(permutations(range(5), 2))) == 2 * len(list(combinations(range(5), 2)))
    assert memory_placements(3, 2, levels=2) == len(list(product(range(3), repeat=4)))


def test_space_sizes_of_the_convolution_example() -> None:
    assert loop_orders(7) == 5040
    assert parallel_choices(6, 3) == 120
    assert memory_placements(4, 5, levels=3) == 1_073_741_824
    assert search_space(sizes=4, loops=5, parallel=2, levels=3) == 2_457_600**3
    assert search_space(sizes=4, loops=7, parallel=3, levels=3) == pytest.approx(5.2e30, rel=0.01)


@settings(max_examples=60, deadline=None)
@given(nests, st.data())
def test_tiled_counts_are_those_of_walking_the_tiles(nest: LoopNest, data: Any) -> None:
    tile = {loop: data.draw(st.integers(1, extent), label=loop) for loop, extent in nest.extents.items()}
    order = tuple(data.draw(st.permutations(nest.loops)))
    assert tiled_accesses(nest, order, tile).total == walked_total(nest, order, tile)
    ranges = {loop: range(size) for loop, size in tile.items()}
    assert tile_footprint(nest, tile) == sum(
        len(elements(nest, name, ranges)) for name in ("weights", "inputs", "outputs")
    )


@settings(max_examples=25, deadline=None)
@given(nests, st.integers(3, 80), st.data())
def test_exhaustive_and_pruned_search_find_the_least_total(nest: LoopNest, memory: int, data: Any) -> None:
    tiles = {x: sorted({1, data.draw(st.integers(1, extent), label=x)}) for x, extent in nest.extents.items()}
    exhaustive = exhaustive_search(nest, memory=memory, tiles=tiles)
    pruned = pruned_search(nest, memory=memory, tiles=tiles)
    assert exhaustive.accesses.total == pruned.accesses.total
    choices = [dict(zip(tiles, sizes, strict=True)) for sizes in product(*tiles.values())]
    fitting = [tile for tile in choices if tile_footprint(nest, tile) <= memory]
    sample = data.draw(st.lists(st.tuples(st.sampled_from(fitting), st.permutations(nest.loops)), max_size=5))
    for tile, order in sample:
        assert exhaustive.accesses.total <= walked_total(nest, tuple(order), tile)
    for found in (exhaustive, pruned):
        assert found.accesses.total == walked_total(nest, found.order, dict(found.tile))
        assert found.footprint <= memory


def test_search_of_a_matmul_finds_the_least_of_every_order_and_tile() -> None:
    nest = matmul(6, 4, 5)
    tiles = [dict(zip("mnk", sizes, strict=True)) for sizes in product(range(1, 7), range(1, 5), range(1, 6))]
    fitting = [tile for tile in tiles if tile_footprint(nest, tile) <= 20]
    least = min(walked_total(nest, order, tile) for order in permutations("mnk") for tile in fitting)
    assert exhaustive_search(nest, memory=20).accesses.total == least


def test_pruning_looks_at_fewer_mappings() -> None:
    nest = convolution(filters=64, channels=32, batch=4, kernel=3, height=28, width=28, padding=1)
    tiles = {x: [size] for x, size in {"n": 2, "m": 16, "c": 8, "p": 7, "q": 14, "r": 1, "s": 1}.items()}
    exhaustive = exhaustive_search(nest, memory=10_000, tiles=tiles)
    pruned = pruned_search(nest, memory=10_000, tiles=tiles)
    assert exhaustive.evaluated == 5040
    assert pruned.evaluated < 5040
    assert pruned.accesses.total == exhaustive.accesses.total


def test_counts_beyond_64_bits_stay_exact() -> None:
    nest = matmul(1 << 21, 1 << 21, 1 << 21)
    tiles = {loop: [1] for loop in "mnk"}
    expected = prod([1 << 21] * 3) * 2 + (1 << 42)  # the sum stays; both operands cross at every step
    assert exhaustive_search(nest, memory=3, tiles=tiles).accesses.total == expected
    assert pruned_search(nest, memory=3, tiles=tiles).accesses.total == expected


@pytest.mark.parametrize("search", [exhaustive_search, pruned_search])
def test_bad_choices_are_named(search: Any) -> None:
    nest = matmul(8, 8, 8)
    with pytest.raises(InvalidValue, match="the smallest tile takes 3 elements but memory holds 2"):
        search(nest, memory=2)
    with pytest.raises(InvalidValue, match="loop must be one of 'm', 'n', 'k', got 'p'"):
        search(nest, memory=64, tiles={"p": [1]})
    with pytest.raises(InvalidValue, match="tile of loop m must be at most 8"):
        search(nest, memory=64, tiles={"m": [16]})
    with pytest.raises(InvalidValue, match="at least one size"):
        search(nest, memory=64, tiles={"m": []})
    with pytest.raises(InvalidValue, match="memory must be a positive integer, got 0"):
        search(nest, memory=0)


def test_tile_and_order_must_name_each_loop() -> None:
    with pytest.raises(InvalidValue, match="order must name each of the loops m, n, k once"):
        tiled_accesses(matmul(2, 2, 2), "mn", {"m": 1, "n": 1, "k": 1})
    with pytest.raises(InvalidValue, match="tile must give a size for each of the loops m, n, k"):
        tiled_accesses(matmul(2, 2, 2), "mnk", {"m": 1})


def test_more_parallel_loops_than_loops_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"parallel must be at most 2 \(there are 2 loops\), got 3"):
        parallel_choices(2, 3)
