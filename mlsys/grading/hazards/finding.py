"""Findings: what is wrong with a kernel, where, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlsys.errors import UnknownName

KINDS = {
    "out of bounds": "a load or store outside the elements of its tensor",
    "conflicting stores": "two programs, or two lanes of one store, that store different values at one address",
    "race": "a program that loads what another program stores in the same launch",
    "unwritten read": "a load of an element that nothing has written",
    "masked lane used": "a lane that a load without `other=` leaves undefined, and that decides a result",
    "order dependent": "a result that changes when the programs run in another order",
}
"""The kinds of findings, with what each means."""


LINES: dict[str, Sequence[int]] = {}
"""Of a file whose text was written anew from a student's cell: for each of its lines that of the cell, or 0."""


def line_in_cell(file: str, line: int) -> int:
    """Return the line of a student's cell for a line of a file, or that line itself where no other is known."""
    lines = LINES.get(file, ())
    return (lines[line - 1] if 1 <= line <= len(lines) else 0) or line


@dataclass(frozen=True)
class Place:
    """A line of a kernel, while one program runs it.

    Attributes:
        line: number of the line in its file or notebook cell.
        text: the line itself; "" if the source is not known.
        program: the program's indices, one for each dimension of the grid.
    """

    line: int
    text: str
    program: tuple[int, ...]

    def __str__(self) -> str:
        text = f" (`{self.text}`)" if self.text else ""
        return f"line {self.line}{text}, program {listed(self.program)}"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a kernel.

    Attributes:
        kind: one of `KINDS`.
        line: the line of the kernel that is wrong, as its file or notebook cell counts lines.
        program: the program in which it was first seen: its indices, one for each dimension of the grid.
        message: one or two sentences: where, what is wrong, and what to do.
        lane: indices of the first lane concerned in its block; None if it is not known.
        tensor: name of the kernel's argument; None if it is not known.
    """

    kind: str
    line: int
    program: tuple[int, ...]
    message: str
    lane: tuple[int, ...] | None = None
    tensor: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName.of("kind of finding", self.kind, KINDS)

    def __str__(self) -> str:
        return f"{self.kind.upper()}: {self.message}"


def listed(index: tuple[int, ...]) -> str:
    """Write indices as text: one without brackets, several with.

    >>> listed((3,)), listed((3, 4))
    ('3', '(3, 4)')
    """
    return str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"
