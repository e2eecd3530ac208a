"""Timelines of a tile pipeline: copy a tile in, compute on it, with one buffer, or with several and a copy engine.

With one buffer the copy of a tile waits until the tile before it is done. With two (double buffering) the copy engine
(DMA) fills one buffer while the processor works on the other, so in steady state a tile takes the longer of the two.
A job that is cut into pieces for this purpose pays a fixed cost for each piece; `best_pieces` balances the two.

>>> pipeline(tiles=8, copy_time=4, compute_time=10, buffers=1).steady_period
14.0
>>> pipeline(tiles=8, copy_time=4, compute_time=10, buffers=2).steady_period
10.0
>>> pipeline(tiles=8, copy_time=12, compute_time=10, buffers=2).bound
'copy'
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlsys.core.arguments import non_negative, one_of, positive_int
from mlsys.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Event:
    """One bar of a timeline.

    Attributes:
        lane: "copy" or "compute".
        tile: Which tile, from 0.
        buffer: Which buffer holds the tile, from 0.
        start: When it starts.
        end: When it ends, in the same unit.
    """

    lane: str
    tile: int
    buffer: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happens when, in the unit of the times that were given.

    Attributes:
        events: All copies and computations, in the order of their tiles.
        copy_time: Time to copy one tile in.
        compute_time: Time to compute on one tile.
        buffers: Tiles that the near memory holds.
    """

    events: tuple[Event, ...]
    copy_time: float
    compute_time: float
    buffers: int

    @property
    def total(self) -> float:
        """When the last computation ends."""
        return max(event.end for event in self.events)

    @property
    def steady_period(self) -> float:
        """Time from one tile to the next once the pipeline is full: the sum with one buffer, else the longer part."""
        if self.buffers == 1:
            return float(self.copy_time + self.compute_time)
        return float(max(self.copy_time, self.compute_time))

    @property
    def bound(self) -> str:
        """What sets the pace: "copy" or "compute" (on a tie), or "both" when they take turns in one buffer."""
        if self.buffers == 1:
            return "both"
        return "copy" if self.copy_time > self.compute_time else "compute"

    def busy(self, lane: str) -> float:
        """Share of the total time that a lane, "copy" or "compute", works; 0 if nothing takes any time."""
        one_of("lane", lane, ("copy", "compute"))
        worked = sum(event.end - event.start for event in self.events if event.lane == lane)
        return worked / self.total if self.total else 0.0


def pipeline(*, tiles: int, copy_time: float, compute_time: float, buffers: int = 2) -> Timeline:
    """Lay out the copies and computations of equal tiles; every event starts as soon as it may.

    A copy waits for the copy engine and for its buffer, which the tile `buffers` places before it must have left; a
    computation waits for its tile and for the processor. So with n tiles, c to copy, k to compute: one buffer takes
    n (c + k); two or more take c + (n - 1) max(c, k) + k.

    Args:
        tiles: Count of tiles n.
        copy_time: Time to copy one tile in, any unit.
        compute_time: Time to compute on one tile, the same unit.
        buffers: Tiles that the near memory holds; 1 is serial, 2 is double buffering. For equal tiles more change
            nothing.

    Raises:
        InvalidValue: Counts that are no positive integers, or times that are negative or not finite.

    >>> serial, double = (pipeline(tiles=3, copy_time=4, compute_time=10, buffers=b) for b in (1, 2))
    >>> serial.total, double.total
    (42.0, 34.0)
    """
    tiles, buffers = positive_int("tiles", tiles), positive_int("buffers", buffers)
    copy_time = float(non_negative("copy_time", copy_time))
    compute_time = float(non_negative("compute_time", compute_time))
    events: list[Event] = []
    copy_free = compute_free = 0.0
    buffer_free = [0.0] * buffers
    for tile in range(tiles):
        buffer = tile % buffers
        copied = Event("copy", tile, buffer, start := max(copy_free, buffer_free[buffer]), start + copy_time)
        computed = Event("compute", tile, buffer, start := max(compute_free, copied.end), start + compute_time)
        copy_free, compute_free = copied.end, computed.end
        buffer_free[buffer] = computed.end
        events += [copied, computed]
    return Timeline(tuple(events), copy_time, compute_time, buffers)


def overlap_gain(*, copy_time: float, compute_time: float) -> float:
    """Return the share of time that overlap saves in steady state: min(copy, compute) / (copy + compute).

    Raises:
        InvalidValue: Times that are negative, not finite, or both 0.

    >>> overlap_gain(copy_time=10, compute_time=30)
    0.25
    """
    total = non_negative("copy_time", copy_time) + non_negative("compute_time", compute_time)
    if total == 0:
        raise InvalidValue("copy_time and compute_time are both 0; one of them must take time")
    return min(copy_time, compute_time) / total


def time_in_pieces(stages: Sequence[float], *, pieces: int, cost: float = 0.0) -> float:
    """Compute the time of a job whose stages run side by side on equal pieces of it.

    Each stage, such as copying in, computing and copying out, has an engine of its own and does one piece after the
    other; a piece goes through the stages in turn. Every operation on a piece has a fixed cost L besides its share of
    the work. With the sum S of the s stages, the longest of them M, and n pieces:

    Formula: M + (S - M) / n + (n + s - 1) L.

    Args:
        stages: Time of each stage for the whole job, in the order in which a piece goes through them, any unit.
        pieces: Count of equal pieces n; with 1, the stages follow each other.
        cost: Fixed cost L of one operation on one piece, the same unit.

    Raises:
        InvalidValue: No stages, times that are negative or not finite, or a count that is no positive integer.

    >>> time_in_pieces((10, 30), pieces=1), time_in_pieces((10, 30), pieces=5)
    (40.0, 32.0)
    """
    pieces, cost = positive_int("pieces", pieces), float(non_negative("cost", cost))
    total, longest = _sum_and_longest(stages)
    return longest + (total - longest) / pieces + (pieces + len(stages) - 1) * cost


def best_pieces(stages: Sequence[float], *, cost: float) -> int:
    """Return the count of pieces with the least `time_in_pieces`.

    Formula: n = sqrt((S - M) / L), rounded to the better neighbor and at least 1: more pieces leave less of the shorter
    stages uncovered, and each of them costs L.

    Args:
        stages: Time of each stage for the whole job, any unit.
        cost: Fixed cost L of one operation on one piece, the same unit.

    Raises:
        InvalidValue: As for `time_in_pieces`, or a cost of 0, with which every further piece would help.

    >>> best_pieces((10, 30), cost=0.1)
    10
    """
    if non_negative("cost", cost) == 0:
        raise InvalidValue("cost is 0, so more pieces are always better; give the fixed cost of an operation")
    total, longest = _sum_and_longest(stages)
    below = max(1, math.floor(math.sqrt((total - longest) / cost)))
    return min(below, below + 1, key=lambda n: time_in_pieces(stages, pieces=n, cost=cost))


def _sum_and_longest(stages: Sequence[float]) -> tuple[float, float]:
    if not stages:
        raise InvalidValue("stages is empty; give the time of at least one stage")
    times = [float(non_negative(f"stage {number}", time)) for number, time in enumerate(stages, 1)]
    return sum(times), max(times)
