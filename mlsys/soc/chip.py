"""A system on a chip: blocks with their own operations and rates, around one memory.

The blocks are not interchangeable. Each runs some kinds of operations, each kind at its own rate, and draws its own
power; all of them share the memory's bandwidth. What no vendor prints is assumed, in `data/socs.toml`, with reasons.

>>> chip = soc("phone")
>>> [unit.name for unit in chip.units if unit.runs("branches")]
['CPU']
>>> chip.unit("NPU").rate("softmax")
Traceback (most recent call last):
...
mlsys.soc.chip.CannotRun: the NPU runs no 'softmax': use CPU or GPU
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlsys.core.arguments import non_negative, positive_amount
from mlsys.core.sourced import Catalog, Entry, data_file
from mlsys.errors import UnknownName, UserError
from mlsys.soc.power import EnergyCurve, operating_points
from mlsys.soc.thermal import Body


class CannotRun(UserError, LookupError):
    """An operation on a block that does not have it, or on a chip of which no block has it."""


@dataclass(frozen=True)
class Unit:
    """A block of the chip.

    Attributes:
        name: such as "NPU".
        rates: operations per second at the top clock, for each kind of operation that it runs.
        bandwidth: bytes per second that it can read and write at most.
        curve: its power against its clock.
        others: for each kind that it does not run, the names of those that do; for messages.
    """

    name: str
    rates: Mapping[str, float]
    bandwidth: float
    curve: EnergyCurve
    others: Mapping[str, tuple[str, ...]]

    def runs(self, kind: str) -> bool:
        """Tell whether the block has this kind of operation."""
        return kind in self.rates

    def rate(self, kind: str, clock: float = 1.0) -> float:
        """Return operations per second for a kind, at a share of the top clock.

        Raises:
            CannotRun: if the block does not run this kind; the message says which blocks do.
        """
        if kind not in self.rates:
            others = self.others.get(kind, ())
            remedy = f"use {' or '.join(others)}" if others else "no block of this chip does; split or replace it"
            raise CannotRun(f"the {self.name} runs no {kind!r}: {remedy}")
        return self.rates[kind] * clock


@dataclass(frozen=True)
class Soc:
    """A chip with several blocks and one memory.

    Attributes:
        name: what it is called.
        units: the blocks.
        memory_bandwidth: bytes per second that all blocks share.
        memory_j_per_byte: energy of a byte that crosses the memory interface, in joules.
        base_w: power of everything else, in watts.
        handoff_s: seconds from the end of a stage to the start of one that needs its result on another block.
        body: what the heat goes into.
    """

    name: str
    units: tuple[Unit, ...]
    memory_bandwidth: float
    memory_j_per_byte: float
    base_w: float
    handoff_s: float
    body: Body

    def unit(self, name: str) -> Unit:
        """Return the block of this name.

        Raises:
            UnknownName: with the nearest name and all of them.
        """
        for unit in self.units:
            if unit.name == name:
                return unit
        raise UnknownName.of(f"block of {self.name}", name, (unit.name for unit in self.units))

    def that_run(self, kinds: Iterable[str]) -> tuple[Unit, ...]:
        """Return the blocks that run all of these kinds.

        Raises:
            CannotRun: if there are none; the message names the kinds and says what to do.

        >>> soc("phone").that_run({"softmax", "drawing", "signal", "branches"})[0].name
        'CPU'
        """
        wanted = sorted(kinds)
        found = tuple(unit for unit in self.units if all(unit.runs(kind) for kind in wanted))
        if found:
            return found
        nowhere = [kind for kind in wanted if not any(unit.runs(kind) for unit in self.units)]
        if nowhere:
            known = sorted({kind for unit in self.units for kind in unit.rates})
            raise CannotRun(
                f"no block of {self.name} runs {', '.join(map(repr, nowhere))}: write it with operations that one "
                f"has ({', '.join(known)}), or give a block a rate for it"
            )
        raise CannotRun(
            f"no single block of {self.name} runs all of {', '.join(map(repr, wanted))}: split the stage, so that "
            "each part has a block"
        )

    def without(self, name: str) -> "Soc":
        """Return the same chip without one block.

        >>> [unit.name for unit in soc("phone").without("NPU").units]
        ['CPU', 'GPU', 'DSP']
        """
        gone = self.unit(name)
        rest = [unit for unit in self.units if unit is not gone]
        return replace(self, units=tuple(_with_others(rest)))


def make_unit(name: str, rates: Mapping[str, float], bandwidth: float, curve: EnergyCurve) -> Unit:
    """Return a block.

    Args:
        name: what it is called.
        rates: operations per second at the top clock, by kind.
        bandwidth: bytes per second.
        curve: its power against its clock.

    Raises:
        InvalidValue: if a rate or the bandwidth is not positive.
    """
    checked = {kind: positive_amount(f"rate of {kind!r} on the {name}", rate, "flop/s") for kind, rate in rates.items()}
    return Unit(name, checked, positive_amount(f"bandwidth of the {name}", bandwidth, "byte/s"), curve, {})


def make_soc(
    name: str,
    units: Iterable[Unit],
    *,
    memory_bandwidth: float,
    body: Body,
    memory_j_per_byte: float = 0.0,
    base_w: float = 0.0,
    handoff_s: float = 0.0,
) -> Soc:
    """Return a chip of these blocks; the arguments are the fields of `Soc`.

    Raises:
        InvalidValue: if a value is out of its range.
    """
    return Soc(
        name,
        tuple(_with_others(list(units))),
        positive_amount("memory_bandwidth", memory_bandwidth, "byte/s"),
        non_negative("memory_j_per_byte", memory_j_per_byte),
        non_negative("base_w", base_w),
        non_negative("handoff_s", handoff_s),
        body,
    )


def _with_others(units: list[Unit]) -> Iterable[Unit]:
    """Tell each block which blocks run what it does not run."""
    kinds = {kind for unit in units for kind in unit.rates}
    for unit in units:
        others = {kind: tuple(one.name for one in units if one.runs(kind)) for kind in kinds - set(unit.rates)}
        yield replace(unit, others=others)


class _Assumed(Entry, frozen=True, kw_only=True):
    """A number that no document gives, and why it was chosen."""

    value: float
    why: str


class _UnitEntry(Entry, frozen=True, kw_only=True):
    why: str
    gb_per_s: float
    dynamic_w: float
    static_w: float
    gop_per_s: dict[str, float]


class _BodyEntry(Entry, frozen=True, kw_only=True):
    ambient_c: _Assumed
    limit_c: _Assumed
    kelvin_per_w: _Assumed
    joule_per_kelvin: _Assumed


class _SocEntry(Entry, frozen=True, kw_only=True):
    name: str
    operating_points: str
    curve: str
    memory_gb_per_s: _Assumed
    memory_pj_per_byte: _Assumed
    base_w: _Assumed
    handoff_ms: _Assumed
    body: _BodyEntry
    units: dict[str, _UnitEntry]


def _soc(key: str, entry: _SocEntry) -> Soc:
    points = operating_points(entry.operating_points)
    units = [
        make_unit(
            name,
            {kind: 1e9 * rate for kind, rate in unit.gop_per_s.items()},
            1e9 * unit.gb_per_s,
            EnergyCurve(points, unit.dynamic_w, unit.static_w),
        )
        for name, unit in entry.units.items()
    ]
    body = entry.body
    return make_soc(
        entry.name,
        units,
        memory_bandwidth=1e9 * entry.memory_gb_per_s.value,
        memory_j_per_byte=1e-12 * entry.memory_pj_per_byte.value,
        base_w=entry.base_w.value,
        handoff_s=1e-3 * entry.handoff_ms.value,
        body=Body(
            ambient_c=body.ambient_c.value,
            limit_c=body.limit_c.value,
            kelvin_per_w=body.kelvin_per_w.value,
            joule_per_kelvin=body.joule_per_kelvin.value,
        ),
    )


SOCS: Catalog[Soc] = Catalog("chip", lambda: data_file("socs.toml", dict[str, _SocEntry]), _soc)
"""Every chip of `data/socs.toml`; all of their numbers are assumptions."""


def soc(name: str) -> Soc:
    """Return the chip of this name.

    Raises:
        UnknownName: with the nearest name and all of them.
    """
    return SOCS.get(name)


def assumptions(name: str) -> dict[str, tuple[float, str]]:
    """Return what is assumed about the chip besides its blocks: value and reason of each number.

    Raises:
        UnknownName: with the nearest name and all of them.

    >>> assumptions("phone")["base_w"][0]
    0.6
    """
    soc(name)
    entry = data_file("socs.toml", dict[str, Any])[name]
    listed = {**entry, **entry["body"]}
    return {key: (one["value"], one["why"]) for key, one in listed.items() if isinstance(one, dict) and "why" in one}
