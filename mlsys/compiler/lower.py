"""Sixth stage: write each kernel as Triton source, and a function that launches them in order."""

import re
from collections.abc import Mapping
from dataclasses import replace
from keyword import iskeyword
from math import ceil, isfinite

import numpy as np

from mlsys.compiler.ir.expression import (
    PRIMITIVES,
    ZERO,
    Expr,
    Scalar,
    axis,
    flatten,
    make,
    rewrite,
    size,
    substitute,
    text_of,
    unflatten,
    walk,
)  # fmt: skip
from mlsys.compiler.ir.graph import TRITON, Tensor
from mlsys.compiler.ir.program import Kernel, Program
from mlsys.compiler.ir.value import neutral

HEADER = '''"""Written by mlsys.compiler: one kernel for each fused group, and `run`, which launches them in order."""

import triton
import triton.language as tl
'''
COMBINED = {"sum": "{} + {}", "max": "tl.maximum({}, {})", "min": "tl.minimum({}, {})"}
Masks = tuple[str, ...]


def lower(program: Program, device: str) -> Program:
    """Write the source for "cuda", or for "cpu", where Triton's interpreter runs it."""
    used = {load.detail for kernel in program.kernels for load in kernel.element.loads}
    used |= {kernel.result.name for kernel in program.kernels}
    arguments = tuple(name for name in program.tensors if name in used)
    taken = {"tl", "triton", "run", "launch", *(kernel.name for kernel in program.kernels)}
    names, texts = {name: fresh(name, taken) for name in arguments}, [HEADER]
    calls = [f"def run(launch, {', '.join(names.values())}):", '    """Launch the kernels in order."""']
    for kernel in program.kernels:
        own = [*dict.fromkeys([*(names[load.detail] for load in kernel.element.loads), names[kernel.result.name]])]
        writer = _Writer(kernel, names, program.tensors, device == "cpu")
        getattr(writer, kernel.form.kind)()
        what = "\n    ".join(line.replace("\\", "").replace('"', "'") for line in kernel.operations)
        parameters = ", ".join([*own, *(f"{name}: tl.constexpr" for name in kernel.tile)])
        lines = ["@triton.jit", f"def {kernel.name}({parameters}):", f'    """{what}"""', *writer.lines]
        texts.append("\n".join(["", *lines, ""]))
        settings = [f"{name}={length}" for name, length in kernel.tile.items()]
        settings += [f"num_warps={kernel.warps}", f"num_stages={kernel.stages}"]
        calls.append(f"    launch({', '.join([kernel.name, str(kernel.grid), *own, *settings])})")
    return replace(program, arguments=arguments, text="\n".join([*texts, "", *calls, ""]))


def fresh(name: str, taken: set[str]) -> str:
    """Return a name for Python like the one given, and remember it as taken."""
    base = re.sub(r"\W+", "_", name).strip("_") or "t"
    base = f"t{base}" if base[0].isdigit() or iskeyword(base) else base
    found, count = base, 1
    while found in taken:
        found, count = f"{base}_{count + 1}", count + 1
    taken.add(found)
    return found


def computed(dtype: str) -> str:
    """Return the format in which a kernel computes: 32 bits for 16-bit floats."""
    return "fp32" if dtype in ("fp16", "bf16") else dtype


def literal(value: Scalar, dtype: str) -> str:
    """Return a number as Triton reads it; of a format that is not its own for such a number, with the format."""
    value = float(str(np.float32(value))) if dtype == "fp32" else value  # the shortest digits
    text = repr(value) if isfinite(value) else f'float("{value}")'
    return text if dtype in ("fp32", "int32") else f"tl.full([], {text}, {TRITON[dtype]})"


def over_column(element: Expr, col: Expr) -> Expr:
    """Let every reduction run over the columns of the tile, so that equal ones become one."""

    def change(part: Expr, new: Expr) -> Expr:
        if part.op != "reduce":
            return new
        kind, loops = part.detail
        places = dict(zip(loops, unflatten(col, [loop.extent for loop in loops]), strict=True))
        return make("reduce", (substitute(new.args[0], places),), part.dtype, (kind, (col,)))

    return rewrite(element, change)


