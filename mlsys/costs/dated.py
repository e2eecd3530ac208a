"""Numbers that hold for one year: a price, or the carbon of a grid. No other year stands in for the one asked for.

>>> of_year("rent", "h100-sxm", 2025, {"2026": {"h100-sxm": 2.49}})
Traceback (most recent call last):
...
mlsys.costs.dated.OtherYear: the rent of h100-sxm is known for 2026, not for 2025: name that year, or give a number ...
"""

from collections.abc import Mapping
from typing import TypeVar

from mlsys.errors import UnknownName, UserError

T = TypeVar("T")


class OtherYear(UserError, LookupError):
    """A number that is known, but for other years."""


def of_year(what: str, name: str, year: int, entries: Mapping[str, Mapping[str, T]]) -> T:
    """Return the entry of this name and year.

    Args:
        what: kind of number, such as "rent", for error messages.
        name: what the number belongs to.
        year: the year for which it holds.
        entries: all entries, by year and then by name.

    Raises:
        UnknownName: if the name has no entry in any year; it lists those that have.
        OtherYear: if the name has entries for other years only; it lists them.

    >>> of_year("rent", "h100-sxm", 2026, {"2026": {"h100-sxm": 2.49}})
    2.49
    """
    years = [known for known, named in entries.items() if name in named]
    if not years:
        raise UnknownName.of(what, name, dict.fromkeys(key for named in entries.values() for key in named))
    if str(year) not in years:
        which = "that year" if len(years) == 1 else "one of those years"
        raise OtherYear(
            f"the {what} of {name} is known for {' and '.join(years)}, not for {year}: name {which}, or give a number "
            f"of your own"
        )
    return entries[str(year)][name]


def all_of_year(what: str, year: int, entries: Mapping[str, Mapping[str, T]]) -> Mapping[str, T]:
    """Return all entries of a year, by name.

    Raises:
        OtherYear: if the year has none; it lists the years that have.

    >>> sorted(all_of_year("rent", 2026, {"2026": {"h100-sxm": 2.49, "a100": 1.49}}))
    ['a100', 'h100-sxm']
    """
    if str(year) not in entries:
        raise OtherYear(f"no {what} is known for {year}: take one of {', '.join(entries)}, or give numbers of your own")
    return entries[str(year)]
