"""Accesses at every level of a memory hierarchy, for a mapping with loops in time and side by side.

A mapping lists the levels from the far memory to the arithmetic. A level keeps some operands, while the others pass
through. Its loops step one after the other, and the loops that it spreads run side by side on the units inside.

>>> from mlsys.dataflow.loop_nest import matmul
>>> far = Level("memory", OPERANDS, loops={"m": 4, "n": 4, "k": 4}, spread={"n": 16})
>>> near = Level("registers", OPERANDS, loops={"m": 16, "k": 16})
>>> counts = level_accesses(matmul(64, 64, 64), [far, near])
>>> counts["memory", "inputs"].reads, counts["registers", "inputs"].fills  # one read serves 16 units
(16384, 262144)
>>> steps([far, near])
16384

Timeloop (Parashar et al., ISPASS 2019) describes mappings in this way. With the rules here, the counts are those of
its published results, which `mlsys.dataflow.other_tools` has. Every loop must be cut into equal parts.

- A unit fetches a tile when a loop outside has changed it. If the loop next to the level slides the tile, so that two
  tiles in a row overlap, only the new part is fetched. Tiles that follow each other in another way are fetched whole.
- Units that need the same tile share one read of it. Tiles of neighbors that overlap only in part are not shared.
- Units that work on the same sums add them up on the way out. A sum's first visit reads nothing.
- The arithmetic keeps nothing: it reads its operands at every step.
- Nothing waits: the steps are those of the loops in time.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from mlsys.core.arguments import one_of, positive_int
from mlsys.dataflow.loop_nest import Address, LoopNest
from mlsys.dataflow.tiles import OPERANDS, operand_loops
from mlsys.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Level:
    """A memory in a mapping.

    Attributes:
        name: Its name.
        keeps: Operands that it keeps: "weights", "inputs", "outputs".
        loops: Iterations of the loops that step at this level, outermost first.
        spread: Iterations of the loops that run side by side on the units inside.
    """

    name: str
    keeps: tuple[str, ...]
    loops: Mapping[str, int] = field(default_factory=dict)
    spread: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LevelAccesses:
    """Elements of one operand that all units of a level read and write.

    The read with which a level hands a sum outward is not counted here: it is an update of the next level outside.

    Attributes:
        reads: Elements read for the levels inside; of outputs, only unfinished sums.
        fills: Elements that come from the level outside; of outputs, only unfinished sums.
        updates: Sums that come from inside, finished or not; 0 for weights and inputs.
    """

    reads: int
    fills: int
    updates: int


@dataclass(frozen=True, slots=True)
class _Loop:
    """One loop of a mapping: its place, and the step of the nest's index when it advances by one."""

    level: int
    name: str
    count: int
    stride: int
    side_by_side: bool


def steps(levels: Sequence[Level]) -> int:
    """Return the steps of a mapping, the product of all loops in time; cycles, if nothing waits for data."""
    return prod(count for level in levels for count in level.loops.values())


def level_accesses(nest: LoopNest, levels: Sequence[Level]) -> dict[tuple[str, str], LevelAccesses]:
    """Count what every level reads and writes of each operand that it keeps, by (name of the level, operand).

    Let a unit of an inner level hold a tile of t elements, and let T be the loops in time outside that level without
    those at their inside end that do not change the tile. The unit fetches prod(T) t elements. If T ends with the loop
    next to the level, the last factor and t are replaced by the count of different elements that this loop touches.

    Args:
        nest: The loop nest.
        levels: The levels, from the far memory to the arithmetic.

    Raises:
        InvalidValue: Levels whose loops do not multiply to the nest's, an unknown operand or loop, a name that occurs
            twice, or an outermost level that does not keep all operands.

    >>> from mlsys.dataflow.loop_nest import convolution
    >>> row = convolution(filters=1, kernel=(3, 1), height=18, width=1)
    >>> line = [Level("memory", OPERANDS, {"p": 16}), Level("buffer", OPERANDS, {"r": 3})]
    >>> level_accesses(row, line)["buffer", "inputs"].fills  # each input once, though the tiles overlap
    18
    """
    loops = _checked(nest, levels)
    counts = {}
    for operand in OPERANDS:
        keepers = [place for place, level in enumerate(levels) if operand in level.keeps]
        fills = {keepers[0]: 0}
        for outer, inner in pairwise([*keepers, len(levels)]):
            by_a_unit = _fetched_by_a_unit(nest, operand, loops, inner) if inner < len(levels) else steps(levels)
            crossed = by_a_unit * _units(loops, 0, inner)
            handed = crossed // _units(loops, outer, inner, without=operand_loops(nest, operand))
            reads, updates, fills[inner] = handed, 0, crossed
            if operand == "outputs":
                updates = handed
                reads -= _sums_begun(nest, loops, outer)
                fills[inner] -= _sums_begun(nest, loops, inner)
            counts[levels[outer].name, operand] = LevelAccesses(reads, fills[outer], updates)
    return {(level.name, operand): counts[level.name, operand] for level in levels for operand in level.keeps}


