"""Values that the judge and a sandboxed process exchange: tensors with their strides, and plain values.

A value becomes JSON and a list of arrays. Nothing is pickled, and no other kinds of values can be sent.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsys.errors import a_kind
from mlsys.grading.checks.tolerances import dtype_name
from mlsys.judge.sandbox.protocol.shared_buffer import MAX_DIMENSIONS, Tampered, Tensor

if TYPE_CHECKING:
    import torch

MAX_ITEMS = 10_000
"""Most items of all lists and dicts of one value together."""

_PLAIN = (bool, int, str, type(None))


class NotSendable(TypeError):
    """A value that a test and a student's function cannot exchange."""


def encode(value: object, arrays: list[Tensor]) -> Any:
    """Return `value` as JSON; its tensors are appended to `arrays`.

    A value of a class that is derived from a plain one, such as a named tuple, a `Counter` or an `IntEnum`, is sent as
    the plain one, and a NumPy number as a Python number.

    Raises:
        NotSendable: for anything but tensors, numbers, strings, None, tuples, lists and dicts of these; for a dict
            whose keys are tensors, tuples, lists or dicts; for more than `MAX_ITEMS` items.
    """
    budget = [MAX_ITEMS]

    def write(value: object) -> Any:
        import torch

        budget[0] -= 1
        if budget[0] < 0:
            raise NotSendable(f"a value with so many items cannot be sent; the limit is {MAX_ITEMS:,}: use a tensor")
        if isinstance(value, torch.Tensor):
            return _encode_tensor(value, arrays)
        value = _plain(value)
        if type(value) in _PLAIN:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is tuple:
            return {"tuple": [write(item) for item in value]}
        if type(value) is list:
            return {"list": [write(item) for item in value]}
        if type(value) is dict:
            for key in value:
                if type(_plain(key)) not in (*_PLAIN, float):
                    raise NotSendable(f"a dict with {a_kind(key)} as key cannot be sent; use numbers and strings")
            return {"dict": [[write(key), write(item)] for key, item in value.items()]}
        raise NotSendable(f"{a_kind(value)} cannot be sent; use tensors, numbers, strings, tuples, lists and dicts")

    return write(value)


def _plain(value: object) -> object:
    """Return the plain value of one whose class is derived from a plain class; anything else as it is.

    The plain class's own methods are called, even if a derived class overrides them.
    """
    kind = type(value)
    if kind in _PLAIN or kind is float:
        return value
    if issubclass(kind, np.generic) and not issubclass(kind, float | str):
        return np.generic.item(value)  # type: ignore[call-overload]
    if issubclass(kind, int):
        return int.__int__(value)  # type: ignore[arg-type]
    if issubclass(kind, float):
        return float.__float__(value)  # type: ignore[arg-type]
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, tuple):
        return tuple(tuple.__iter__(value))  # type: ignore[arg-type]
    if issubclass(kind, list):
        return list(list.__iter__(value))  # type: ignore[arg-type]
    if issubclass(kind, dict):
        return dict(dict.items(value))  # type: ignore[arg-type]
    return value


def decode(value: object, arrays: list[Tensor], device: str = "cpu", *, strided: bool = True) -> Any:
    """Return the value that `encode` made.

    Args:
        value: the received JSON.
        arrays: the received arrays.
        device: device of its tensors.
        strided: give tensors the strides they had. A judge does not, because wide strides need memory.

    Raises:
        Tampered: it is not such a value.
    """
    budget = [MAX_ITEMS]
    unread = set(range(len(arrays)))

    def read(value: object) -> Any:
        budget[0] -= 1
        if budget[0] < 0:
            raise Tampered(f"a value of more than {MAX_ITEMS} items")
        match value:
            case None | bool() | int() | float() | str():
                return value
            case {"float": ("inf" | "-inf" | "nan") as text, **rest} if not rest:
                return float(text)
            case {"tuple": list(items), **rest} if not rest:
                return tuple(read(item) for item in items)
            case {"list": list(items), **rest} if not rest:
                return [read(item) for item in items]
            case {"dict": list(items), **rest} if not rest and all(type(i) is list and len(i) == 2 for i in items):
                pairs = [(read(key), read(item)) for key, item in items]
                if not all(type(key) in (*_PLAIN, float) for key, _ in pairs):
                    raise Tampered("a dict whose keys are not plain")
                return dict(pairs)
            case {"tensor": int(index), "dtype": str(dtype), "strides": list(strides), **rest} if not rest:
                if type(index) is int and index in unread:  # no honest value names one twice
                    unread.remove(index)
                    return _decode_tensor(arrays[index], dtype, strides if strided else [], device)
        raise Tampered(f"not a value: {str(value)[:100]}")

    return read(value)


def _encode_tensor(value: "torch.Tensor", arrays: list[Tensor]) -> Any:
    """Append a tensor's elements in row order, and return its strides; a subclass is sent as what it holds."""
    import torch

    if value.layout != torch.strided or value.is_complex() or value.is_quantized or value.is_meta:
        raise NotSendable(f"a tensor of {value.dtype}, {value.layout}, on device {value.device} cannot be sent")
    if value.dim() > MAX_DIMENSIONS:
        raise NotSendable(f"a tensor of {value.dim()} dimensions cannot be sent; the limit is {MAX_DIMENSIONS}")
    plain = value.detach().as_subclass(torch.Tensor)
    dtype = dtype_name(plain)
    strides = list(plain.stride())
    plain = plain.resolve_neg().cpu().contiguous()
    bits = plain.view(torch.uint16) if dtype == "bfloat16" else plain
    arrays.append(bits.numpy())
    return {"tensor": len(arrays) - 1, "dtype": dtype, "strides": strides}


def _decode_tensor(array: Tensor, dtype: str, strides: list[object], device: str) -> "torch.Tensor":
    """Return a tensor in new memory, with the strides it had if these do not overlap."""
    import torch

    flat = torch.from_numpy(array)
    if dtype == "bfloat16" and array.dtype == np.uint16:
        flat = flat.view(torch.bfloat16)
    if dtype_name(flat) != dtype:
        raise Tampered(f"a tensor that says {dtype} and holds {flat.dtype}")
    flat = flat.to(device)
    steps = [step for step in strides if type(step) is int and step >= 0]
    if len(steps) != flat.dim() or not _gives_each_a_place(flat.shape, steps, flat.numel()):
        return flat
    return torch.empty_strided(tuple(flat.shape), steps, dtype=flat.dtype, device=device).copy_(flat)


def _gives_each_a_place(shape: tuple[int, ...], strides: list[int], elements: int) -> bool:
    """Return whether no two elements share an address, and little memory is wasted between them."""
    reach = 1
    for step, size in sorted((step, size) for step, size in zip(strides, shape, strict=True) if size > 1):
        if step < reach:
            return False
        reach = step * size
    return reach <= 64 * max(elements, 1)
