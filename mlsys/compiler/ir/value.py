"""Tensors as functions: a `Value` knows its sizes, and the expression of its element at given indices.

Arithmetic, movement and reductions of Values compute nothing. They compose functions, so the rule of an operation is
written like NumPy: softmax is `e = (x - x.reduce("max", axes)).exp()`, and `e / e.reduce("sum", axes)`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from math import inf, prod
from typing import Any, TypeAlias

import torch

from mlsys.compiler.ir.expression import ZERO, Expr, Scalar, axis, flatten, guard, make, number, unflatten, within
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
    element: Callable[..., Expr]  # from indices
    depth: int = 0  # reductions inside one another; names their axes
    name: str = ""
    known: torch.Tensor | None = None  # the numbers of a constant
    _made: dict[tuple[Expr, ...], Expr] = field(default_factory=dict)

    def at(self, *places: Expr) -> Expr:
        """Return the element at indices; with more or larger dimensions, of the tensor broadcast to them."""
        own = tuple(ZERO if n == 1 else at for n, at in zip(self.shape[::-1], places[::-1], strict=False))[::-1]
        if own not in self._made:
            self._made[own] = self.element(*own)
        return self._made[own]

    def numbers(self) -> list[Any]:
        """Return the value as a list of numbers; raises NeedsValue if it is not known."""
        if self.known is None:
            raise NeedsValue(f"needs the value of tensor '{self.name}' when it is compiled: make it a constant")
        return self.known.reshape(-1).tolist()

    __neg__, __abs__, exp, exp2, log, log2 = map(_unary, ("neg", "abs", "exp", "exp2", "log", "log2"))
    sqrt, rsqrt, erf, floor, ceil, sin, cos = map(_unary, ("sqrt", "rsqrt", "erf", "floor", "ceil", "sin", "cos"))
    __add__, __sub__, __mul__, __truediv__ = map(_binary, ("add", "sub", "mul", "div"))
    __and__, __or__, xor, maximum, minimum = map(_binary, ("and", "or", "xor", "max", "min"))
    __rsub__, __rtruediv__ = _binary("sub", swap=True), _binary("div", swap=True)
    __lt__, __le__, __gt__ = _binary("lt", "bool"), _binary("le", "bool"), _binary("lt", "bool", swap=True)
    equal, differs = _binary("eq", "bool"), _binary("ne", "bool")

    def cast(self, dtype: str) -> "Value":
        """Return the value in another format."""
        return self.differs(0) if dtype == "bool" != self.dtype else elementwise("cast", self, dtype=dtype)

    def where(self, a: Operand, b: Operand) -> "Value":
        """Return a where this condition holds, else b."""
        dtype = a.dtype if isinstance(a, Value) else b.dtype  # type: ignore[union-attr]
        return elementwise("where", self, constant(a, dtype), constant(b, dtype))

    def reshape(self, shape: Shape) -> "Value":
        """Return the same elements in another shape."""
        if prod(shape) != prod(self.shape):
            raise BadGraph(f"cannot make the shape {tuple(shape)} of {self.shape}: keep the number of elements")
        return self._moved(shape, lambda *p: self.at(*unflatten(flatten(p, shape), self.shape)))

    def squeeze(self, axes: Shape) -> "Value":
        """Return the value without axes, whose sizes are 1."""
        return self.reshape([length for n, length in enumerate(self.shape) if n not in axes])

    def transpose(self, order: Shape) -> "Value":
        """Return the dimensions in another order."""
        return self._moved(
            [self.shape[n] for n in order], lambda *p: self.at(*(p[order.index(n)] for n in sorted(order)))
        )

    def expand(self, shape: Shape) -> "Value":
        """Return the value broadcast to a shape and its own."""
        return self._moved(broadcast(self.shape, shape), self.at)

    def cut(self, chosen: Mapping[int, range]) -> "Value":
        """Return the elements in a range along each dimension that is named."""
        every = [chosen.get(n, range(length)) for n, length in enumerate(self.shape)]
        return self._moved(
            [*map(len, every)], lambda *p: self.at(*(at * r.step + r.start for at, r in zip(p, every, strict=True)))
        )

    def pad(self, before: Shape, after: Shape, fill: Operand) -> "Value":
        """Return the value with `fill` around it; negative counts cut it."""
        outside = constant(fill, self.dtype)

        def element(*places: Expr) -> Expr:
            own = [place + -low for place, low in zip(places, before, strict=True)]
            inside = [within(place, 0, length) for place, length in zip(own, self.shape, strict=True)]
            return guard(self.at(*own), outside.at(*places), *inside)

        shape = [sum(lengths) for lengths in zip(before, self.shape, after, strict=True)]
        return Value(tuple(shape), self.dtype, element, max(self.depth, outside.depth))

    def take(self, axis: int, indices: "Value") -> "Value":
        """Return what is at indices along an axis; they are read at run time, and count from the end if negative."""
        length, last = self.shape[axis], axis + len(indices.shape)
        row = (indices < 0).where(indices + length, indices)

        def element(*places: Expr) -> Expr:
            fetched = make("fetch", (row.at(*places[axis:last]),), "index", length)
            return self.at(*places[:axis], fetched, *places[last:])

        shape = (*self.shape[:axis], *indices.shape, *self.shape[axis + 1 :])
        return Value(shape, self.dtype, element, max(self.depth, indices.depth))

    def reduce(self, kind: str, axes: Shape) -> "Value":
        """Return the sum, max or min over axes, which stay with the size 1."""
        over = {n: axis(f"r{self.depth}_{n}", self.shape[n]) for n in axes}
        loops = tuple(loop for loop in over.values() if loop is not ZERO)

        def element(*places: Expr) -> Expr:
            if any(loop.extent == 0 for loop in loops):
                return number(neutral(kind, self.dtype), self.dtype)
            body = self.at(*(over.get(n, place) for n, place in enumerate(places)))
            return make("reduce", (body,), self.dtype, (kind, loops)) if loops else body

        shape = tuple(1 if n in over else length for n, length in enumerate(self.shape))
        return Value(shape, self.dtype, element, self.depth + 1)

    def _moved(self, shape: Shape, element: Callable[..., Expr]) -> "Value":
        return Value(tuple(shape), self.dtype, element, self.depth)


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


def broadcast(*shapes: Shape) -> tuple[int, ...]:
    """Return the shape that shapes are broadcast to, or raise BadGraph."""
    sizes = [set(lengths) - {1} for lengths in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1)]
    if any(len(lengths) > 1 for lengths in sizes):
        raise BadGraph(f"cannot broadcast the shapes {', '.join(map(str, shapes))}: make the sizes equal or 1")
    return tuple(max(lengths, default=1) for lengths in reversed(sizes))


def elementwise(op: str, *operands: Operand, dtype: str = "") -> Value:
    """Apply a function of `PRIMITIVES` to elements, broadcast to one shape; the default format is the last Value's."""
    like = next(operand.dtype for operand in reversed(operands) if isinstance(operand, Value))
    values = [constant(operand, like) for operand in operands]
    if op == "cast" and dtype == like:
        return values[0]
    if like not in FLOATS:
        op = {"div": "idiv"}.get(op, op) if like != "bool" else {"max": "or", "min": "and"}.get(op, op)
    shape, depth = broadcast(*(value.shape for value in values)), max(value.depth for value in values)
    return Value(shape, dtype or like, lambda *p: make(op, [v.at(*p) for v in values], dtype or like), depth)


def constant(value: "Operand | torch.Tensor", dtype: str = "", name: str = "") -> Value:
    """Return numbers as a Value; a single one is written into the kernel."""
    if isinstance(value, Value):
        return value
    known = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=TORCH[dtype])
    return buffer(tensor_of(name, known) if not dtype else Tensor(name, tuple(known.shape), dtype), known)


def iota(count: int, dtype: str) -> Value:
    """Return 0, 1, ... count - 1."""
    return Value((count,), dtype, lambda place: make("cast", (place,), dtype))


def buffer(tensor: Tensor, known: torch.Tensor | None = None) -> Value:
    """Return a tensor in memory, or known numbers."""

    def element(*places: Expr) -> Expr:
        position = flatten(places, tensor.shape)
        at = position.detail[1] if position.op == "linear" and not position.args else -1
        if known is not None and 0 <= at < known.numel():
            return number(known.reshape(-1)[at].item(), tensor.dtype)
        return make("load", (position,), tensor.dtype, tensor.name)

    return Value(tensor.shape, tensor.dtype, element, 0, tensor.name, known)
