"""Memory levels with size, latency, bandwidth and energy, each with its basis.

>>> h100 = {level.name: level for level in levels("h100-sxm")}
>>> round(h100["hbm"].latency.to("ns")), round(h100["l2"].latency / h100["l1"].latency, 1)
(<Quantity(355, 'nanosecond')>, <Quantity(7.3, 'dimensionless')>)
>>> round(h100["register"].capacity.m_as("MiB"))
33
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlsys.core.arguments import Amount, positive_amount
from mlsys.core.sourced import Catalog, Entry, Number, Sourced, data_file
from mlsys.errors import UnknownName
from mlsys.hardware.chips import Accelerator, Hardware, UnknownField
from mlsys.hardware.energy import Energy, basis
from mlsys.units import Quantity, ureg

REGISTER = ureg.Quantity(4, "byte")
"""A register of a GPU holds 32 bits."""


@dataclass(frozen=True)
class Level:
    """One level of a memory hierarchy.

    Attributes:
        name: "register", "shared", "l1", "l2", "l3", "hbm" or "dram".
        fields: "capacity", "latency" and "bandwidth", as far as documents give them, each with source and condition.
        energy_basis: id of the basis in `mlsys.hardware.energy` that prices this level, or "" if none does.
        other_latencies: what others measured for the same level, with other programs; see `latency_range`.
    """

    name: str
    fields: Mapping[str, Sourced]
    energy_basis: str = ""
    other_latencies: tuple[Sourced, ...] = ()

    def field(self, name: str) -> Sourced:
        """Return one of "capacity", "latency" and "bandwidth" with source and condition.

        Raises:
            UnknownField: lists what is known of this level.
        """
        if name not in self.fields:
            raise UnknownField(f"{self.name}: no sourced {name!r}; known: {', '.join(self.fields)}")
        return self.fields[name]

    @property
    def capacity(self) -> Quantity:
        """Size over the whole chip."""
        return self.field("capacity").value

    @property
    def latency(self) -> Quantity:
        """Time from a load to its value when nothing else is under way."""
        return self.field("latency").value

    @property
    def latency_range(self) -> tuple[Quantity, Quantity]:
        """Least and greatest latency that was measured for this level; they are equal where one measurement is known.

        >>> [round(end.m_as("ns")) for end in level("h100-sxm", "hbm").latency_range]
        [244, 355]
        """
        measured = [self.latency, *(other.value for other in self.other_latencies)]
        return min(measured), max(measured)

    @property
    def bandwidth(self) -> Quantity:
        """Rate of the whole chip."""
        return self.field("bandwidth").value

    def energy(self, bits: int = 1) -> Energy:
        """Return the energy to move `bits` from this level, on its `energy_basis`.

        Raises:
            UnknownField: if no basis prices this level.

        >>> level("h100-sxm", "hbm").energy(bits=32).m_as("pJ")
        373.76
        """
        if not self.energy_basis:
            raise UnknownField(f"{self.name}: no sourced energy for this level")
        return basis(self.energy_basis).access(self.name, bits)

    def bytes_in_flight(self, latency: Amount | None = None) -> Quantity:
        """Return the bytes that must be under way to keep the level busy. Little's law: bandwidth x latency.

        Args:
            latency: seconds; without it, the latency of the idle level, which a busy one exceeds.

        >>> level("h100-sxm", "hbm").bytes_in_flight(500e-9).to("MB")
        <Quantity(1.675, 'megabyte')>
        """
        seconds = self.latency.m_as("second") if latency is None else positive_amount("latency", latency, "second")
        return ureg.Quantity(self.bandwidth.m_as("byte/second") * seconds, "byte")


class _LevelEntry(Entry, frozen=True, kw_only=True):
    capacity_field: str = ""
    bandwidth_field: str = ""
    per_sm: bool = False
    latency: Number | None = None
    latency_cycles: Number | None = None
    other_latency_cycles: tuple[Number, ...] = ()
    bytes_per_clock: Number | None = None
    energy: str = ""


def _hierarchy(system: str, entries: Mapping[str, _LevelEntry]) -> tuple[Level, ...]:
    if system == "cpu":
        return tuple(_cpu_level(name, entry) for name, entry in entries.items())
    chip = Hardware.get(system)
    return tuple(_chip_level(chip, name, entry) for name, entry in entries.items())


def _cpu_level(name: str, entry: _LevelEntry) -> Level:
    return Level(name, {"latency": entry.latency.sourced} if entry.latency else {})


def _chip_level(chip: Accelerator, name: str, entry: _LevelEntry) -> Level:
    count = chip.field("sm_count").value.m if entry.per_sm else 1
    clock = chip.field("boost_clock").value
    size = chip.field(entry.capacity_field)
    unit = REGISTER if size.value.dimensionless else 1
    fields = {"capacity": replace(size, value=size.value * unit * count)}
    if entry.latency:
        fields["latency"] = entry.latency.sourced
    others = tuple(_in_time(number.sourced, clock) for number in entry.other_latency_cycles)
    if entry.latency_cycles:
        measured = _in_time(entry.latency_cycles.sourced, clock)
        elsewhere = "".join(f"; elsewhere {number.value:g} cycles" for number in entry.other_latency_cycles)
        fields["latency"] = replace(measured, condition=measured.condition + elsewhere)
    if entry.bandwidth_field:
        fields["bandwidth"] = chip.field(entry.bandwidth_field)
    if entry.bytes_per_clock:
        rate = entry.bytes_per_clock.sourced
        condition = f"{rate.condition}; {rate.value.m * count:g} bytes per clock at {clock:~}"
        fields["bandwidth"] = replace(rate, value=(rate.value * count * clock).to("TB/s"), condition=condition)
    return Level(name, fields, entry.energy, others)


def _in_time(cycles: Sourced, clock: Quantity) -> Sourced:
    """Turn a count of cycles into a time at a clock, and say so in its condition."""
    condition = f"{cycles.condition}; {cycles.value.m:g} cycles at {clock:~}"
    return replace(cycles, value=(cycles.value / clock).to("ns"), condition=condition)


HIERARCHIES = Catalog(
    "memory hierarchy", lambda: data_file("memory_levels.toml", dict[str, dict[str, _LevelEntry]]), _hierarchy
)
"""Memory levels of every system, from the fastest down."""


def levels(system: str) -> tuple[Level, ...]:
    """Return the memory levels of a chip, or of a server CPU ("cpu"), from the fastest down.

    Raises:
        UnknownName: with the nearest system and all of them.

    >>> [level.name for level in levels("cpu")]
    ['l1', 'l2', 'l3', 'dram']
    """
    return HIERARCHIES.get(system)


def level(system: str, name: str) -> Level:
    """Return one memory level of a chip, such as `level("h100-sxm", "l2")`.

    Raises:
        UnknownName: if the system or its level is unknown.

    >>> level("cpu", "l1").latency
    <Quantity(1.5, 'nanosecond')>
    """
    found = {entry.name: entry for entry in levels(system)}
    if name not in found:
        raise UnknownName.of(f"memory level of {system}", name, found)
    return found[name]
