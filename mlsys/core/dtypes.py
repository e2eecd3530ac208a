"""Names and sizes of the number formats that operations and models are stored in.

>>> from mlsys.core.dtypes import bytes_per_element
>>> bytes_per_element("bf16"), bytes_per_element("int4")
(2, 0.5)
"""

from mlsys.errors import UnknownName

BITS = {"fp64": 64, "fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
"""Bits that one element takes in memory. TF32 is a way to multiply: its 19 bits are stored as an fp32 word."""


def bytes_per_element(dtype: str) -> int | float:
    """Return the bytes that one element takes in memory: `bits / 8`, a whole number but for int4 (half a byte).

    Args:
        dtype: one of fp64, fp32, tf32, bf16, fp16, fp8, int8, int4.

    Raises:
        UnknownName: with the nearest name and all of them.

    >>> bytes_per_element("fp8")
    1
    """
    if dtype not in BITS:
        raise UnknownName.of("dtype", dtype, BITS)
    bits = BITS[dtype]
    return bits // 8 if bits % 8 == 0 else bits / 8