def _fetched_by_a_unit(nest: LoopNest, operand: str, loops: Sequence[_Loop], level: int) -> int:
    """Elements that one unit of a level gets."""
    address, used = getattr(nest, operand), operand_loops(nest, operand)
    inside = [loop for loop in loops if loop.level >= level]
    outside = [loop for loop in loops if loop.level < level and not loop.side_by_side and loop.count > 1]
    if outside and outside[-1].name in used:
        return prod(loop.count for loop in outside[:-1]) * _distinct(address, [outside[-1], *inside])
    while outside and outside[-1].name not in used:
        outside.pop()
    return prod(loop.count for loop in outside) * _distinct(address, inside)


def _distinct(address: Address, loops: Sequence[_Loop]) -> int:
    """Different addresses while `loops` run and the others stand still."""
    count = 1
    for coordinate in address:
        values = {0}
        for loop in loops:
            if loop.name in coordinate:
                step = coordinate[loop.name] * loop.stride
                values = {value + step * index for value in values for index in range(loop.count)}
        count *= len(values)
    return count


def _units(loops: Sequence[_Loop], outer: int, inner: int, without: Collection[str] = ()) -> int:
    """Units into which the levels from `outer` to before `inner` divide, by loops that are not in `without`."""
    return prod(
        loop.count for loop in loops if loop.side_by_side and outer <= loop.level < inner and loop.name not in without
    )


def _sums_begun(nest: LoopNest, loops: Sequence[_Loop], level: int) -> int:
    """Sums that all units of a level begin; units that work on the same output have a sum of it each."""
    outputs = operand_loops(nest, "outputs")
    return prod(nest.extents.get(loop, 1) for loop in outputs) * _units(loops, 0, level, without=outputs)


def _checked(nest: LoopNest, levels: Sequence[Level]) -> list[_Loop]:
    """All loops of a mapping, outermost first, with their strides."""
    names = [level.name for level in levels]
    if len(set(names)) < len(names):
        raise InvalidValue(f"each level needs a name of its own, got {', '.join(names)}")
    if not levels or set(levels[0].keeps) != set(OPERANDS):
        raise InvalidValue(f"the outermost level must keep {', '.join(OPERANDS)}, or the data are nowhere")
    left = dict(nest.extents)
    loops = []
    for place, level in enumerate(levels):
        for operand in level.keeps:
            one_of("operand", operand, OPERANDS)
        for side_by_side, part in ((False, level.loops), (True, level.spread)):
            for name, count in part.items():
                one_of("loop", name, nest.loops)
                left[name], rest = divmod(left[name], positive_int(f"loop {name} of {level.name}", count))
                if rest or not left[name]:
                    raise _not_the_nest(nest, levels, name)
                loops.append(_Loop(place, name, count, left[name], side_by_side))
    for name, factor in left.items():
        if factor > 1:
            raise _not_the_nest(nest, levels, name)
    return loops


def _not_the_nest(nest: LoopNest, levels: Sequence[Level], loop: str) -> InvalidValue:
    counts = [part[loop] for level in levels for part in (level.loops, level.spread) if loop in part]
    return InvalidValue(
        f"the counts of loop {loop} multiply to {prod(counts)} ({' x '.join(map(str, counts)) or 'none'}), and it has "
        f"{nest.extents[loop]} iterations; give its levels counts whose product is {nest.extents[loop]}"
    )
