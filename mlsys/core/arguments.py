"""Arguments of public functions: checked, and read from plain numbers or quantities.

An error names the value, what is allowed and the nearest valid choice.

The error is `mlsys.errors.InvalidValue`, a ValueError that the command line reports with exit status 2.

>>> positive_int("rows", 0)
Traceback (most recent call last):
...
mlsys.errors.InvalidValue: rows must be a positive integer, got 0; the nearest is 1
>>> one_of("dataflow", "wss", ("ws", "os", "is"))
Traceback (most recent call last):
...
mlsys.errors.InvalidValue: dataflow must be one of 'ws', 'os', 'is', got 'wss'; did you mean 'ws'?
"""

import difflib
import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex, TypeAlias

import pint

from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg


def positive_int(name: str, value: SupportsIndex) -> int:
    """Return `value` as an int when it is an integer of 1 or more.

    Args:
        name: What the caller calls the value; it opens the message.
        value: An int or anything with `__index__` (a NumPy integer); bool is refused.

    Raises:
        InvalidValue: Anything else, 64.0 and "64" included; the message suggests the nearest positive integer.

    >>> positive_int("rows", 32)
    32
    """
    return _integer_from(1, "a positive integer", name, value)


def non_negative_int(name: str, value: SupportsIndex) -> int:
    """Return `value` as an int when it is an integer of 0 or more; the errors are those of `positive_int`.

    >>> non_negative_int("padding", 0)
    0
    """
    return _integer_from(0, "an integer of 0 or more", name, value)


def int_at_most(name: str, value: SupportsIndex, largest: int, why: str) -> int:
    """Return `value` as an int when it is a positive integer that does not exceed `largest`.

    Args:
        name: What the caller calls the value.
        value: The value to check.
        largest: The greatest value allowed.
        why: What sets the limit, for the message.

    Raises:
        InvalidValue: `value` is no positive integer, or above `largest`, which the message offers instead.

    >>> int_at_most("tile", 200, 166, "three tiles must fit 166 KiB")
    Traceback (most recent call last):
    ...
    mlsys.errors.InvalidValue: tile must be at most 166 (three tiles must fit 166 KiB), got 200; the nearest is 166
    """
    number = positive_int(name, value)
    if number > largest:
        raise InvalidValue(f"{name} must be at most {largest} ({why}), got {number}; the nearest is {largest}")
    return number


def non_negative(name: str, value: float) -> float:
    """Return `value` when it is a finite number of 0 or more.

    Raises:
        InvalidValue: NaN, an infinity, a negative number or no number at all.

    >>> non_negative("copy_time", 4)
    4
    """
    if isinstance(value, bool) or not _is_finite_number(value):
        raise InvalidValue(f"{name} must be a finite number of 0 or more, got {value!r}")
    if value < 0:
        raise InvalidValue(f"{name} must be a finite number of 0 or more, got {value!r}; the nearest is 0")
    return value


def share(name: str, value: float) -> float:
    """Return `value` when it is above 0 and at most 1.

    Raises:
        InvalidValue: Anything else; the message names the value.

    >>> share("utilization", 0.4)
    0.4
    """
    if isinstance(value, bool) or not _is_finite_number(value) or not 0 < value <= 1:
        raise InvalidValue(f"{name} is {value!r}: give a share above 0 and at most 1")
    return value


def one_of(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return `value` when it is one of `allowed`.

    Raises:
        InvalidValue: It is not; the message lists what is allowed and offers the closest spelling, if any is close.

    >>> one_of("dataflow", "ws", ("ws", "os", "is"))
    'ws'
    """
    choices = tuple(allowed)
    if isinstance(value, str) and value in choices:
        return value
    listed = ", ".join(repr(choice) for choice in choices)
    raise InvalidValue(f"{name} must be one of {listed}, got {value!r}{_suggestion(value, choices)}")


def _integer_from(least: int, wanted: str, name: str, value: Any) -> int:
    if type(value) is int and value >= least:
        return value
    if not isinstance(value, bool):
        try:
            number = operator.index(value)
        except TypeError:
            number = least - 1
        if number >= least:
            return number
    raise InvalidValue(f"{name} must be {wanted}, got {value!r}; the nearest is {_nearest_integer(value, least)}")


def _nearest_integer(value: Any, least: int) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return least
    return max(least, round(number)) if math.isfinite(number) else least


def _is_finite_number(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except TypeError:
        return False


def _suggestion(value: Any, choices: tuple[str, ...]) -> str:
    folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(str(value).casefold(), folded, n=1, cutoff=0.5)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


Amount: TypeAlias = float | Quantity | pint.Unit
"""A plain number in the unit that the function states, or a quantity in any unit of that dimension.

A bare unit, such as `TB / second`, is one of it.
"""


def amount(name: str, value: Amount, unit: str) -> float:
    """Return the value as a plain number of `unit`s, finite and not negative.

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
    """Return the same as `amount`, refusing zero too.

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
