"""Search for the mapping of a loop nest that moves the least: how large the space is, and two ways to search it.

A mapping here is one tile level: each loop of the nest is cut into tiles, the near memory holds one tile of each
operand, and the order of the loops over tiles decides how often each tile is fetched. Timeloop (Parashar et al., ISPASS
2019) searches the same kind of space with more levels.

>>> from mlsys.dataflow.loop_nest import matmul
>>> nest = matmul(64, 64, 64)
>>> best = exhaustive_search(nest, memory=1024)
>>> best.accesses.total == pruned_search(nest, memory=1024).accesses.total
True
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, inf, perm, prod

import numpy as np

from mlsys.core.arguments import int_at_most, one_of, positive_int
from mlsys.dataflow.loop_nest import Accesses, LoopNest
from mlsys.dataflow.tiles import (
    OPERANDS,
    accesses,
    check_tile,
    moved_once,
    operand_loops,
    tile_counts,
    tile_footprint,
    tiled_accesses,
)
from mlsys.errors import InvalidValue
from mlsys.traffic.matmul import equal_parts


def loop_orders(loops: int, levels: int = 1) -> int:
    """Return the count of loop orders, (d!)^l for d loops at each of l memory levels.

    >>> loop_orders(7), loop_orders(5, levels=2)
    (5040, 14400)
    """
    return int(factorial(positive_int("loops", loops)) ** positive_int("levels", levels))


def parallel_choices(loops: int, parallel: int) -> int:
    """Return the ways to give k different loops of d to k kinds of parallel unit in order: d! / (d - k)!.

    Raises:
        InvalidValue: Sizes that are no positive integers, or more parallel loops than loops.

    >>> parallel_choices(6, 3), parallel_choices(5, 2)
    (120, 20)
    """
    int_at_most("parallel", parallel, positive_int("loops", loops), f"there are {loops} loops")
    return perm(loops, parallel)


def memory_placements(sizes: int, loops: int, levels: int = 1) -> int:
    """Return the ways to choose one of n tile sizes for each of d loops at each of l memory levels: n^(d l).

    >>> memory_placements(4, 5, levels=3)
    1073741824
    """
    return int(positive_int("sizes", sizes) ** (positive_int("loops", loops) * positive_int("levels", levels)))


def search_space(sizes: int, loops: int, parallel: int, levels: int) -> int:
    """Return the size of the whole space, (n^d d! d! / (d - k)!)^l; an upper bound, for many mappings are equivalent.

    >>> f"{search_space(sizes=4, loops=5, parallel=2, levels=3):.1e}"
    '1.5e+19'
    """
    one_level = memory_placements(sizes, loops) * loop_orders(loops) * parallel_choices(loops, parallel)
    return int(one_level ** positive_int("levels", levels))


@dataclass(frozen=True, slots=True)
class TiledOrder:
    """A mapping with one tile level and what it costs.

    Attributes:
        order: Loops over tiles, outermost first.
        tile: Iterations of each loop inside a tile.
        accesses: Elements that cross between the far and the near memory.
        footprint: Elements of one tile of each operand together.
        evaluated: Mappings (for a pruned search also beginnings of mappings) that the search looked at.
    """

    order: tuple[str, ...]
    tile: Mapping[str, int]
    accesses: Accesses
    footprint: int
    evaluated: int = 1


def exhaustive_search(nest: LoopNest, *, memory: int, tiles: Mapping[str, Sequence[int]] | None = None) -> TiledOrder:
    """Look at every order of the loops for every choice of tile that fits the near memory; return the least total.

    Args:
        nest: The loop nest.
        memory: Elements that the near memory holds.
        tiles: Tile sizes to try for each loop; a loop that is left out tries every size that cuts it into equal parts
            (the last may be smaller). One size per loop fixes the tile.

    Raises:
        InvalidValue: A memory that no choice fits, an unknown loop, or a tile that does not fit its loop.

    >>> from mlsys.dataflow.loop_nest import matmul
    >>> best = exhaustive_search(matmul(64, 64, 64), memory=512, tiles={"m": [16], "n": [16], "k": [8]})
    >>> best.accesses.total, best.evaluated
    (36864, 6)
    """
    orders = np.array(list(permutations(range(len(nest.loops)))))
    depth = np.argsort(orders, axis=1)  # depth[order, loop]
    best: TiledOrder | None = None
    least, evaluated = inf, 0
    for tile, footprint in _fitting_tiles(nest, memory, tiles):
        evaluated += len(orders)
        totals = _totals(nest, tile, depth)
        first = int(totals.argmin())
        if totals[first] < least:
            least = totals[first]
            order = tuple(nest.loops[loop] for loop in orders[first])
            best = TiledOrder(order, tile, tiled_accesses(nest, order, tile), footprint)
    return _found(best, evaluated)


def pruned_search(nest: LoopNest, *, memory: int, tiles: Mapping[str, Sequence[int]] | None = None) -> TiledOrder:
    """Find the same least total by branch and bound: build orders from the outside in, drop hopeless beginnings.

    Once some loops are placed, an operand that a loop still to come depends on is fetched again for every placed loop
    that it does not depend on. That bound only grows, so a beginning whose bound reaches the best total so far is left.
    Loops of a single tile change nothing and are placed last.

    The arguments and errors are those of `exhaustive_search`.

    >>> from mlsys.dataflow.loop_nest import matmul
    >>> pruned_search(matmul(64, 64, 64), memory=512, tiles={"m": [16], "n": [16], "k": [8]}).accesses.total
    36864
    """
    best: TiledOrder | None = None
    least, evaluated = inf, 0
    for tile, footprint in _fitting_tiles(nest, memory, tiles):
        trips = tile_counts(nest, tile)
        moving = [loop for loop in nest.loops if trips[loop] > 1]
        unmoved = tuple(loop for loop in nest.loops if trips[loop] == 1)
        once = moved_once(nest, tile)
        beginnings: list[tuple[str, ...]] = [()]
        while beginnings:
            placed = beginnings.pop()
            evaluated += 1
            bound = _bound(nest, placed, moving, trips, once)
            if bound >= least:
                continue
            if len(placed) < len(moving):
                beginnings += [(*placed, loop) for loop in moving if loop not in placed]
            else:
                least, order = bound, placed + unmoved
                best = TiledOrder(order, tile, tiled_accesses(nest, order, tile), footprint)
    return _found(best, evaluated)


def _bound(
    nest: LoopNest,
    placed: tuple[str, ...],
    moving: Sequence[str],
    trips: Mapping[str, int],
    once: Mapping[str, int],
) -> int:
    """The least total of all orders that begin with `placed`; exact when every loop is placed."""
    moved = dict(once)
    for operand in OPERANDS:
        used = operand_loops(nest, operand)
        if any(loop in used for loop in moving if loop not in placed):
            outside = placed
        else:
            outside = placed[: max((i for i, loop in enumerate(placed) if loop in used), default=-1) + 1]
        moved[operand] *= prod(trips[loop] for loop in outside if loop not in used)
    return accesses(nest, moved).total


def _totals(nest: LoopNest, tile: Mapping[str, int], depth: np.ndarray) -> np.ndarray:
    """Total accesses of every order at once; `depth` has the axes (orders, loops)."""
    by_loop = tile_counts(nest, tile)
    exact = np.int64 if nest.macs < 1 << 60 else object  # no operand moves more often than once per multiply-accumulate
    trips = np.array([by_loop[loop] for loop in nest.loops], dtype=exact)
    once = moved_once(nest, tile)
    outputs = once["outputs"]
    totals = np.full(len(depth), -outputs, dtype=exact)
    for operand in OPERANDS:
        used = np.array([loop in operand_loops(nest, operand) for loop in nest.loops])
        innermost = np.max(depth, axis=1, where=used & (trips > 1), initial=-1)
        repeats = np.where(~used & (depth < innermost[:, None]), trips, 1).prod(axis=1)
        totals += repeats * once[operand] * (2 if operand == "outputs" else 1)
    return totals


def _fitting_tiles(
    nest: LoopNest, memory: int, tiles: Mapping[str, Sequence[int]] | None
) -> Iterator[tuple[dict[str, int], int]]:
    """Every choice of tile sizes that fits the memory, with its footprint."""
    positive_int("memory", memory)
    given = {one_of("loop", loop, nest.loops): list(sizes) for loop, sizes in (tiles or {}).items()}
    choices = {x: given[x] if x in given else equal_parts(extent) for x, extent in nest.extents.items()}
    smallest = None
    for sizes in product(*choices.values()):
        tile = dict(zip(choices, sizes, strict=True))
        check_tile(nest, tile)
        footprint = tile_footprint(nest, tile)
        if footprint <= memory:
            yield tile, footprint
        smallest = footprint if smallest is None else min(smallest, footprint)
    if smallest is not None and smallest > memory:
        raise InvalidValue(
            f"the smallest tile takes {smallest} elements but memory holds {memory}; "
            f"give it {smallest} or more, or try smaller tiles"
        )


def _found(best: TiledOrder | None, evaluated: int) -> TiledOrder:
    if best is None:
        raise InvalidValue("tiles must give at least one size for each loop that it names")
    return TiledOrder(best.order, best.tile, best.accesses, best.footprint, evaluated)
