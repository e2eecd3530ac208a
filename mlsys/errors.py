"""Errors for the person who meets them: the value, what is wrong with it, and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches

_LISTED = 50
"""Most known names that an error lists; a class may have hundreds of students."""


def a_kind(value: object) -> str:
    """Name the type of a value with its article.

    >>> a_kind(3), a_kind("three")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


class UserError(Exception):
    """A mistake that the user can correct; the command line prints it and exits with status 2."""


class NeedsYes(UserError):
    """A loss that the reader may want, and nothing is written without a yes; the exit status is 3."""


class InvalidValue(UserError, ValueError):
    """A value outside what a function accepts."""


class UnknownName(UserError, LookupError):
    """A name that is not in a list of known names.

    >>> raise UnknownName.of("chip", "h10", ["h100-sxm", "t4"])
    Traceback (most recent call last):
    ...
    mlsys.errors.UnknownName: unknown chip 'h10': did you mean 'h100-sxm'? Known: h100-sxm, t4
    """

    @classmethod
    def of(cls, what: str, name: object, known: Iterable[str]) -> "UnknownName":
        """The error for `name`, with the nearest known name and a list of them."""
        known = sorted(known)
        nearest = get_close_matches(str(name), known, n=1, cutoff=0.4)
        hint = f"did you mean '{nearest[0]}'? " if nearest else ""
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        return cls(f"unknown {what} {name!r}: {hint}Known: {', '.join(known[:_LISTED])}{more}")
