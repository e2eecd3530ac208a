"""Accesses of a hierarchy: against a walk of every unit, and against the counts of one tile level."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.dataflow import LoopNest, convolution, matmul, order_accesses
from mlsys.dataflow.levels import Level, LevelAccesses, level_accesses, steps
from mlsys.dataflow.tiles import OPERANDS, tiled_accesses
from mlsys.errors import InvalidValue

Walk = dict[tuple[str, str], list[int]]


def walked(nest: LoopNest, levels: Sequence[Level]) -> Walk:
    """Step through the loops; every unit keeps one tile of each operand and asks outside for what it lacks.

    Units of a level below the same outer unit that ask for the same element in the same step share the request.
    Unfinished sums leave when a unit's tile changes, and are added up on the way.
    """
    axes = [
        (place, name, count, side_by_side)
        for place, level in enumerate(levels)
        for side_by_side, part in ((False, level.loops), (True, level.spread))
        for name, count in part.items()
    ]
    counts: Walk = {(level.name, operand): [0, 0, 0] for level in levels for operand in level.keeps}
    for operand in OPERANDS:
        keepers = [place for place, level in enumerate(levels) if operand in level.keeps]
        for outer, inner in zip(keepers, [*keepers[1:], len(levels)], strict=True):
            arithmetic = inner == len(levels)
            outside = [axis for axis in axes if axis[0] < inner]
            held: dict[Any, Any] = {}
            begun: dict[str, set[Any]] = {"outer": set(), "inner": set()}
            in_time, side_by_side = ([axis for axis in outside if axis[3] is flag] for flag in (False, True))
            for when in product(*(range(axis[2]) for axis in in_time)):
                handed = set()
                for unit in product(*(range(axis[2]) for axis in side_by_side)):
                    tile = elements(nest, operand, axes, inner, in_time, when, side_by_side, unit)
                    if held.get(unit) == tile and not arithmetic:
                        continue
                    held[unit] = tile
                    above = tuple(index for axis, index in zip(side_by_side, unit, strict=True) if axis[0] < outer)
                    for element in tile:
                        handed.add((above, element))
                        if not arithmetic:
                            new = operand == "outputs" and (unit, element) not in begun["inner"]
                            begun["inner"].add((unit, element))
                            counts[levels[inner].name, operand][1] += not new
                for request in handed:
                    new = operand == "outputs" and request not in begun["outer"]
                    begun["outer"].add(request)
                    counts[levels[outer].name, operand][0] += not new
                    counts[levels[outer].name, operand][2] += operand == "outputs"
    return counts


def elements(
    nest: LoopNest, operand: str, axes: Any, inner: int, in_time: Any, when: Any, side_by_side: Any, unit: Any
) -> frozenset[tuple[int, ...]]:
    """Addresses of the tile that a unit needs at a time."""
    at = {id(axis): index for part, indices in ((in_time, when), (side_by_side, unit)) for axis, index in
          zip(part, indices, strict=True)}  # fmt: skip
    ranges: dict[str, list[int]] = {}
    for axis in axes:
        place, name, count, _ = axis
        picks = [at[id(axis)]] if place < inner else range(count)
        ranges[name] = [index * count + pick for index in ranges.get(name, [0]) for pick in picks]
    address = getattr(nest, operand)
    return frozenset(
        tuple(sum(factor * index.get(loop, 0) for loop, factor in coordinate.items()) for coordinate in address)
        for index in (dict(zip(ranges, chosen, strict=True)) for chosen in product(*ranges.values()))
    )


@st.composite
def mappings(draw: Any) -> tuple[LoopNest, list[Level]]:
    """A matrix product on three levels; the outer one keeps all, the others what is drawn."""
    sizes = dict.fromkeys("mnk", 1)
    levels = []
    for name in ("far", "middle", "near"):
        keeps = OPERANDS if name == "far" else tuple(x for x in OPERANDS if draw(st.booleans()))
        loops = {loop: draw(st.integers(1, 2)) for loop in draw(st.permutations("mnk"))}
        spread = {draw(st.sampled_from("mnk")): draw(st.integers(1, 2))}
        for part in (loops, spread):
            for loop, count in part.items():
                sizes[loop] *= count
        levels.append(Level(name, keeps, loops, spread))
    return matmul(**sizes), levels


@settings(max_examples=40, deadline=None)
@given(mappings())
def test_counts_are_those_of_walking_the_units(drawn: tuple[LoopNest, list[Level]]) -> None:
    nest, levels = drawn
    found = level_accesses(nest, levels)
    assert {key: [one.reads, one.fills, one.updates] for key, one in found.items()} == walked(nest, levels)
    assert steps(levels) * prod(count for level in levels for count in level.spread.values()) == nest.macs


@pytest.mark.parametrize("order", ["mnk", "knm", "mkn", "nkm"])
def test_one_tile_level_moves_what_a_tiled_order_moves(order: str) -> None:
    nest, tile = matmul(64, 48, 32), {"m": 16, "n": 8, "k": 4}
    outside = {loop: nest.extents[loop] // tile[loop] for loop in order}
    found = level_accesses(nest, [Level("far", OPERANDS, outside), Level("near", OPERANDS, tile)])
    moved = tiled_accesses(nest, order, tile)
    assert found["far", "weights"].reads == found["near", "weights"].fills == moved.weights
    assert found["far", "inputs"].reads == found["near", "inputs"].fills == moved.inputs
    assert found["far", "outputs"] == LevelAccesses(moved.sum_reads, 0, moved.sum_writes)
    assert found["near", "outputs"].fills == moved.sum_reads


@pytest.mark.parametrize("order", ["mrspq", "pqmrs", "rpsqm"])
def test_a_level_with_one_number_of_each_operand_moves_what_an_order_moves(order: str) -> None:
    nest = convolution(filters=16, kernel=3, height=8, width=8)
    levels = [Level("far", OPERANDS, {loop: nest.extents[loop] for loop in order}), Level("near", OPERANDS)]
    found, moved = level_accesses(nest, levels), order_accesses(nest, order)
    assert found["far", "weights"].reads == moved.weights
    assert found["far", "inputs"].reads == moved.inputs
    assert (found["far", "outputs"].updates, found["far", "outputs"].reads) == (moved.sum_writes, moved.sum_reads)


def test_only_the_loop_next_to_a_level_slides_its_tile() -> None:
    """Three rows of eight are needed at a time. With another loop between, all three come again."""
    nest = convolution(filters=4, kernel=(3, 1), height=8, width=1)
    near = Level("near", OPERANDS, {"r": 3})
    slid = level_accesses(nest, [Level("far", OPERANDS, {"m": 4, "p": 6}), near])
    whole = level_accesses(nest, [Level("far", OPERANDS, {"p": 6, "m": 4}), near])
    assert slid["near", "inputs"].fills == 4 * 8
    assert whole["near", "inputs"].fills == 6 * 3


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([Level("a", ("weights",))], "outermost level must keep weights, inputs, outputs"),
        ([Level("a", OPERANDS), Level("a", ())], "name of its own, got a, a"),
        ([Level("a", OPERANDS, {"m": 4, "n": 8}), Level("b", ("sums",))], "operand"),
        ([Level("a", OPERANDS, {"x": 4})], "loop"),
        ([Level("a", OPERANDS, {"m": 0})], "loop m of a must be a positive integer, got 0"),
        ([Level("a", OPERANDS, {"m": 4, "n": 8})], r"loop k multiply to 1 \(none\), and it has 2 iterations"),
        ([Level("a", OPERANDS, {"m": 3, "n": 8, "k": 2})], r"loop m multiply to 3 \(3\), and it has 4 iterations"),
        (
            [Level("a", OPERANDS, {"m": 4, "n": 8, "k": 2}, {"n": 2})],
            r"loop n multiply to 16 \(8 x 2\), and it has 8 iterations; give its levels counts whose product is 8",
        ),
    ],
)
def test_a_mapping_that_is_not_the_nests_is_refused(levels: list[Level], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        level_accesses(matmul(4, 8, 2), levels)
