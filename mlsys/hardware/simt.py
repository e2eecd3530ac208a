"""How a warp executes a program with branches and loops: one instruction at a time, for the lanes that have reached it.

A warp has one instruction fetch for all of its lanes. At a branch it executes the path of the lanes for which the test
holds, then that of the other lanes, and both meet again behind the branch. A path that no lane needs is skipped. A loop
runs until its last lane has finished. A lane that is not on the path waits; it still occupies its place.

The program is structured, and every statement costs one issue slot each time the warp executes it, tests included. That
is the rule of a stack of masks. Chips since Volta may interleave the paths, which changes the order of the slots and
not their number. Compilers also remove short branches, which the model does not do.

>>> from mlsys.hardware.simt import Branch, Step, issue
>>> program = [Branch("if x > 0", lambda x: x > 0, [Step("a"), Step("b")], [Step("c")])]
>>> run = issue(program, [1] * 8 + [0] * 24)
>>> [(slot.text, sum(slot.active)) for slot in run.slots]
[('if x > 0', 32), ('a', 8), ('b', 8), ('c', 24)]
>>> run.slots_needed, run.share
(3, 0.5625)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mlsys.core.arguments import positive_int
from mlsys.errors import InvalidValue

LONGEST_RUN = 100_000
"""Largest number of issue slots of a run; more means a loop that does not end."""


@dataclass(frozen=True)
class Step:
    """An instruction. `changes` gives the lane's new value from its old one; without it the value stays.

    Attributes:
        text: the instruction, as a listing shows it.
        changes: what it does to the value of a lane.
    """

    text: str
    changes: Callable[[int], int] | None = None


@dataclass(frozen=True)
class Branch:
    """A test with the statements for lanes that pass it, and those for lanes that do not."""

    text: str
    test: Callable[[int], bool]
    then: Sequence["Statement"]
    otherwise: Sequence["Statement"] = ()


@dataclass(frozen=True)
class Loop:
    """A test that is made before each round; a lane leaves the loop at the first test that it fails."""

    text: str
    test: Callable[[int], bool]
    body: Sequence["Statement"]


Statement = Step | Branch | Loop


@dataclass(frozen=True)
class Slot:
    """One issue of one instruction: its text, and for each lane whether the lane takes part."""

    text: str
    active: tuple[bool, ...]


@dataclass(frozen=True)
class Run:
    """A program's issue slots in their order."""

    slots: tuple[Slot, ...]
    lanes: int

    @property
    def slots_needed(self) -> int:
        """Least slots for the same work: instructions of all lanes / lanes, rounded up."""
        return -(-self._worked // self.lanes)

    @property
    def longest_lane(self) -> int:
        """Instructions of the busiest lane; a lane that had the warp for itself would need as many slots."""
        return max((sum(taken) for taken in zip(*(slot.active for slot in self.slots), strict=True)), default=0)

    @property
    def share(self) -> float:
        """Share of the lanes at work, on average over the slots: instructions of all lanes / (slots x lanes)."""
        return self._worked / (len(self.slots) * self.lanes) if self.slots else 1.0

    @property
    def _worked(self) -> int:
        return sum(sum(slot.active) for slot in self.slots)


def issue(program: Sequence[Statement], values: Sequence[int]) -> Run:
    """Run a program on a warp and record its issue slots.

    Args:
        program: statements in their order.
        values: the value that each lane begins with; their number is the number of lanes.

    Raises:
        InvalidValue: no lane, or a run of more than `LONGEST_RUN` slots, as from a loop that does not end.

    >>> counting = [Loop("while x > 0", lambda x: x > 0, [Step("work"), Step("x -= 1", lambda x: x - 1)])]
    >>> len(issue(counting, [5] * 32).slots), len(issue(counting, [5] + [1] * 31).slots)
    (16, 16)
    """
    values = list(values)
    positive_int("the number of lanes", len(values))
    slots: list[Slot] = []
    for slot in _execute(program, values, (True,) * len(values)):
        if len(slots) == LONGEST_RUN:
            raise InvalidValue(f"the program is still running after {LONGEST_RUN} slots: is there a loop without end?")
        slots.append(slot)
    return Run(tuple(slots), len(values))


def _execute(program: Sequence[Statement], values: list[int], mask: tuple[bool, ...]) -> Iterator[Slot]:
    if not any(mask):
        return
    for statement in program:
        match statement:
            case Step(text, changes):
                yield Slot(text, mask)
                if changes:
                    values[:] = [changes(x) if on else x for x, on in zip(values, mask, strict=True)]
            case Branch(text, test, then, otherwise):
                yield Slot(text, mask)
                passes = tuple(on and test(x) for x, on in zip(values, mask, strict=True))
                fails = tuple(on and not passed for on, passed in zip(mask, passes, strict=True))
                yield from _execute(then, values, passes)
                yield from _execute(otherwise, values, fails)
            case Loop(text, test, body):
                left = mask
                while any(left):
                    yield Slot(text, left)
                    left = tuple(on and test(x) for x, on in zip(values, left, strict=True))
                    yield from _execute(body, values, left)
