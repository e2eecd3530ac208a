"""Frequencies by kernel or by pass: which clocks a chip should have while it runs many kernels.

The chip has two clocks, of its cores and of its memory, each a share of its top. A kernel needs `core_s` seconds of the
cores and `memory_s` of the memory, both at the top clocks, and `fixed_s` for which no clock matters. With the shares f
and g,

    time = fixed + max(core / f, memory / g) + (1 - overlap) min(core / f, memory / g).

A clock domain draws its full power while it works, and `waiting` of it while it waits. With b for the share of the time
for which a domain is busy,

    power = static + cores_w V(f)^2 f (w + (1 - w) b_core) + memory_w g (w + (1 - w) b_memory),

V relative to that at the top clock. One pair of clocks for the whole pass must suit the kernel that minds most. A pair
for each kernel slows the cores where the memory is the limit, and the memory where the cores are.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np

from mlsys.core.arguments import non_negative, positive_amount
from mlsys.core.sourced import Cited, Source, data_file
from mlsys.errors import InvalidValue

WAITING = 0.3
"""Assumed share of its power that a domain draws while it waits.

With this share, measured kernels that keep the cores waiting and measured kernels that keep them busy agree about the
power of the cores (`clocked_kernels`, tests/soc/test_dvfs.py).
"""
_BINS = 4000
"""Into how many parts the time of a pass is divided when choices that take nearly as long are compared."""
Clock: TypeAlias = Any
"""A share of a top clock, or an array of them; times, powers and energies then are arrays too."""
Scale: TypeAlias = Callable[[float], float]
"""Switching power at a clock, relative to that at the top clock."""


@dataclass(frozen=True)
class Kernel:
    """A kernel, as far as clocks concern it.

    Attributes:
        name: what it is called.
        core_s: seconds that it keeps the cores busy, at their top clock.
        memory_s: seconds that it keeps the memory busy, at its top clock.
        static_w: power that flows at any clock.
        core_w: power of the cores at their top clock, if they are busy all the time.
        memory_w: power of the memory, likewise.
        fixed_s: seconds for which no clock matters.
        overlap: share of the shorter of core and memory time that hides behind the longer; 1 is a roofline.
        waiting: share of its power that a domain draws while it waits.
    """

    name: str
    core_s: float
    memory_s: float
    static_w: float
    core_w: float
    memory_w: float
    fixed_s: float = 0.0
    overlap: float = 1.0
    waiting: float = WAITING

    def __post_init__(self) -> None:
        """Refuse negative numbers, shares above 1, and a kernel that takes no time."""
        for what in ("core_s", "memory_s", "fixed_s", "static_w", "core_w", "memory_w", "overlap", "waiting"):
            non_negative(f"{what} of {self.name!r}", getattr(self, what))
        for what in ("overlap", "waiting"):
            if getattr(self, what) > 1:
                raise InvalidValue(f"{what} of {self.name!r} is {getattr(self, what)}; a share is at most 1")
        if self.core_s + self.memory_s + self.fixed_s == 0:
            raise InvalidValue(f"the kernel {self.name!r} takes no time: give seconds of cores, of memory, or fixed")

    def time_s(self, core: Clock, memory: Clock) -> Clock:
        """Return its time at two clocks, shares of the top clocks."""
        computing, moving = self.core_s / core, self.memory_s / memory
        return self.fixed_s + computing + moving - self.overlap * np.minimum(computing, moving)

    def power_w(
        self, core: Clock, memory: Clock, core_scale: Clock | None = None, memory_scale: Clock | None = None
    ) -> Clock:
        """Return its mean power at two clocks, in watts.

        Args:
            core: share of the cores' top clock.
            memory: share of the memory's top clock.
            core_scale: switching power of the cores there, relative to the top; without it, the clock itself.
            memory_scale: the same for the memory.
        """
        time = self.time_s(core, memory)
        active_core = self.waiting + (1 - self.waiting) * self.core_s / core / time
        active_memory = self.waiting + (1 - self.waiting) * self.memory_s / memory / time
        switching_core = self.core_w * (core if core_scale is None else core_scale)
        switching_memory = self.memory_w * (memory if memory_scale is None else memory_scale)
        return self.static_w + switching_core * active_core + switching_memory * active_memory

    def energy_j(
        self, core: Clock, memory: Clock, core_scale: Clock | None = None, memory_scale: Clock | None = None
    ) -> Clock:
        """Return its energy at two clocks, in joules; arguments as for `power_w`."""
        return self.power_w(core, memory, core_scale, memory_scale) * self.time_s(core, memory)


@dataclass(frozen=True)
class Choice:
    """Clocks for each kernel of a pass, and what they bring.

    Attributes:
        clocks: core and memory clock of each kernel.
        time_s: time of the pass.
        energy_j: energy of the pass.
        base_time_s: its time at the clocks that it is compared with.
        base_energy_j: its energy at those clocks.
    """

    clocks: tuple[tuple[float, float], ...]
    time_s: float
    energy_j: float
    base_time_s: float
    base_energy_j: float

    @property
    def saved(self) -> float:
        """Share of the energy that is saved."""
        return 1 - self.energy_j / self.base_energy_j

    @property
    def slowdown(self) -> float:
        """Share by which the pass takes longer."""
        return self.time_s / self.base_time_s - 1


@dataclass(frozen=True)
class Pass:
    """Kernels that run one after the other, and the clocks that there are.

    Attributes:
        kernels: each with the number of times that it runs.
        core_clocks: shares of the cores' top clock that can be set; the top is 1.
        memory_clocks: the same for the memory.
        core_scale: switching power of the cores at a clock; without it, the clock itself.
        memory_scale: the same for the memory.
        base: the pair of clocks that savings and slowdowns are counted from.
    """

    kernels: tuple[tuple[Kernel, float], ...]
    core_clocks: tuple[float, ...]
    memory_clocks: tuple[float, ...] = (1.0,)
    core_scale: Scale | None = None
    memory_scale: Scale | None = None
    base: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        """Refuse a pass without kernels or without its top clocks."""
        if not self.kernels:
            raise InvalidValue("a pass without kernels: give at least one")
        for name, clocks in (("core_clocks", self.core_clocks), ("memory_clocks", self.memory_clocks)):
            if not clocks or max(clocks) != 1 or min(clocks) <= 0:
                raise InvalidValue(f"{name} are {clocks}: give shares of the top clock, the top itself, 1, among them")
        if self.base not in self._pairs:
            raise InvalidValue(f"the base {self.base} is no pair of the clocks: use one that can be set")

    def by_pass(self, slowdown: float = 0.0) -> Choice:
        """Return the one pair of clocks of least energy that slows the pass by at most `slowdown`, a share."""
        times, energies = self._tables()
        limit = self._limit(times, slowdown)
        totals = np.where(times.sum(0) <= limit, energies.sum(0), np.inf)
        return self._choice(times, energies, np.full(len(self.kernels), int(np.argmin(totals))))

    def by_kernel(self, slowdown: float = 0.0) -> Choice:
        """Return a pair of clocks for each kernel, of least energy, that slow the pass by at most `slowdown`, a share.

        Kernel after kernel, it keeps of all choices so far those that no other beats in both time and energy, and of
        many that take nearly as long only the best: one for each 1/4000 of the time that is left to spend. Changing the
        clocks is taken to cost nothing.
        """
        times, energies = self._tables()
        limit, fastest = self._limit(times, slowdown), times.min(1)
        total, energy = np.zeros(1), np.zeros(1)
        chosen = np.zeros((1, 0), dtype=int)
        for row in range(len(self.kernels)):
            pairs = _unbeaten(times[row], energies[row])
            spent = (total[:, None] + times[row, pairs]).ravel()
            cost = (energy[:, None] + energies[row, pairs]).ravel()
            in_time = np.flatnonzero(spent + fastest[row + 1 :].sum() <= limit)
            kept = in_time[_unbeaten(spent[in_time], cost[in_time], limit / _BINS)]
            before, pair = np.divmod(kept, len(pairs))
            total, energy = spent[kept], cost[kept]
            chosen = np.column_stack([chosen[before], pairs[pair]])
        return self._choice(times, energies, chosen[int(np.argmin(energy))])

    @property
    def _pairs(self) -> list[tuple[float, float]]:
        return list(product(sorted(self.core_clocks), sorted(self.memory_clocks)))

    @property
    def _start(self) -> int:
        """Place of the base among the pairs."""
        return self._pairs.index(self.base)

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return time and energy of each kernel, all of its runs together, at each pair of clocks."""
        core, memory = np.array(self._pairs).T
        core_scale = np.array(list(map(self.core_scale, core))) if self.core_scale else None
        memory_scale = np.array(list(map(self.memory_scale, memory))) if self.memory_scale else None
        times = [count * one.time_s(core, memory) for one, count in self.kernels]
        energies = [count * one.energy_j(core, memory, core_scale, memory_scale) for one, count in self.kernels]
        return np.array(times), np.array(energies)

    def _limit(self, times: np.ndarray, slowdown: float) -> float:
        return float(times[:, self._start].sum()) * (1 + non_negative("slowdown", slowdown)) * (1 + 1e-12)

    def _choice(self, times: np.ndarray, energies: np.ndarray, chosen: np.ndarray) -> Choice:
        rows, pairs = np.arange(len(self.kernels)), self._pairs
        return Choice(
            tuple(pairs[pair] for pair in chosen),
            float(times[rows, chosen].sum()),
            float(energies[rows, chosen].sum()),
            float(times[:, self._start].sum()),
            float(energies[:, self._start].sum()),
        )


