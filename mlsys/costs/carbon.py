"""Energy and carbon of running accelerators: joules per inference, kilowatt-hours of a fleet, tonnes of CO2.

Left out unless you add them: hosts, idle time, and the carbon of making the chips, which `payback_time` weighs.

>>> cpus, npus = fleet_energy(power=100, chips=1000), fleet_energy(power=5, chips=100)
>>> cpus, npus
(<Quantity(2400.0, 'kilowatt * hour')>, <Quantity(12.0, 'kilowatt * hour')>)
>>> energy_per_inference(cpus, 1e9)
<Quantity(8.64, 'joule')>
>>> round(emissions(365 * (cpus - npus), 400), 1)
<Quantity(348.6, 'tonne_co2')>

What is known only roughly is given as a pair, the least and the most, and so is the answer:

>>> fleet_emissions(power=(5, 8), chips=100, hours=8760, pue=(1.1, 1.5), intensity=(40, 700))
Span(low=<Quantity(0.19272, 'tonne_co2')>, high=<Quantity(7.3584, 'tonne_co2')>)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mlsys.core.arguments import Amount, amount, positive_amount, positive_int
from mlsys.core.sourced import Catalog, Entry, Number, Sourced, data_file
from mlsys.costs.dated import all_of_year, of_year
from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg


class _Intensity(Entry, frozen=True, kw_only=True):
    intensity: Number


class _Ratio(Entry, frozen=True, kw_only=True):
    ratio: Number


class _Mass(Entry, frozen=True, kw_only=True):
    mass: Number


class _CarbonFile(Entry, frozen=True, kw_only=True):
    grid: dict[str, dict[str, _Intensity]]
    pue: dict[str, _Ratio]
    embodied: dict[str, _Mass]


def _file() -> _CarbonFile:
    return data_file("carbon.toml", _CarbonFile)


def _ratio(_: str, entry: _Ratio) -> Sourced:
    return entry.ratio.sourced


def _mass(_: str, entry: _Mass) -> Sourced:
    return entry.mass.sourced


PUES = Catalog("PUE", lambda: _file().pue, _ratio)
"""Power usage effectiveness by kind of facility."""

EMBODIED = Catalog("embodied carbon", lambda: _file().embodied, _mass)
"""Estimates of the carbon of making a chip."""

Between: TypeAlias = Amount | tuple[Amount, Amount]
"""An amount, or a pair of the least and the most that it may be."""


@dataclass(frozen=True)
class Span:
    """The least and the most that something may be.

    Attributes:
        low: if every uncertain number is at its lower end.
        high: if every one is at its upper end.
    """

    low: Quantity
    high: Quantity


def grids(year: int) -> Mapping[str, Sourced]:
    """Return the carbon intensity of electricity by country, averaged over a year.

    Raises:
        OtherYear: lists the years for which there is any.

    >>> grids(2023)["france"].value, grids(2023)["france"].condition
    (<Quantity(56, 'gram_co2 / kilowatt / hour')>, '2023, mix of the year')
    """
    found = all_of_year("carbon intensity of a grid", year, _file().grid)
    return {name: entry.intensity.sourced for name, entry in found.items()}


def grid(name: str, year: int) -> Quantity:
    """Return the carbon intensity of a country's electricity in a year, such as "france", "united-states" or "world".

    Raises:
        UnknownName: with the nearest name and all of them.
        OtherYear: lists the years for which the country has one.

    >>> grid("world", 2023), grid("world", 2025)
    (<Quantity(481, 'gram_co2 / kilowatt / hour')>, <Quantity(458, 'gram_co2 / kilowatt / hour')>)
    """
    return of_year("carbon intensity", name, year, _file().grid).intensity.sourced.value


def pue(name: str) -> Sourced:
    """Return the power usage effectiveness, the facility's energy over its computers': "average" or "google".

    Raises:
        UnknownName: with all names.

    >>> pue("average").value.m
    1.54
    """
    return PUES.get(name)


def embodied(name: str) -> Sourced:
    """Return an estimate of the carbon of making a chip; its condition says what is counted.

    Raises:
        UnknownName: with all names.

    >>> embodied("h100-share-of-board").value, embodied("a100-with-server").value
    (<Quantity(164, 'kilogram_co2')>, <Quantity(318, 'kilogram_co2')>)
    """
    return EMBODIED.get(name)


def fleet_energy(power: Amount, chips: int, hours: Amount = 24, pue: float = 1.0) -> Quantity:
    """Compute the energy that a fleet draws: power x chips x hours x PUE, in kWh.

    Args:
        power: of one chip, averaged, W.
        chips: how many.
        hours: how long; the default is a day.
        pue: power usage effectiveness, at least 1.

    Raises:
        InvalidValue: if a value is out of range.

    >>> fleet_energy(power=700, chips=8, pue=1.25)
    <Quantity(168.0, 'kilowatt * hour')>
    """
    if pue < 1:
        raise InvalidValue(f"pue is {pue!r}: a facility draws at least what its computers draw, so give 1 or more")
    kilowatt = amount("power", power, "W") * positive_int("chips", chips) / 1000
    return ureg.Quantity(kilowatt * amount("hours", hours, "hour") * pue, "kW*hour")


def energy_per_inference(energy: Amount, inferences: float) -> Quantity:
    """Compute the energy of one inference: energy / inferences, in joules.

    Args:
        energy: of all of them, joules.
        inferences: how many the energy bought.

    Raises:
        InvalidValue: if a value is out of range.

    >>> energy_per_inference(12 * ureg.kW * ureg.hour, 1e9)
    <Quantity(0.0432, 'joule')>
    """
    return ureg.Quantity(amount("energy", energy, "J") / positive_amount("inferences", inferences, ""), "J")


def emissions(energy: Amount, intensity: Amount) -> Quantity:
    """Compute the carbon of electricity: energy x intensity, in tonnes of CO2 equivalent.

    Args:
        energy: kWh.
        intensity: of the grid, gCO2 per kWh; `grid(name, year)` has it for a country.

    Raises:
        InvalidValue: if a value is negative.

    >>> emissions(1_000_000, grid("france", 2023))
    <Quantity(56.0, 'tonne_co2')>
    """
    grams = amount("energy", energy, "kW*hour") * amount("intensity", intensity, "gCO2/(kW*hour)")
    return ureg.Quantity(grams / 1e6, "tCO2")


def fleet_emissions(power: Between, chips: int, intensity: Between, hours: Between = 8760, pue: Between = 1.0) -> Span:
    """Compute the carbon of a fleet's electricity, from the least to the most: `emissions` of `fleet_energy`.

    Every factor raises the product, so the ends of the answer come from the ends of the factors. Both ends assume that
    all numbers err in the same direction, so the truth is likely to be well inside.

    Args:
        power: of one chip, averaged, W; like all arguments but `chips`, a number or a pair of the least and the most.
        chips: how many.
        intensity: of the grid, gCO2 per kWh.
        hours: how long; the default is a year.
        pue: power usage effectiveness, at least 1.

    Raises:
        InvalidValue: if a value is out of range, or a pair is not in order.

    >>> fleet_emissions(power=700, chips=1, intensity=(56, 713)).high
    <Quantity(4.37..., 'tonne_co2')>
    """
    factors = {"power": (power, "W"), "intensity": (intensity, "gCO2/(kW*hour)"), "hours": (hours, "hour")}
    ends = {name: _ends(name, value, unit) for name, (value, unit) in factors.items()}
    ratios = _ends("pue", pue, "")
    low, high = (
        emissions(fleet_energy(ends["power"][at], chips, ends["hours"][at], ratios[at]), ends["intensity"][at])
        for at in (0, 1)
    )
    return Span(low, high)


def payback_time(embodied: Amount, saved_per_day: Amount) -> Quantity:
    """Compute the days until new chips have saved the carbon that making them cost: embodied / saved per day.

    Args:
        embodied: carbon of making all the chips, gCO2.
        saved_per_day: carbon that they save each day, gCO2.

    Raises:
        InvalidValue: if nothing is saved, or a value is negative.

    >>> round(payback_time(100 * 150e3, emissions(2388, 400)))
    <Quantity(16, 'day')>
    """
    return ureg.Quantity(
        amount("embodied", embodied, "gCO2") / positive_amount("saved_per_day", saved_per_day, "gCO2"), "day"
    )


def _ends(name: str, value: Between, unit: str) -> tuple[float, float]:
    """Return the least and the most as plain numbers of `unit`s."""
    least, most = value if isinstance(value, tuple) else (value, value)
    low, high = amount(name, least, unit), amount(name, most, unit)
    if low > high:
        raise InvalidValue(f"{name} is {value!r}: give the least first, then the most")
    return low, high
