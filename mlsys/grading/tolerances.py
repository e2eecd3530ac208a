"""How far a right result may lie from the reference, stated once for all labs.

A result is compared with a float64 reference rounded to the result's dtype. An element may be off by
`relative x max(|expected|, rms of expected)`: the root mean square stands in for elements near zero, whose error comes
from the large terms that cancelled in them.

Reasons for the sizes. Rounding once costs half a unit in the last place: 2^-24 (fp32), 2^-11 (fp16), 2^-8 (bf16) of
the value. fp32 sums of up to 4,096 products add about 10 such errors, so 1e-5 leaves room for any order of summing and
still sees tf32, whose products are off by 5e-4. For half formats the bound is four roundings.
"""

from typing import TYPE_CHECKING

from mlsys.errors import UnknownName

if TYPE_CHECKING:
    import torch

RELATIVE = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
"""Relative tolerance by torch dtype; integers and booleans must agree exactly."""


def relative_tolerance(dtype: str) -> float:
    """The tolerance for a result of `dtype`, such as "float32".

    >>> relative_tolerance("float32")
    1e-05
    """
    if dtype in RELATIVE:
        return RELATIVE[dtype]
    if dtype == "bool" or dtype.removeprefix("u").startswith("int"):
        return 0.0
    raise UnknownName.of("dtype", dtype, RELATIVE)


def dtype_name(tensor: "torch.Tensor") -> str:
    """The tensor's dtype as `relative_tolerance` takes it, such as "float32"."""
    return str(tensor.dtype).removeprefix("torch.")


def errors_and_tolerance(actual: "torch.Tensor", expected: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """Per element, in float64: the absolute error and what is allowed."""
    import torch

    reference = expected.double()
    finite = reference[reference.isfinite()]
    rms = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    result = actual.double()
    error = torch.where(result == reference, 0.0, (result - reference).abs())  # an infinity must be the same one
    allowed = relative_tolerance(dtype_name(expected)) * reference.abs().clamp(min=rms)
    return error, torch.where(reference.isfinite(), allowed, 0.0)
