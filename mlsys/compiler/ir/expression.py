"""Scalar expressions: how one element of a tensor is computed from elements of other tensors.

A kernel is one such expression and the axes of its result. Equal expressions are one object (`make` keeps a table), so
that a value which is used twice is emitted once.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import torch

from mlsys.compiler.ir.graph import FLOATS, TORCH
from mlsys.compiler.ir.index import Axis, Index, axes_of, bounds, substitute

Scalar: TypeAlias = float | int | bool


class Node:
    """What the expressions share; two are equal only if they are the same object."""

    dtype: str

    def __str__(self) -> str:
        return shown(self)  # type: ignore[arg-type]

    @cached_property
    def children(self) -> "tuple[Expression, ...]":
        """The expressions that this one is computed from, those inside its indices included."""
        found: list[Expression] = []
        for field in fields(self):  # type: ignore[arg-type]
            found += _expressions(getattr(self, field.name))
        return tuple(found)

    @cached_property
    def axes(self) -> frozenset[Axis]:
        """The free loop axes."""
        found: frozenset[Axis] = frozenset().union(*(child.axes for child in self.children))
        for field in fields(self):  # type: ignore[arg-type]
            found |= frozenset().union(*(axes_of(part) for part in _indices(getattr(self, field.name))))
        return found - frozenset(getattr(self, "over", ()))

    def __add__(self, other: "Operand") -> "Expression":
        return apply("add", self, other)

    def __sub__(self, other: "Operand") -> "Expression":
        return apply("sub", self, other)

    def __mul__(self, other: "Operand") -> "Expression":
        return apply("mul", self, other)

    def __truediv__(self, other: "Operand") -> "Expression":
        return apply("div" if self.dtype in FLOATS else "idiv", self, other)

    def __neg__(self) -> "Expression":
        return apply("neg", self)

    def __abs__(self) -> "Expression":
        return apply("abs", self)

    def __lt__(self, other: "Operand") -> "Expression":
        return apply("lt", self, other, dtype="bool")

    def __le__(self, other: "Operand") -> "Expression":
        return apply("le", self, other, dtype="bool")

    def __and__(self, other: "Operand") -> "Expression":
        return apply("and", self, other)

    def __or__(self, other: "Operand") -> "Expression":
        return apply("or", self, other)

    def substitute(self, places: Mapping[Axis, Index]) -> "Expression":
        """Replace loop axes by index expressions."""
        return rewrite(self, lambda part: None, places)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Load(Node):
    """The element of a buffer at a position."""

    buffer: str
    position: Index
    dtype: str


@dataclass(frozen=True, eq=False)
class Constant(Node):
    """A number."""

    value: Scalar
    dtype: str


@dataclass(frozen=True, eq=False)
class Coordinate(Node):
    """An index, as a number."""

    position: Index
    dtype: str


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """A function of `primitives.PRIMITIVES` applied to expressions."""

    function: str
    arguments: "tuple[Expression, ...]"
    dtype: str


@dataclass(frozen=True, eq=False)
class Guard(Node):
    """The value of `inside` where every index is in its range (low <= index < high), else `outside`."""

    conditions: tuple[tuple[Index, int, int], ...]
    inside: "Expression"
    outside: "Expression"
    dtype: str


@dataclass(frozen=True, eq=False)
class Reduce(Node):
    """The sum, product, max, min, or position of the extreme (argmax, argmin), of `body` over all values of axes."""

    kind: str
    over: tuple[Axis, ...]
    body: "Expression"
    dtype: str


Expression: TypeAlias = Load | Constant | Coordinate | Apply | Guard | Reduce
Operand: TypeAlias = Expression | Scalar
Kind = TypeVar("Kind", bound=Node)
_TABLE: dict[tuple[Any, ...], Any] = {}


def make(kind: type[Kind], *parts: Any) -> Kind:
    """Return the expression of a class with these fields: the same object for the same fields."""
    key = (kind, *((type(part), part) for part in parts))
    if key not in _TABLE:
        _TABLE[key] = kind(*parts)
    return _TABLE[key]  # type: ignore[no-any-return]


def forget() -> None:
    """Empty the table of expressions, so that what was compiled before has no part in what comes."""
    _TABLE.clear()


def apply(function: str, *arguments: "Operand | Node", dtype: str = "") -> Expression:
    """Apply a function; a number takes the first expression's format, and so does the result, if none is given."""
    like = next(argument for argument in arguments if isinstance(argument, Node))
    parts = tuple(part if isinstance(part, Node) else number(part, like.dtype) for part in arguments)
    return make(Apply, function, parts, dtype or like.dtype)


def number(value: Scalar, dtype: str) -> Constant:
    """Return a number, rounded to a format."""
    return make(Constant, torch.tensor(value, dtype=TORCH[dtype]).item(), dtype)


def where(condition: "Expression", a: "Operand", b: "Operand") -> "Expression":
    """Return a where the condition holds, else b."""
    like = a if isinstance(a, Node) else b
    assert isinstance(like, Node)
    a, b = (part if isinstance(part, Node) else number(part, like.dtype) for part in (a, b))
    return make(Apply, "where", (condition, a, b), like.dtype)


