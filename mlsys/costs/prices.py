"""What chips and electricity were quoted to cost, each quotation with its year.

No vendor publishes a list price of a data-center GPU, and quotations change within months. So a price is asked for with
its year, and no other year stands in for it.

>>> purchase_price("h100-sxm", 2023).low.value, purchase_price("h100-sxm", 2026).low.value
(<Quantity(25000, 'dollar')>, <Quantity(22000, 'dollar')>)
>>> purchase_price("h100-sxm", 2025)
Traceback (most recent call last):
...
mlsys.costs.dated.OtherYear: the purchase price of h100-sxm is known for 2023 and 2026, not for 2025: name one of ...
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mlsys.core.sourced import Entry, Number, Sourced, data_file
from mlsys.costs.dated import all_of_year, of_year


@dataclass(frozen=True)
class PriceRange:
    """The lowest and the highest price that a document quotes for a year."""

    low: Sourced
    high: Sourced
    year: int


class _RangeEntry(Entry, frozen=True, kw_only=True):
    low: Number
    high: Number


class _PriceFile(Entry, frozen=True, kw_only=True):
    purchase: dict[str, dict[str, _RangeEntry]]
    rent: dict[str, dict[str, _RangeEntry]]
    electricity: dict[str, dict[str, Number]]


def _file() -> _PriceFile:
    return data_file("prices.toml", _PriceFile)


def _range(entry: _RangeEntry, year: int) -> PriceRange:
    return PriceRange(entry.low.sourced, entry.high.sourced, year)


def purchase_price(chip_id: str, year: int) -> PriceRange:
    """Return what one chip was quoted to cost in a year.

    Raises:
        UnknownName: lists the chips with a sourced price.
        OtherYear: lists the years for which the chip has one.

    >>> purchase_price("a100-80gb-sxm", 2026).high.condition
    'refurbished or used, 2026'
    """
    return _range(of_year("purchase price", chip_id, year, _file().purchase), year)


def rent(chip_id: str, year: int) -> PriceRange:
    """Return what an hour of one chip was quoted to cost in a year.

    Raises:
        UnknownName: lists the chips with a sourced rent.
        OtherYear: lists the years for which the chip has one.

    >>> rent("h100-sxm", 2026).low.value
    <Quantity(2.49, 'dollar / hour')>
    """
    return _range(of_year("rent", chip_id, year, _file().rent), year)


def rents(year: int) -> Mapping[str, PriceRange]:
    """Return the rents that were quoted in a year, by chip.

    Raises:
        OtherYear: lists the years for which there are any.

    >>> sorted(rents(2026))
    ['a100-80gb-sxm', 'h100-sxm', 'h200']
    """
    return {chip: _range(entry, year) for chip, entry in all_of_year("rent", year, _file().rent).items()}


def electricity(place: str, year: int) -> Sourced:
    """Return what a kilowatt-hour cost a kind of customer in a year, such as "texas-industrial".

    Raises:
        UnknownName: lists the places with a sourced price.
        OtherYear: lists the years for which the place has one.

    >>> electricity("texas-industrial", 2023).value
    <Quantity(0.066, 'dollar / kilowatt / hour')>
    """
    return of_year("price of electricity", place, year, _file().electricity).sourced