def _unbeaten(times: np.ndarray, energies: np.ndarray, step: float = 0.0) -> np.ndarray:
    """Return the places of the choices that no other beats in time and energy; with a step, the best one of each step.

    They are in the order of rising time, which is that of falling energy.
    """
    order = np.lexsort((energies, times))
    least = np.minimum.accumulate(energies[order])
    kept = order[np.concatenate([[True], least[1:] < least[:-1]])]
    if step:
        bins = np.floor(times[kept] / step)
        kept = kept[np.concatenate([bins[1:] != bins[:-1], [True]])]
    return np.asarray(kept)


@dataclass(frozen=True)
class Measured:
    """A measurement of one kernel at two clocks, shares of the top clocks.

    Attributes:
        core: clock of the cores.
        memory: clock of the memory.
        time_s: its time.
        power_w: the board's mean power.
    """

    core: float
    memory: float
    time_s: float
    power_w: float


def fit(name: str, points: Iterable[Measured], waiting: float = WAITING) -> Kernel:
    """Return the kernel whose times and powers come closest to measurements, without overlap.

    Least squares of the relative errors, first of the times in core, memory and fixed seconds, then of the powers in
    static, core and memory watts, none of them below zero.

    Raises:
        InvalidValue: if there are fewer than three measurements, or a value is not positive.
    """
    given = list(points)
    if len(given) < 3:
        raise InvalidValue(f"{len(given)} measurements of {name!r} do not fix three numbers: give at least three")
    for one in given:
        for what in ("core", "memory", "time_s", "power_w"):
            positive_amount(f"{what} of {name!r}", getattr(one, what), "")
    core_s, memory_s, fixed_s = _fit(
        [(1 / one.core, 1 / one.memory, 1) for one in given], [one.time_s for one in given]
    )
    timed = Kernel(name, core_s, memory_s, 0.0, 0.0, 0.0, fixed_s, overlap=0.0, waiting=waiting)
    only_core, only_memory = replace(timed, core_w=1.0), replace(timed, memory_w=1.0)
    rows = [(1, only_core.power_w(one.core, one.memory), only_memory.power_w(one.core, one.memory)) for one in given]
    static_w, core_w, memory_w = _fit(rows, [one.power_w for one in given])
    return replace(timed, static_w=static_w, core_w=core_w, memory_w=memory_w)


