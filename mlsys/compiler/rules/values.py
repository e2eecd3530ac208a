"""Tensors as functions of their indices, which is what the rules of the operations take and return."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count, zip_longest
from typing import Any, TypeAlias

import torch

from mlsys.compiler.ir.expression import Expression, Load, make, number
from mlsys.compiler.ir.graph import BadGraph, Tensor, tensor_of
from mlsys.compiler.ir.index import Axis, Index, flatten

Element: TypeAlias = Callable[..., Expression]
_numbers = count()


class NeedsValue(Exception):
    """A rule needs the value of a tensor, such as the shape of a Reshape, and it is not a constant."""

    def __init__(self, tensor: str, operation: str) -> None:
        super().__init__(
            f"{operation} needs the value of tensor '{tensor}' when it is compiled: make it a constant or a graph input"
        )
        self.tensor = tensor


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor: its sizes, and the expression of the element at given indices.

    Attributes:
        name: the tensor's name in the graph.
        shape: sizes.
        dtype: format.
        element: called with one index for each dimension, returns an expression.
        known: the value, if it is a constant.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    element: Element
    known: torch.Tensor | None = None
    _made: dict[tuple[Index, ...], Expression] = field(default_factory=dict)

    def at(self, *places: Index) -> Expression:
        """Return the element at indices; the same object for the same indices."""
        if places not in self._made:
            self._made[places] = self.element(*places)
        return self._made[places]

    def spread(self, *places: Index) -> Expression:
        """Return the element of this tensor broadcast to more or larger dimensions, as ONNX and NumPy do."""
        own = places[len(places) - len(self.shape) :]
        return self.at(*(Index() if extent == 1 else place for extent, place in zip(self.shape, own, strict=True)))

    def ints(self, operation: str) -> list[int]:
        """Return the value as a list of integers; see `numbers`."""
        return [int(value) for value in self.numbers(operation)]

    def numbers(self, operation: str) -> list[float]:
        """Return the value as a list of numbers.

        Raises:
            NeedsValue: it is not known.
        """
        if self.known is None:
            raise NeedsValue(self.name, operation)
        return self.known.reshape(-1).tolist()


@dataclass(frozen=True)
class Call:
    """An operation as its rule sees it: attributes, the number of outputs that are used, and its own name."""

    op: str
    attributes: Mapping[str, Any]
    outputs: int = 1

    def get(self, name: str, default: Any) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def refuse(self, what: str, instead: str) -> BadGraph:
        """Return the error for an operation that cannot be compiled as it is."""
        return BadGraph(f"{self.op} {what}: {instead}")


def buffer_value(tensor: Tensor, known: torch.Tensor | None = None) -> Value:
    """Return a tensor in memory; a constant of one element becomes a number in the kernel."""
    if known is not None and known.numel() == 1:
        value = number(known.item(), tensor.dtype)
        return Value(tensor.name, tensor.shape, tensor.dtype, lambda *places: value, known)
    name, shape, dtype = tensor.name, tensor.shape, tensor.dtype
    return Value(name, shape, dtype, lambda *places: make(Load, name, flatten(places, shape), dtype), known)


def constant_value(name: str, known: torch.Tensor) -> Value:
    """Return a constant."""
    return buffer_value(tensor_of(name, known), known)


def new_axes(names: str, extents: Iterable[int]) -> tuple[Axis, ...]:
    """Return axes for a reduction; every call returns other ones."""
    return tuple(Axis(f"{names}{next(_numbers)}", extent) for extent in extents)


def restart_axes() -> None:
    """Number axes from 0 again, so that compiling twice gives the same text."""
    global _numbers
    _numbers = count()


def broadcast(call: Call, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes are broadcast to.

    Raises:
        BadGraph: they do not fit.
    """
    result = []
    for extents in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        sizes = set(extents) - {1}
        if len(sizes) > 1:
            raise call.refuse(f"cannot broadcast the shapes {', '.join(map(str, shapes))}", "make the sizes equal or 1")
        result.append(sizes.pop() if sizes else 1)
    return tuple(result[::-1])


def elementwise(call: Call, function: Callable[..., Expression], *values: Value, dtype: str = "") -> Value:
    """Apply a function of expressions to the elements of tensors, broadcast to one shape."""
    shape = broadcast(call, *(value.shape for value in values))
    return Value(
        "", shape, dtype or values[-1].dtype, lambda *places: function(*(value.spread(*places) for value in values))
    )


Rule: TypeAlias = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""What each ONNX operation computes: a function of a `Call` and its inputs, which returns a `Value` for each output."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of operations."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register
