"""Tolerances: how far a right result may be from the reference, in one place for all labs.

A result is compared with a float64 reference rounded to the result's dtype. An element may be off by
`relative x max(|expected|, rms of expected, rms of its row)`: the root mean squares are for elements near zero, whose
error comes from large terms that cancelled. A row, along the last dimension, also counts by itself because rows differ
in size: in causal attention the first ones are means of few values. By the rms of the whole result alone, one draw in
sixteen had an element there that an honest float16 kernel got wrong.

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


CHUNK_ELEMENTS = {"cpu": 2**16, "cuda": 2**22}
"""Elements that are compared at a time, by device; their float64 copies fit a core's cache, or keep a GPU busy."""


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
    return all(bool((error <= allowed).all()) for error, allowed in _in_pieces(actual, expected))


def difference(actual: "torch.Tensor", expected: "torch.Tensor") -> Difference:
    """Return where and how far a result of the same shape and dtype is off."""
    import torch

    wrong: list[torch.Tensor] = []
    largest: float | None = None
    total, scale = 0.0, rms_of(expected)
    for error, allowed in _in_pieces(actual, expected):
        wrong.append(~(error <= allowed))
        total += float(error.square().sum())
        finite = error[wrong[-1] & error.isfinite()]
        if finite.numel():
            largest = max(float(finite.max()), largest or 0.0)
    relative = math.sqrt(total / expected.numel()) / scale if scale else math.inf
    return Difference(torch.cat(wrong).reshape(expected.shape), largest, relative)


def errors_and_tolerance(actual: "torch.Tensor", expected: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    """Return the absolute error and what is allowed, per element, in float64. For small tensors."""
    import torch

    error, allowed = (torch.cat(parts) for parts in zip(*_in_pieces(actual, expected), strict=True))
    return error.reshape(expected.shape), allowed.reshape(expected.shape)


def rms_of(expected: "torch.Tensor") -> float:
    """Return the root mean square of the finite elements."""
    squares, counts = _sums_of_rows(_rows(expected))
    count = int(counts.sum())
    return math.sqrt(float(squares.sum()) / count) if count else 0.0


def _rows(tensor: "torch.Tensor") -> "torch.Tensor":
    """Return a matrix whose rows are those along the last dimension."""
    return tensor.reshape(-1, tensor.shape[-1] if tensor.ndim and tensor.shape[-1] else 1)


def _pieces(rows: "torch.Tensor") -> "Iterator[tuple[slice, torch.Tensor]]":
    """Yield parts of at most `CHUNK_ELEMENTS`, each with its rows: whole rows, or a part of one row.

    Float64 copies of large tensors would take ten times as long to make as to compare, and more memory than there is.
    """
    most = CHUNK_ELEMENTS[rows.device.type]
    step = max(1, most // rows.shape[1])
    for first in range(0, rows.shape[0], step):
        for part in rows[first : first + step].split(most, dim=1):
            yield slice(first, first + step), part


def _sums_of_rows(rows: "torch.Tensor") -> "tuple[torch.Tensor, torch.Tensor]":
    """Return the sum of the squares of each row's finite elements, and how many there are, as columns."""
    import torch

    squares = torch.zeros(rows.shape[0], 1, dtype=torch.float64, device=rows.device)
    counts = torch.zeros_like(squares)
    for place, part in _pieces(rows):
        finite = part.isfinite()
        squares[place] += torch.where(finite, part.double(), 0.0).square().sum(1, keepdim=True)
        counts[place] += finite.sum(1, keepdim=True)
    return squares, counts


def _in_pieces(actual: "torch.Tensor", expected: "torch.Tensor") -> "Iterator[tuple[torch.Tensor, torch.Tensor]]":
    """Yield the errors and what is allowed, piece by piece in the order of the elements, as flat tensors."""
    import torch

    found, right = _rows(actual), _rows(expected)
    squares, counts = _sums_of_rows(right)
    overall = squares.sum() / counts.sum().clamp(min=1)
    floors = (squares / counts.clamp(min=1)).clamp(min=overall).sqrt()
    relative = relative_tolerance(dtype_name(expected))
    for (place, some), (_, others) in zip(_pieces(right), _pieces(found), strict=True):
        reference, result = some.double(), others.double()
        error = torch.where(result == reference, 0.0, (result - reference).abs())  # an infinity must be the same one
        allowed = relative * torch.maximum(reference.abs(), floors[place])
        yield error.flatten(), torch.where(reference.isfinite(), allowed, 0.0).flatten()
