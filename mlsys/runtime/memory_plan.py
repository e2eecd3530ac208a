"""Memory planning: an offset in one block of memory for each buffer, so that none overlap while both are live.

First come plans in one pass (`mlsys.runtime.first_fit`). If the best of them is higher than the most that is ever live,
a beam search (`mlsys.runtime.beam`) aims at lower heights, again and again. Its settings vary from run to run, and the
sections of time in which a run fails count more in the next. Random choices have a fixed seed and the effort is counted
in operations, not in seconds, so the same buffers get the same plan on every machine.
"""

from collections.abc import Iterable, Sequence
from random import Random

import numpy as np

from mlsys.core.arguments import non_negative, non_negative_int
from mlsys.errors import InvalidValue
from mlsys.runtime.beam import Aim, Ints, Outcome, Stacks
from mlsys.runtime.buffers import Buffer, Part, find_peak, live_sections, read_buffers, split
from mlsys.runtime.first_fit import simple_plans

WORK, MOST_WORK = 4, 3e9
"""Effort of the search: WORK * count^4 numbers looked at, MOST_WORK at most; 100 buffers take about a second."""

WIDTHS = (30, 100, 300, 1000, 3000)
"""Widths of the beam; the search widens it when all of `AIMS` have failed."""

AIMS = (0, 4, 6, 7)
"""Heights to aim at, in eighths of the way from the least height that counts up to the best plan."""

MOST_SEARCHED = 1500
"""Largest part, in buffers, that is searched; a larger one keeps its best plan in one pass."""

SEED = 5
"""Seed of the settings that vary from run to run."""


class DoesNotFit(InvalidValue):
    """A set of buffers for which no plan within the capacity exists, or none was found."""


def plan_memory(buffers: Iterable[Sequence[int]], *, capacity: int | None = None, effort: float = 1.0) -> list[int]:
    """Return an offset for each buffer, so that buffers that are live at the same time never overlap.

    Buffer i occupies the bytes from offsets[i] up to offsets[i] + size while lower <= t < upper. The height of a plan
    is the largest offset + size. To find a plan of the least height is NP-hard (dynamic storage allocation); this is a
    search that usually comes within a few percent of `peak_live`, which no plan can undercut.

    Args:
        buffers: Triples (lower, upper, size) of integers; times are half open, sizes are in bytes or any other unit.
        capacity: Bytes that there are. The search stops at the first plan that fits; without it, at `peak_live`.
        effort: Factor on the effort of the search; 0 keeps the best plan in one pass.

    Returns:
        Offsets in the order of the buffers.

    Raises:
        InvalidValue: A buffer that is none; the message says which and why.
        DoesNotFit: No plan within `capacity` exists, or none was found; the message says by how much it fails.

    >>> plan_memory([(0, 2, 10), (1, 3, 10), (3, 4, 15)])
    [0, 10, 0]
    """
    found = read_buffers(buffers)
    effort = non_negative("effort", effort)
    peak, when = find_peak(found)
    enough = peak
    if capacity is not None:
        enough = non_negative_int("capacity", capacity)
        _refuse_what_cannot_fit(found, enough, peak, when)
    offsets, parts = split(found)
    searches = [_Search(found, part, effort) for part in parts]
    while searches:
        highest = max(searches, key=lambda search: search.top)
        if highest.top <= enough or not highest.improve(enough):
            break
    for search in searches:
        offsets.update(search.offsets())
    plan = [offsets[place] for place in range(len(found))]
    height = plan_height(found, plan)
    if capacity is not None and height > capacity:
        raise DoesNotFit(
            f"the best plan found needs {height}, {height - capacity} more than the capacity of {capacity}; at most "
            f"{peak} are live at once, so one may exist: raise effort (now {effort:g}), or free a buffer earlier"
        )
    return plan


def plan_height(buffers: Iterable[Sequence[int]], offsets: Sequence[int]) -> int:
    """Return the memory that a plan needs: the largest offset + size, 0 without buffers.

    Raises:
        InvalidValue: A buffer that is none, or not one offset for each buffer.

    >>> plan_height([(0, 2, 10), (1, 3, 10), (3, 4, 15)], [0, 10, 0])
    20
    """
    found = read_buffers(buffers)
    if len(offsets) != len(found):
        raise InvalidValue(f"there are {len(found)} buffers and {len(offsets)} offsets; give one for each")
    return max((offset + buffer.size for offset, buffer in zip(offsets, found, strict=True)), default=0)


