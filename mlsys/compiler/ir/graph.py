"""The graph that the stages pass on: tensors, and operations named as in ONNX."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from keyword import iskeyword
from math import prod
from typing import Any

import torch

from mlsys.errors import InvalidValue, UserError

FLOATS = {"fp32": 1, "fp16": 10, "fp64": 11, "bf16": 16}
INTEGERS = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "uint32": 12, "uint64": 13}
DTYPES = FLOATS | INTEGERS | {"bool": 9}
"""Formats by name, with ONNX's numbers."""
_LONG = {"fp32": "float32", "fp16": "float16", "fp64": "float64", "bf16": "bfloat16"}
TORCH: dict[str, torch.dtype] = {name: getattr(torch, _LONG.get(name, name)) for name in DTYPES}
OF_TORCH = {dtype: name for name, dtype in TORCH.items()}
TRITON = {name: f"tl.{_LONG.get(name, name)}" for name in DTYPES} | {"bool": "tl.int1"}


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
    def nbytes(self) -> int:
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
    """Operations in an order in which they can run, and the values of the constants.

    It has the sizes of the inputs and constants only; `mlsys.compiler.rules.tensors_of` infers all others.
    """

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


def fresh(name: str, taken: set[str]) -> str:
    """Return a name for Python like the one given, and remember it as taken."""
    base = re.sub(r"\W+", "_", name).strip("_") or "t"
    base = f"t{base}" if base[0].isdigit() or iskeyword(base) else base
    found, count = base, 1
    while found in taken:
        found, count = f"{base}_{count + 1}", count + 1
    taken.add(found)
    return found
