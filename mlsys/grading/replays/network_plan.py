"""Check a plan for a network on a systolic array: a dataflow and tile sizes for each layer, and how long they take.

A layer is a matrix product C[m, n] = A[m, k] B[k, n]. Its cycles are those of the array, `mlsys.systolic.gemm_cycles`,
and after them those of its transfers: the elements that cross between DRAM and the on-chip memory,
`mlsys.dataflow.tiles.tiled_accesses`, at `bandwidth` elements per cycle. The dataflow sets the order of the loops over
tiles, and with it what stays on the chip. If two layers that follow each other have different dataflows, the result of
the first is read from DRAM and written back in another order.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mlsys.dataflow.loop_nest import matmul
from mlsys.dataflow.tiles import tiled_accesses
from mlsys.grading.checks.assertions import shown
from mlsys.grading.verdicts import WrongAnswer
from mlsys.systolic import DATAFLOWS, gemm_cycles
from mlsys.traffic.matmul import equal_parts

MAX_CYCLES_RATIO = 1.05
"""Largest ratio of the cycles of a plan to those of the best one."""
ORDERS = {"ws": "nkm", "os": "mnk", "is": "mkn"}
"""Loops over tiles, outermost first: the operand that stays depends on the two outer loops."""

_OPERANDS = (("m", "k"), ("k", "n"), ("m", "n"))
"""A, B and C by the loops that they depend on."""

Layer = tuple[int, int, int]
Tile = tuple[int, int, int]


def assert_plan(plan: object, layers: Sequence[Layer], chip: Mapping[str, int], *, name: str = "the network") -> None:
    """Raise `WrongAnswer` unless a plan fits the chip and takes at most `MAX_CYCLES_RATIO` times the least cycles.

    Args:
        plan: what the student's function returned: for each layer (dataflow, (tile_m, tile_n, tile_k)).
        layers: for each layer, (m, n, k).
        chip: "rows" and "cols" of the array, "memory" in elements, "bandwidth" in elements per cycle.
        name: what to call the network in messages.
    """
    if not isinstance(plan, list | tuple) or len(plan) != len(layers):
        raise WrongAnswer(f"{name}: return a list with one (dataflow, tile) for each of {len(layers)} layers")
    steps = enumerate(zip(plan, layers, strict=True))
    checked = [_checked(step, layer, chip, f"{name}, layer {i}") for i, (step, layer) in steps]
    taken = plan_cycles(checked, layers, chip)
    least = best_cycles(tuple(layers), tuple(sorted(chip.items())))
    if taken > MAX_CYCLES_RATIO * least:
        changes = sum(first[0] != second[0] for first, second in pairwise(checked))
        rearranging = sum(
            rearranging_cycles(layer, chip)
            for layer, first, second in zip(layers, checked, checked[1:], strict=False)
            if first[0] != second[0]
        )
        raise WrongAnswer(
            f"{name}: the plan takes {taken / least:.2f} times the cycles of the best one; the limit is "
            f"{MAX_CYCLES_RATIO} times. It changes the dataflow {changes} times, which takes {rearranging / taken:.0%} "
            "of its cycles."
        )


def plan_cycles(plan: Sequence[tuple[str, Tile]], layers: Sequence[Layer], chip: Mapping[str, int]) -> int:
    """Return the cycles of a plan that fits the chip; the arguments are those of `assert_plan`."""
    total = 0
    for (dataflow, tile), layer in zip(plan, layers, strict=True):
        moved = tiled_accesses(matmul(*layer), ORDERS[dataflow], dict(zip("mnk", tile, strict=True))).total
        total += gemm_cycles(*layer, rows=chip["rows"], cols=chip["cols"], dataflow=dataflow)
        total += -(-moved // chip["bandwidth"])
    for layer, (first, second) in zip(layers, pairwise(plan), strict=False):
        if first[0] != second[0]:
            total += rearranging_cycles(layer, chip)
    return total


def rearranging_cycles(layer: Layer, chip: Mapping[str, int]) -> int:
    """Return the cycles in which the result of a layer is read and written once more."""
    m, n, _ = layer
    return -(-2 * m * n // chip["bandwidth"])


@lru_cache(maxsize=1000)  # a class is tested with the same networks, and the visible ones come in every run
def best_cycles(layers: tuple[Layer, ...], chip: tuple[tuple[str, int], ...]) -> int:
    """Return the least cycles of all plans.

    Every plan for the layers up to one ends in one of three dataflows. Of those that end in the same one, only the
    fastest can be the beginning of the best plan, for what follows costs the same after each of them.

    Args:
        layers: for each layer, (m, n, k).
        chip: the items of the dict that `assert_plan` is given.
    """
    sizes = dict(chip)
    ending = dict.fromkeys(DATAFLOWS, 0)
    rearranging = 0
    for layer in layers:
        before = min(ending.values()) + rearranging
        moved = _least_moved(layer, sizes["memory"])
        ending = {
            dataflow: min(ending[dataflow], before)
            + gemm_cycles(*layer, rows=sizes["rows"], cols=sizes["cols"], dataflow=dataflow)
            + -(-moved[dataflow] // sizes["bandwidth"])
            for dataflow in DATAFLOWS
        }
        rearranging = rearranging_cycles(layer, sizes)
    return min(ending.values())


@lru_cache(maxsize=1000)
def _least_moved(layer: Layer, memory: int) -> dict[str, int]:
    """Return, for each dataflow, the least elements that cross with tiles that fit, of all equal parts of the loops.

    No other tile moves less: it makes as many parts as the smallest one that makes so many, and takes more memory.
    """
    extents = dict(zip("mnk", layer, strict=True))
    sizes = [np.array(equal_parts(extent), dtype=np.int64) for extent in layer]
    tile = dict(zip("mnk", np.meshgrid(*sizes, indexing="ij", sparse=True), strict=True))
    fits = tile["m"] * tile["k"] + tile["k"] * tile["n"] + tile["m"] * tile["n"] <= memory
    trips = {loop: -(-extents[loop] // tile[loop]) for loop in "mnk"}
    least = {}
    for dataflow, order in ORDERS.items():
        # The first visit of a sum reads nothing.
        moved = np.full((1, 1, 1), -extents["m"] * extents["n"], dtype=np.int64)
        for operand, times in zip(_OPERANDS, (1, 1, 2), strict=True):
            repeats: NDArray[np.int64] = np.ones((1, 1, 1), dtype=np.int64)
            inner_moves: NDArray[np.bool_] = np.zeros((1, 1, 1), dtype=np.bool_)
            for loop in reversed(order):
                if loop in operand:
                    inner_moves = inner_moves | (trips[loop] > 1)
                else:
                    repeats = repeats * np.where(inner_moves, trips[loop], 1)
            moved = moved + times * extents[operand[0]] * extents[operand[1]] * repeats
        least[dataflow] = int(np.where(fits, moved, np.iinfo(np.int64).max).min())
    return least


def _checked(step: object, layer: Layer, chip: Mapping[str, int], what: str) -> tuple[str, Tile]:
    """Return one step of a plan as it must be, or raise `WrongAnswer`."""
    if not isinstance(step, list | tuple) or len(step) != 2:
        raise WrongAnswer(f"{what}: give (dataflow, (tile_m, tile_n, tile_k)), got {shown(step)}")
    dataflow, tile = step
    if type(dataflow) is not str or dataflow not in DATAFLOWS:
        raise WrongAnswer(f"{what}: the dataflow must be one of {', '.join(DATAFLOWS)}, got {shown(dataflow)}")
    if not isinstance(tile, list | tuple) or len(tile) != 3 or any(type(size) is not int for size in tile):
        raise WrongAnswer(f"{what}: the tile must be three ints (tile_m, tile_n, tile_k), got {shown(tile)}")
    for loop, size, extent in zip("mnk", tile, layer, strict=True):
        if not 1 <= size <= extent:
            raise WrongAnswer(f"{what}: tile_{loop} must be from 1 to {loop} = {extent:,}, got {shown(size)}")
    tile_m, tile_n, tile_k = tile
    needed = tile_m * tile_k + tile_k * tile_n + tile_m * tile_n
    if needed > chip["memory"]:
        raise WrongAnswer(
            f"{what}: tiles of A, B and C together have {needed:,} elements, and the memory holds {chip['memory']:,}"
        )
    return dataflow, (tile_m, tile_n, tile_k)