def cast(value: Expression, dtype: str) -> Expression:
    """Return a value in another format."""
    if value.dtype == dtype:
        return value
    if isinstance(value, Constant):
        return make(Constant, torch.tensor(value.value, dtype=TORCH[value.dtype]).to(TORCH[dtype]).item(), dtype)
    return apply("ne", value, 0, dtype="bool") if dtype == "bool" else apply("cast", value, dtype=dtype)


NEUTRAL = {"sum": 0, "prod": 1, "max": -float("inf"), "min": float("inf")}
"""What changes nothing in a reduction."""


def neutral(kind: str, dtype: str) -> float | int:
    """Return the element that changes nothing in a reduction of a format.

    >>> neutral("max", "int8"), neutral("sum", "fp32")
    (-128, 0)
    """
    if kind in ("sum", "prod") or TORCH[dtype].is_floating_point:
        return NEUTRAL[kind]
    if dtype == "bool":
        return int(kind == "min")
    limits = torch.iinfo(TORCH[dtype])
    return limits.min if kind == "max" else limits.max


def reduction(kind: str, over: Sequence[Axis], body: Expression) -> Expression:
    """Return a reduction; over no axes the body, over no elements what changes nothing."""
    if any(axis.extent == 0 for axis in over):
        return number(neutral(kind, body.dtype), body.dtype)
    over = tuple(axis for axis in over if axis.extent != 1)
    return make(Reduce, kind, over, body, body.dtype) if over else body


def guard(conditions: list[tuple[Index, int, int]], inside: Expression, outside: Expression) -> Expression:
    """Return a guarded expression, without the conditions that always hold."""
    needed = []
    for place, low, high in conditions:
        least, greatest = bounds(place)
        if greatest < low or least >= high or low >= high:
            return outside
        if least < low or greatest >= high:
            needed.append((place, low, high))
    return make(Guard, tuple(needed), inside, outside, inside.dtype) if needed else inside


def rewrite(
    root: Expression,
    replace: "Callable[[Expression], Expression | None]",
    places: Mapping[Axis, Index] | None = None,
) -> Expression:
    """Rebuild an expression: `replace` gives a new one for a part or None to keep it; `places` replaces axes."""
    places = places or {}
    done: dict[int, Expression] = {}

    def new(value: Any) -> Any:
        if isinstance(value, Node):
            return build(value)  # type: ignore[arg-type]
        if isinstance(value, Index):
            return substitute(value, places, build)
        return tuple(new(part) for part in value) if isinstance(value, tuple) else value

    def build(part: Expression) -> Expression:
        if id(part) not in done:
            replaced = replace(part)
            if replaced is None:
                parts = [new(getattr(part, field.name)) for field in fields(part)]
                replaced = (
                    guard(list(parts[0]), parts[1], parts[2]) if isinstance(part, Guard) else make(type(part), *parts)
                )
            done[id(part)] = replaced
        return done[id(part)]

    return build(root)


def walk(root: Expression) -> Iterator[Expression]:
    """Yield every distinct part of an expression, each after the parts that it uses."""
    seen: set[int] = set()
    waiting: list[tuple[Expression, bool]] = [(root, False)]
    while waiting:
        part, ready = waiting.pop()
        if ready:
            yield part
        elif id(part) not in seen:
            seen.add(id(part))
            waiting.append((part, True))
            waiting += [(child, False) for child in reversed(part.children) if id(child) not in seen]


def shown(root: Expression) -> str:
    """Return an expression as text, with a line of its own for each part that is used more than once."""
    uses = Counter(id(child) for part in walk(root) for child in part.children)
    texts: dict[int, str] = {}
    lines: list[str] = []
    for part in walk(root):
        text = _text(part, texts)
        if uses[id(part)] > 1 and isinstance(part, Apply | Guard | Reduce):
            lines.append(f"v{len(lines) + 1} = {text}")
            text = f"v{len(lines)}"
        texts[id(part)] = text
    return "\n    ".join([*lines, texts[id(root)]])


def _text(part: Expression, texts: Mapping[int, str]) -> str:
    if isinstance(part, Load):
        return f"{part.buffer}[{part.position}]"
    if isinstance(part, Constant):
        return str(part.value)
    if isinstance(part, Coordinate):
        return f"({part.position})"
    if isinstance(part, Apply):
        return f"{part.function}({', '.join(texts[id(argument)] for argument in part.arguments)})"
    if isinstance(part, Reduce):
        return f"{part.kind}_{{{', '.join(f'{axis}<{axis.extent}' for axis in part.over)}}} {texts[id(part.body)]}"
    where = " and ".join(f"{low} <= {place} < {high}" for place, low, high in part.conditions)
    return f"({texts[id(part.inside)]} if {where} else {texts[id(part.outside)]})"


def _expressions(value: Any) -> Iterator[Expression]:
    if isinstance(value, Node):
        yield value  # type: ignore[misc]
    elif isinstance(value, tuple):
        for part in value:
            yield from _expressions(part)
    elif isinstance(value, Index):
        for atom, _ in value.terms:
            yield from _expressions(getattr(atom, "value", None))
            yield from _expressions(getattr(atom, "inner", None))


def _indices(value: Any) -> Iterator[Index]:
    if isinstance(value, Index):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _indices(part)
