"""Integer index expressions: which element of a tensor a loop reads, as sums of loop axes, quotients and remainders.

Reshape, Transpose, Slice and their kin compute nothing. They only change which element is read, so the compiler
turns each into an index expression and simplifies what comes out.

>>> row, column = Axis("row", 4), Axis("column", 6)
>>> flat = index(row) * 6 + column
>>> flat // 6, flat % 6, (flat // 6) * 6 + flat % 6
(row, column, row * 6 + column)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Axis:
    """A loop variable that runs from 0 to `extent` - 1."""

    name: str
    extent: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Quotient:
    """The value of `inner // divisor`, rounded down."""

    inner: "Index"
    divisor: int

    def __str__(self) -> str:
        return f"{_operand(self.inner)} // {self.divisor}"


@dataclass(frozen=True)
class Remainder:
    """The value of `inner % divisor`, never negative."""

    inner: "Index"
    divisor: int

    def __str__(self) -> str:
        return f"{_operand(self.inner)} % {self.divisor}"


@dataclass(frozen=True)
class Fetched:
    """An index that is read from a tensor at run time, as in Gather; it is at least 0 and less than `extent`."""

    value: Any
    extent: int

    def __str__(self) -> str:
        return f"[{self.value}]"


Atom: TypeAlias = Axis | Quotient | Remainder | Fetched


@dataclass(frozen=True)
class Index:
    """The sum of `atom * factor` over `terms`, plus `constant`."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    def __add__(self, other: "Index | Axis | int") -> "Index":
        other = index(other)
        factors = dict(self.terms)
        for atom, factor in other.terms:
            factors[atom] = factors.get(atom, 0) + factor
        return _joined(factors, self.constant + other.constant)

    def __sub__(self, other: "Index | Axis | int") -> "Index":
        return self + index(other) * -1

    def __mul__(self, factor: int) -> "Index":
        return _joined({atom: f * factor for atom, f in self.terms}, self.constant * factor)

    def __floordiv__(self, divisor: int) -> "Index":
        if divisor == 1:
            return self
        whole, rest = self._split(divisor)
        if bounds(rest)[1] < divisor:
            return whole
        if len(rest.terms) == 1 and rest.constant == 0 and rest.terms[0][1] == 1:
            atom = rest.terms[0][0]
            if isinstance(atom, Quotient):
                return whole + Index(((Quotient(atom.inner, atom.divisor * divisor), 1),))
        return whole + Index(((Quotient(rest, divisor), 1),))

    def __mod__(self, divisor: int) -> "Index":
        _, rest = self._split(divisor)
        if bounds(rest)[1] < divisor:
            return rest
        return Index(((Remainder(rest, divisor), 1),))

    def _split(self, divisor: int) -> "tuple[Index, Index]":
        """The quotient of what the divisor divides, and the rest, shifted so that it is not negative."""
        whole = {atom: factor // divisor for atom, factor in self.terms if factor % divisor == 0}
        rest = {atom: factor for atom, factor in self.terms if factor % divisor}
        left = _joined(rest, self.constant % divisor)
        shift = max(0, -(bounds(left)[0] // divisor))
        return _joined(whole, self.constant // divisor - shift), left + shift * divisor

    def __str__(self) -> str:
        parts = []
        for atom, factor in self.terms:
            text = str(atom)
            if factor != 1:
                text = f"({text}) * {factor}" if isinstance(atom, Quotient | Remainder) else f"{text} * {factor}"
            parts.append(text)
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


def index(value: "Index | Atom | int") -> Index:
    """Return an axis or a number as an index expression."""
    if isinstance(value, Index):
        return value
    if isinstance(value, int):
        return Index((), value)
    return Index(((value, 1),)) if not isinstance(value, Axis) or value.extent != 1 else Index()


def bounds(value: Index) -> tuple[int, int]:
    """Return the least and the greatest value that an index expression can have."""
    low = high = value.constant
    for atom, factor in value.terms:
        least, greatest = _atom_bounds(atom)
        low += min(least * factor, greatest * factor)
        high += max(least * factor, greatest * factor)
    return low, high


def axes_of(value: Index) -> frozenset[Axis]:
    """Return the loop axes in an index expression; those inside a fetched index are its expression's own."""
    found: set[Axis] = set()
    for atom, _ in value.terms:
        if isinstance(atom, Axis):
            found.add(atom)
        elif isinstance(atom, Fetched):
            found |= atom.value.axes
        else:
            found |= axes_of(atom.inner)
    return frozenset(found)


def substitute(value: Index, places: Mapping[Axis, Index], fetch: Callable[[Any], Any]) -> Index:
    """Replace axes by index expressions, and what is read at run time by `fetch` of it; simplify."""
    result = Index((), value.constant)
    for atom, factor in value.terms:
        if isinstance(atom, Axis):
            new = places.get(atom, index(atom))
        elif isinstance(atom, Fetched):
            new = index(Fetched(fetch(atom.value), atom.extent))
        elif isinstance(atom, Quotient):
            new = substitute(atom.inner, places, fetch) // atom.divisor
        else:
            new = substitute(atom.inner, places, fetch) % atom.divisor
        result = result + new * factor
    return result


def flatten(places: "tuple[Index, ...]", shape: tuple[int, ...]) -> Index:
    """Return the position of an element in a contiguous tensor: sum of index times stride."""
    position = Index()
    for place, extent in zip(places, shape, strict=True):
        position = position * extent + place
    return position


def unflatten(position: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """Return the index along every dimension of the element at a position; the inverse of `flatten`."""
    places: list[Index] = []
    for number in range(len(shape) - 1, -1, -1):
        extent = max(1, shape[number])
        places.append(position % extent if number else position)
        position = position // extent
    return tuple(reversed(places))


def _joined(factors: dict[Atom, int], constant: int) -> Index:
    """A sum in which (x // n) * n + x % n has become x."""
    for atom, factor in list(factors.items()):
        if isinstance(atom, Remainder) and factor and factors.get(atom) == factor:
            inner, step = atom.inner, 1
            first = inner.terms[0][0]
            if len(inner.terms) == 1 and inner.constant == 0 and isinstance(first, Quotient):
                inner, step = first.inner, first.divisor
            partner = Quotient(inner, step * atom.divisor)
            if factors.get(partner) == factor * atom.divisor:
                del factors[atom], factors[partner]
                return _joined(factors, constant) + atom.inner * factor
    return Index(tuple((atom, factor) for atom, factor in factors.items() if factor), constant)


def _atom_bounds(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Axis | Fetched):
        return 0, max(0, atom.extent - 1)
    low, high = bounds(atom.inner)
    if isinstance(atom, Quotient):
        return low // atom.divisor, high // atom.divisor
    return (low, high) if low >= 0 and high < atom.divisor else (0, atom.divisor - 1)


def _operand(inner: Index) -> str:
    simple = len(inner.terms) == 1 and inner.constant == 0 and inner.terms[0][1] == 1
    return str(inner) if simple and not isinstance(inner.terms[0][0], Remainder) else f"({inner})"
