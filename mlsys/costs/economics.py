"""What compute costs: price per delivered rate, running cost, and when buying beats renting.

Prices change within months, so every function takes the price as an argument; `mlsys.costs.prices` offers ranges that
were quoted in a stated year.

>>> from mlsys import Hardware
>>> a100 = Hardware.Cloud.A100
>>> round(price_per_rate(15_000, a100.peak("fp16")), 1)
<Quantity(48.1, 'dollar * second / teraflop')>
>>> round(price_per_rate(15_000, a100.peak("fp16"), utilization=0.4))
<Quantity(120, 'dollar * second / teraflop')>
"""

from mlsys.core.arguments import Amount, amount, positive_amount, share
from mlsys.errors import InvalidValue
from mlsys.formulas import attainable
from mlsys.hardware import Accelerator
from mlsys.units import Quantity, ureg


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
    delivered = positive_amount("peak", peak, "flop/second") * share("utilization", utilization)
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
    kwh = amount("power", power, "W") / 1000 * amount("hours", hours, "hour") * share("utilization", utilization) * pue
    return ureg.Quantity(kwh * amount("price_per_kwh", price_per_kwh, "USD/(kW*hour)"), "USD")


def break_even(price: Amount, hourly_rent: Amount, hourly_cost: Amount = 0) -> Quantity:
    """Compute the hours of use from which on buying is no dearer than renting: price / (rent - running cost).

    Args:
        price: of the chip, USD; host, network and staff are in it only if you put them in.
        hourly_rent: USD per hour.
        hourly_cost: electricity and upkeep of your own chip, USD per hour.

    Raises:
        InvalidValue: if a value is negative, or running the own chip costs at least as much as renting.

    >>> hours = break_even(25_000, 2.50)
    >>> hours, round(hours.to("day"))
    (<Quantity(10000.0, 'hour')>, <Quantity(417, 'day')>)
    """
    saved = amount("hourly_rent", hourly_rent, "USD/hour") - amount("hourly_cost", hourly_cost, "USD/hour")
    if saved <= 0:
        raise InvalidValue(
            f"renting at {hourly_rent} an hour costs no more than running your own chip at {hourly_cost}: no break-even"
        )
    return ureg.Quantity(amount("price", price, "USD") / saved, "hour")


def owning_cost(price: Amount, life: Amount, hourly_cost: Amount = 0, busy: float = 1.0) -> Quantity:
    """Compute what a useful hour of a chip that you own costs: (price / life + running cost) / busy.

    Args:
        price: of the chip, USD; host, network and staff are in it only if you put them in.
        life: hours until the chip is worth nothing.
        hourly_cost: electricity and upkeep, USD per hour, paid in idle hours too.
        busy: share of its hours in which the chip works, above 0 and at most 1.

    Raises:
        InvalidValue: if a value is out of range.

    >>> round(owning_cost(26_280, 3 * ureg.year, hourly_cost=0.2, busy=0.5), 2)
    <Quantity(2.4, 'dollar / hour')>
    """
    hourly = amount("price", price, "USD") / positive_amount("life", life, "hour")
    return ureg.Quantity((hourly + amount("hourly_cost", hourly_cost, "USD/hour")) / share("busy", busy), "USD/hour")


def break_even_share(price: Amount, life: Amount, hourly_rent: Amount, hourly_cost: Amount = 0) -> float:
    """Compute the share of its life that your own chip must work to cost no more than renting for the same hours.

    Formula: (price / life + running cost) / rent. Above 1, renting is cheaper even for a chip that never rests.

    Args:
        price: of the chip, USD.
        life: hours until the chip is worth nothing.
        hourly_rent: USD per hour, paid for working hours only.
        hourly_cost: electricity and upkeep of your own chip, USD per hour, paid for all hours.

    Raises:
        InvalidValue: if a value is out of range.

    >>> break_even_share(26_280, 3 * ureg.year, hourly_rent=2.4, hourly_cost=0.2)
    0.5
    """
    always_busy = owning_cost(price, life, hourly_cost).m_as("USD/hour")
    return float(always_busy / positive_amount("hourly_rent", hourly_rent, "USD/hour"))


def crossing_intensity(
    price: Amount, chip: Accelerator, other_price: Amount, other: Accelerator, precision: str = "fp16"
) -> Quantity:
    """Compute the intensity at which two chips do work at the same price.

    Formula: p P' / (p' B), if the first chip still waits for memory there and the other computes at its peak; with both
    chips swapped if it is the other way round. Below both ridge points only the prices of bandwidth count, above both
    only those of the peaks, so there is one crossing or none.

    Args:
        price: p of the first chip: USD, USD per hour, or a plain number.
        chip: gives peak P and bandwidth B.
        other_price: p' of the other chip, of the same kind.
        other: gives P' and B'.
        precision: number format of the peaks.

    Raises:
        InvalidValue: if one of the chips is cheaper at every intensity, or a price is not positive.
        UnknownPrecision: if a chip does not have the precision.
        pint.DimensionalityError: if one price is per hour and the other is not.

    >>> from mlsys import Hardware
    >>> round(crossing_intensity(2.49, Hardware.Cloud.H100, 1.49, Hardware.Cloud.A100))
    <Quantity(156, 'flop / byte')>
    """
    unit = str(price.units) if isinstance(price, ureg.Quantity) else "USD"
    prices = [positive_amount("price", price, unit), positive_amount("other_price", other_price, unit)]
    bandwidths = [one.memory_bw.m_as("byte/second") for one in (chip, other)]
    peaks = [one.peak(precision).m_as("flop/second") for one in (chip, other)]
    by_bytes, by_peak = ([p / r for p, r in zip(prices, rates, strict=True)] for rates in (bandwidths, peaks))
    if (by_bytes[0] < by_bytes[1]) == (by_peak[0] < by_peak[1]):
        cheaper = chip if by_bytes[0] < by_bytes[1] else other
        raise InvalidValue(f"{cheaper.name} is cheaper at every intensity, at {price} against {other_price}")
    ridges = [peak / bandwidth for peak, bandwidth in zip(peaks, bandwidths, strict=True)]
    waits = ridges.index(max(ridges))
    return ureg.Quantity(by_bytes[waits] / by_peak[1 - waits], "flop/byte")


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
    rate = positive_amount("tokens_per_second", tokens_per_second, "token/second") * share("utilization", utilization)
    return ureg.Quantity(amount("hourly_rent", hourly_rent, "USD/hour") / 3600 / rate * 1e6, "USD")
