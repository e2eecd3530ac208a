"""Expressions: how one element of a tensor is computed from elements of other tensors, and where those are in memory.

Positions are expressions of integers, kept as sums of loop axes, quotients and remainders. Reshape, Transpose, Slice
and their kin only change positions, and what they do to each other cancels. Equal expressions are one object.

>>> row, column = axis("row", 4), axis("column", 6)
>>> flat = row * 6 + column
>>> flat // 6, flat % 6, (flat // 6) * 6 + flat % 6
(row, column, row * 6 + column)
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from math import prod
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import torch

from mlsys.compiler.ir.graph import FLOATS, TORCH

Scalar: TypeAlias = float | int | bool
_SLOW = 8  # special function units do 16 results a clock, FMA units 128: CUDA C++ guide, 8.4.1, for 9.0
_NAN = ", propagate_nan=tl.PropagateNan.ALL"
_INFIX = {"add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "eq": "==", "ne": "!=", "and": "&", "or": "|"}
_IN_TORCH: dict[str, Any] = {"max": torch.maximum, "min": torch.minimum, "and": torch.bitwise_and}
_IN_TORCH |= {"or": torch.bitwise_or, "idiv": partial(torch.div, rounding_mode="trunc")}

PRIMITIVES = {name: (f"{{}} {sign} {{}}", 1) for name, sign in _INFIX.items()}
PRIMITIVES |= {name: (f"tl.{name}imum({{}}, {{}}{_NAN})", 1) for name in ("max", "min")}
PRIMITIVES |= {name: (f"tl.{name}({{}})", 1) for name in "abs floor ceil".split()}
PRIMITIVES |= {name: (f"tl.{name}({{}})", _SLOW) for name in "exp exp2 log log2 sqrt rsqrt sin cos erf".split()}
PRIMITIVES |= {"div": ("{} / {}", _SLOW), "idiv": ("{} // {}", _SLOW), "where": ("tl.where({}, {}, {})", 1)}
PRIMITIVES |= {"neg": ("-{}", 1), "cast": ("cast({})", 1)}
"""Functions of one element: Triton text and FLOPs."""


class Expr:
    """An expression; `make` and the functions after it build them."""

    def __init__(self, op: str, args: "tuple[Expr, ...]", dtype: str, detail: Any) -> None:
        self.op, self.args, self.dtype, self.detail = op, args, dtype, detail
        reduced = detail[1] if op == "reduce" else ()
        inner = (loop for arg in args for loop in arg.axes if loop not in reduced)
        self.axes: frozenset[Expr] = frozenset({self} if op == "axis" else inner)  # the free loop axes
        self.extent = int(detail[1]) if op == "axis" else 1  # steps of an axis
        read = [load for arg in args for load in arg.loads]
        self.loads: tuple[Expr, ...] = tuple(dict.fromkeys([*read, self] if op == "load" else read))
        self.bounds = _bounds(op, args, detail) if dtype == "index" else (0, 0)  # least and greatest value

    def __add__(self, other: "Expr | int") -> "Expr":
        factors, constant = _terms(self)
        more, plus = _terms(other) if isinstance(other, Expr) else ({}, other)
        return linear({atom: factors.get(atom, 0) + more.get(atom, 0) for atom in factors | more}, constant + plus)

    def __mul__(self, factor: int) -> "Expr":
        factors, constant = _terms(self)
        return linear({atom: each * factor for atom, each in factors.items()}, constant * factor)

    def __floordiv__(self, divisor: int) -> "Expr":
        whole, rest = self._split(divisor)
        if rest.bounds[1] < divisor:
            return whole
        (inner,), times = (rest.args, rest.detail) if rest.op == "floordiv" else ((rest,), 1)
        return whole + make("floordiv", (inner,), "index", times * divisor)

    def __mod__(self, divisor: int) -> "Expr":
        _, rest = self._split(divisor)
        return rest if rest.bounds[1] < divisor else make("mod", (rest,), "index", divisor)

    def _split(self, divisor: int) -> "tuple[Expr, Expr]":
        """Return `whole` and `rest`, where self = whole * divisor + rest and 0 <= rest.

        The terms whose factors the divisor divides go into `whole`. Multiples of the divisor move from there to `rest`
        until it cannot be negative, since Triton rounds negative quotients toward zero.
        """
        factors, constant = _terms(self)
        left = linear({atom: f for atom, f in factors.items() if f % divisor}, constant % divisor)
        shift = max(0, -(left.bounds[0] // divisor))
        whole = {atom: f // divisor for atom, f in factors.items() if f % divisor == 0}
        return linear(whole, constant // divisor - shift), left + shift * divisor

    def __repr__(self) -> str:
        return text_of(self, [repr(arg) for arg in self.args])


_TABLE: WeakValueDictionary[Any, Expr] = WeakValueDictionary()


def make(op: str, args: Sequence[Expr], dtype: str, detail: Any = None) -> Expr:
    """Return the expression of a function of `PRIMITIVES`, or of one of these kinds; the same one for the same parts.

    - load: the element of the tensor `detail` at the position args[0]
    - number: the number `detail`; a function of numbers is computed here, and becomes one
    - guard: args[0] where the conditions args[2:] hold, else args[1]; what is not needed is not loaded
    - reduce: the sum, max or min `detail[0]` of args[0] over all values of the axes `detail[1]`
    - within: whether low <= args[0] < high; `detail` is (low, high)
    - axis, linear, floordiv, mod: positions, built by `axis`, `linear`, // and %; `detail` is the name and the extent,
      the factors of args and the constant, and the divisor
    - fetch: args[0], read at run time, as a position less than `detail`
    """
    if args and op in PRIMITIVES and all(arg.op == "number" for arg in args):
        known = [torch.tensor(a.detail, dtype=torch.int64 if "int" in a.dtype else TORCH[a.dtype]) for a in args]
        result = known[0] if op == "cast" else (_IN_TORCH.get(op) or getattr(torch, op))(*known)
        return make("number", (), dtype, result.to(TORCH[dtype]).item())
    if op == "reduce" and args[0].op == "number" and dtype in FLOATS:
        return number(args[0].detail * (size(detail[1]) if detail[0] == "sum" else 1), dtype)
    if op == "fetch" and args[0].op == "number":
        return linear({}, args[0].detail)
    key = (op, tuple(args), dtype, type(detail), detail)
    found = _TABLE.get(key)
    if found is None:
        found = _TABLE[key] = Expr(op, tuple(args), dtype, detail)
    return found


def axis(name: str, extent: int) -> Expr:
    """Return a loop axis, which runs from 0 to extent - 1."""
    return make("axis", (), "index", (name, extent)) if extent != 1 else ZERO


def size(axes: Sequence[Expr]) -> int:
    """Return the count of steps over axes."""
    return prod(loop.extent for loop in axes)


def linear(factors: Mapping[Expr, int], constant: int = 0) -> Expr:
    """Return the sum of atoms times factors, and a constant; (x // n) * n + x % n becomes x."""
    left = {atom: factor for atom, factor in factors.items() if factor}
    for atom, factor in left.items():
        if atom.op == "mod":
            rest = atom.args[0]
            (inner,), step = (rest.args, rest.detail) if rest.op == "floordiv" else ((rest,), 1)
            partner = make("floordiv", (inner,), "index", step * atom.detail)
            if left.get(partner) == factor * atom.detail:
                others = {other: f for other, f in left.items() if other not in (atom, partner)}
                return linear(others, constant) + rest * factor
    if list(left.values()) == [1] and not constant:
        return next(iter(left))
    return make("linear", tuple(left), "index", (tuple(left.values()), constant))


def flatten(places: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """Return the position of an element in a contiguous tensor: sum of index times stride."""
    return reduce(lambda position, each: position * each[1] + each[0], zip(places, shape, strict=True), ZERO)


def unflatten(position: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    """Return the index along every dimension of the element at a position; the inverse of `flatten`."""
    if not shape:
        return ()
    last = max(1, shape[-1])
    return (position,) if len(shape) == 1 else (*unflatten(position // last, shape[:-1]), position % last)


def computed(dtype: str) -> str:
    """Return the format in which a kernel computes: 32 bits for 16-bit floats."""
    return "fp32" if dtype in ("fp16", "bf16") else dtype


def number(value: Scalar, dtype: str) -> Expr:
    """Return a number, rounded to the format in which a kernel computes."""
    return make("number", (), dtype, torch.tensor(value, dtype=TORCH[computed(dtype)]).item())


def within(place: Expr, low: int, high: int) -> Expr:
    """Return whether low <= place < high, a number if that is known."""
    least, greatest = place.bounds
    if low <= least <= greatest < high or greatest < low or least >= high or low >= high:
        return number(low <= least and greatest < high, "bool")
    return make("within", (place,), "bool", (low, high))


def guard(inside: Expr, outside: Expr, *conditions: Expr) -> Expr:
    """Return `inside` where all conditions hold, else `outside`."""
    needed = [condition for condition in conditions if condition.detail is not True]
    if any(condition.detail is False for condition in needed):
        return outside
    return make("guard", (inside, outside, *needed), inside.dtype) if needed else inside


def walk(root: Expr) -> Iterator[Expr]:
    """Yield every distinct part of an expression, each after the parts that it uses."""
    seen: set[Expr] = set()
    waiting = [(root, False)]
    while waiting:
        part, ready = waiting.pop()
        if ready:
            yield part
        elif part not in seen:
            seen.add(part)
            waiting += [(part, True), *((arg, False) for arg in reversed(part.args))]


def substitute(root: Expr, places: Mapping[Expr, Expr], over: tuple[Expr, ...] = ()) -> Expr:
    """Replace loop axes by positions; reductions run over the axes `over`, if given, instead of their own."""
    done: dict[Expr, Expr] = {}
    for part in walk(root):
        args = [done[arg] for arg in part.args]
        if part in places:
            done[part] = places[part]
        elif part.op == "linear":
            terms = (arg * factor for arg, factor in zip(args, part.detail[0], strict=True))
            done[part] = sum(terms, linear({}, part.detail[1]))
        elif part.op in ("floordiv", "mod"):
            done[part] = args[0] // part.detail if part.op == "floordiv" else args[0] % part.detail
        elif part.op == "guard":
            done[part] = guard(*args)
        else:
            detail = (part.detail[0], over) if over and part.op == "reduce" else part.detail
            done[part] = make(part.op, args, part.dtype, detail)
    return done[root]


def text_of(part: Expr, args: Sequence[str]) -> str:
    """Return a position or a condition as text, given the text of its args; of anything else, what it is of what."""
    match part.op:
        case "axis":
            return str(part.detail[0])
        case "linear":
            terms = [arg if f == 1 else f"{arg} * {f}" for arg, f in zip(args, part.detail[0], strict=True)]
            return " + ".join(terms + [str(part.detail[1])] * bool(part.detail[1] or not terms)).replace("+ -", "- ")
        case "floordiv" | "mod":
            first = f"({args[0]})" if part.args[0].op == "linear" else args[0]
            return f"{first} {'//' if part.op == 'floordiv' else '%'} {part.detail}"
        case "within":
            first, (low, high), (least, greatest) = args[0], part.detail, part.args[0].bounds
            return " & ".join([f"({first} >= {low})"] * (least < low) + [f"({first} < {high})"] * (greatest >= high))
    return f"{part.op}({', '.join([*map(str, [part.detail] if part.detail is not None else []), *args])})"


def _terms(value: Expr) -> tuple[dict[Expr, int], int]:
    """Return a position as a sum: its atoms, which are no sums, with their factors, and the constant."""
    if value.op == "linear":
        return dict(zip(value.args, value.detail[0], strict=True)), value.detail[1]
    return {value: 1}, 0


def _bounds(op: str, args: Sequence[Expr], detail: Any) -> tuple[int, int]:
    if op in ("axis", "fetch"):
        return 0, max(0, (detail[1] if op == "axis" else detail) - 1)
    if op == "linear":
        ends = [sorted((arg.bounds[0] * f, arg.bounds[1] * f)) for arg, f in zip(args, detail[0], strict=True)]
        return detail[1] + sum(low for low, _ in ends), detail[1] + sum(high for _, high in ends)
    low, high = args[0].bounds
    if op == "floordiv":
        return low // detail, high // detail
    return 0, min(high, detail - 1) if low >= 0 else detail - 1


ZERO = linear({})
