"""What compute costs: price per delivered rate, running cost, and when buying beats renting.

Prices change within months, so every function takes the price as an argument; `purchase_price` and `rent` offer
ranges that were quoted at a stated time.

>>> from mlsys import Hardware
>>> a100 = Hardware.Cloud.A100
>>> round(price_per_rate(15_000, a100.peak("fp16")), 1)
<Quantity(48.1, 'dollar * second / teraflop')>
>>> round(price_per_rate(15_000, a100.peak("fp16"), utilization=0.4))
<Quantity(120, 'dollar * second / teraflop')>
"""

from dataclasses import dataclass

from mlsys.core.arguments import Amount, amount, positive_amount
from mlsys.core.sourced import Catalog, Entry, Number, Sourced, data_file
from mlsys.errors import InvalidValue
from mlsys.formulas import attainable
from mlsys.hardware import Accelerator
from mlsys.units import Quantity, ureg


@dataclass(frozen=True)
class PriceRange:
    """The lowest and the highest price that a document quotes."""

    low: Sourced
    high: Sourced


class _RangeEntry(Entry, frozen=True, kw_only=True):
    low: Number
    high: Number


class _PriceFile(Entry, frozen=True, kw_only=True):
    purchase: dict[str, _RangeEntry]
    rent: dict[str, _RangeEntry]


def _range(_: str, entry: _RangeEntry) -> PriceRange:
    return PriceRange(entry.low.sourced, entry.high.sourced)


PURCHASES = Catalog("purchase price", lambda: data_file("prices.toml", _PriceFile).purchase, _range)
"""What a chip was quoted to cost."""

RENTS = Catalog("rent price", lambda: data_file("prices.toml", _PriceFile).rent, _range)
"""What a chip was quoted to cost per hour."""


def purchase_price(chip_id: str) -> PriceRange:
    """Return what one chip was quoted to cost.

    Raises:
        UnknownName: lists the chips with a sourced price.

    >>> purchase_price("h100-sxm").low.value
    <Quantity(25000, 'dollar')>
    """
    return PURCHASES.get(chip_id)


def rent(chip_id: str) -> PriceRange:
    """Return what one chip was quoted to cost per hour.

    Raises:
        UnknownName: lists the chips with a sourced rent.

    >>> rent("h100-sxm").low.value
    <Quantity(2.49, 'dollar / hour')>
    """
    return RENTS.get(chip_id)


def price_per_rate(price: Amount, peak: Amount, utilization: float = 1.0) -> Quantity:
    """Compute the price of a delivered TFLOP/s: price / (utilization x peak).

    Args:
        price: of the chip, USD.
        peak: of one precision, the same for all chips that are compared, FLOP/s.
        utilization: share of the peak that the work reaches, above 0 and at most 1.

    Raises:
        InvalidValue: if a value is out of range.

    >>> round(price_per_rate(9000, 125e12))
    <Quantity(72, 'dollar * second / teraflop')>
    """
    delivered = positive_amount("peak", peak, "flop/second") * _share(utilization)
    return ureg.Quantity(amount("price", price, "USD") / delivered * 1e12, "USD/(TFLOP/s)")


def price_per_bandwidth(price: Amount, bandwidth: Amount) -> Quantity:
    """Compute the price of a GB/s of memory bandwidth: price / bandwidth.

    Args:
        price: of the chip, USD.
        bandwidth: bytes per second.

    Raises:
        InvalidValue: if a value is out of range.

    >>> round(price_per_bandwidth(9000, 900e9))
    <Quantity(10, 'dollar * second / gigabyte')>
    """
    rate = positive_amount("bandwidth", bandwidth, "byte/second")
    return ureg.Quantity(amount("price", price, "USD") / rate * 1e9, "USD/(GB/s)")


