"""Buffers with lifetimes: what a memory planner is given, checked, and cut into parts that do not touch each other."""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from mlsys.errors import InvalidValue

MOST_BYTES = 2**60
"""Largest sum of all sizes, in bytes; offsets are then safe in 64-bit integers."""


class Buffer(NamedTuple):
    """One buffer of a plan.

    Attributes:
        lower: First step at which the buffer is live.
        upper: First step at which it is live no more.
        size: Its size in bytes, or in any unit that all buffers share.
    """

    lower: int
    upper: int
    size: int


def read_buffers(buffers: Iterable[Sequence[int]]) -> list[Buffer]:
    """Check triples (lower, upper, size) and return them as buffers.

    Raises:
        InvalidValue: Naming the buffer by its place: no triple, no integers, a lifetime that ends before it has
            started, a negative size, or sizes that sum to more than `MOST_BYTES`.

    >>> read_buffers([(0, 2, 10), (3, 3, 10)])
    Traceback (most recent call last):
    ...
    mlsys.errors.InvalidValue: buffer 1 is live from 3 up to 3, which is no time at all; upper must exceed lower
    """
    found = [_read(place, given) for place, given in enumerate(buffers)]
    total = sum(buffer.size for buffer in found)
    if total > MOST_BYTES:
        raise InvalidValue(f"the sizes sum to {total}, more than {MOST_BYTES}; give them in a larger unit")
    return found


def _read(place: int, given: Any) -> Buffer:
    try:
        lower, upper, size = given
    except (TypeError, ValueError):
        raise InvalidValue(f"buffer {place} is {given!r}; give (lower, upper, size)") from None
    numbers = []
    for name, value in (("lower", lower), ("upper", upper), ("size", size)):
        try:
            number = operator.index(value)
        except TypeError:
            number = None
        if number is None or isinstance(value, bool):
            raise InvalidValue(f"buffer {place} has {name} {value!r}; give an integer")
        numbers.append(number)
    buffer = Buffer(*numbers)
    if buffer.upper <= buffer.lower:
        raise InvalidValue(
            f"buffer {place} is live from {lower} up to {upper}, which is no time at all; upper must exceed lower"
        )
    if buffer.size < 0:
        raise InvalidValue(f"buffer {place} has size {size}; a size must be 0 or more")
    return buffer


@dataclass(frozen=True)
class Part:
    """Buffers that must be planned together.

    Attributes:
        base: Offset above which they are placed.
        members: Their places in the list of all buffers.
    """

    base: int
    members: tuple[int, ...]


def split(buffers: Sequence[Buffer]) -> tuple[dict[int, int], list[Part]]:
    """Settle the buffers whose place needs no search, and group the others.

    Buffers of which no lifetimes meet can be planned apart. In a group, a buffer that is live all the time can be moved
    to the bottom of any plan: what was below it moves up by its size. Both rules are applied until neither holds.

    Returns:
        Offsets by place of the settled buffers, and the parts that are left.
    """
    settled = {place: 0 for place, buffer in enumerate(buffers) if buffer.size == 0}
    parts: list[Part] = []
    waiting = [Part(0, tuple(place for place in range(len(buffers)) if place not in settled))]
    while waiting:
        whole = waiting.pop()
        for members in _groups(buffers, whole.members):
            lower = min(buffers[place].lower for place in members)
            upper = max(buffers[place].upper for place in members)
            base = whole.base
            rest = []
            for place in members:
                if (buffers[place].lower, buffers[place].upper) == (lower, upper):
                    settled[place] = base
                    base += buffers[place].size
                else:
                    rest.append(place)
            if len(rest) == len(members):
                parts.append(Part(base, tuple(members)))
            elif rest:
                waiting.append(Part(base, tuple(rest)))
    return settled, sorted(parts, key=lambda part: part.members)


def _groups(buffers: Sequence[Buffer], places: Iterable[int]) -> list[list[int]]:
    """Group buffers so that lifetimes meet within a group only."""
    groups: list[list[int]] = []
    end = 0
    for place in sorted(places, key=lambda place: buffers[place].lower):
        if not groups or buffers[place].lower >= end:
            groups.append([])
            end = buffers[place].upper
        groups[-1].append(place)
        end = max(end, buffers[place].upper)
    return [sorted(group) for group in groups]


def live_sections(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Rewrite lifetimes in sections: only the stretches of time in which a largest set of buffers is live count.

    Where the set of live buffers only grows or only shrinks from one stretch to the next, the smaller set adds no
    constraint and is left out. Two buffers meet in a section if and only if their lifetimes meet.

    >>> live_sections([Buffer(0, 10, 1), Buffer(2, 10, 1), Buffer(10, 20, 1)])
    [Buffer(lower=0, upper=1, size=1), Buffer(lower=0, upper=1, size=1), Buffer(lower=1, upper=2, size=1)]
    """
    starts, ends = {buffer.lower for buffer in buffers}, {buffer.upper for buffer in buffers}
    times = sorted(starts | ends)
    kept = [(a, b) for a, b in pairwise(times) if a in starts and b in ends]
    firsts, lasts = [a for a, _ in kept], [b for _, b in kept]
    return [
        Buffer(bisect_left(firsts, buffer.lower), bisect_right(lasts, buffer.upper), buffer.size) for buffer in buffers
    ]


def peak_live(buffers: Iterable[Sequence[int]]) -> int:
    """Return the most that is live at once, which no plan can undercut.

    Args:
        buffers: Triples (lower, upper, size); times are half open, so a buffer is not live at `upper`.

    Returns:
        max over t of the sum of the sizes with lower <= t < upper; 0 without buffers.

    Raises:
        InvalidValue: A buffer that is none; the message says which and why.

    >>> peak_live([(0, 2, 10), (1, 3, 10), (3, 4, 15)])
    20
    """
    return find_peak(read_buffers(buffers))[0]


def find_peak(buffers: Sequence[Buffer]) -> tuple[int, int]:
    """Return the most that is live at once, and the first time at which it is."""
    change: dict[int, int] = {}
    for buffer in buffers:
        change[buffer.lower] = change.get(buffer.lower, 0) + buffer.size
        change[buffer.upper] = change.get(buffer.upper, 0) - buffer.size
    most = when = live = 0
    for time in sorted(change):
        live += change[time]
        if live > most:
            most, when = live, time
    return most, when
