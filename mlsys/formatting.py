"""Numbers as text for prose and tables, and the check that guards a claim in a chapter.

>>> fmt(1234567.891, precision=1)
'1,234,567.9'
>>> fmt(0.5)
'0.50'
"""

import math

from mlsys.errors import InvalidValue


def fmt(value: float, precision: int = 2, commas: bool = True) -> str:
    """Format a plain number with a fixed count of decimals.

    Args:
        value: a number without unit; take a quantity's magnitude in the unit you name beside it.
        precision: digits after the decimal point.
        commas: group thousands.

    Raises:
        InvalidValue: for NaN and infinity, which mean that a calculation went wrong earlier.
    """
    number = float(value)
    if not math.isfinite(number):
        raise InvalidValue(f"cannot print {number}: a calculation before this one divided by zero or overflowed")
    return f"{number:{',' if commas else ''}.{precision}f}"


def check(condition: bool, message: str) -> None:
    """Stop the build of a chapter when a statement that its text relies on no longer holds.

    >>> check(1 + 1 == 2, "arithmetic still works")

    Raises:
        AssertionError: with the message. Unlike `assert`, it also holds under `python -O`.
    """
    if not condition:
        raise AssertionError(message)