class _Writer:
    """Writes one kernel: `write` returns the text of an expression, after the lines that it needs."""

    def __init__(
        self, kernel: Kernel, names: Mapping[str, str], tensors: Mapping[str, Tensor], interpreted: bool
    ) -> None:
        self.kernel, self.form, self.tensor_names, self.interpreted = kernel, kernel.form, names, interpreted
        self.lines: list[str] = []
        self.indent = "    "
        self.taken = {"tl", "start", "acc", *names.values(), *kernel.tile}
        self.names: dict[tuple[Expr, Masks], str] = {}
        self.inside: dict[Expr, str] = {}  # name of the mask of each axis of the tile
        self.raw = False  # whether loads keep 16-bit formats, for tl.dot
        used = [kernel.result, *(tensors[load.detail] for load in kernel.element.loads)]
        self.wide = any(tensor.elements >= 2**31 for tensor in used)  # whether positions need 64 bits

    def map(self) -> None:
        """Let each program compute BLOCK elements."""
        i = self.steps("i", self.kernel.result.elements, "tl.program_id(0)", "BLOCK", "")
        self.store(self.decode(self.kernel.axes, i), self.kernel.element, i)

    def rows(self) -> None:
        """Let each program reduce ROWS rows, in one piece or in a loop over pieces of COLS columns."""
        length = size(self.form.over)
        row = self.steps("row", size(self.form.outer), "tl.program_id(0)", "ROWS", "[:, None]")
        col = axis("col", max(2, length))
        places = self.decode(self.form.outer, row) | self.decode(self.form.inner, col)
        element = over_column(substitute(self.kernel.element, places), col)
        if length <= self.kernel.tile["COLS"]:
            self.steps("col", length, "", "COLS", "[None, :]")
        else:
            for part in walk(element):
                if part.op == "reduce":
                    self.accumulate(part, length)
            if self.form.inner:
                self.loop(length, "COLS")
                self.steps("col", length, "start", "COLS", "[None, :]")
        self.store(places, element, row)

    def accumulate(self, part: Expr, length: int) -> None:
        """Reduce a row that is longer than a tile: first lane by lane, then over the lanes."""
        kept, (kind, (col,)) = dict(self.names), part.detail
        empty, acc = literal(neutral(kind, part.dtype), computed(part.dtype)), fresh(f"{part.detail[0]}s", self.taken)
        self.line(f"{acc} = tl.zeros([ROWS, COLS], {TRITON[computed(part.dtype)]}) + {empty}")
        self.loop(length, "COLS")
        self.steps("col", length, "start", "COLS", "[None, :]")
        chosen = f"tl.where({self.inside[col]}, {self.write(part.args[0])}, {empty})"
        self.line(f"{acc} = {COMBINED[kind].format(acc, chosen)}")
        self.indent, self.names = "    ", kept
        self.names[part, ()] = self.named(f"row_{kind}", f"tl.{kind}({acc}, axis=1, keep_dims=True)")

    def product(self) -> None:
        """Let each program sum products of tiles into a tile of TILE_M rows and TILE_N columns."""
        count_m, count_n, count_k = (size(axes) for axes in (self.form.outer, self.form.inner, self.form.over))
        tiles, batch = ceil(count_m / self.kernel.tile["TILE_M"]), axis("batch", max(2, size(self.form.batch)))
        self.line("tile = tl.program_id(0)")
        m = self.steps("m", count_m, f"(tile % {tiles})", "TILE_M", "[:, None]")
        n = self.steps("n", count_n, f"(tile // {tiles})", "TILE_N", "[None, :]")
        if size(self.form.batch) > 1:
            self.line("batch = tl.program_id(1)")
        places = self.decode(self.form.outer, m) | self.decode(self.form.inner, n) | self.decode(self.form.batch, batch)
        reduction = next(part for part in walk(self.kernel.element) if part.op == "reduce")
        left, right = reduction.args[0].args
        left, right = (left, right) if left.axes & set(self.form.outer) else (right, left)
        kept, self.raw = dict(self.names), not self.interpreted
        self.line("acc = tl.zeros([TILE_M, TILE_N], tl.float32)")
        self.loop(count_k, "TILE_K")
        k = self.steps("k", count_k, "start", "TILE_K", "[None, :]")
        k_rows = self.steps("k_rows", count_k, "start", "TILE_K", "[:, None]")  # the same, along the other dimension
        a = self.operand(substitute(left, places | self.decode(self.form.over, k)), (m, k))
        b = self.operand(substitute(right, places | self.decode(self.form.over, k_rows)), (k_rows, n))
        widen = ".to(tl.float32)" if left.dtype != right.dtype and self.raw else ""
        self.line(f'acc = tl.dot({a}{widen}, {b}{widen}, acc, input_precision="ieee")')
        self.indent, self.names, self.raw = "    ", kept, False
        element = substitute(self.kernel.element, places)
        self.names[next(part for part in walk(element) if part.op == "reduce"), ()] = "acc"
        self.store(places, element, m)

    def operand(self, part: Expr, axes: tuple[Expr, Expr]) -> str:
        """Return a tile for tl.dot, in which what is outside the matrix is 0."""
        plain = part.args[0] if part.op == "guard" and part.args[1].detail == 0 else part
        if plain.op == "load" and plain.axes >= set(axes):
            return self.write(part)
        inside = " & ".join(self.inside[loop] for loop in axes)
        return self.named("operand", f"tl.where({inside}, {self.write(part)}, 0.0)")

    def write(self, part: Expr, masks: Masks = ()) -> str:
        """Return a name or short text for an expression; `masks` are the conditions under which it is needed."""
        key = (part, masks if part.loads else ())
        if key in self.names:
            return self.names[key]
        if part.op == "number":
            return literal(part.detail, computed(part.dtype))
        if part.op in ("load", "guard", "reduce"):
            self.names[key] = getattr(self, part.op)(part, masks)
            return self.names[key]
        args = [self.write(arg, masks) for arg in part.args]
        if part.op in ("axis", "linear", "within", "fetch"):
            return args[0] if part.op == "fetch" else text_of(part, args)
        if part.op in ("floordiv", "mod"):
            hint = f"{args[0] if args[0].isidentifier() else 'place'}_{'over' if part.op == 'floordiv' else 'mod'}"
            self.names[key] = self.named(f"{hint}_{part.detail}", text_of(part, args))
        elif part.op == "cast":
            self.names[key] = self.cast(args[0], part.dtype)
        else:
            template = PRIMITIVES[part.op][0]
            args = [f"({arg})" if arg.startswith("-") and "tl." not in template else arg for arg in args]
            self.names[key] = self.named(part.op, template.format(*args))
        return self.names[key]

    def load(self, part: Expr, masks: Masks, outside: str = "0") -> str:
        """Load elements, of which those outside the tile or the masks are not read."""
        place, name = self.write(part.args[0], masks), self.tensor_names[part.detail]
        needed = [mask for loop, mask in self.inside.items() if loop in part.axes]
        if needed:  # else it is a single element, which is there whether it is needed or not
            needed += [mask for mask in masks if mask not in needed]
        for fetched in (inner for inner in walk(part.args[0]) if inner.op == "fetch"):
            row = self.write(fetched.args[0], masks)
            needed.append(f"({row} >= 0) & ({row} < {fetched.detail})")
        mask = f", mask={' & '.join(needed)}, other={outside}" if needed else ""
        widen = ".to(tl.float32)" if computed(part.dtype) != part.dtype and not self.raw else ""
        return self.named(f"{name}_value", f"tl.load({name} + {place}{mask}){widen}")

    def guard(self, part: Expr, masks: Masks) -> str:
        """Choose by a condition on positions, which also masks the loads that it makes needless."""
        inside, outside, *conditions = part.args
        for place in (condition.args[0] for condition in conditions):
            if not self.write(place, masks).isidentifier():
                self.names[place, masks if place.loads else ()] = self.named("at", self.write(place, masks))
        test = self.named("inside", " & ".join(self.write(condition, masks) for condition in conditions))
        fetches = any(inner.op == "fetch" for inner in walk(inside))
        if inside.op == "load" and inside.axes & set(self.inside) and outside.op == "number" and not fetches:
            return self.load(inside, (*masks, test), self.write(outside))
        inner = self.write(inside, (*masks, test))
        return self.named("guarded", f"tl.where({test}, {inner}, {self.write(outside, masks)})")

    def reduce(self, part: Expr, masks: Masks) -> str:
        """Reduce the columns of the tile."""
        kind, (col,) = part.detail
        empty = literal(neutral(kind, part.dtype), computed(part.dtype))
        text = f"tl.where({self.inside[col]}, {self.write(part.args[0], masks)}, {empty})"
        return self.named(f"row_{kind}", f"tl.{kind}({text}, axis=1, keep_dims=True)")

    def cast(self, text: str, dtype: str) -> str:
        text = self.rounded(f"({text}).to(tl.float32)") if dtype == "bf16" else f"({text})"
        widen = ".to(tl.float32)" if computed(dtype) != dtype and not self.raw else ""
        return self.named("cast", f"{text}.to({TRITON[dtype]}){widen}")

    def rounded(self, text: str) -> str:
        """Round to the nearest bf16 before a conversion that the interpreter makes by cutting bits off."""
        if not self.interpreted:
            return text
        bits = self.named("bits", f"{text}.to(tl.int32, bitcast=True)")
        return self.named("rounded", f"({bits} + 32767 + (({bits} >> 16) & 1)).to(tl.float32, bitcast=True)")

    def store(self, places: Mapping[Expr, Expr], element: Expr, loop: Expr) -> None:
        result, text = self.kernel.result, self.write(substitute(element, places))
        position = flatten([places.get(each, ZERO) for each in self.kernel.axes], result.shape)
        if not position.axes & set(self.inside):
            position = position + loop  # a single element; a block of pointers needs a block of indices
        needed = " & ".join(mask for each, mask in self.inside.items() if each in position.axes)
        text = self.rounded(f"({text})") if result.dtype == "bf16" else text
        self.line(f"tl.store({self.tensor_names[result.name]} + {self.write(position)}, {text}, mask={needed})")

    def decode(self, axes: tuple[Expr, ...], flat: Expr) -> dict[Expr, Expr]:
        """Return the place along each axis from one count over all."""
        places = unflatten(flat if size(axes) > 1 else ZERO, [loop.extent for loop in axes])
        return dict(zip(axes, places, strict=True))

    def steps(self, name: str, count: int, start: str, tile: str, shape: str) -> Expr:
        """Write a tile's steps along an axis, from a program's number or `start` on, and their mask."""
        if start not in ("", "start"):
            start = f"tl.cast({start}, tl.int64) * {tile}" if self.wide else f"{start} * {tile}"
        start = f"{start} + " if start else ""
        self.line(f"{name} = {start}tl.arange(0, {tile}){shape}")
        self.line(f"{name}_inside = {name} < {count}")
        loop = axis(name, max(2, count))
        self.inside[loop] = f"{name}_inside"
        self.taken |= {name, f"{name}_inside"}
        return loop

    def loop(self, length: int, tile: str) -> None:
        self.line(f"for start in range(0, {length}, {tile}):")
        self.indent = "        "

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def named(self, hint: str, text: str) -> str:
        name = fresh(hint, self.taken)
        self.line(f"{name} = {text}")
        return name
