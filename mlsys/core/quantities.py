"""Arguments that may be plain numbers or quantities: read as a number in a stated unit, with dimensions checked."""

import math
from typing import TypeAlias

import pint

from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg

Amount: TypeAlias = float | Quantity | pint.Unit
"""A plain number in the unit that the function states, or a quantity in any unit of that dimension.

A bare unit, such as `TB / second`, is one of it.
"""


def amount(name: str, value: Amount, unit: str) -> float:
    """The value as a plain number of `unit`s, finite and not negative.

    Args:
        name: what the caller calls the value.
        value: a plain number, taken in `unit`, a quantity, or a unit (one of it).
        unit: unit to read the value in.

    Raises:
        InvalidValue: if the value is negative, infinite, not a number, or no number at all.
        pint.DimensionalityError: if the value is a quantity of another dimension.

    >>> from mlsys.units import GB
    >>> amount("size", 2 * GB, "byte"), amount("size", 64, "byte")
    (2000000000.0, 64.0)
    """
    if isinstance(value, ureg.Unit):
        value = 1 * value
    if isinstance(value, ureg.Quantity):
        value = value.m_as(unit)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidValue(f"{name} is {value!r}: give a number of {unit} or a quantity") from None
    if not math.isfinite(number) or number < 0:
        raise InvalidValue(f"{name} is {value!r}: it must be finite and not negative")
    return number


def positive_amount(name: str, value: Amount, unit: str) -> float:
    """The same as `amount`, refusing zero too.

    Raises:
        InvalidValue: if the value is zero, negative, infinite, not a number, or no number at all.
        pint.DimensionalityError: if the value is a quantity of another dimension.

    >>> positive_amount("bandwidth", 25e9, "byte/second")
    25000000000.0
    """
    number = amount(name, value, unit)
    if number == 0:
        raise InvalidValue(f"{name} is {value!r}: it must be more than zero")
    return number
