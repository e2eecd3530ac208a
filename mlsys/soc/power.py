"""Clocks, voltages and power of one block: what a clock costs, and which clock costs the least energy.

A clock is a share of the block's top clock, above 0 and up to 1. Switching power follows C V^2 f, and the voltage that
a clock needs comes from a table of operating points, so

    power(f) = dynamic (V(f) / V(1))^2 f + static,     energy of work that takes t at the top clock = power(f) t / f.

At a high clock the voltage makes each operation expensive. At a low clock the static power flows for longer. Between
the two is the clock of least energy.

>>> curve = EnergyCurve(operating_points("apple-m4-gpu"), dynamic_w=4.5, static_w=0.4)
>>> best = curve.best_clock(busy_s=0.010)
>>> round(best, 2), round(curve.energy_j(0.010, best) / curve.energy_j(0.010, 1), 2)
(0.5, 0.54)
"""

from dataclasses import dataclass

from mlsys.core.arguments import non_negative
from mlsys.core.sourced import Catalog, Cited, Source, data_file
from mlsys.errors import InvalidValue


@dataclass(frozen=True)
class OperatingPoints:
    """The clocks that a block can run at, slowest first, with the voltage that each needs.

    Attributes:
        name: the block that the table was read from.
        clocks_mhz: clocks, in MHz, rising.
        volts: the voltage of each, in volts, rising.
        source: the document of the table.
    """

    name: str
    clocks_mhz: tuple[float, ...]
    volts: tuple[float, ...]
    source: Source

    @property
    def clocks(self) -> tuple[float, ...]:
        """The clocks as shares of the top clock."""
        return tuple(clock / self.clocks_mhz[-1] for clock in self.clocks_mhz)

    def voltage(self, clock: float) -> float:
        """Return the voltage for a clock, in volts; between two points, it lies on the line that joins them.

        Raises:
            InvalidValue: if the clock is below the slowest point or above 1.
        """
        shares = self.clocks
        if not shares[0] - 1e-12 <= clock <= 1:
            raise InvalidValue(
                f"a clock of {clock:.3g} of the top is outside the table of {self.name}: "
                f"use a share from {shares[0]:.3g} to 1"
            )
        above = next((place for place, share in enumerate(shares) if share >= clock), len(shares) - 1)
        if above == 0:
            return self.volts[0]
        low, high = shares[above - 1], shares[above]
        return self.volts[above - 1] + (self.volts[above] - self.volts[above - 1]) * (clock - low) / (high - low)

    def energy_scale(self, clock: float) -> float:
        """Return the energy of one operation relative to that at the top clock: (V / V_top)^2."""
        return (self.voltage(clock) / self.volts[-1]) ** 2

    def power_scale(self, clock: float) -> float:
        """Return the switching power relative to that at the top clock: (V / V_top)^2 f / f_top."""
        return self.energy_scale(clock) * clock


@dataclass(frozen=True)
class EnergyCurve:
    """Power and energy of a block against its clock.

    Attributes:
        points: the clocks and their voltages.
        dynamic_w: switching power at the top clock, in watts.
        static_w: power that flows as long as the block is on, in watts.
    """

    points: OperatingPoints
    dynamic_w: float
    static_w: float

    def __post_init__(self) -> None:
        """Refuse a negative power."""
        non_negative("dynamic_w", self.dynamic_w)
        non_negative("static_w", self.static_w)

    def power_w(self, clock: float) -> float:
        """Return the power while the block works, in watts."""
        return self.dynamic_w * self.points.power_scale(clock) + self.static_w

    def energy_j(self, busy_s: float, clock: float) -> float:
        """Return the energy of work that takes `busy_s` at the top clock, in joules."""
        return self.power_w(clock) * non_negative("busy_s", busy_s) / clock

    def best_clock(self, busy_s: float, deadline_s: float | None = None) -> float:
        """Return the operating point of least energy, among those that meet the deadline if one is given.

        Args:
            busy_s: seconds that the work takes at the top clock.
            deadline_s: seconds until it must be done.

        Raises:
            InvalidValue: if even the top clock is too slow; the message says by how much.
        """
        in_time = [clock for clock in self.points.clocks if deadline_s is None or busy_s / clock <= deadline_s]
        if not in_time:
            raise InvalidValue(
                f"work of {busy_s:.3g} s at the top clock is not done in {deadline_s:.3g} s at any clock: "
                "give it more time, less work, or a faster block"
            )
        return min(in_time, key=lambda clock: (self.energy_j(busy_s, clock), -clock))


class _PointsEntry(Cited, frozen=True, kw_only=True):
    name: str
    states: tuple[tuple[float, float], ...]
    condition: str


def _points(key: str, entry: _PointsEntry) -> OperatingPoints:
    """Keep the states that no other state beats, which has a higher clock at the same or a lower voltage."""
    kept: list[tuple[float, float]] = []
    for clock, millivolt in sorted(entry.states, key=lambda state: (state[1], -state[0])):
        if not kept or clock > kept[-1][0]:
            kept.append((clock, millivolt))
    clocks, millivolts = zip(*kept, strict=True)
    return OperatingPoints(entry.name, clocks, tuple(value / 1000 for value in millivolts), entry.document)


POINTS = Catalog(
    "table of operating points",
    lambda: data_file("operating_points.toml", dict[str, _PointsEntry]),
    _points,
)
"""Every table of operating points."""


def operating_points(name: str) -> OperatingPoints:
    """Return the table of this name.

    Raises:
        UnknownName: with the nearest name and all of them.

    >>> operating_points("apple-m4-gpu").volts[-1]
    1.055
    """
    return POINTS.get(name)
