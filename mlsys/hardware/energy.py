"""Energy of arithmetic and of data movement, each number tied to its basis: node, way of counting and document.

    energy of an operation = arithmetic operations x energy each + bits moved x energy per bit

Energies of different bases must not be added or divided: 640 pJ for a DRAM word of 2014 and 12 pJ/bit for the HBM of a
Hopper GPU differ in node and in what they include. `Energy` refuses it.

>>> old, new = basis("horowitz-45nm"), basis("hopper-measured")
>>> old.access("dram", bits=32) / old.mac("fp32")
141.3...
>>> old.access("dram", bits=32) + new.access("hbm", bits=32)
Traceback (most recent call last):
...
mlsys.hardware.energy.MixedBases: energies of 'horowitz-45nm' (45 nm) and 'hopper-measured' (4N) do not mix: use one
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import total_ordering

from msgspec import field

from mlsys.core.arguments import Amount, amount, positive_int
from mlsys.core.sourced import Catalog, Entry, Number, Sourced, data_file
from mlsys.errors import UnknownName, UserError
from mlsys.ops import Op
from mlsys.units import Quantity, ureg


class MixedBases(UserError, TypeError):
    """Energies of two bases meet in one sum, ratio or comparison."""


@total_ordering
@dataclass(frozen=True)
class Energy:
    """An energy and the id of the basis that it was counted on; it adds, divides and compares only within the basis.

    `value` is in joules, or dimensionless on a basis that counts in multiples of one multiply-add.
    """

    value: Quantity
    basis: str

    def __add__(self, other: "Energy") -> "Energy":
        """Add two energies of one basis."""
        return Energy(self.value + self._same(other), self.basis)

    def __sub__(self, other: "Energy") -> "Energy":
        """Subtract two energies of one basis."""
        return Energy(self.value - self._same(other), self.basis)

    def __mul__(self, count: float) -> "Energy":
        """Multiply: the energy of `count` such events."""
        return Energy(self.value * float(count), self.basis)

    __rmul__ = __mul__

    def __truediv__(self, other: "Energy") -> float:
        """Divide: how many times `other` this is."""
        return float((self.value / self._same(other)).m_as("dimensionless"))

    def __eq__(self, other: object) -> bool:
        """Compare within the basis; across bases it is an error, not False."""
        return bool(self.value == self._same(other))

    def __lt__(self, other: "Energy") -> bool:
        """Order within the basis; across bases it is an error."""
        return bool(self.value < self._same(other))

    def __hash__(self) -> int:
        """Hash value and basis."""
        return hash((self.value, self.basis))

    def m_as(self, unit: str) -> float:
        """Return the value as a number of `unit`s, such as "pJ"."""
        return float(self.value.m_as(unit))

    def _same(self, other: object) -> Quantity:
        if not isinstance(other, Energy):
            raise MixedBases(
                f"an energy of {self.basis!r} meets {other!r}, which has no basis: take both from one basis"
            )
        if other.basis != self.basis:
            nodes = [f"{b!r} ({basis(b).node})" for b in (self.basis, other.basis)]
            raise MixedBases(f"energies of {nodes[0]} and {nodes[1]} do not mix: use one")
        return other.value


@dataclass(frozen=True)
class Basis:
    """Energies of one node and one way of counting.

    Attributes:
        id: such as "horowitz-45nm".
        title: what was counted.
        node: technology node.
        operations: energy of an operation by name, such as "fp32 add" or "int8 multiply".
        accesses: energy of an access by memory level.
        bits: width of that access by memory level.
    """

    id: str
    title: str
    node: str
    operations: Mapping[str, Sourced]
    accesses: Mapping[str, Sourced]
    bits: Mapping[str, int]

    def operation(self, name: str) -> Energy:
        """Return the energy of one operation, such as "fp32 multiply".

        Raises:
            UnknownName: lists what the basis has.

        >>> basis("horowitz-45nm").operation("fp32 multiply").m_as("pJ")
        3.7
        """
        if name not in self.operations:
            raise UnknownName.of(f"operation on the basis {self.id}", name, self.operations)
        return Energy(self.operations[name].value, self.id)

    def access(self, level: str, bits: int | None = None) -> Energy:
        """Compute the energy to move `bits` from a memory level, in proportion to the width that the document gives.

        Args:
            level: such as "sram", "dram", "l2" or "hbm".
            bits: how many; without it, the width that the document gives.

        Raises:
            UnknownName: lists the levels that the basis has.

        >>> basis("horowitz-45nm").access("dram", bits=8).m_as("pJ")
        162.5
        """
        if level not in self.accesses:
            raise UnknownName.of(f"memory level on the basis {self.id}", level, self.accesses)
        width = self.bits[level]
        count = width if bits is None else positive_int("bits", bits)
        return Energy(self.accesses[level].value * (count / width), self.id)

    def mac(self, precision: str = "", accumulate: str = "") -> Energy:
        """Compute the energy of a multiply-add: a multiply in `precision`, an add in `accumulate`, by default the same.

        Raises:
            UnknownName: lists the operations that the basis has.

        >>> round(basis("horowitz-45nm").mac("fp32") / basis("horowitz-45nm").mac("int8"))
        20
        """
        if "mac" in self.operations:
            return self.operation("mac")
        return self.operation(f"{precision} multiply") + self.operation(f"{accumulate or precision} add")


class _Access(Number, frozen=True, kw_only=True):
    bits: int


class _BasisEntry(Entry, frozen=True, kw_only=True):
    title: str
    node: str
    operations: dict[str, Number] = field(default_factory=dict)
    accesses: dict[str, _Access] = field(default_factory=dict)


def _basis(basis_id: str, entry: _BasisEntry) -> Basis:
    return Basis(
        id=basis_id,
        title=entry.title,
        node=entry.node,
        operations={name: number.sourced for name, number in entry.operations.items()},
        accesses={level: access.sourced for level, access in entry.accesses.items()},
        bits={level: access.bits for level, access in entry.accesses.items()},
    )


BASES = Catalog("energy basis", lambda: data_file("energies.toml", dict[str, _BasisEntry]), _basis)
"""Every basis of energies."""


def basis(basis_id: str) -> Basis:
    """Return the basis with this id.

    Raises:
        UnknownName: with the nearest id and all of them.

    >>> basis("eyeriss-65nm").access("dram") / basis("eyeriss-65nm").access("register_file")
    200.0
    """
    return BASES.get(basis_id)


def bases() -> tuple[Basis, ...]:
    """Return every basis.

    >>> [b.node for b in bases()][:2]
    ['45 nm', '65 nm']
    """
    return BASES.all()


@dataclass(frozen=True)
class OpEnergy:
    """Energy of one operation, split into arithmetic and movement on one basis."""

    arithmetic: Energy
    movement: Energy

    @property
    def total(self) -> Energy:
        """Both together."""
        return self.arithmetic + self.movement


def op_energy(op: Op, basis_id: str, level: str = "dram") -> OpEnergy:
    """Compute the energy of an operation whose tensors all come from and go to one memory level.

    Formula: FLOPs / 2 x energy of a multiply-add + bits moved x energy per bit.

    Args:
        op: its number format must be one that the basis gives a multiply and an add for.
        basis_id: such as "horowitz-45nm".
        level: memory level of the basis.

    Raises:
        UnknownName: if the basis lacks the level or the arithmetic of the op's format.

    >>> from mlsys import ops
    >>> energy = op_energy(ops.matmul(m=1024, n=1024, k=1024, dtype="fp32"), "horowitz-45nm")
    >>> round(energy.arithmetic.m_as("mJ"), 2), round(energy.movement.m_as("mJ"), 2)
    (4.94, 2.04)
    """
    chosen = basis(basis_id)
    bits = 8 * (op.read_count + op.write_count)
    return OpEnergy(
        arithmetic=chosen.mac(op.dtype) * (op.flop_count / 2),
        movement=chosen.access(level, bits=1) * bits,
    )


def vector_mac(basis_id: str, mac: Amount, level: str = "dram", words: int = 4) -> Energy:
    """Compute the energy of a multiply-add in a vector unit without cache or registers: all words go to memory.

    Formula: words x access + mac. It is an upper bound that no real chip pays, for caches and registers reuse words.

    Args:
        basis_id: the basis of the access; `mac` must be of the same.
        mac: energy of the multiply-add itself, pJ.
        level: where the words lie.
        words: 4 counts a, b and the sum read, and the sum written.

    Raises:
        InvalidValue: if `mac` is negative or `words` no positive integer.
        UnknownName: if the basis or the level is unknown.

    >>> vector_mac("horowitz-45nm", mac=1).m_as("pJ")
    2601.0
    """
    arithmetic = Energy(ureg.Quantity(amount("mac", mac, "pJ"), "pJ"), basis_id)
    return basis(basis_id).access(level) * positive_int("words", words) + arithmetic


def systolic_mac(basis_id: str, mac: Amount, array_dim: int, level: str = "dram") -> Energy:
    """Compute the energy of a multiply-add in a systolic array, where each operand is used `array_dim` times.

    Formula: 2 / array_dim x access + mac. The results' way out is left out, as are fill and drain.

    Args:
        basis_id: the basis of the access; `mac` must be of the same.
        mac: energy of the multiply-add itself, pJ.
        array_dim: rows and columns of the array.
        level: where the operands lie.

    Raises:
        InvalidValue: if `mac` is negative or `array_dim` no positive integer.
        UnknownName: if the basis or the level is unknown.

    >>> systolic_mac("horowitz-45nm", mac=1, array_dim=128).m_as("pJ")
    11.15625
    """
    arithmetic = Energy(ureg.Quantity(amount("mac", mac, "pJ"), "pJ"), basis_id)
    return basis(basis_id).access(level) * (2 / positive_int("array_dim", array_dim)) + arithmetic
