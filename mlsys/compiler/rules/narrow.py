"""Formats of 8 bits and less: stored as codes in bytes, only moved and converted, never computed with.

A float format is a table of the numbers that its codes mean. To encode, a kernel counts the limits between neighboring
codes that lie below the number. The limits are found by asking ml_dtypes, by bisection over all 32-bit floats.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from mlsys.compiler.ir.expression import Expression, apply, cast, number, reduction, where
from mlsys.compiler.ir.graph import NARROW_FLOATS, NARROW_INTEGERS
from mlsys.compiler.ir.index import Fetched, index
from mlsys.compiler.rules.values import Value, new_axes


def storage(dtype: str) -> Any:
    """Return the format of ml_dtypes, which comes with onnx, that NumPy uses for a format that it lacks."""
    import ml_dtypes

    own = {"bf16": "bfloat16", "fp4e2m1": "float4_e2m1fn"}
    return np.dtype(getattr(ml_dtypes, own.get(dtype, dtype.replace("fp8", "float8_"))))


def as_tensor(value: Any) -> torch.Tensor:
    """Return a NumPy array, also of a format of ml_dtypes, as a torch tensor."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    array = np.array(value, copy=True)
    name = array.dtype.name
    if name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    if name in NARROW_INTEGERS:
        return torch.from_numpy(array.astype(np.int8 if NARROW_INTEGERS[name][1] else np.uint8))
    return torch.from_numpy(array.view(np.uint8) if name.startswith(("float8", "float4")) else array)


def as_array(value: torch.Tensor, dtype: str) -> Any:
    """Return a torch tensor of a format as a NumPy array."""
    value = value.cpu()
    if dtype == "bf16":
        return value.view(torch.int16).numpy().view(storage(dtype))
    array = value.numpy()
    if dtype in NARROW_INTEGERS:
        return array.astype(storage(dtype))
    return array.view(storage(dtype)) if dtype in NARROW_FLOATS else array


def wrapped(value: Expression, dtype: str) -> Expression:
    """Return the lowest bits of a number, as conversion to integers of 2 or 4 bits keeps them."""
    bits, signed = NARROW_INTEGERS[dtype]
    low = apply("and", cast(value, "int32"), (1 << bits) - 1)
    return cast(where(low < 1 << (bits - 1), low, low - (1 << bits)) if signed else low, dtype)


@cache
def tables(dtype: str, saturate: bool) -> dict[str, torch.Tensor]:
    """Return the numbers of all codes, the codes in order of their numbers, the limits between, and the code of NaN."""
    kind = storage(dtype)
    codes_of = 16 if dtype == "fp4e2m1" else 256
    numbers = np.arange(codes_of, dtype=np.uint8).view(kind).astype(np.float32)

    def number_at(position: Any) -> Any:
        """The float at a place in the order of all floats, in which -0 is at -1 and 0 at 0."""
        bits = np.where(position < 0, ~position | 0x80000000, position)
        return bits.astype(np.uint32).view(np.float32)

    def code_at(position: Any) -> Any:
        value = number_at(np.atleast_1d(position))
        with np.errstate(all="ignore"):
            if saturate:
                value = np.clip(value, numbers[np.isfinite(numbers)].min(), numbers[np.isfinite(numbers)].max())
            return value.astype(kind).view(np.uint8)

    infinity = int(np.float32(np.inf).view(np.uint32))
    starts = [-infinity - 1]
    while True:  # the first float of each code, in order: double the distance, then halve it
        here, low, step = code_at(starts[-1])[0], starts[-1], 1
        while low + step <= infinity and code_at(low + step)[0] == here:
            step *= 2
        low, high = low + step // 2, min(low + step, infinity + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if code_at(middle)[0] == here else (low, middle)
        if high > infinity:
            break
        starts.append(high)
    positions = np.array(starts)
    limits = number_at(positions[1:] - 1)  # a number above the last float of a code has a later code
    limits = np.where(limits == 0, np.float32(-1e-45), limits)  # no comparison tells -0 from 0
    nan = np.array([np.nan], np.float32).astype(kind).view(np.uint8)
    return {
        "numbers": torch.from_numpy(numbers),
        "codes": torch.from_numpy(np.concatenate([code_at(positions), nan])),
        "limits": torch.from_numpy(limits),
    }


def decode(x: Value, numbers: Value, dtype: str) -> Callable[..., Expression]:
    """Return the element function of codes as numbers."""
    return lambda *places: cast(numbers.at(index(Fetched(x.at(*places), numbers.shape[0]))), dtype)


def encode(x: Value, codes: Value, limits: Value) -> Callable[..., Expression]:
    """Return the element function of numbers as codes."""

    def element(*places: Any) -> Expression:
        value = cast(x.at(*places), "fp32")
        minus_zero = apply("eq", value, 0, dtype="bool") & (number(1, "fp32") / value < 0)
        value = where(minus_zero, -1e-45, value)
        over = new_axes("c", [limits.shape[0]])
        below = reduction("sum", over, cast(limits.at(index(over[0])) < value, "int32"))
        place = where(apply("ne", value, value, dtype="bool"), limits.shape[0] + 1, below)
        return codes.at(index(Fetched(place, codes.shape[0])))

    return element
