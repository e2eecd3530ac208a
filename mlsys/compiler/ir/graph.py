"""The graph that the stages pass on: tensors, nodes named as ONNX names them, and what a graph must keep to."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch

from mlsys.errors import InvalidValue, UserError

DTYPES = {
    "fp32": (torch.float32, "tl.float32", 1),
    "fp64": (torch.float64, "tl.float64", 11),
    "fp16": (torch.float16, "tl.float16", 10),
    "bf16": (torch.bfloat16, "tl.bfloat16", 16),
    "int8": (torch.int8, "tl.int8", 3),
    "int16": (torch.int16, "tl.int16", 5),
    "int32": (torch.int32, "tl.int32", 6),
    "int64": (torch.int64, "tl.int64", 7),
    "uint8": (torch.uint8, "tl.uint8", 2),
    "uint16": (torch.uint16, "tl.uint16", 4),
    "uint32": (torch.uint32, "tl.uint32", 12),
    "uint64": (torch.uint64, "tl.uint64", 13),
    "bool": (torch.bool, "tl.int1", 9),
    "fp8e4m3fn": (torch.uint8, "tl.uint8", 17),
    "fp8e4m3fnuz": (torch.uint8, "tl.uint8", 18),
    "fp8e5m2": (torch.uint8, "tl.uint8", 19),
    "fp8e5m2fnuz": (torch.uint8, "tl.uint8", 20),
    "fp4e2m1": (torch.uint8, "tl.uint8", 23),
    "uint4": (torch.uint8, "tl.uint8", 21),
    "int4": (torch.int8, "tl.int8", 22),
    "uint2": (torch.uint8, "tl.uint8", 25),
    "int2": (torch.int8, "tl.int8", 26),
}
"""Formats by name: torch's and Triton's that stores it, and ONNX's number."""

NARROW_FLOATS = ("fp8e4m3fn", "fp8e4m3fnuz", "fp8e5m2", "fp8e5m2fnuz", "fp4e2m1")
NARROW_INTEGERS = {"uint4": (4, False), "int4": (4, True), "uint2": (2, False), "int2": (2, True)}
"""Bits, and whether one of them is a sign. Narrow formats, one element a byte, are only moved and converted."""

FLOATS = ("fp16", "bf16", "fp32", "fp64")
TORCH = {name: row[0] for name, row in DTYPES.items()}
TRITON = {name: row[1] for name, row in DTYPES.items()}
OF_TORCH = {row[0]: name for name, row in DTYPES.items() if name not in (*NARROW_FLOATS, *NARROW_INTEGERS)}
OF_ONNX = {row[2]: name for name, row in DTYPES.items()}


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
        lines += [f"          {operation}" for operation in self.operations]
        return "\n".join([*lines, f"outputs   {', '.join(self.outputs)}"])


def tensor_of(name: str, value: torch.Tensor) -> Tensor:
    """Describe a torch tensor.

    Raises:
        BadGraph: its format is none of `DTYPES`.
    """
    if value.dtype not in OF_TORCH:
        raise BadGraph(f"tensor '{name}' has the format {value.dtype}: convert it to one of {', '.join(DTYPES)}")
    return Tensor(name, tuple(value.shape), OF_TORCH[value.dtype])


def dtype_of_onnx(name: str, number: int) -> str:
    """Return the name of the format that has a number in ONNX.

    Raises:
        BadGraph: the compiler lacks it.
    """
    if number not in OF_ONNX:
        raise BadGraph(
            f"tensor '{name}' has ONNX's format number {number}, which the compiler lacks: convert it to one of "
            f"{', '.join(DTYPES)}"
        )
    return OF_ONNX[number]


def check_ops(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse operations that the compiler lacks.

    Raises:
        UnsupportedOp: with the name of the first.
    """
    for name in names:
        if name not in known:
            raise UnsupportedOp(
                f"the compiler has no operation {name!r}: write it with those of mlsys.compiler.OPS, or add a rule for "
                "it in mlsys/compiler/rules"
            )


def in_order(operations: Iterable[Operation], known: Iterable[str]) -> tuple[Operation, ...]:
    """Sort operations so that each follows those whose results it uses, else as they came.

    Raises:
        BadGraph: a tensor that nothing gives, that two operations give, or that depends on itself.
    """
    waiting = list(operations)
    have = {"", *known}
    given = Counter(name for operation in waiting for name in operation.outputs if name)
    for name, times in given.items():
        if name in have or times > 1:
            raise BadGraph(f"tensor '{name}' is given twice: give each result a name of its own")
    for missing in (name for operation in waiting for name in operation.inputs if name not in have | given.keys()):
        raise BadGraph(f"tensor '{missing}' is used and nothing gives it: add it to the inputs or the constants")
    done: list[Operation] = []
    while waiting:
        held = []
        for operation in waiting:
            if have.issuperset(operation.inputs):
                have.update(operation.outputs)
                done.append(operation)
            else:
                held.append(operation)
        if len(held) == len(waiting):
            raise BadGraph(f"tensor '{held[0].outputs[0]}' depends on itself: take its operation out of the cycle")
        waiting = held
    return tuple(done)
