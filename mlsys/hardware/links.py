"""Links between chips and hosts, with the direction in the type: one way is a rate, both ways is another kind of thing.

Data sheets print some links one way and others both ways added up, a factor of two that a table hides. A link stores
one number, the rate in one direction, as a quantity. `both_directions` is a `BothDirections`, which does not mix with
a quantity: adding or comparing the two is an error, and `.per_direction` turns it back.

>>> nvlink, pcie = link("nvlink-4"), link("pcie-5-x16")
>>> nvlink.per_direction
<Quantity(450, 'gigabyte / second')>
>>> nvlink.both_directions
<900 gigabyte / second, both directions>
>>> round((nvlink.per_direction / pcie.per_direction).m, 1)
7.0
>>> nvlink.both_directions > pcie.per_direction
Traceback (most recent call last):
...
mlsys.hardware.links.MixedDirections: one side counts both directions, the other one: use .per_direction on both
"""

from dataclasses import dataclass
from functools import total_ordering
from typing import NoReturn

from mlsys.core.arguments import Amount, amount
from mlsys.core.sourced import Catalog, Entry, Number, Sourced, data_file
from mlsys.errors import InvalidValue, UserError
from mlsys.units import Quantity, ureg


class MixedDirections(UserError, TypeError):
    """A rate of both directions added up meets a rate of one direction."""


_MIXED = "one side counts both directions, the other one: use .per_direction on both"


@total_ordering
@dataclass(frozen=True)
class BothDirections:
    """The rates of a link's two directions added up; `per_direction` is one of them.

    Only with its like can it be added, divided and compared.
    """

    per_direction: Quantity

    @property
    def total(self) -> Quantity:
        """Both directions as a plain quantity, for printing; from here on nothing guards the direction."""
        return ureg.Quantity(2 * self.per_direction.m, self.per_direction.u)

    def __add__(self, other: object) -> "BothDirections":
        """Add two links' rates."""
        return BothDirections(self.per_direction + _same(other).per_direction)

    def __truediv__(self, other: object) -> float:
        """Divide: how many times faster this link is."""
        return float((self.per_direction / _same(other).per_direction).m_as("dimensionless"))

    def __eq__(self, other: object) -> bool:
        """Compare rates; comparing with one direction is an error, not False."""
        return bool(self.per_direction == _same(other).per_direction)

    def __lt__(self, other: object) -> bool:
        """Tell whether this link is slower."""
        return bool(self.per_direction < _same(other).per_direction)

    def __hash__(self) -> int:
        """Hash the rate."""
        return hash(self.per_direction)

    def _refuse(self, other: object) -> NoReturn:
        raise MixedDirections(_MIXED)

    # A quantity on the left would otherwise swallow this object as a magnitude.
    __array_ufunc__ = None
    __radd__ = __sub__ = __rsub__ = __rtruediv__ = __mul__ = __rmul__ = _refuse

    def __repr__(self) -> str:
        """Write the sum with its direction."""
        return f"<{self.total}, both directions>"


def _same(other: object) -> BothDirections:
    if not isinstance(other, BothDirections):
        raise MixedDirections(_MIXED)
    return other


@dataclass(frozen=True)
class Link:
    """A link with its raw rate in one direction and the document that gives it."""

    id: str
    name: str
    rate: Sourced

    @property
    def per_direction(self) -> Quantity:
        """Rate in one direction, in GB/s."""
        return self.rate.value.to("GB/s")

    @property
    def both_directions(self) -> BothDirections:
        """Rate of both directions added up, which is reached only when both are busy."""
        return BothDirections(self.per_direction)

    def transfer_time(self, size: Amount, efficiency: float = 1.0) -> Quantity:
        """Compute the time to send `size` one way, without start-up time: size / (efficiency x rate).

        Args:
            size: bytes.
            efficiency: share of the raw rate that is reached, above 0 and at most 1.

        Raises:
            InvalidValue: if the size is negative or the efficiency out of range.

        >>> link("pcie-5-x16").transfer_time(64e9)
        <Quantity(1.0, 'second')>
        """
        if not 0 < efficiency <= 1:
            raise InvalidValue(f"efficiency is {efficiency!r}: give a share above 0 and at most 1")
        rate = self.per_direction.m_as("byte/second") * efficiency
        return ureg.Quantity(amount("size", size, "byte") / rate, "second")


class _LinkEntry(Entry, frozen=True, kw_only=True):
    name: str
    per_direction: Number


LINKS = Catalog(
    "link",
    lambda: data_file("links.toml", dict[str, _LinkEntry]),
    lambda link_id, entry: Link(link_id, entry.name, entry.per_direction.sourced),
)
"""Return every link, slowest generation of a kind first."""


def link(link_id: str) -> Link:
    """Return the link with this id, such as "nvlink-4", "pcie-5-x16" or "infiniband-ndr".

    Raises:
        UnknownName: with the nearest id and all of them.

    >>> link("infiniband-hdr").per_direction
    <Quantity(25.0, 'gigabyte / second')>
    """
    return LINKS.get(link_id)


def links() -> tuple[Link, ...]:
    """Return every link, slowest generation of a kind first.

    >>> [link.id for link in links()][:2]
    ['nvlink-2', 'nvlink-3']
    """
    return LINKS.all()
