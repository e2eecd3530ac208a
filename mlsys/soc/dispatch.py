"""Scheduling while it runs: each stage goes to the block on which it should end first, seen from now.

A plan that is made in advance trusts its estimates. A dispatcher decides when a stage is ready, and knows by then which
stages have run late. It looks no further than one stage ahead, so with exact estimates a good plan beats it.

>>> from mlsys.soc.chip import soc
>>> from mlsys.soc.stage import camera_pipeline
>>> done = dispatch(camera_pipeline(), soc("phone"))
>>> done["detect"].unit, done["boxes"].unit, done["listen"].unit
('NPU', 'CPU', 'DSP')
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from mlsys.soc.chip import Soc
from mlsys.soc.stage import Stage, check_stages
from mlsys.soc.timeline import Simulation, Timeline

_NOTHING: Mapping[str, float] = MappingProxyType({})


def dispatch(
    stages: Sequence[Stage],
    soc: Soc,
    *,
    clocks: Mapping[str, float] = _NOTHING,
    background: Mapping[str, float] = _NOTHING,
    background_priority: int = 0,
    stretch: Mapping[str, float] = _NOTHING,
) -> Timeline:
    """Simulate a dispatcher; it knows the planned times and what has ended, but not the `stretch` of what is to come.

    The stage that has the longest way to the end goes first. It takes the block on which it would end first, and waits
    for that block if it is busy. A stage that is late is expected to be late for as long again.

    Args:
        stages: the work.
        soc: the chip.
        clocks: share of the top clock of each block; who is not listed runs at the top.
        background: bytes per second that others ask of the memory all the time, by name.
        background_priority: the priority of those others.
        stretch: factor by which the arithmetic of a stage takes longer than planned.

    Raises:
        CannotRun: if no block runs a stage; the message names the operations and says what to do.
        InvalidValue: if stages wait for each other in a circle, or a number is out of range.
        UnknownName: if one waits for a stage that is not there.
    """
    check_stages(stages)
    for stage in stages:
        soc.that_run(stage.work)
    return _Dispatched(stages, soc, clocks, background, background_priority, stretch).simulate()


class _Dispatched(Simulation):
    @cached_property
    def able(self) -> dict[str, list[str]]:
        """The blocks that run a stage, by its name."""
        return {name: [unit.name for unit in self.soc.that_run(stage.work)] for name, stage in self.stages.items()}

    @cached_property
    def way(self) -> dict[str, float]:
        """Seconds from the start of a stage to the end, by its name."""
        return {name: self._way(name) for name in self.stages}

    def _way(self, stage: str) -> float:
        """Return the seconds from the start of a stage to the end, on the fastest blocks."""
        own = min(self.planned_s(stage, unit) for unit in self.able[stage])
        later = [name for name, one in self.stages.items() if stage in one.after]
        return own + max((self._way(name) for name in later), default=0.0)

    def next_stage(self, unit: str) -> str | None:
        taken = {one.stage.name for one in self.running.values()} | set(self.ended)
        ready = [name for name in self.stages if name not in taken and self.ready_s(name, unit) < float("inf")]
        free = {name: self._free_s(name) for name in (one.name for one in self.soc.units)}
        for name in sorted(ready, key=lambda one: -self.way[one]):
            ends = {place: self._end_s(name, place, free[place]) for place in self.able[name]}
            best = min(ends, key=lambda place: ends[place])
            if best == unit and self.ready_s(name, unit) <= self.now + 1e-15:
                return name
            free[best] = ends[best]  # the block is promised to this stage
        return None

    def _free_s(self, unit: str) -> float:
        """Return when a block should be free: as planned or, if that moment has passed, after as long a delay again."""
        one = self.running.get(unit)
        if one is None:
            return self.now
        planned = one.started_s + self.planned_s(one.stage.name, unit)
        return planned if planned > self.now else self.now + (self.now - planned)

    def _end_s(self, stage: str, unit: str, free_s: float) -> float:
        return max(free_s, self.ready_s(stage, unit), self.now) + self.planned_s(stage, unit)