def _refuse_what_cannot_fit(buffers: Sequence[Buffer], capacity: int, peak: int, when: int) -> None:
    for place, buffer in enumerate(buffers):
        if buffer.size > capacity:
            raise DoesNotFit(
                f"buffer {place} alone has size {buffer.size}, {buffer.size - capacity} more than the capacity of "
                f"{capacity}; cut it into tiles or give more memory"
            )
    if peak > capacity:
        live = sum(1 for buffer in buffers if buffer.lower <= when < buffer.upper)
        raise DoesNotFit(
            f"at time {when} {live} buffers are live, together {peak}, {peak - capacity} more than the capacity of "
            f"{capacity}; no plan can fit: free one of them earlier, compute one again, or give more memory"
        )


class _Search:
    """The best plan of one part so far, and the runs that look for a better one."""

    def __init__(self, buffers: Sequence[Buffer], part: Part, effort: float) -> None:
        self._part = part
        self._buffers = [buffers[place] for place in part.members]
        self._plan, self._height = min(
            ((plan, plan_height(self._buffers, plan)) for plan in simple_plans(self._buffers)), key=lambda one: one[1]
        )
        self._least = find_peak(self._buffers)[0]
        count = len(self._buffers)
        self._work_left = effort * min(WORK * count**4, MOST_WORK) if count <= MOST_SEARCHED else 0
        self._random = Random(SEED)
        self._stacks: Stacks | None = None
        self._learned: Ints = np.zeros(0, dtype=np.int64)
        self._wide = 0  # place in WIDTHS

    @property
    def top(self) -> int:
        """The height of the best plan, in the memory of all parts."""
        return self._part.base + self._height

    def offsets(self) -> dict[int, int]:
        """The offsets of the best plan, by place among all buffers."""
        return {place: self._part.base + offset for place, offset in zip(self._part.members, self._plan, strict=True)}

    def improve(self, enough: int) -> bool:
        """Run until a lower plan is found, and say whether one was; `enough` is the least height that counts."""
        least = max(self._least, enough - self._part.base)
        if self._stacks is None:
            self._stacks = Stacks(live_sections(self._buffers))
            self._learned = np.zeros(self._stacks.sections, dtype=np.int64)
        fails = 0
        while width := self._width():
            eighths = AIMS[fails % len(AIMS)]
            outcome = self._stacks.run(self._aim(least + (self._height - 1 - least) * eighths // 8, width))
            self._work_left -= outcome.work
            if outcome.offsets is not None:
                self._plan, self._height = outcome.offsets, plan_height(self._buffers, outcome.offsets)
                return True
            self._learn(outcome)
            fails += 1
            if fails % len(AIMS) == 0 and self._wide + 1 < len(WIDTHS):
                self._wide += 1
        return False

    def _width(self) -> int:
        """The width of the next run: as wide as the search has become, or less if the effort left allows less."""
        assert self._stacks is not None
        most = self._work_left // (self._stacks.count * self._stacks.step_work)
        return max((width for width in WIDTHS[: self._wide + 1] if width <= most), default=0)

    def _aim(self, height: int, width: int) -> Aim:
        """Draw the settings of a run."""
        spread = self._random.choice((0, 1))
        noise = np.array([1 << self._random.randint(0, spread) for _ in self._learned], dtype=np.int64)
        learned = self._learned * self._random.choice((0, 1))
        return Aim(
            height=height,
            width=width,
            softness=self._random.choice((30, 100)),
            eagerness=self._random.choice((1, 10, 30, 100)),
            weights=np.minimum(noise * (16 + learned), 1 << 10),
        )

    def _learn(self, outcome: Outcome) -> None:
        """Let the sections in which a run failed count more, those beside them half as much, and forget slowly."""
        blamed = outcome.blamed * 16 * self._random.choice((0, 1, 3)) // 1000
        beside = np.maximum(np.append(blamed[1:], 0), np.append(0, blamed[:-1]))
        self._learned = self._learned * 9 // 10 + np.maximum(blamed, beside // 2)
