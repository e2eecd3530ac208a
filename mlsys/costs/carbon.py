"""Energy and carbon of running accelerators: joules per inference, kilowatt hours of a fleet, tonnes of CO2.

Left out unless you add them: hosts, idle time, and the carbon of making the chips, which `payback_time` weighs.

>>> cpus, npus = fleet_energy(power=100, chips=1000), fleet_energy(power=5, chips=100)
>>> cpus, npus
(<Quantity(2400.0, 'kilowatt * hour')>, <Quantity(12.0, 'kilowatt * hour')>)
>>> energy_per_inference(cpus, 1e9)
<Quantity(8.64, 'joule')>
>>> round(emissions(365 * (cpus - npus), 400), 1)
<Quantity(348.6, 'tonne_co2')>
"""

from collections.abc import Mapping

from mlsys.core.arguments import Amount, amount, positive_amount, positive_int
from mlsys.core.sourced import Catalog, Entry, Number, Sourced, data_file
from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg


class _Intensity(Entry, frozen=True, kw_only=True):
    intensity: Number


class _Ratio(Entry, frozen=True, kw_only=True):
    ratio: Number


class _CarbonFile(Entry, frozen=True, kw_only=True):
    grid: dict[str, _Intensity]
    pue: dict[str, _Ratio]


def _file() -> _CarbonFile:
    return data_file("carbon.toml", _CarbonFile)


def _intensity(_: str, entry: _Intensity) -> Sourced:
    return entry.intensity.sourced


def _ratio(_: str, entry: _Ratio) -> Sourced:
    return entry.ratio.sourced


GRIDS = Catalog("grid", lambda: _file().grid, _intensity)
"""Carbon intensity of electricity by country."""

PUES = Catalog("PUE", lambda: _file().pue, _ratio)
"""Power usage effectiveness by kind of facility."""


def grids() -> Mapping[str, Sourced]:
    """Return the carbon intensity of electricity by country, averaged over the year that the condition names.

    >>> grids()["france"].value, grids()["france"].condition
    (<Quantity(56, 'gram_co2 / kilowatt / hour')>, '2023, mix of the year')
    """
    return GRIDS.by_name()


def grid(name: str) -> Quantity:
    """Return the carbon intensity of a country's electricity, such as "france", "united-states" or "world".

    Raises:
        UnknownName: with the nearest name and all of them.

    >>> grid("world")
    <Quantity(458, 'gram_co2 / kilowatt / hour')>
    """
    return GRIDS.get(name).value


def pue(name: str) -> Sourced:
    """Return the power usage effectiveness, the facility's energy over its computers': "average" or "google".

    Raises:
        UnknownName: with all names.

    >>> pue("average").value.m
    1.54
    """
    return PUES.get(name)


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
        intensity: of the grid, gCO2 per kWh; `grid(name)` has it for a country.

    Raises:
        InvalidValue: if a value is negative.

    >>> emissions(1_000_000, grid("france"))
    <Quantity(56.0, 'tonne_co2')>
    """
    grams = amount("energy", energy, "kW*hour") * amount("intensity", intensity, "gCO2/(kW*hour)")
    return ureg.Quantity(grams / 1e6, "tCO2")


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
