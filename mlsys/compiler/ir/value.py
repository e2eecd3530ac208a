"""Tensors as functions: a `Value` knows its sizes, and the expression of its element at given indices.

Arithmetic, movement and reductions of Values compute nothing. They compose functions, so the rule of an operation is
written like NumPy: softmax is `e = (x - x.reduce("max", axes)).exp()`, and `e / e.reduce("sum", axes)`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeAlias

import numpy as np
import torch

from mlsys.compiler.ir import expression as ir
from mlsys.compiler.ir.expression import Expr, Scalar
from mlsys.compiler.ir.graph import FLOATS, TORCH, BadGraph, Tensor, tensor_of

Operand: TypeAlias = "Value | Scalar"
Shape: TypeAlias = Sequence[int]


class NeedsValue(BadGraph):
    """A rule needs the value of a tensor, such as the shape of a Reshape, and it is not a constant."""


def _unary(op: str) -> "Callable[[Value], Value]":
    return lambda self: elementwise(op, self)


def _binary(op: str, dtype: str = "", swap: bool = False) -> "Callable[[Value, Operand], Value]":
    return lambda self, other: elementwise(op, *((other, self) if swap else (self, other)), dtype=dtype)


@dataclass(eq=False)
class Value:
    """A tensor that is not computed yet."""

    shape: Shape
    dtype: str
    element: Callable[..., Expr]  # returns the element's expression, from one index for each dimension
    depth: int = 0  # of reductions inside one another, so that each gets axes of its own
    name: str = ""
    known: torch.Tensor | None = None  # the numbers of a constant
    _made: dict[tuple[Expr, ...], Expr] = field(default_factory=dict)

    def at(self, *places: Expr) -> Expr:
        """Return the element at indices; with more or larger dimensions, of the tensor broadcast to them."""
        # From the last dimension on, as broadcasting pairs them
        own = tuple(ir.ZERO if n == 1 else at for n, at in zip(self.shape[::-1], places[::-1], strict=False))[::-1]
        if own not in self._made:
            self._made[own] = self.element(*own)
        return self._made[own]

    def __bool__(self) -> bool:
        raise TypeError("a Value has no truth when the model is compiled: choose elements with where")

    def numbers(self) -> list[Any]:
        """Return the value as a list of numbers; raises NeedsValue if it is not known."""
        if self.known is None:
            raise NeedsValue(f"needs the value of tensor '{self.name}' when it is compiled: make it a constant")
        return self.known.reshape(-1).tolist()

    __neg__, __abs__, exp, exp2, log, log2 = map(_unary, ("neg", "abs", "exp", "exp2", "log", "log2"))
    sqrt, rsqrt, erf, floor, ceil, sin, cos = map(_unary, ("sqrt", "rsqrt", "erf", "floor", "ceil", "sin", "cos"))
    __add__, __sub__, __mul__, __truediv__ = map(_binary, ("add", "sub", "mul", "div"))
    __and__, __or__, maximum, minimum = map(_binary, ("and", "or", "max", "min"))
    __rsub__, __rtruediv__ = _binary("sub", swap=True), _binary("div", swap=True)
    __lt__, __le__, __gt__ = _binary("lt", "bool"), _binary("le", "bool"), _binary("lt", "bool", swap=True)
    equal, differs = _binary("eq", "bool"), _binary("ne", "bool")

    def cast(self, dtype: str) -> "Value":
        """Return the value in another format."""
        return self.differs(0) if dtype == "bool" != self.dtype else elementwise("cast", self, dtype=dtype)

    def where(self, a: Operand, b: Operand) -> "Value":
        """Return a where this condition holds, else b."""
        return elementwise("where", self, a, b)

    def strided(self, shape: Shape, strides: Shape, offset: int) -> "Value":
        """Return a view as torch and NumPy describe it: its element at places is at offset + sum of place * stride."""

        def element(*places: Expr) -> Expr:
            steps = (place * stride for place, stride in zip(places, strides, strict=True))
            return self.at(*ir.unflatten(sum(steps, ir.linear({}, offset)), self.shape))

        return Value(tuple(shape), self.dtype, element, self.depth)

    def view(self, look: Callable[[Any], Any]) -> "Value":
        """Return what a function of NumPy arrays makes of this one without copying, such as a transpose.

        The function gets an array of one byte for each element, whose bytes mean nothing. So the strides and the
        address of what it returns count elements. Raises ValueError if it copies.
        """
        array = np.empty(self.shape, np.uint8)
        seen = look(array)
        if seen.size and not np.may_share_memory(seen, array):
            raise ValueError("view got a copy: use slices, transposes and the like, or Value.take")
        return self.strided(seen.shape, seen.strides, seen.ctypes.data - array.ctypes.data)

    def reshape(self, shape: Shape) -> "Value":
        """Return the same elements in another shape."""
        return self.view(lambda array: array.reshape(shape))

    def squeeze(self, axes: Shape) -> "Value":
        """Return the value without axes, whose sizes are 1."""
        return self.view(lambda array: array.squeeze(tuple(axes)))

    def pad(self, before: Shape, after: Shape, fill: Operand) -> "Value":
        """Return the value with `fill` around it; negative counts cut it."""
        outside = constant(fill, self.dtype)

        def element(*places: Expr) -> Expr:
            own = [place + -low for place, low in zip(places, before, strict=True)]
            inside = [ir.within(place, 0, length) for place, length in zip(own, self.shape, strict=True)]
            return ir.guard(self.at(*own), outside.at(*places), *inside)

        shape = [sum(lengths) for lengths in zip(before, self.shape, after, strict=True)]
        return Value(tuple(shape), self.dtype, element, max(self.depth, outside.depth))

    def take(self, axis: int, indices: "Value") -> "Value":
        """Return what is at indices along an axis; they are read at run time, and count from the end if negative."""
        length, last = self.shape[axis], axis + len(indices.shape)
        row = (indices < 0).where(indices + length, indices)

        def element(*places: Expr) -> Expr:
            fetched = ir.make("fetch", (row.at(*places[axis:last]),), "index", length)
            return self.at(*places[:axis], fetched, *places[last:])

        shape = (*self.shape[:axis], *indices.shape, *self.shape[axis + 1 :])
        return Value(shape, self.dtype, element, max(self.depth, indices.depth))

    def reduce(self, kind: str, axes: Shape) -> "Value":
        """Return the sum, max or min over axes, which stay with the size 1."""
        over = {n: ir.axis(f"r{self.depth}_{n}", self.shape[n]) for n in axes}
        loops = tuple(loop for loop in over.values() if loop is not ir.ZERO)

        def element(*places: Expr) -> Expr:
            if any(loop.extent == 0 for loop in loops):
                return ir.number(neutral(kind, self.dtype), self.dtype)
            body = self.at(*(over.get(n, place) for n, place in enumerate(places)))
            return ir.make("reduce", (body,), self.dtype, (kind, loops)) if loops else body

        shape = tuple(1 if n in over else length for n, length in enumerate(self.shape))
        return Value(shape, self.dtype, element, self.depth + 1)


def neutral(kind: str, dtype: str) -> Scalar:
    """Return the number that changes nothing in a reduction.

    >>> neutral("max", "int8"), neutral("sum", "fp32")
    (-128, 0)
    """
    if kind == "sum":
        return 0
    if dtype in FLOATS:
        return -inf if kind == "max" else inf
    least, greatest = (0, 1) if dtype == "bool" else (torch.iinfo(TORCH[dtype]).min, torch.iinfo(TORCH[dtype]).max)
    return least if kind == "max" else greatest


def elementwise(op: str, *operands: Operand, dtype: str = "") -> Value:
    """Apply a function of `PRIMITIVES` to elements, broadcast to one shape; the default format is the last Value's."""
    like = next(operand.dtype for operand in reversed(operands) if isinstance(operand, Value))
    values = [constant(operand, like) for operand in operands]
    if op == "cast" and dtype == like:
        return values[0]
    if like not in FLOATS:
        op = {"div": "idiv"}.get(op, op) if like != "bool" else {"max": "or", "min": "and"}.get(op, op)
    shape, depth = np.broadcast_shapes(*(tuple(v.shape) for v in values)), max(v.depth for v in values)
    return Value(shape, dtype or like, lambda *p: ir.make(op, [v.at(*p) for v in values], dtype or like), depth)


def constant(value: "Operand | torch.Tensor", dtype: str = "", name: str = "") -> Value:
    """Return numbers as a Value; a single one is written into the kernel."""
    if isinstance(value, Value):
        return value
    known = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=TORCH[ir.computed(dtype)])
    return buffer(Tensor(name, tuple(known.shape), dtype) if dtype else tensor_of(name, known), known)


def buffer(tensor: Tensor, known: torch.Tensor | None = None) -> Value:
    """Return a tensor in memory, or known numbers."""

    def element(*places: Expr) -> Expr:
        position = ir.flatten(places, tensor.shape)
        at = position.detail[1] if position.op == "linear" and not position.args else -1
        if known is not None and 0 <= at < known.numel():
            return ir.number(known.reshape(-1)[at].item(), tensor.dtype)
        return ir.make("load", (position,), tensor.dtype, tensor.name)

    return Value(tensor.shape, tensor.dtype, element, 0, tensor.name, known)
