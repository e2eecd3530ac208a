"""Number formats bit by bit: what each can hold, and what becomes of a number in it.

A floating-point code is sign, exponent, mantissa. With bias b = 2^(exponent_bits - 1) - 1 it stands for
(-1)^sign 1.mantissa 2^(exponent - b), or, where the exponent field is 0, for (-1)^sign 0.mantissa 2^(1 - b).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlsys.errors import InvalidValue, UnknownName

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class FloatFormat:
    """A floating-point format.

    Attributes:
        name: such as "bf16".
        exponent_bits: width of the exponent.
        mantissa_bits: width of the stored mantissa.
        specials: what the highest exponent codes: "ieee" infinities and NaNs; "nan" one NaN per sign and else numbers
            (the fn formats); "none" numbers only.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    specials: str = "ieee"

    @property
    def bits(self) -> int:
        """Bits of a code, sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        """What is subtracted from the exponent field."""
        return int(2 ** (self.exponent_bits - 1) - 1)

    @cached_property
    def max(self) -> float:
        """Largest finite number."""
        return float(self.decode(self._max_code))

    @property
    def min_normal(self) -> float:
        """Smallest positive number of full precision: 2^(1 - bias)."""
        return float(2.0 ** (1 - self.bias))

    @property
    def min_subnormal(self) -> float:
        """Smallest positive number: 2^(1 - bias - mantissa_bits)."""
        return float(2.0 ** (1 - self.bias - self.mantissa_bits))

    @property
    def epsilon(self) -> float:
        """Distance from 1 to the next number: 2^-mantissa_bits."""
        return float(2.0**-self.mantissa_bits)

    def round(self, values: ArrayLike, saturate: bool | None = None) -> FloatArray:
        """The nearest numbers of the format, ties to the even mantissa.

        Args:
            values: numbers of any shape.
            saturate: keep what is too large at the largest number (True), or make it infinity, or NaN where the
                format has no infinity (False). Without it, formats with infinities use them and the others saturate,
                as casts on GPUs and in torch from 2.12 do. A format without NaN always saturates.

        Raises:
            InvalidValue: if a value is NaN, or infinite, and the format has none.

        >>> float_format("fp16").round([2049, 65519, 65520, 6e-8]).tolist()
        [2048.0, 65504.0, inf, 5.960464477539063e-08]
        """
        x = np.asarray(values, dtype=np.float64)
        if self.specials == "none" and not np.isfinite(x).all():
            raise InvalidValue(f"{self.name} has neither NaN nor infinity: give finite values")
        _, exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))
        lowest_bit = np.maximum(exponent - 1, 1 - self.bias) - self.mantissa_bits
        # Scaling by a power of two is exact, and rint rounds ties to even.
        rounded = np.ldexp(np.rint(np.ldexp(x, -lowest_bit)), lowest_bit)
        too_large = np.abs(rounded) > self.max
        if saturate is None:
            saturate = self.specials != "ieee"
        if saturate or self.specials == "none":
            limit = np.full_like(rounded, self.max)
        else:
            limit = np.full_like(rounded, np.inf if self.specials == "ieee" else np.nan)
        result: FloatArray = np.where(too_large, np.copysign(limit, rounded), rounded)
        return result

    def encode(self, values: ArrayLike, saturate: bool | None = None) -> IntArray:
        """The codes of the nearest numbers, as integers; the arguments are those of `round`.

        >>> [hex(code) for code in float_format("bf16").encode([1.0, -2.0, 0.1]).tolist()]
        ['0x3f80', '0xc000', '0x3dcd']
        """
        rounded = self.round(values, saturate)
        magnitude = np.where(np.isfinite(rounded), np.abs(rounded), 1.0)
        exponent = np.where(magnitude < self.min_normal, 1 - self.bias, np.frexp(magnitude)[1] - 1)
        significand = np.ldexp(magnitude, self.mantissa_bits - exponent).astype(np.int64)
        # A normal number's hidden bit adds the missing one to the exponent field; a subnormal has none to add.
        code = ((exponent + self.bias - 1).astype(np.int64) << self.mantissa_bits) + significand
        code = np.where(np.isinf(rounded), self._infinity_code, code)
        code = np.where(np.isnan(rounded), self._nan_code, code)
        result: IntArray = np.where(np.signbit(rounded), code | (1 << (self.bits - 1)), code)
        return result

    def decode(self, codes: ArrayLike) -> FloatArray:
        """The numbers that codes stand for.

        Args:
            codes: integers of any shape, 0 up to 2^bits - 1.

        Raises:
            InvalidValue: if a code has more bits than the format.

        >>> float_format("fp8-e4m3").decode([0b0_1111_110, 0b0_0000_001]).tolist()
        [448.0, 0.001953125]
        """
        code = np.asarray(codes, dtype=np.int64)
        if ((code < 0) | (code >> self.bits != 0)).any():
            raise InvalidValue(f"a code of {self.name} must be between 0 and {2**self.bits - 1}")
        sign = np.where(code >> (self.bits - 1) & 1, -1.0, 1.0)
        field = code >> self.mantissa_bits & (2**self.exponent_bits - 1)
        mantissa = code & (2**self.mantissa_bits - 1)
        significand = np.where(field > 0, mantissa + 2**self.mantissa_bits, mantissa).astype(np.float64)
        number = np.ldexp(significand, np.maximum(field, 1) - self.bias - self.mantissa_bits)
        unsigned = code & (2 ** (self.bits - 1) - 1)
        if self.specials != "none":
            number = np.where(unsigned > self._max_code, np.nan, number)
        if self.specials == "ieee":
            number = np.where(unsigned == self._infinity_code, np.inf, number)
        result: FloatArray = sign * number
        return result

    def layout(self, value: float) -> tuple[str, str, str]:
        """Sign, exponent and mantissa of a number's code, as strings of bits.

        >>> float_format("fp16").layout(-1.5)
        ('1', '01111', '1000000000')
        """
        bits = f"{int(self.encode(value)):0{self.bits}b}"
        return bits[0], bits[1 : 1 + self.exponent_bits], bits[1 + self.exponent_bits :]

    @property
    def _infinity_code(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits

    @property
    def _all_ones(self) -> int:
        return (1 << (self.bits - 1)) - 1

    @property
    def _nan_code(self) -> int:
        quiet_nan = self._infinity_code + (1 << (self.mantissa_bits - 1))
        return quiet_nan if self.specials == "ieee" else self._all_ones

    @property
    def _max_code(self) -> int:
        return {"ieee": self._infinity_code - 1, "nan": self._all_ones - 1, "none": self._all_ones}[self.specials]


FLOAT_FORMATS: Mapping[str, FloatFormat] = {
    f.name: f
    for f in (
        FloatFormat("fp32", 8, 23),
        FloatFormat("tf32", 8, 10),
        FloatFormat("bf16", 8, 7),
        FloatFormat("fp16", 5, 10),
        FloatFormat("fp8-e4m3", 4, 3, specials="nan"),
        FloatFormat("fp8-e5m2", 5, 2),
        FloatFormat("fp4-e2m1", 2, 1, specials="none"),
    )
}
"""Formats by name. Sources: IEEE 754-2019 (fp32, fp16); NVIDIA A100 architecture whitepaper, 2020 (tf32, bf16);
Micikevicius et al., FP8 Formats for Deep Learning, arXiv:2209.05433 (2022); OCP Microscaling Formats v1.0, 2023
(fp4)."""


def float_format(name: str) -> FloatFormat:
    """The floating-point format with this name.

    Raises:
        UnknownName: with the nearest name and all of them.

    >>> float_format("bf16").epsilon
    0.0078125
    """
    if name not in FLOAT_FORMATS:
        raise UnknownName.of("floating-point format", name, FLOAT_FORMATS)
    return FLOAT_FORMATS[name]
