"""The command `mlsys`: one module per subcommand."""

import argparse
from collections.abc import Callable


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return what reads a whole number of an argument: at least `least`, and at most `most` if that is given.

    >>> whole_number(1)("12")
    12
    """
    allowed = f"of {least} or more" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {allowed}")
        return int(text)

    return read


port_number = whole_number(0, 65_535)
"""Read the number of a port: TCP has 16 bits for it, and what is larger would name another port."""
