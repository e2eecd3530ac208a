"""What runs when: stages on the blocks of a chip, with the memory that they share.

A stage starts when its block is free and all results that it needs are there; a result that comes from another block
arrives `handoff_s` later. While it runs alone, a stage takes the longer of its arithmetic and its bytes. When the
stages that run together ask for more bandwidth than there is, each progresses at the share of its demand that it gets.
Not modeled: caches, banks of the DRAM, and stages that are interrupted.

>>> from mlsys.soc.chip import soc
>>> from mlsys.soc.stage import camera_pipeline
>>> plan = Plan.of(denoise="GPU", shrink="GPU", detect="NPU", boxes="CPU", overlay="GPU", listen="DSP")
>>> done = run(camera_pipeline(), plan, soc("phone"))
>>> round(1e3 * done.total_s, 1), round(1e3 * done.energy_j, 1)
(7.0, 31.7)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from mlsys.core.arguments import non_negative
from mlsys.errors import InvalidValue, UnknownName
from mlsys.soc.chip import Soc
from mlsys.soc.contention import share
from mlsys.soc.stage import Stage, check_stages

_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class Plan:
    """Which block runs each stage, in which order a block takes its stages, and how fast each block is clocked.

    Attributes:
        places: stage and block, each stage after those that it waits for; a block takes its stages in this order.
        clocks: share of the top clock of each block; who is not listed runs at the top.
    """

    places: tuple[tuple[str, str], ...]
    clocks: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, **places: str) -> "Plan":
        """Return the plan `stage=block, ...` at the top clocks."""
        return cls(tuple(places.items()))

    def unit_of(self, stage: str) -> str:
        """Return the block of a stage.

        Raises:
            UnknownName: if the plan has no such stage.
        """
        for name, unit in self.places:
            if name == stage:
                return unit
        raise UnknownName.of("stage of the plan", stage, (name for name, _ in self.places))

    def clock_of(self, unit: str) -> float:
        """Return the clock of a block, as a share of its top clock."""
        return self.clocks.get(unit, 1.0)


@dataclass(frozen=True)
class Bar:
    """A stage in the timeline.

    Attributes:
        stage: its name.
        unit: the block that ran it.
        start_s: when it started.
        end_s: when it ended.
        alone_s: how long it would have taken with the memory to itself.
    """

    stage: str
    unit: str
    start_s: float
    end_s: float
    alone_s: float

    @property
    def took_s(self) -> float:
        """How long it took."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Timeline:
    """What ran when, and what it cost.

    Attributes:
        bars: the stages, in the order in which they started.
        energies_j: energy of each block, and of "base": everything else until the end.
        served_bytes: bytes that those in the background got until the end, by name.
    """

    bars: tuple[Bar, ...]
    energies_j: Mapping[str, float]
    served_bytes: Mapping[str, float] = field(default_factory=dict)

    @property
    def total_s(self) -> float:
        """When the last stage ended."""
        return max((bar.end_s for bar in self.bars), default=0.0)

    @property
    def energy_j(self) -> float:
        """Energy until the last stage ended."""
        return sum(self.energies_j.values())

    def __getitem__(self, stage: str) -> Bar:
        """The bar of a stage.

        Raises:
            UnknownName: if no stage has that name.
        """
        for bar in self.bars:
            if bar.stage == stage:
                return bar
        raise UnknownName.of("stage", stage, (bar.stage for bar in self.bars))

    def busy_s(self, unit: str) -> float:
        """Seconds for which a block worked."""
        return sum(bar.took_s for bar in self.bars if bar.unit == unit)

    def energy_until_j(self, period_s: float, base_w: float) -> float:
        """Return the energy until the next start, `period_s` after this one, or right at the end if that is later.

        Args:
            period_s: seconds between two starts.
            base_w: the chip's base power, which flows in the pause too.
        """
        return self.energy_j + max(0.0, non_negative("period_s", period_s) - self.total_s) * base_w

    def mean_power_w(self, period_s: float, base_w: float) -> float:
        """Return the mean power when this repeats every `period_s`, or as fast as it can if it takes longer."""
        return self.energy_until_j(period_s, base_w) / max(period_s, self.total_s)


