"""Signed integers in two's complement."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mlsys.core.arguments import int_at_most
from mlsys.errors import InvalidValue
from mlsys.numerics.formats import IntArray


@dataclass(frozen=True)
class IntFormat:
    """A signed integer of 2 to 32 bits; a negative number n has the code n + 2^bits.

    Attributes:
        bits: width.

    Raises:
        InvalidValue: if the width is out of range.

    >>> int4 = IntFormat(4)
    >>> int4.min, int4.max, int4.layout(-3)
    (-8, 7, '1101')
    """

    bits: int

    def __post_init__(self) -> None:
        if int_at_most("bits", self.bits, 32, "the widest integers here") < 2:
            raise InvalidValue(f"bits is {self.bits}: a signed number needs 2 or more")

    @property
    def max(self) -> int:
        """Largest number: 2^(bits - 1) - 1."""
        return (1 << (self.bits - 1)) - 1

    @property
    def min(self) -> int:
        """Smallest number: -2^(bits - 1)."""
        return -(1 << (self.bits - 1))

    def round(self, values: ArrayLike) -> IntArray:
        """The nearest integers of the format: ties to even, and the ends for what is beyond them.

        Args:
            values: finite numbers of any shape.

        Raises:
            InvalidValue: if a value is not finite.

        >>> IntFormat(8).round([0.5, 1.5, -200]).tolist()
        [0, 2, -128]
        """
        x = np.asarray(values, dtype=np.float64)
        if not np.isfinite(x).all():
            raise InvalidValue("an integer format has neither NaN nor infinity: give finite values")
        result: IntArray = np.clip(np.rint(x), self.min, self.max).astype(np.int64)
        return result

    def encode(self, values: ArrayLike) -> IntArray:
        """The codes, 0 up to 2^bits - 1, of the nearest integers.

        >>> IntFormat(8).encode([-1, 1]).tolist()
        [255, 1]
        """
        result: IntArray = self.round(values) & ((1 << self.bits) - 1)
        return result

    def decode(self, codes: ArrayLike) -> IntArray:
        """The integers that codes stand for.

        Raises:
            InvalidValue: if a code has more bits than the format.

        >>> IntFormat(8).decode([255, 127]).tolist()
        [-1, 127]
        """
        code = np.asarray(codes, dtype=np.int64)
        if ((code < 0) | (code >> self.bits != 0)).any():
            raise InvalidValue(f"a code of int{self.bits} must be between 0 and {(1 << self.bits) - 1}")
        result: IntArray = np.where(code > self.max, code - (1 << self.bits), code)
        return result

    def layout(self, value: float) -> str:
        """The code of a number as a string of bits."""
        return f"{int(self.encode(value)):0{self.bits}b}"
