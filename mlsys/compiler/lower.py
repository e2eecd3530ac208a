"""Sixth stage: write each kernel as Triton source, and a function that launches them in order."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from math import ceil, isfinite

import numpy as np

from mlsys.compiler.fuse import size
from mlsys.compiler.ir.expression import (
    Apply,
    Constant,
    Coordinate,
    Expression,
    Guard,
    Load,
    Reduce,
    make,
    neutral,
    rewrite,
    walk,
)  # fmt: skip
from mlsys.compiler.ir.graph import TRITON, Tensor
from mlsys.compiler.ir.index import (
    Axis,
    Fetched,
    Index,
    Quotient,
    Remainder,
    axes_of,
    bounds,
    flatten,
    index,
    unflatten,
)
from mlsys.compiler.ir.primitives import PRIMITIVES
from mlsys.compiler.memory import Plan
from mlsys.compiler.schedule import Scheduled

HEADER = '''"""Written by mlsys.compiler: one kernel for each fused group, and `run`, which launches them in order."""

import triton
import triton.language as tl
'''
PRODUCT_HELPER = """
@triton.jit
def multiply(a, b):
    return a * b

"""
COMBINED = {"sum": "{} + {}", "prod": "{} * {}", "max": "tl.maximum({}, {})", "min": "tl.minimum({}, {})"}
REDUCED = {
    "sum": "tl.sum({}, axis=1, keep_dims=True)",
    "prod": "tl.reduce({}, 1, multiply, keep_dims=True)",
    "max": "tl.max({}, axis=1, keep_dims=True)",
    "min": "tl.min({}, axis=1, keep_dims=True)",
}


@dataclass(frozen=True)
class Source:
    """The program.

    Attributes:
        plan: what it was written from.
        text: the module's source.
        arguments: tensors of `run`, in order, after `launch`.
    """

    plan: Plan
    text: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return self.text


def lower(plan: Plan, device: str) -> Source:
    """Write the program of a plan for "cuda", or for "cpu", where Triton's interpreter runs it."""
    fused = plan.schedule.fused
    used = [s.kernel.result.name for s in plan.schedule.kernels]
    used += [part.buffer for s in plan.schedule.kernels for part in walk(s.kernel.element) if isinstance(part, Load)]
    arguments = tuple(name for name in fused.tensors if name in set(used))
    taken = {"tl", "triton", "run", "launch", "multiply", *(s.kernel.name for s in plan.schedule.kernels)}
    names: dict[str, str] = {}
    for name in arguments:
        names[name] = fresh(name, taken)
    kernels = [_Writer(scheduled, names, fused.tensors, device == "cpu").text() for scheduled in plan.schedule.kernels]
    text = HEADER + (PRODUCT_HELPER if any("multiply)" in k or "multiply," in k for k in kernels) else "")
    text += "\n".join(["", *kernels, ""])
    text += f"def run(launch, {', '.join(names.values())}):\n" + '    """Launch the kernels in order."""\n'
    for scheduled, kernel in zip(plan.schedule.kernels, kernels, strict=True):
        given = (
            kernel.partition("def ")[2].partition(":")[0].partition("(")[2].partition(", " + scheduled.tile[0][0])[0]
        )
        settings = ", ".join(f"{name}={extent}" for name, extent in scheduled.tile)
        settings += f", num_warps={scheduled.warps}, num_stages={scheduled.stages}"
        text += f"    launch({scheduled.kernel.name}, {scheduled.grid}, {given}, {settings})\n"
    return Source(plan, text, arguments)


def fresh(name: str, taken: set[str]) -> str:
    """Return a name for Python like the one given, and remember it as taken."""
    base = re.sub(r"\W+", "_", name).strip("_") or "t"
    base = f"t{base}" if base[0].isdigit() or iskeyword(base) else base
    found, number = base, 1
    while found in taken:
        number += 1
        found = f"{base}_{number}"
    taken.add(found)
    return found