def run(
    stages: Sequence[Stage],
    plan: Plan,
    soc: Soc,
    *,
    background: Mapping[str, float] = _NOTHING,
    background_priority: int = 0,
    stretch: Mapping[str, float] = _NOTHING,
) -> Timeline:
    """Simulate a plan.

    Args:
        stages: the work.
        plan: block, order and clocks.
        soc: the chip.
        background: bytes per second that others ask of the memory all the time, by name.
        background_priority: the priority of those others.
        stretch: factor by which the arithmetic of a stage takes longer than planned, such as {"boxes": 1.5}.

    Raises:
        CannotRun: if a block lacks an operation of its stage; the message says which block has it.
        InvalidValue: if the plan misses a stage, has one twice, or orders it before one that it waits for.
        UnknownName: if a block or a stage does not exist.
    """
    check_plan(stages, plan, soc)
    return _Planned(stages, plan, soc, background, background_priority, stretch).simulate()


def check_plan(stages: Sequence[Stage], plan: Plan, soc: Soc) -> None:
    """Refuse a plan that cannot be run; the errors are those of `run`."""
    check_stages(stages)
    by_name = {stage.name: stage for stage in stages}
    seen: set[str] = set()
    for name, unit_name in plan.places:
        if name not in by_name:
            raise UnknownName.of("stage of the plan", name, by_name)
        if name in seen:
            raise InvalidValue(f"the plan has the stage {name!r} twice: place it once")
        unit = soc.unit(unit_name)
        for kind in by_name[name].work:
            unit.rate(kind)
        early = [before for before in by_name[name].after if before not in seen]
        if early:
            raise InvalidValue(f"the plan places {name!r} before {early[0]!r}, whose result it needs: swap them")
        seen.add(name)
    missing = [name for name in by_name if name not in seen]
    if missing:
        raise InvalidValue(f"the plan has no block for {', '.join(map(repr, missing))}: place every stage")
    for unit_name, clock in plan.clocks.items():
        soc.unit(unit_name).curve.points.voltage(clock)


@dataclass
class _Running:
    """A stage under way: what it could use, and which part of it is left."""

    stage: Stage
    started_s: float
    alone_s: float
    left: float = 1.0

    @property
    def demand(self) -> float:
        return self.stage.bytes / self.alone_s if self.alone_s else 0.0


