"""Scheduling in advance: which block runs each stage, in which order, at which clocks.

There are units^stages placements alone, so nobody tries all of them for more than a few stages. `list_schedule` places
the stages one after the other, the most urgent first, each where it ends first (HEFT). `plan` starts from there and
from other plans, and changes one or two things at a time for as long as the simulated timeline gets better.
`exhaustive_plan` tries everything and says how far from the best this is.

>>> from mlsys.soc.chip import soc
>>> from mlsys.soc.stage import camera_pipeline
>>> from mlsys.soc.timeline import run
>>> chip = soc("phone")
>>> fast = plan(camera_pipeline(), chip)
>>> frugal = plan(camera_pipeline(), chip, least="energy", deadline_s=1 / 30, clocks=chip.units[0].curve.points.clocks)
>>> frames = [run(camera_pipeline(), found, chip) for found in (fast, frugal)]
>>> [round(1e3 * frame.energy_until_j(1 / 30, chip.base_w), 1) for frame in frames]
[47.5, 33.2]
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from types import MappingProxyType

from mlsys.core.arguments import one_of, positive_amount
from mlsys.errors import InvalidValue
from mlsys.soc.chip import Soc
from mlsys.soc.stage import Stage, check_stages
from mlsys.soc.timeline import Plan, Timeline, run

_NOTHING: Mapping[str, float] = MappingProxyType({})
LEAST = ("time", "energy")
"""What a plan may have the least of."""
MOST_PLANS = 200_000
"""Most plans that `exhaustive_plan` tries; at some 150 microseconds each, half a minute."""


@dataclass(frozen=True)
class Placed:
    """A task in a list schedule: where and when."""

    task: str
    unit: str
    start: float
    end: float


def list_schedule(
    times: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]
) -> tuple[Placed, ...]:
    """Place tasks by the heterogeneous earliest finish time (HEFT).

    The rank of a task is its mean time plus the longest way that follows: rank(i) = mean time(i) + max over its
    followers j of (handoff(i, j) + rank(j)). In the order of falling rank each task takes the unit on which it ends
    first, in a gap between earlier tasks if it fits there. No contention for memory is counted.

    Source: Topcuoglu, Hariri, Wu, Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous Computing,
    IEEE TPDS 13(3), 2002.

    Args:
        times: for each task, its time on each unit that can run it.
        after: for each task, the tasks that it waits for, each with the time that a result takes to another unit.

    Returns:
        The tasks in the order in which they were placed.

    Raises:
        InvalidValue: if a task has no unit.

    >>> [(one.task, one.unit) for one in list_schedule({"a": {"x": 2, "y": 1}, "b": {"x": 1}}, {"b": {"a": 3}})]
    [('a', 'y'), ('b', 'x')]
    """
    for task, on in times.items():
        if not on:
            raise InvalidValue(f"the task {task!r} has no unit that runs it: give its time on at least one")
    followers: dict[str, dict[str, float]] = {task: {} for task in times}
    for task, needs in after.items():
        for earlier, handoff in needs.items():
            followers[earlier][task] = handoff
    ranks: dict[str, float] = {}

    def rank(task: str) -> float:
        if task not in ranks:
            own = sum(times[task].values()) / len(times[task])
            ranks[task] = own + max((handoff + rank(later) for later, handoff in followers[task].items()), default=0.0)
        return ranks[task]

    placed: dict[str, Placed] = {}
    for task in sorted(times, key=lambda name: -rank(name)):
        choices = []
        for unit, takes in times[task].items():
            ready = 0.0
            for before, handoff in after.get(task, {}).items():
                ready = max(ready, placed[before].end + (0.0 if placed[before].unit == unit else handoff))
            busy = sorted((one.start, one.end) for one in placed.values() if one.unit == unit)
            start = _first_gap(busy, ready, takes)
            choices.append(Placed(task, unit, start, start + takes))
        placed[task] = min(choices, key=lambda one: one.end)
    return tuple(placed.values())


def _first_gap(busy: Sequence[tuple[float, float]], ready: float, takes: float) -> float:
    """Return the earliest start from `ready` on at which nothing else runs for `takes`."""
    start = ready
    for begins, ends in busy:
        if start + takes <= begins:
            return start
        start = max(start, ends)
    return start


def plan(
    stages: Sequence[Stage],
    soc: Soc,
    *,
    least: str = "time",
    deadline_s: float = math.inf,
    clocks: Sequence[float] = (1.0,),
    background: Mapping[str, float] = _NOTHING,
    background_priority: int = 0,
) -> Plan:
    """Search for a plan of least time, or of least energy among those that meet a deadline.

    With a deadline, the energy is counted until the deadline, since the base power flows until then in any case.

    It starts from the list schedule, from the fastest and from the most frugal block for every stage, and takes the
    best change of one block, two blocks, one place in the order, or one clock, until no change helps. The best of all
    starts is returned. On random pipelines of up to five stages it is within 5% of the best plan (tests/soc).

    Args:
        stages: the work.
        soc: the chip.
        least: "time" or "energy".
        deadline_s: seconds until the end; a plan that is late is worse than any that is not.
        clocks: shares of the top clock that each block may have.
        background: bytes per second that others ask of the memory all the time, by name.
        background_priority: the priority of those others.

    Raises:
        CannotRun: if no block runs a stage; the message names the operations and says what to do.
        InvalidValue: if stages wait in a circle, a number is out of range, or no plan that was found is in time.
        UnknownName: if a stage waits for one that is not there.
    """
    search = _Search(stages, soc, least, deadline_s, tuple(clocks), background, background_priority)
    return search.in_time(min((search.improve(start) for start in search.starts()), key=search.cost))


def exhaustive_plan(
    stages: Sequence[Stage],
    soc: Soc,
    *,
    least: str = "time",
    deadline_s: float = math.inf,
    clocks: Sequence[float] = (1.0,),
    background: Mapping[str, float] = _NOTHING,
    background_priority: int = 0,
) -> Plan:
    """Return the best of all plans: every block for every stage, every order, every clock of every block.

    Arguments and errors are those of `plan`.

    Raises:
        InvalidValue: also if there are more than `MOST_PLANS` plans.
    """
    search = _Search(stages, soc, least, deadline_s, tuple(clocks), background, background_priority)
    orders = list(search.orders())
    count = len(orders) * math.prod(len(able) for able in search.able.values()) * len(clocks) ** len(soc.units)
    if count > MOST_PLANS:
        raise InvalidValue(
            f"{count:,} plans are too many to try; at most {MOST_PLANS:,}: use plan(), or fewer stages, blocks, clocks"
        )
    return search.in_time(min(search.all_plans(orders), key=search.cost))


class _Search:
    """A scheduling problem, the cost of a plan, and the moves between plans."""

    def __init__(
        self,
        stages: Sequence[Stage],
        soc: Soc,
        least: str,
        deadline_s: float,
        clocks: tuple[float, ...],
        background: Mapping[str, float],
        background_priority: int,
    ) -> None:
        check_stages(stages)
        one_of("least", least, LEAST)
        if deadline_s != math.inf:
            positive_amount("deadline_s", deadline_s, "second")
        if not clocks:
            raise InvalidValue("no clocks: give at least one share of the top clock, such as 1.0")
        self.stages, self.soc, self.least, self.deadline_s = {one.name: one for one in stages}, soc, least, deadline_s
        self.clocks, self.background, self.background_priority = tuple(sorted(clocks)), background, background_priority
        self.able = {one.name: tuple(unit.name for unit in soc.that_run(one.work)) for one in stages}
        self._costs: dict[object, tuple[float, float, float]] = {}

    def timeline(self, found: Plan) -> Timeline:
        return run(
            list(self.stages.values()),
            found,
            self.soc,
            background=self.background,
            background_priority=self.background_priority,
        )

    def cost(self, found: Plan) -> tuple[float, float, float]:
        """Return what is compared: lateness first, then what there should be least of, then the other."""
        key = (_queues(found), tuple(sorted(found.clocks.items())))
        if key not in self._costs:
            done = self.timeline(found)
            late = max(0.0, done.total_s - self.deadline_s)
            period = 0.0 if self.deadline_s == math.inf else self.deadline_s
            pair = (done.total_s, done.energy_until_j(period, self.soc.base_w))
            self._costs[key] = (late, *(pair if self.least == "time" else pair[::-1]))
        return self._costs[key]

    def in_time(self, found: Plan) -> Plan:
        if self.cost(found)[0] > 0:
            total = self.timeline(found).total_s
            raise InvalidValue(
                f"no plan was found that ends within {1e3 * self.deadline_s:.3g} ms; the fastest takes "
                f"{1e3 * total:.3g} ms: give it more time, less work or higher clocks"
            )
        return found

    def starts(self) -> Iterator[Plan]:
        """Yield plans to start from, each at the highest and at a middle clock."""
        listed = list_schedule(
            {
                name: {unit: one.alone_s(self.soc.unit(unit), self.soc) for unit in self.able[name]}
                for name, one in self.stages.items()
            },
            {name: dict.fromkeys(one.after, self.soc.handoff_s) for name, one in self.stages.items()},
        )
        order = [one.task for one in listed]
        middle = self.clocks[len(self.clocks) // 2]

        def by(value: Callable[[str, str], float]) -> list[tuple[str, str]]:
            return [(name, min(self.able[name], key=lambda unit: value(name, unit))) for name in order]

        def energy(name: str, unit: str) -> float:
            one, block = self.stages[name], self.soc.unit(unit)
            return one.energy_j(block, self.soc, middle, one.alone_s(block, self.soc, middle))

        places = (
            [(one.task, one.unit) for one in listed],
            by(lambda name, unit: self.stages[name].alone_s(self.soc.unit(unit), self.soc)),
            by(energy),
        )
        for clock in {self.clocks[-1], middle}:
            for place in places:
                yield Plan(tuple(place), dict.fromkeys((unit.name for unit in self.soc.units), clock))

    def improve(self, found: Plan) -> Plan:
        """Take the best move until none helps."""
        while True:
            best = min(self.moves(found), key=self.cost, default=found)
            if self.cost(best) >= self.cost(found):
                return found
            found = best

    def moves(self, found: Plan) -> Iterator[Plan]:
        places = found.places
        for size in (1, 2):
            for changed in combinations(range(len(places)), size):
                for units in product(*(self.able[places[place][0]] for place in changed)):
                    new = list(places)
                    for place, unit in zip(changed, units, strict=True):
                        new[place] = (places[place][0], unit)
                    yield Plan(tuple(new), found.clocks)
        for place in range(len(places)):
            for target in range(len(places)):
                new = list(places)
                new.insert(target, new.pop(place))
                if self._in_order([name for name, _ in new]):
                    yield Plan(tuple(new), found.clocks)
        for unit in {unit for _, unit in places}:
            for clock in self.clocks:
                yield Plan(places, {**found.clocks, unit: clock})

    def _in_order(self, order: Sequence[str]) -> bool:
        seen: set[str] = set()
        for name in order:
            if not seen.issuperset(self.stages[name].after):
                return False
            seen.add(name)
        return True

    def orders(self) -> Iterator[tuple[str, ...]]:
        """Yield every order in which no stage precedes one that it waits for."""

        def extend(order: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
            if len(order) == len(self.stages):
                yield order
            for name, one in self.stages.items():
                if name not in order and set(one.after) <= set(order):
                    yield from extend((*order, name))

        return extend(())

    def all_plans(self, orders: Sequence[tuple[str, ...]]) -> Iterator[Plan]:
        names = [unit.name for unit in self.soc.units]
        for clocks in product(self.clocks, repeat=len(names)):
            for order in orders:
                for units in product(*(self.able[name] for name in order)):
                    yield Plan(tuple(zip(order, units, strict=True)), dict(zip(names, clocks, strict=True)))


def _queues(found: Plan) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what each block does, in its order: plans that agree in this are one plan."""
    queues: dict[str, list[str]] = {}
    for stage, unit in found.places:
        queues.setdefault(unit, []).append(stage)
    return tuple(sorted((unit, tuple(order)) for unit, order in queues.items()))
