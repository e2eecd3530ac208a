"""The graph that the stages pass on: tensors, and operations named as in ONNX."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch

from mlsys.errors import InvalidValue, UserError

# Formats by name, with ONNX's numbers. The narrow ones are stored one element a byte, and only Cast converts them.
FLOATS = {"fp32": 1, "fp16": 10, "fp64": 11, "bf16": 16}
INTEGERS = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "uint32": 12, "uint64": 13}
NARROW = {"fp8e4m3fn": 17, "fp8e4m3fnuz": 18, "fp8e5m2": 19, "fp8e5m2fnuz": 20, "fp4e2m1": 23}
NARROW |= {"uint4": 21, "int4": 22, "uint2": 25, "int2": 26}
DTYPES = {**FLOATS, **INTEGERS, "bool": 9, **NARROW}

_FULL = {"fp32": "float32", "fp16": "float16", "fp64": "float64", "bf16": "bfloat16"}
_FULL |= {name: "int8" if name.startswith("int") else "uint8" for name in NARROW}
TORCH: dict[str, torch.dtype] = {name: getattr(torch, _FULL.get(name, name)) for name in DTYPES}
TRITON = {name: f"tl.{_FULL.get(name, name)}" for name in DTYPES} | {"bool": "tl.int1"}
OF_TORCH = {TORCH[name]: name for name in DTYPES if name not in NARROW}


class UnsupportedOp(UserError, NotImplementedError):
    """An operation that the compiler lacks."""


class BadGraph(InvalidValue):
    """A graph that cannot be compiled as it is."""


@dataclass(frozen=True)
class Tensor:
    """A tensor's name, its sizes and its format."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """The count of elements."""
        return prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.elements * TORCH[self.dtype].itemsize

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Operation:
    """An ONNX operation; an input or output that is left out has the name ""."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        extra = "".join(f", {name}={value}" for name, value in sorted(self.attributes.items()))
        return f"{', '.join(self.outputs)} = {self.op}({', '.join(self.inputs)}{extra})"


@dataclass(frozen=True)
class Graph:
    """Operations in an order in which they can run, and the values of the constants."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...]
    operations: tuple[Operation, ...]
    constants: Mapping[str, torch.Tensor]

    def __str__(self) -> str:
        lines = [f"inputs    {', '.join(map(str, self.inputs))}"]
        lines += [f"constant  {tensor_of(name, value)}" for name, value in self.constants.items()]
        return "\n".join([*lines, *(f"          {o}" for o in self.operations), f"outputs   {', '.join(self.outputs)}"])


def tensor_of(name: str, value: torch.Tensor) -> Tensor:
    """Describe a torch tensor; raises BadGraph for a format that the compiler lacks."""
    if value.dtype not in OF_TORCH:
        raise BadGraph(f"tensor '{name}' has the format {value.dtype}: convert it to one of {', '.join(DTYPES)}")
    return Tensor(name, tuple(value.shape), OF_TORCH[value.dtype])