class Simulation:
    """The course of a run; a subclass says what each block takes next."""

    def __init__(
        self,
        stages: Sequence[Stage],
        soc: Soc,
        clocks: Mapping[str, float],
        background: Mapping[str, float],
        background_priority: int,
        stretch: Mapping[str, float],
    ) -> None:
        """Take the work, the chip, and what others ask of its memory."""
        self.stages = {stage.name: stage for stage in stages}
        self.soc, self.clocks = soc, clocks
        self.background, self.background_priority, self.stretch = background, background_priority, stretch
        self.now = 0.0
        self.running: dict[str, _Running] = {}  # by block
        self.bars: list[Bar] = []
        self.ended: dict[str, tuple[float, str]] = {}  # stage -> when and where
        self.served = dict.fromkeys(background, 0.0)

    def next_stage(self, unit: str) -> str | None:
        """Return the stage that an idle block should take now, or None."""
        raise NotImplementedError

    def ready_s(self, stage: str, unit: str) -> float:
        """Return when a stage's inputs are on a block; infinite while one of them is not computed."""
        times = [0.0]
        for before in self.stages[stage].after:
            if before not in self.ended:
                return float("inf")
            end, place = self.ended[before]
            times.append(end if place == unit else end + self.soc.handoff_s)
        return max(times)

    def planned_s(self, stage: str, unit: str, *, actual: bool = False) -> float:
        """Return how long a stage takes alone, as planned or, with `actual`, with its stretch."""
        block, one = self.soc.unit(unit), self.stages[stage]
        compute = one.compute_s(block, self.clocks.get(unit, 1.0))
        if actual:
            compute *= self.stretch.get(stage, 1.0)
        return max(compute, one.bytes / min(block.bandwidth, self.soc.memory_bandwidth))

    def simulate(self) -> Timeline:
        """Run everything and return what ran when."""
        while len(self.ended) < len(self.stages):
            self._start()
            granted = self._granted()
            speeds = {unit: granted[unit] / one.demand if one.demand else 1.0 for unit, one in self.running.items()}
            steps = [one.left * one.alone_s / speeds[unit] for unit, one in self.running.items() if speeds[unit]]
            arrivals = [time - self.now for time in self._arrivals() if time > self.now]
            if not steps and not arrivals:
                raise InvalidValue(
                    f"{', '.join(self.background)} take the whole memory bandwidth before "
                    f"{', '.join(one.stage.name for one in self.running.values())}, which would never end: lower "
                    "background_priority or the bytes per second"
                )
            step = min(steps + arrivals)
            for unit, one in list(self.running.items()):
                one.left -= step * speeds[unit] / one.alone_s if one.alone_s else 1.0
            for name in self.served:
                self.served[name] += step * granted[f"others: {name}"]
            self.now += step
            for unit, one in list(self.running.items()):
                if one.left <= 1e-12:
                    del self.running[unit]
                    self.ended[one.stage.name] = (self.now, unit)
                    self.bars.append(Bar(one.stage.name, unit, one.started_s, self.now, one.alone_s))
        self.bars.sort(key=lambda bar: (bar.start_s, bar.end_s))
        return Timeline(tuple(self.bars), self._energies(), self.served)

    def _start(self) -> None:
        for unit in self.soc.units:
            if unit.name in self.running:
                continue
            name = self.next_stage(unit.name)
            if name is not None:
                alone = self.planned_s(name, unit.name, actual=True)
                self.running[unit.name] = _Running(self.stages[name], self.now, alone)

    def _granted(self) -> dict[str, float]:
        """Return the bytes per second that each busy block and each of the others gets."""
        demands = {unit: one.demand for unit, one in self.running.items()}
        levels = {unit: one.stage.priority for unit, one in self.running.items()}
        others = {f"others: {name}": rate for name, rate in self.background.items()}
        levels |= dict.fromkeys(others, self.background_priority)
        return share(demands | others, self.soc.memory_bandwidth, levels)

    def _arrivals(self) -> list[float]:
        """Return when results arrive on blocks that wait for them."""
        waiting = [name for name in self.stages if name not in self.ended]
        times = {self.ready_s(name, unit.name) for name in waiting for unit in self.soc.units}
        return [time for time in times if time < float("inf")]

    def _energies(self) -> dict[str, float]:
        found = {unit.name: 0.0 for unit in self.soc.units}
        for bar in self.bars:
            unit = self.soc.unit(bar.unit)
            stage, factor = self.stages[bar.stage], self.stretch.get(bar.stage, 1.0)
            actual = Stage(stage.name, {kind: factor * count for kind, count in stage.work.items()}, stage.bytes)
            found[bar.unit] += actual.energy_j(unit, self.soc, self.clocks.get(bar.unit, 1.0), bar.took_s)
        found["base"] = self.soc.base_w * self.now
        return found


class _Planned(Simulation):
    """A run in which each block takes its stages in the order of a plan."""

    def __init__(
        self,
        stages: Sequence[Stage],
        plan: Plan,
        soc: Soc,
        background: Mapping[str, float],
        background_priority: int,
        stretch: Mapping[str, float],
    ) -> None:
        super().__init__(stages, soc, plan.clocks, background, background_priority, stretch)
        self.queues: dict[str, list[str]] = {unit.name: [] for unit in soc.units}
        for stage, unit in plan.places:
            self.queues[unit].append(stage)

    def next_stage(self, unit: str) -> str | None:
        queue = self.queues[unit]
        if queue and self.ready_s(queue[0], unit) <= self.now + 1e-15:
            return queue.pop(0)
        return None