class _Writer:
    """Writes one kernel: `write` returns the text of an expression, after the lines that it needs."""

    def __init__(
        self, scheduled: Scheduled, buffers: Mapping[str, str], tensors: Mapping[str, Tensor], interpreted: bool
    ) -> None:
        self.scheduled, self.kernel = scheduled, scheduled.kernel
        self.form, self.tile = scheduled.kernel.form, dict(scheduled.tile)
        self.buffers, self.interpreted = buffers, interpreted
        self.lines: list[str] = []
        self.indent = "    "
        self.taken = {"tl", "start", "acc", *buffers.values(), *self.tile}
        self.names: dict[object, str] = {}
        self.inside: dict[Axis, str] = {}  # name of the mask of each axis of the tile
        loads = [part.buffer for part in walk(self.kernel.element) if isinstance(part, Load)]
        self.large = max(tensors[name].elements for name in [*loads, self.kernel.result.name]) >= 2**31
        self.raw = False  # whether loads keep 16-bit formats, for tl.dot

    def text(self) -> str:
        {"map": self.map, "rows": self.rows, "product": self.product}[self.form.kind]()
        loads = {part.buffer: None for part in walk(self.kernel.element) if isinstance(part, Load)}
        arguments = [self.buffers[name] for name in [*loads, self.kernel.result.name]]
        sizes = [f"{name}: tl.constexpr" for name in self.tile]
        what = "\n    ".join(line.replace("\\", "").replace('"', "'") for line in self.kernel.operations)
        head = f'@triton.jit\ndef {self.kernel.name}({", ".join(arguments + sizes)}):\n    """{what}"""\n'
        return head + "\n".join(self.lines) + "\n"

    # the three forms

    def map(self) -> None:
        i = Axis("i", max(2, self.kernel.result.elements))
        self.line(f"i = {self.wide('tl.program_id(0)')} * BLOCK + tl.arange(0, BLOCK)")
        self.mask(i, self.kernel.result.elements)
        places = unflatten(index(i), self.kernel.result.shape)
        self.store(self.kernel.element.substitute(dict(zip(self.kernel.axes, places, strict=True))), places, i)

    def rows(self) -> None:
        count, length = size(self.form.outer), size(self.form.over)
        row, col = Axis("row", max(2, count)), Axis("col", max(2, length))
        self.line(f"row = {self.wide('tl.program_id(0)')} * ROWS + tl.arange(0, ROWS)[:, None]")
        self.mask(row, count)
        places = self.decode(self.form.outer, row) | self.decode(self.form.inner, col)
        element = _over_column(self.kernel.element.substitute(places), col)
        looped = length > self.tile["COLS"]
        if not looped:
            self.line("col = tl.arange(0, COLS)[None, :]")
            self.mask(col, length)
        else:
            for part in walk(element):
                if isinstance(part, Reduce):
                    self.accumulate(part, col, length)
        where = tuple(places.get(axis, Index()) for axis in self.kernel.axes)
        if looped and self.form.inner:
            self.loop(col, length)
        self.store(element, where, row)

    def accumulate(self, reduction: Reduce, col: Axis, length: int) -> None:
        """Reduce a row that is longer than a tile: first lane by lane, then over the lanes."""
        kept = dict(self.names)
        acc = fresh(f"{reduction.kind}s", self.taken)
        empty = neutral(reduction.kind, reduction.dtype)
        dtype = TRITON[_computed(reduction.dtype)]
        self.line(f"{acc} = tl.full([ROWS, COLS], {_literal(empty)}, {dtype})")
        self.loop(col, length)
        body = self.write(reduction.body)
        chosen = f"tl.where({self.inside[col]}, {body}, {self.number(empty, reduction.dtype)})"
        self.line(f"{acc} = {COMBINED[reduction.kind].format(acc, chosen)}")
        self.indent, self.names = "    ", kept
        self.names[reduction, ()] = self.named(f"row_{reduction.kind}", REDUCED[reduction.kind].format(acc))

    def loop(self, col: Axis, length: int) -> None:
        self.line(f"for start in range(0, {length}, COLS):")
        self.indent = "        "
        self.line("col = start + tl.arange(0, COLS)[None, :]")
        self.mask(col, length)

    def product(self) -> None:
        counts = [size(axes) for axes in (self.form.outer, self.form.inner, self.form.over)]
        m, n, k = (Axis(name, max(2, count)) for name, count in zip("mnk", counts, strict=True))
        kb = Axis("k_b", k.extent)  # the same steps, along the other dimension of the tile
        tiles = ceil(counts[0] / self.tile["TILE_M"])
        self.line("tile = tl.program_id(0)")
        tile_m, tile_n = ("0", "tile") if tiles == 1 else (f"(tile % {tiles})", f"(tile // {tiles})")
        self.line(f"m = {self.wide(tile_m)} * TILE_M + tl.arange(0, TILE_M)[:, None]")
        self.line(f"n = {self.wide(tile_n)} * TILE_N + tl.arange(0, TILE_N)[None, :]")
        self.mask(m, counts[0])
        self.mask(n, counts[1])
        batch = Axis("batch", max(2, size(self.form.batch)))
        if size(self.form.batch) > 1:
            self.line("batch = tl.program_id(1)")
        places = self.decode(self.form.outer, m) | self.decode(self.form.inner, n) | self.decode(self.form.batch, batch)
        reduction = next(part for part in walk(self.kernel.element) if isinstance(part, Reduce))
        assert isinstance(reduction.body, Apply)
        left, right = reduction.body.arguments
        if not left.axes & set(self.form.outer):
            left, right = right, left
        left = left.substitute(places | self.decode(self.form.over, k))
        right = right.substitute(places | self.decode(self.form.over, kb))
        for part in [*walk(left), *walk(right)]:
            if isinstance(part, Load):
                self.hoist(part.position, {k, kb})
        self.line("acc = tl.zeros([TILE_M, TILE_N], tl.float32)")
        self.line(f"for start in range(0, {counts[2]}, TILE_K):")
        kept, self.indent, self.raw = dict(self.names), "        ", not self.interpreted
        self.line("k = start + tl.arange(0, TILE_K)[None, :]")
        self.line("k_b = start + tl.arange(0, TILE_K)[:, None]")
        self.mask(k, counts[2])
        self.mask(kb, counts[2])
        a, b = self.operand(left, (m, k), "a"), self.operand(right, (kb, n), "b")
        if left.dtype != right.dtype and self.raw:
            a, b = f"{a}.to(tl.float32)", f"{b}.to(tl.float32)"
        self.line(f'acc = tl.dot({a}, {b}, acc, input_precision="ieee")')
        self.indent, self.names, self.raw = "    ", kept, False
        element = self.kernel.element.substitute(places)
        self.names[next(part for part in walk(element) if isinstance(part, Reduce)), ()] = "acc"
        self.store(element, tuple(places[axis] for axis in self.kernel.axes), m)

    def operand(self, value: Expression, axes: tuple[Axis, Axis], name: str) -> str:
        text = self.write(value)
        plain = value.inside if isinstance(value, Guard) and isinstance(value.outside, Constant) else value
        zero = plain is value or not value.outside.value  # type: ignore[union-attr]
        if isinstance(plain, Load) and zero and plain.axes >= set(axes):
            return text
        masks = " & ".join(self.inside[axis] for axis in axes)
        return self.named(name, f"tl.where({masks}, {text}, 0.0)")

    # expressions

    def write(self, value: Expression, masks: tuple[str, ...] = ()) -> str:
        """Return a name or short text for a value; `masks` are the conditions under which it is needed."""
        key = (value, masks)
        if key in self.names:
            return self.names[key]
        writers = {Load: self.load, Guard: self.guard, Apply: self.apply, Reduce: self.reduce}
        if isinstance(value, Constant):
            return self.number(value.value, value.dtype)
        if isinstance(value, Coordinate):
            return f"({self.place(value.position, masks)}).to({TRITON[value.dtype]})"
        self.names[key] = writers[type(value)](value, masks)  # type: ignore[operator]
        return self.names[key]

    def load(self, value: Load, masks: tuple[str, ...], outside: str = "") -> str:
        place = self.place(value.position, masks)
        needed = [self.inside[axis] for axis in self.inside if axis in axes_of(value.position)]
        if needed:  # else it is a single element, which is there whether it is needed or not
            needed += [name for name in masks if name not in needed]
        for atom in _fetched(value.position):
            name = self.write(atom.value, masks)
            needed.append(f"({name} >= 0) & ({name} < {atom.extent})")
        text = f"{self.buffers[value.buffer]} + {place}"
        text = f"tl.load({text}, mask={' & '.join(needed)}, other={outside or 0})" if needed else f"tl.load({text})"
        if value.dtype in ("fp16", "bf16") and not self.raw:
            text += ".to(tl.float32)"
        return self.named(f"{self.buffers[value.buffer]}_value", text)

    def guard(self, value: Guard, masks: tuple[str, ...]) -> str:
        tests = []
        for place, low, high in value.conditions:
            text, (least, greatest) = self.place(place, masks), bounds(place)
            if not text.isidentifier():
                text = self.names[place] = self.names.get(place) or self.named("at", text)
            tests += [f"({text} >= {low})"] if least < low else []
            tests += [f"({text} < {high})"] if greatest >= high else []
        test = self.named("inside", " & ".join(tests))
        plain, outside = value.inside, value.outside
        tiled = isinstance(plain, Load) and plain.axes & set(self.inside) and not list(_fetched(plain.position))
        if isinstance(plain, Load) and tiled and isinstance(outside, Constant):
            return self.load(plain, (*masks, test), self.number(outside.value, value.dtype))
        inner = self.write(value.inside, (*masks, test))
        return self.named("guarded", f"tl.where({test}, {inner}, {self.write(value.outside, masks)})")

    def apply(self, value: Apply, masks: tuple[str, ...]) -> str:
        if all(isinstance(part, Constant) for part in value.arguments):
            arguments = [self.typed(part.value, part.dtype) for part in value.arguments]  # type: ignore[union-attr]
        else:
            arguments = [self.write(part, masks) for part in value.arguments]
        if value.function == "cast":
            return self.cast(arguments[0], value.arguments[0].dtype, value.dtype)
        text = PRIMITIVES[value.function].text
        return self.named(value.function, text.format(*(_wrapped(part, text) for part in arguments)))

    def cast(self, text: str, old: str, new: str) -> str:
        if _computed(old) == _computed(new) == "fp32" and new not in ("fp16", "bf16"):
            return text
        if new == "bf16":
            text = self.round_bf16(f"({text}).to(tl.float32)")
        narrow = f"({text}).to({TRITON[new]})"
        return self.named("cast", f"{narrow}.to(tl.float32)" if new in ("fp16", "bf16") and not self.raw else narrow)

    def round_bf16(self, text: str) -> str:
        """Round to the nearest bf16 before a conversion that the interpreter makes by cutting bits off."""
        if not self.interpreted:
            return text
        bits = self.named("bits", f"{text}.to(tl.int32, bitcast=True)")
        bits = self.named("bits", f"{bits} + 32767 + (({bits} >> 16) & 1)")
        return self.named("rounded", f"{bits}.to(tl.float32, bitcast=True)")

    def reduce(self, value: Reduce, masks: tuple[str, ...]) -> str:
        col = self.inside[value.over[0]]
        empty = self.number(neutral(value.kind, value.dtype), value.dtype)
        text = f"tl.where({col}, {self.write(value.body, masks)}, {empty})"
        return self.named(f"row_{value.kind}", REDUCED[value.kind].format(text))

    def store(self, value: Expression, places: Sequence[Index], axis: Axis) -> None:
        text = self.write(value)
        result = self.kernel.result
        position = flatten(tuple(places), result.shape)
        if not axes_of(position) & set(self.inside):
            position = position + axis  # a single element; a block of pointers needs a block of indices
        needed = [self.inside[axis] for axis in self.inside if axis in axes_of(position)]
        if result.dtype == "bf16":
            text = self.round_bf16(f"({text})" if text.startswith("tl.") else text)
        place = self.place(position)
        self.line(f"tl.store({self.buffers[result.name]} + {place}, {text}, mask={' & '.join(needed)})")

    # indices and lines

    def place(self, position: Index, masks: tuple[str, ...] = ()) -> str:
        """Return the text of an index; quotients and remainders get names, and so are computed once."""
        parts = []
        for atom, factor in position.terms:
            name = self.atom(atom, masks)
            parts.append(name if factor == 1 else f"{name} * {factor}")
        if position.constant or not parts:
            parts.append(str(position.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def atom(self, atom: object, masks: tuple[str, ...]) -> str:
        if isinstance(atom, Axis):
            return atom.name
        if isinstance(atom, Fetched):
            return self.write(atom.value, masks)
        assert isinstance(atom, Quotient | Remainder)
        if atom not in self.names:
            sign, word = ("//", "over") if isinstance(atom, Quotient) else ("%", "mod")
            inner = self.place(atom.inner, masks)
            base = inner if inner.isidentifier() else "place"
            inner = inner if inner.isidentifier() else f"({inner})"
            self.names[atom] = self.named(f"{base}_{word}_{atom.divisor}", f"{inner} {sign} {atom.divisor}", keep=True)
        return self.names[atom]

    def hoist(self, position: Index, loop: set[Axis]) -> None:
        """Compute before a loop those parts of an index that are the same in every step."""
        for atom, _ in position.terms:
            if isinstance(atom, Quotient | Remainder):
                if axes_of(index(atom)) & loop:
                    self.hoist(atom.inner, loop)
                else:
                    self.atom(atom, ())

    def decode(self, axes: tuple[Axis, ...], flat: Axis) -> dict[Axis, Index]:
        places = unflatten(index(flat), tuple(axis.extent for axis in axes))
        return dict(zip(axes, places if size(axes) > 1 else [Index()] * len(axes), strict=True))

    def mask(self, axis: Axis, count: int) -> None:
        self.inside[axis] = f"{axis.name}_inside"
        self.line(f"{axis.name}_inside = {axis.name} < {count}")
        self.taken |= {axis.name, f"{axis.name}_inside"}

    def wide(self, text: str) -> str:
        """Make an index 64 bits wide if a tensor is too large for 32."""
        return f"tl.cast({text}, tl.int64)" if self.large else text

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def named(self, hint: str, text: str, keep: bool = False) -> str:
        name = fresh(hint, self.taken)
        self.line(f"{name} = {text}")
        return name

    def number(self, value: float | int | bool, dtype: str) -> str:
        computed = _computed(dtype)
        return _literal(value, computed) if computed in ("fp32", "int32") else self.typed(value, dtype)

    def typed(self, value: float | int | bool, dtype: str) -> str:
        return f"tl.full([], {_literal(value)}, {TRITON[_computed(dtype)]})"


def _over_column(element: Expression, col: Axis) -> Expression:
    """Let every reduction run over the columns of the tile, so that equal ones become one."""

    def replace(part: Expression) -> Expression | None:
        if not isinstance(part, Reduce) or part.over == (col,):
            return None
        flat = unflatten(index(col), tuple(axis.extent for axis in part.over))
        body = rewrite(part.body, replace).substitute(dict(zip(part.over, flat, strict=True)))
        return make(Reduce, part.kind, (col,), body, part.dtype)

    return rewrite(element, replace)


def _fetched(position: Index) -> Iterable[Fetched]:
    for atom, _ in position.terms:
        if isinstance(atom, Fetched):
            yield atom
        elif isinstance(atom, Quotient | Remainder):
            yield from _fetched(atom.inner)


def _computed(dtype: str) -> str:
    """The format in which a kernel computes: 16-bit floats in 32 bits."""
    return "fp32" if dtype in ("fp16", "bf16") else dtype


def _literal(value: float | int | bool, dtype: str = "") -> str:
    if isinstance(value, float) and dtype == "fp32":
        value = float(str(np.float32(value)))  # the shortest digits that mean the same in 32 bits
    return repr(value) if isfinite(value) else f'float("{value}")'


def _wrapped(text: str, template: str) -> str:
    return text if template.startswith("tl.") or text.startswith("-") is False else f"({text})"