@dataclass(frozen=True)
class ClockedKernels:
    """Kernels that others measured at several clocks of a GPU.

    Attributes:
        gpu: its name.
        base: clocks that the GPU's maker sets, shares of the top clocks of the measured range.
        corners: for each kernel, the measurements at the four corners of the range, from which `fit` fits.
        inside: for each kernel, measurements inside the range, which check the fit.
        source: their document.
    """

    gpu: str
    base: tuple[float, float]
    corners: Mapping[str, tuple[Measured, ...]]
    inside: Mapping[str, tuple[Measured, ...]]
    source: Source

    def fitted(self, waiting: float = WAITING) -> dict[str, Kernel]:
        """Return each kernel, fitted to its corners."""
        return {name: fit(name, points, waiting) for name, points in self.corners.items()}


class _ClockedEntry(Cited, frozen=True, kw_only=True):
    gpu: str
    core_top_mhz: float
    memory_top_mhz: float
    base_mhz: tuple[float, float]
    kernels: dict[str, tuple[tuple[float, float, float, float], ...]]


@cache
def clocked_kernels() -> ClockedKernels:
    """Return ten measured kernels of a GTX 2070 SUPER.

    >>> sorted(clocked_kernels().corners)[0], len(clocked_kernels().inside["vectorAdd"])
    ('BlackScholes', 2)
    """
    entry = data_file("clocked_kernels.toml", _ClockedEntry)
    core_top, memory_top = entry.core_top_mhz, entry.memory_top_mhz
    measured = {
        name: tuple(Measured(core / core_top, memory / memory_top, ms / 1e3, watt) for core, memory, ms, watt in rows)
        for name, rows in entry.kernels.items()
    }
    return ClockedKernels(
        entry.gpu,
        (entry.base_mhz[0] / core_top, entry.base_mhz[1] / memory_top),
        {name: points[:4] for name, points in measured.items()},
        {name: points[4:] for name, points in measured.items()},
        entry.document,
    )


def _fit(rows: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float]:
    """Solve rows x = wanted for x >= 0 by least squares of the relative errors.

    The best of all choices of unknowns that are zero; with three unknowns there are seven.
    """
    scaled, ones = np.array(rows) / np.array(wanted)[:, None], np.ones(len(wanted))
    best, best_error = np.zeros(scaled.shape[1]), math.inf
    for size in range(1, scaled.shape[1] + 1):
        for columns in combinations(range(scaled.shape[1]), size):
            found = np.linalg.lstsq(scaled[:, columns], ones, rcond=None)[0]
            error = float(((scaled[:, columns] @ found - ones) ** 2).sum())
            if (found >= 0).all() and error < best_error - 1e-15:
                best, best_error = np.zeros(scaled.shape[1]), error
                best[list(columns)] = found
    return [float(value) for value in best]
