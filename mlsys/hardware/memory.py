"""Memory levels with size, latency, bandwidth and energy, each with its basis.

>>> h100 = {level.name: level for level in levels("h100-sxm")}
>>> round(h100["hbm"].latency.to("ns")), round(h100["l2"].latency / h100["l1"].latency, 1)
(<Quantity(244, 'nanosecond')>, <Quantity(6.6, 'dimensionless')>)
>>> round(h100["register"].capacity.m_as("MiB"))
33
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from mlsys.core.arguments import Amount, positive_amount
from mlsys.core.sourced import Sourced, load_toml, sourced
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
    """

    name: str
    fields: Mapping[str, Sourced]
    energy_basis: str = ""

    def field(self, name: str) -> Sourced:
        """One of "capacity", "latency" and "bandwidth" with source and condition.

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
    def bandwidth(self) -> Quantity:
        """Rate of the whole chip."""
        return self.field("bandwidth").value

    def energy(self, bits: int = 1) -> Energy:
        """Energy to move `bits` from this level, on its `energy_basis`.

        Raises:
            UnknownField: if no basis prices this level.

        >>> level("h100-sxm", "hbm").energy(bits=32).m_as("pJ")
        373.76
        """
        if not self.energy_basis:
            raise UnknownField(f"{self.name}: no sourced energy for this level")
        return basis(self.energy_basis).access(self.name, bits)

    def bytes_in_flight(self, latency: Amount | None = None) -> Quantity:
        """Bytes that must be under way to keep the level busy. Little's law: bandwidth x latency.

        Args:
            latency: seconds; without it, the latency of the idle level, which a busy one exceeds.

        >>> level("h100-sxm", "hbm").bytes_in_flight(500e-9).to("MB")
        <Quantity(1.675, 'megabyte')>
        """
        seconds = self.latency.m_as("second") if latency is None else positive_amount("latency", latency, "second")
        return ureg.Quantity(self.bandwidth.m_as("byte/second") * seconds, "byte")


def _level(chip: Accelerator | None, name: str, data: Mapping[str, Any], place: str) -> Level:
    fields = {}
    if "latency" in data:
        fields["latency"] = sourced(data["latency"], f"{place} latency")
    if chip is None:
        return Level(name, fields)
    count = chip.field("sm_count").value.m if data.get("per_sm", False) else 1
    clock = chip.field("boost_clock").value
    size = chip.field(data["capacity_field"])
    unit = REGISTER if size.value.dimensionless else 1
    fields["capacity"] = replace(size, value=size.value * unit * count)
    if "latency_cycles" in data:
        cycles = sourced(data["latency_cycles"], f"{place} latency_cycles")
        condition = f"{cycles.condition}; {cycles.value.m:g} cycles at {clock:~}"
        fields["latency"] = replace(cycles, value=(cycles.value / clock).to("ns"), condition=condition)
    if "bandwidth_field" in data:
        fields["bandwidth"] = chip.field(data["bandwidth_field"])
    if "bytes_per_clock" in data:
        rate = sourced(data["bytes_per_clock"], f"{place} bytes_per_clock")
        condition = f"{rate.condition}; {rate.value.m * count:g} bytes per clock at {clock:~}"
        fields["bandwidth"] = replace(rate, value=(rate.value * count * clock).to("TB/s"), condition=condition)
    return Level(name, fields, data.get("energy", ""))


@cache
def _hierarchies() -> Mapping[str, tuple[Level, ...]]:
    return {
        system: tuple(
            _level(None if system == "cpu" else Hardware.get(system), name, data, f"memory_levels.toml {system} {name}")
            for name, data in entries.items()
        )
        for system, entries in load_toml("memory_levels.toml").items()
    }


def levels(system: str) -> tuple[Level, ...]:
    """The memory levels of a chip, or of a server CPU ("cpu"), from the fastest down.

    Raises:
        UnknownName: with the nearest system and all of them.

    >>> [level.name for level in levels("cpu")]
    ['l1', 'l2', 'l3', 'dram']
    """
    if system not in _hierarchies():
        raise UnknownName.of("memory hierarchy", system, _hierarchies())
    return _hierarchies()[system]


def level(system: str, name: str) -> Level:
    """One memory level of a chip, such as `level("h100-sxm", "l2")`.

    Raises:
        UnknownName: if the system or its level is unknown.

    >>> level("cpu", "l1").latency
    <Quantity(1.5, 'nanosecond')>
    """
    found = {entry.name: entry for entry in levels(system)}
    if name not in found:
        raise UnknownName.of(f"memory level of {system}", name, found)
    return found[name]
