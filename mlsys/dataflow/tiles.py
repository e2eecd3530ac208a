"""A loop nest cut into tiles: how much room one tile of each operand takes, and how much an order of tiles moves."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import ceil, prod

from mlsys.core.arguments import int_at_most
from mlsys.dataflow.loop_nest import Accesses, Address, LoopNest, coordinate_values
from mlsys.errors import InvalidValue

OPERANDS = ("weights", "inputs", "outputs")
"""Operands of a loop nest, as its fields are called."""


def tile_footprint(nest: LoopNest, tile: Mapping[str, int]) -> int:
    """Return the elements of one tile of weights, inputs (with the rim that a kernel needs) and outputs together.

    >>> from mlsys.dataflow.loop_nest import matmul
    >>> tile_footprint(matmul(64, 64, 64), {"m": 16, "n": 16, "k": 8})
    512
    """
    return sum(
        prod(coordinate_values(coordinate, tile) for coordinate in getattr(nest, operand)) for operand in OPERANDS
    )


def tiled_accesses(nest: LoopNest, order: Sequence[str], tile: Mapping[str, int]) -> Accesses:
    """Count the accesses of one order of the loops over tiles.

    A tile is fetched when the index of a loop that its operand depends on changes. So the whole operand, tile by tile,
    is fetched once per iteration of every other loop that stands outside the innermost loop it depends on. Tiles at
    an edge have their real, smaller size; input tiles overlap by the rim of the kernel.

    Args:
        nest: The loop nest.
        order: Loop names, outermost first.
        tile: Iterations of each loop inside a tile, from 1 to the loop's extent.

    Raises:
        InvalidValue: An order that does not name each loop once, or a tile that does not fit its loop.

    >>> from mlsys.dataflow.loop_nest import matmul
    >>> tiled_accesses(matmul(64, 64, 64), "mnk", {"m": 16, "n": 16, "k": 64})
    Accesses(weights=16384, inputs=4096, sum_writes=4096, sum_reads=0)
    """
    if sorted(order) != sorted(nest.loops):
        raise InvalidValue(f"order must name each of the loops {', '.join(nest.loops)} once, got {', '.join(order)}")
    check_tile(nest, tile)
    trips, moved = tile_counts(nest, tile), moved_once(nest, tile)
    for operand in OPERANDS:
        used = [depth for depth, loop in enumerate(order) if loop in operand_loops(nest, operand) and trips[loop] > 1]
        outside = order[: max(used, default=-1) + 1]
        moved[operand] *= prod(trips[loop] for loop in outside if loop not in operand_loops(nest, operand))
    return accesses(nest, moved)


def moved_once(nest: LoopNest, tile: Mapping[str, int]) -> dict[str, int]:
    """Elements of all tiles of each operand, rims of input tiles counted in every tile that has them."""
    return {
        operand: prod(_over_tiles(coordinate, nest, tile) for coordinate in getattr(nest, operand))
        for operand in OPERANDS
    }


def _over_tiles(coordinate: Mapping[str, int], nest: LoopNest, tile: Mapping[str, int]) -> int:
    """Values of one coordinate in a tile, added up over all tiles of its loops."""
    loops = [loop for loop in coordinate if loop in nest.extents]
    total = 0
    for sizes in product(*(_tile_sizes(nest.extents[loop], tile[loop]) for loop in loops)):
        here = {loop: size for loop, (size, _) in zip(loops, sizes, strict=True)}
        total += coordinate_values(coordinate, here) * prod(count for _, count in sizes)
    return total


def _tile_sizes(extent: int, tile: int) -> list[tuple[int, int]]:
    """The sizes of a loop's tiles with their counts: whole ones, and the rest at the edge."""
    whole, rest = divmod(extent, tile)
    return [(tile, whole)] + ([(rest, 1)] if rest else [])


def accesses(nest: LoopNest, moved: Mapping[str, int]) -> Accesses:
    """The accesses when `moved` elements of each operand cross; a sum's first visit writes without reading."""
    outputs = prod(nest.extents.get(loop, 1) for coordinate in nest.outputs for loop in coordinate)
    return Accesses(moved["weights"], moved["inputs"], moved["outputs"], moved["outputs"] - outputs)


def operand_loops(nest: LoopNest, operand: str) -> set[str]:
    """The loops that an operand's address depends on.

    >>> from mlsys.dataflow.loop_nest import matmul
    >>> sorted(operand_loops(matmul(2, 3, 4), "weights"))
    ['k', 'n']
    """
    address: Address = getattr(nest, operand)
    return {loop for coordinate in address for loop in coordinate}


def tile_counts(nest: LoopNest, tile: Mapping[str, int]) -> dict[str, int]:
    """How many tiles each loop is cut into: ceil(extent / tile).

    >>> from mlsys.dataflow.loop_nest import matmul
    >>> tile_counts(matmul(10, 8, 8), {"m": 4, "n": 8, "k": 2})
    {'m': 3, 'n': 1, 'k': 4}
    """
    return {loop: ceil(extent / tile[loop]) for loop, extent in nest.extents.items()}


def check_tile(nest: LoopNest, tile: Mapping[str, int]) -> None:
    """Raise InvalidValue unless `tile` gives each loop a size from 1 to its extent."""
    if set(tile) != set(nest.loops):
        raise InvalidValue(
            f"tile must give a size for each of the loops {', '.join(nest.loops)}, got {', '.join(tile)}"
        )
    for loop, size in tile.items():
        int_at_most(f"tile of loop {loop}", size, nest.extents[loop], "the loop has no more iterations")
