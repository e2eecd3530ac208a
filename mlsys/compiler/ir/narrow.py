"""Formats of 8 bits and less: codes in bytes, which are converted to and from other formats and never computed with."""

import math

from mlsys.compiler.ir.value import Value, constant, elementwise, iota

# Bits of the mantissa, bias, code of the largest number, and the codes of overflow, of NaN, and of the sign.
# ONNX's pages "Float stored in 8 bits" and "in 4 bits". The code of -0 is NaN in formats whose name ends in uz.
FORMS = {
    "fp8e4m3fn": (3, 7, 0x7E, 0x7F, 0x7F, 0x80),
    "fp8e4m3fnuz": (3, 8, 0x7F, 0x00, 0x80, 0x80),
    "fp8e5m2": (2, 15, 0x7B, 0x7C, 0x7E, 0x80),
    "fp8e5m2fnuz": (2, 16, 0x7F, 0x00, 0x80, 0x80),
    "fp4e2m1": (1, 1, 7, 7, 8, 8),
}


def magnitude(code: Value, mantissa: int, bias: int, half: float = 0.0) -> Value:
    """Return the number of a code without sign, or of the middle between it and the next."""
    exponent, one = code / (1 << mantissa), 1 << mantissa
    fraction = (code - exponent * one).cast("fp32") + half
    scale = (exponent.maximum(1).cast("fp32") - (bias + mantissa)).exp2()
    return (exponent > 0).where(fraction + one, fraction) * scale


def decoded(x: Value) -> Value:
    """Return the numbers of codes."""
    code = x.cast("int32")
    if x.dtype not in FORMS:  # an integer
        return code
    mantissa, bias, greatest, overflow, nan, sign = FORMS[x.dtype]
    unsigned, special = code & (sign - 1), constant(math.inf if x.dtype == "fp8e5m2" else math.nan, "fp32")
    number = (unsigned > greatest).where(special, magnitude(unsigned, mantissa, bias))
    number = (unsigned > max(greatest, overflow)).where(math.nan, number)
    number = (code > sign - 1).where(-number, number)
    return code.equal(nan).where(math.nan, number) if x.dtype.endswith("uz") else number


def encoded(x: Value, dtype: str, saturate: bool) -> Value:
    """Return the codes of numbers: of the nearest, the even one of two, found by counting the middles below."""
    if dtype not in FORMS:  # an integer: its lowest bits, of which the first of a signed one counts negative
        half = 1 << int(dtype.strip("uint")) - 1
        low = x.cast("int32") & (2 * half - 1)
        return elementwise("cast", low if dtype.startswith("u") else low.xor(half) - half, dtype=dtype)
    mantissa, bias, greatest, overflow, nan, sign = FORMS[dtype]
    x, code, rank = x.cast("fp32"), iota(greatest + 1, "int32"), len(x.shape)
    middle, size = magnitude(code, mantissa, bias, 0.5), abs(x.reshape((*x.shape, 1)))
    below = (middle < size) | (middle.equal(size) & (code & 1).cast("bool"))
    count = below.cast("int32").reduce("sum", [rank]).squeeze([rank])
    count = count.minimum(greatest) if saturate else count
    negative = (x < 0) | ((1 / x) < 0)  # -0 is
    if dtype.endswith("uz"):
        negative = (negative & (count > 0)) | (count > greatest)
    code = (count > greatest).where(overflow, count)
    return elementwise("cast", x.differs(x).where(nan, negative.where(code + sign, code)), dtype=dtype)
