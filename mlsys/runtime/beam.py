"""A beam search for plans: many half-built stacks of buffers grow side by side, and the most promising are kept.

The memory is seen as a plane: time runs to the right, cut into sections, and offsets run upward. A half-built plan has
a floor, the height that is taken in each section. A buffer is placed on the floor: its offset is the highest floor
among its sections, and its top is their new floor. What lies below is never used again, so every plan can be built in
this way, from low offsets to high ones.

*Which buffers may be next.* Take the unplaced buffer whose top would be lowest. In some best plan, the next buffer in
its sections is either that one or one that would start below its top (Giffler and Thompson's rule for job shops, where
sections are machines, sizes are durations, and offsets are starting times).

*When a plan is given up.* Nothing unplaced in a section can start lower than the lowest offset that these buffers can
still have. If that offset plus their sizes exceeds the height that is aimed at, the plan cannot be completed.

*What is promising.* A section with little slack (height aimed at, less floor, less what is still to come) is a risk, so
a plan costs the sum of weight / (slack + softness) over its sections, plus a charge for what is not placed yet.

All numbers are integers, so every machine finds the same plans.

Sources: B. Giffler and G. L. Thompson, Algorithms for solving production-scheduling problems, Operations Research 8(4),
1960. M. D. Moffitt, MiniMalloc, ASPLOS 2023, which searches stacks of this kind depth first and calls them canonical.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsys.runtime.buffers import Buffer

Ints = NDArray[np.signedinteger[Any]]  # 16, 32 or 64 bits
Flags = NDArray[np.bool_]

ONE = 2**16
"""What costs are counted in."""

CALL = 1000
"""Numbers that could be looked at in the time of one call of numpy; each step makes a few for each section."""

PRICE_BITS = 14
"""Slacks are priced to so many binary digits of the height."""


@dataclass(frozen=True)
class Aim:
    """What one run of the search aims at.

    Attributes:
        height: Largest offset plus size that a plan may have.
        width: How many half-built plans are kept.
        softness: Thousandths of the height that are added to each slack; small values fear tight sections more.
        eagerness: Charge, in tenths, for each height's worth that a section has still to place.
        weights: For each section, how much it counts, from 1 to 2^10.
    """

    height: int
    width: int
    softness: int
    eagerness: int
    weights: Ints


@dataclass(frozen=True)
class Outcome:
    """How one run ended.

    Attributes:
        offsets: A plan of at most the height that was aimed at, or None.
        work: Effort that the run cost, in numbers looked at.
        blamed: Without a plan: for each section, the share in thousandths of the last half-built plans that had
            outgrown the height there.
    """

    offsets: list[int] | None
    work: int
    blamed: Ints


class Stacks:
    """A problem, prepared for runs of the search.

    Arrays of a run have one column for each half-built plan, so that a step of all plans is a few passes over rows.

    Args:
        buffers: Buffers with lifetimes in sections from 0, as `live_sections` gives them.
    """

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        lower, upper, size = (np.array(column, dtype=np.int64) for column in zip(*buffers, strict=True))
        self.count, self.sections = len(buffers), int(upper.max())
        self.unit = int(np.gcd.reduce(size))  # small numbers are faster
        self.size: Ints = size // self.unit
        section = np.arange(self.sections)
        self.lower: Ints = lower
        self.length: Ints = upper - lower
        self.covers: Flags = (lower <= section[:, None]) & (section[:, None] < upper)
        self.meets: Flags = (lower[:, None] < upper) & (lower < upper[:, None])
        self.live: Ints = (self.covers * self.size).sum(axis=1)
        # A maximum over any range of sections is the larger of two maxima over 2^k sections.
        doubling = np.array([int(length).bit_length() - 1 for length in upper - lower])
        self.doublings = int(doubling.max())
        self.left_half = doubling * self.sections + lower
        self.right_half = doubling * self.sections + upper - (1 << doubling)
        self.in_section = [np.flatnonzero(row) for row in self.covers]
        self.step_work = self.count + int(self.covers.sum())
        draw = Random(0)
        self.marks = np.array([draw.getrandbits(63) for _ in buffers], dtype=np.int64)

    def run(self, aim: Aim) -> Outcome:
        """Build plans up to `aim.height` side by side, and return the first that is complete."""
        height = aim.height // self.unit
        kinds: tuple[type[np.signedinteger[Any]], ...] = (np.int16, np.int32, np.int64)
        kind = next(kind for kind in kinds if 4 * height <= np.iinfo(kind).max)
        sizes: Ints = self.size.astype(kind)
        never = 2 * height + 1
        floor: Ints = np.zeros((self.sections, 1), dtype=kind)
        coming: Ints = self.live.astype(kind)[:, None]
        placed = np.zeros((self.count, 1), dtype=bool)
        marks = np.zeros(1, dtype=np.int64)
        trail: list[tuple[Ints, Ints, Ints]] = []
        work = 0
        for _ in range(self.count):
            work += floor.shape[1] * self.step_work + CALL * self.sections
            offsets = self._offsets(floor, placed, never)
            floor = np.maximum(floor, self._lowest_starts(offsets, never))
            over = floor + coming > height
            alive = np.flatnonzero(~over.any(axis=0))
            if not len(alive):
                return Outcome(None, work, _shares(over))
            buffer, plan = self._choices(offsets[:, alive], sizes)
            plan = alive[plan]
            offset = offsets[buffer, plan]
            blamed, cost, looked = self._judge(aim, height, floor, coming, plan, buffer, offset + sizes[buffer])
            work += looked
            fits = np.flatnonzero(cost >= 0)
            if not len(fits):
                return Outcome(None, work, blamed * 1000 // len(plan))
            made = marks[plan[fits]] ^ self.marks[buffer[fits]]
            order = np.argsort(cost[fits], kind="stable")
            _, first = np.unique(made[order], return_index=True)  # plans that have placed the same buffers
            best = order[np.sort(first)[: aim.width]]
            plan, buffer, offset = (found[fits[best]] for found in (plan, buffer, offset))
            trail.append((plan, buffer, offset))
            covered = self.covers[:, buffer]
            floor = np.where(covered, offset + sizes[buffer], floor[:, plan])
            coming = coming[:, plan] - covered * sizes[buffer]
            placed, marks = placed[:, plan], made[best]
            placed[buffer, np.arange(len(plan))] = True
        return Outcome(self._follow(trail), work, np.zeros(self.sections, dtype=np.int64))

    def _judge(
        self, aim: Aim, height: int, floor: Ints, coming: Ints, plan: Ints, buffer: Ints, top: Ints
    ) -> tuple[Ints, Ints, int]:
        """Return what speaks against each choice, -1 if it cannot lead to a plan, and the work that this was.

        The cost of a choice is that of its plan, changed in the sections of its buffer. The first result counts, for
        each section, the choices that outgrow the height there.
        """
        coarse = max(0, height.bit_length() - PRICE_BITS)
        prices = _prices(height >> coarse, aim.softness)
        now = prices[(height - floor - coming) >> coarse] * aim.weights[:, None]
        length = self.length[buffer]
        starts = np.cumsum(length) - length
        section = np.arange(int(length.sum())) - np.repeat(starts - self.lower[buffer], length)
        where = (section, np.repeat(plan, length))
        slack = np.repeat(height - top.astype(np.int64) + self.size[buffer], length) - coming[where]
        change = prices[np.maximum(slack, 0) >> coarse] * aim.weights[section] - now[where]
        risk = now.sum(axis=0)[plan] + np.add.reduceat(change, starts)
        left = (coming >> coarse).sum(axis=0, dtype=np.int64)[plan] - (self.size[buffer] >> coarse) * length
        mean_weight = int(aim.weights.sum()) // self.sections
        cost = risk + left * ONE // (height >> coarse) * aim.eagerness * mean_weight // 10
        cost[np.minimum.reduceat(slack, starts) < 0] = -1
        over = np.bincount(section[slack < 0], minlength=self.sections)
        return over, cost, 4 * len(section) + floor.size

    def _offsets(self, floor: Ints, placed: Flags, never: int) -> Ints:
        """Offset of each buffer in each plan if it came next; `never` if it is placed."""
        levels = [floor]
        for doubling in range(self.doublings):
            longer, step = levels[-1].copy(), 1 << doubling
            np.maximum(longer[:-step], levels[-1][step:], out=longer[:-step])
            levels.append(longer)
        highest = np.concatenate(levels)
        found: Ints = np.maximum(highest[self.left_half], highest[self.right_half])
        found[placed] = never
        return found

    def _lowest_starts(self, offsets: Ints, never: int) -> Ints:
        """Lowest offset that an unplaced buffer of each section can have; 0 where none is left."""
        lowest: Ints = np.stack([offsets[members].min(axis=0) for members in self.in_section])
        lowest[lowest == never] = 0
        return lowest

    def _choices(self, offsets: Ints, sizes: Ints) -> tuple[Ints, Ints]:
        """Buffers that may come next, and the plans in which they may."""
        tops = offsets + sizes[:, None]
        first = tops.argmin(axis=0)
        buffer, plan = np.nonzero((offsets < tops.min(axis=0)) & self.meets[:, first])
        return buffer, plan

    def _follow(self, trail: Sequence[tuple[Ints, Ints, Ints]]) -> list[int]:
        """Walk back from the best plan at the end, and read the offsets off."""
        offsets, column = [0] * self.count, 0
        for came_from, buffer, offset in reversed(trail):
            offsets[int(buffer[column])] = int(offset[column]) * self.unit
            column = int(came_from[column])
        return offsets


def _prices(height: int, softness: int) -> Ints:
    """Cost of each slack from 0 to the height."""
    prices: Ints = ONE * height // (np.arange(height + 1) + 1 + height * softness // 1000)
    return prices


def _shares(over: Flags) -> Ints:
    """How many thousandths of the plans have outgrown the height in each section."""
    shares: Ints = over.sum(axis=1) * 1000 // over.shape[1]
    return shares
