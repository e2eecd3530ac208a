"""Tolerances: how far a right result may be from the reference, in one place for all labs.

A result is compared with a float64 reference rounded to the result's dtype. An element may be off by
`relative x max(|expected|, rms of expected)`: the root mean square is for elements near zero, whose error comes from
large terms that cancelled.

Reasons for the sizes. Rounding once costs half a unit in the last place: 2^-24 (fp32), 2^-11 (fp16), 2^-8 (bf16) of
the value. fp32 sums of up to 4,096 products add about 10 such errors, so 1e-5 allows any order of summing and still
detects tf32, whose products are off by 5e-4. For half formats the bound is four roundings.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlsys.errors import UnknownName

if TYPE_CHECKING:
    import torch

RELATIVE = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
"""Relative tolerance by torch dtype; integers and booleans must agree exactly."""


CHUNK_ELEMENTS = 2**16
"""Elements that are compared at a time; their float64 copies fit a core's cache."""


def relative_tolerance(dtype: str) -> float:
    """Return the tolerance for a result of `dtype`, such as "float32".

    >>> relative_tolerance("float32")
    1e-05
    """
    if dtype in RELATIVE:
        return RELATIVE[dtype]
    if dtype == "bool" or dtype.removeprefix("u").startswith("int"):
        return 0.0
    raise UnknownName.of("dtype", dtype, RELATIVE)


def dtype_name(tensor: "torch.Tensor") -> str:
    """Return the tensor's dtype as `relative_tolerance` takes it, such as "float32"."""
    return str(tensor.dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Difference:
    """How a result differs from its reference.

    Attributes:
        wrong: which elements are beyond their tolerance; a NaN is.
        largest: the greatest absolute error of a wrong element whose error is finite; None if there is none.
        relative_rms: root mean square of all errors over that of the reference; infinite or NaN where an error is.
    """

    wrong: "torch.Tensor"
    largest: float | None
    relative_rms: float


def is_close(actual: "torch.Tensor", expected: "torch.Tensor") -> bool:
    """Return whether every element is within its tolerance; a NaN is not."""
    return all(bool((error <= allowed).all()) for error, allowed in _in_pieces(actual, expected, rms_of(expected)))


def difference(actual: "torch.Tensor", expected: "torch.Tensor") -> Difference:
    """Return where and how far a result of the same shape and dtype is off."""
    import torch

    wrong: list[torch.Tensor] = []
    largest: float | None = None
    total, scale = 0.0, rms_of(expected)
    for error, allowed in _in_pieces(actual, expected, scale):
        wrong.append(~(error <= allowed))
        total += float(error.square().sum())
        finite = error[wrong[-1] & error.isfinite()]
        if finite.numel():
            largest = max(float(finite.max()), largest or 0.0)
    relative = math.sqrt(total / expected.numel()) / scale if scale else math.inf
    return Difference(torch.cat(wrong).reshape(expected.shape), largest, relative)


def errors_and_tolerance(actual: "torch.Tensor", expected: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """Return the absolute error and what is allowed, per element, in float64. For small tensors."""
    return _compared(actual, expected, rms_of(expected))


def _in_pieces(
    actual: "torch.Tensor", expected: "torch.Tensor", rms: float
) -> Iterator[tuple["torch.Tensor", "torch.Tensor"]]:
    """Yield the errors and tolerances of chunks that fit a core's cache.

    Float64 copies of large tensors would take ten times as long to make as to compare, and more memory than there is.
    """
    for piece in zip(actual.flatten().split(CHUNK_ELEMENTS), expected.flatten().split(CHUNK_ELEMENTS), strict=True):
        yield _compared(*piece, rms)


def rms_of(expected: "torch.Tensor") -> float:
    """Return the root mean square of the finite elements."""
    total, count = 0.0, 0
    for piece in expected.flatten().split(CHUNK_ELEMENTS):
        finite = piece.double()[piece.isfinite()]
        total, count = total + float(finite.square().sum()), count + finite.numel()
    return math.sqrt(total / count) if count else 0.0


def _compared(actual: "torch.Tensor", expected: "torch.Tensor", rms: float) -> tuple["torch.Tensor", "torch.Tensor"]:
    import torch

    reference = expected.double()
    result = actual.double()
    error = torch.where(result == reference, 0.0, (result - reference).abs())  # an infinity must be the same one
    allowed = relative_tolerance(dtype_name(expected)) * reference.abs().clamp(min=rms)
    return error, torch.where(reference.isfinite(), allowed, 0.0)