def price_per_attainable(
    price: Amount, chip: Accelerator, intensity: Amount, precision: str = "fp16", utilization: float = 1.0
) -> Quantity:
    """Compute the price of an attainable TFLOP/s: price / (utilization x min(peak, bandwidth x intensity)).

    Args:
        price: of the chip, USD.
        chip: gives peak and bandwidth.
        intensity: arithmetic intensity of the work, flop/byte.
        precision: number format of the peak.
        utilization: share of the roof that the work reaches, above 0 and at most 1.

    Raises:
        InvalidValue: if a value is out of range.
        UnknownPrecision: if the chip does not have the precision.

    >>> from mlsys import Hardware
    >>> round(price_per_attainable(15_000, Hardware.Cloud.A100, intensity=1))
    <Quantity(7357, 'dollar * second / teraflop')>
    """
    roof = attainable(chip.peak(precision), chip.memory_bw, positive_amount("intensity", intensity, "flop/byte"))
    return price_per_rate(price, roof, utilization)


def power_cost(
    power: Amount, price_per_kwh: Amount, hours: Amount = 8760, pue: float = 1.0, utilization: float = 1.0
) -> Quantity:
    """Compute the price of electricity: power x utilization x hours x PUE x price per kWh.

    Args:
        power: of the chips, W.
        price_per_kwh: USD per kWh.
        hours: how long; the default is a year.
        pue: power usage effectiveness, the facility's energy per energy of its computers, at least 1.
        utilization: share of `power` that is drawn on average, above 0 and at most 1.

    Raises:
        InvalidValue: if a value is out of range.

    >>> round(power_cost(400, 0.10, pue=1.3))
    <Quantity(456, 'dollar')>
    """
    if pue < 1:
        raise InvalidValue(f"pue is {pue!r}: a facility draws at least what its computers draw, so give 1 or more")
    kwh = amount("power", power, "W") / 1000 * amount("hours", hours, "hour") * _share(utilization) * pue
    return ureg.Quantity(kwh * amount("price_per_kwh", price_per_kwh, "USD/(kW*hour)"), "USD")


def break_even(price: Amount, hourly_rent: Amount, hourly_cost: Amount = 0) -> Quantity:
    """Compute the hours of use from which on buying is no dearer than renting: price / (rent - running cost).

    Args:
        price: of the chip, USD; host, network and staff are in it only if you put them in.
        hourly_rent: USD per hour.
        hourly_cost: electricity and upkeep of the own chip, USD per hour.

    Raises:
        InvalidValue: if a value is negative, or running the own chip costs at least as much as renting.

    >>> hours = break_even(25_000, 2.50)
    >>> hours, round(hours.to("day"))
    (<Quantity(10000.0, 'hour')>, <Quantity(417, 'day')>)
    """
    saved = amount("hourly_rent", hourly_rent, "USD/hour") - amount("hourly_cost", hourly_cost, "USD/hour")
    if saved <= 0:
        raise InvalidValue(
            f"renting at {hourly_rent} an hour costs no more than running an own chip at {hourly_cost}: no break-even"
        )
    return ureg.Quantity(amount("price", price, "USD") / saved, "hour")


def price_per_million_tokens(hourly_rent: Amount, tokens_per_second: Amount, utilization: float = 1.0) -> Quantity:
    """Compute the price of a million tokens: rent / (utilization x rate) x 10^6.

    Args:
        hourly_rent: of all chips that serve, USD per hour.
        tokens_per_second: rate of those chips while they work.
        utilization: share of the time in which they work, above 0 and at most 1.

    Raises:
        InvalidValue: if a value is out of range.

    >>> round(price_per_million_tokens(3.60, 1000, utilization=0.5), 2)
    <Quantity(2.0, 'dollar')>
    """
    rate = positive_amount("tokens_per_second", tokens_per_second, "token/second") * _share(utilization)
    return ureg.Quantity(amount("hourly_rent", hourly_rent, "USD/hour") / 3600 / rate * 1e6, "USD")


def _share(value: float) -> float:
    if not 0 < value <= 1:
        raise InvalidValue(f"utilization is {value!r}: give a share above 0 and at most 1")
    return value
