"""Sixth stage: write each kernel as Triton source, and a function that launches them in order."""

import re
from collections.abc import Mapping
from dataclasses import replace
from math import ceil, isfinite

import numpy as np

from mlsys.compiler.ir import expression as ir
from mlsys.compiler.ir.expression import Expr, Scalar, substitute
from mlsys.compiler.ir.graph import TRITON, BadGraph, Tensor, fresh
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
    if device == "cpu" and any(tensor.dtype == "bf16" for tensor in program.tensors.values()):
        raise BadGraph("Triton's interpreter gets bf16 wrong: use fp16 or fp32, or compile for device='cuda'")
    used = {name for k in program.kernels for name in (k.result.name, *(load.detail for load in k.element.loads))}
    arguments, taken = tuple(name for name in program.tensors if name in used), {"tl", "triton", "run", "launch"}
    names, texts, written = {name: fresh(name, taken) for name in arguments}, [HEADER], dict[str, str]()
    calls = [f"def run(launch, {', '.join(names.values())}):", '    """Launch the kernels in order."""']
    for kernel in program.kernels:
        own = [*dict.fromkeys([*(names[load.detail] for load in kernel.element.loads), names[kernel.result.name]])]
        writer = _Writer(kernel, names, program.tensors, device == "cpu")
        getattr(writer, kernel.form.kind)()
        alike = str(writer.lines)
        for place, name in enumerate(own):
            alike = re.sub(rf"\b{name}(?=_value|\b)", f"argument_{place}", alike)
        if alike not in written:  # otherwise an earlier kernel does the same with other tensors
            written[alike] = fresh(kernel.name, taken)
            what = "\n    ".join(line.replace("\\", "").replace('"', "'") for line in kernel.operations)
            parameters = ", ".join([*own, *(f"{name}: tl.constexpr" for name in kernel.tile)])
            lines = ["@triton.jit", f"def {written[alike]}({parameters}):", f'    """{what}"""', *writer.lines]
            texts.append("\n".join(["", *lines, ""]))
        settings = [f"{name}={length}" for name, length in kernel.tile.items()]
        settings += [f"num_warps={kernel.warps}", f"num_stages={kernel.stages}"]
        calls.append(f"    launch({', '.join([written[alike], str(kernel.grid), *own, *settings])})")
    return replace(program, arguments=arguments, text="\n".join([*texts, "", *calls, ""]))


def literal(value: Scalar, dtype: str) -> str:
    """Return a number as Triton reads it; of a format that is not its own for such a number, with the format."""
    value = float(str(np.float32(value))) if dtype == "fp32" else value  # the shortest digits
    text = repr(value) if isfinite(value) else f'float("{value}")'
    return text if dtype in ("fp32", "int32") else f"tl.full([], {text}, {TRITON[dtype]})"


class _Writer:
    """Writes one kernel: `write` returns the text of an expression, after the lines that it needs."""

    def __init__(self, kernel: Kernel, names: Mapping[str, str], tensors: Mapping[str, Tensor], interpreted: bool):
        self.kernel, self.form, self.tensor_names, self.interpreted = kernel, kernel.form, names, interpreted
        self.lines, self.indent = list[str](), "    "
        self.taken = {"tl", "start", "acc", *names.values(), *kernel.tile}
        self.names: dict[tuple[Expr, Masks], str] = {}
        self.inside: dict[Expr, str] = {}  # the mask of each axis of the tile, "" if all of it is inside
        self.raw = False  # whether loads keep 16-bit formats, for tl.dot
        used = [kernel.result, *(tensors[load.detail] for load in kernel.element.loads)]
        self.wide = any(tensor.elements >= 2**31 for tensor in used)  # whether positions need 64 bits

    def map(self) -> None:
        """Let each program compute BLOCK elements."""
        i = self.steps("i", self.kernel.result.elements, "tl.program_id(0)", "BLOCK", "")
        self.store(decode(self.kernel.axes, i), self.kernel.element, i)

    def rows(self) -> None:
        """Let each program reduce ROWS rows, in one piece or in a loop over pieces of COLS columns."""
        length = ir.size(self.form.over)
        row = self.steps("row", ir.size(self.form.outer), "tl.program_id(0)", "ROWS", "[:, None]")
        col = ir.axis("col", max(2, length))
        places = decode(self.form.outer, row) | decode(self.form.inner, col)
        for part in ir.walk(self.kernel.element):  # all run over the columns of the tile, so equal ones become one
            places |= decode(part.detail[1], col) if part.op == "reduce" else {}
        element = substitute(self.kernel.element, places, (col,))
        if length <= self.kernel.tile["COLS"]:
            self.steps("col", length, "", "COLS", "[None, :]")
        else:
            for part in ir.walk(element):
                if part.op == "reduce":
                    self.accumulate(part, length)
            if self.form.inner:
                self.loop(length, "COLS")
                self.steps("col", length, "start", "COLS", "[None, :]")
        self.store(places, element, row)

    def accumulate(self, part: Expr, length: int) -> None:
        """Reduce a row that is longer than a tile: first lane by lane, then over the lanes."""
        kept, kind = dict(self.names), part.detail[0]
        empty, acc = literal(neutral(kind, part.dtype), ir.computed(part.dtype)), fresh(f"{kind}s", self.taken)
        self.line(f"{acc} = tl.zeros([ROWS, COLS], {TRITON[ir.computed(part.dtype)]}) + {empty}")
        self.loop(length, "COLS")
        self.steps("col", length, "start", "COLS", "[None, :]")
        self.line(f"{acc} = {COMBINED[kind].format(acc, self.filled(part, empty))}")
        self.indent, self.names = "    ", kept
        self.names[part, ()] = self.named(f"row_{kind}", f"tl.{kind}({acc}, axis=1, keep_dims=True)")

    def product(self) -> None:
        """Let each program sum products of tiles into a tile of TILE_M rows and TILE_N columns."""
        form, tile = self.form, self.kernel.tile
        count_m, count_n, count_k = (ir.size(axes) for axes in (form.outer, form.inner, form.over))
        tiles, batch = ceil(count_m / tile["TILE_M"]), ir.axis("batch", max(2, ir.size(form.batch)))
        self.line("tile = tl.program_id(0)")
        m = self.steps("m", count_m, f"(tile % {tiles})", "TILE_M", "[:, None]")
        n = self.steps("n", count_n, f"(tile // {tiles})", "TILE_N", "[None, :]")
        if ir.size(form.batch) > 1:
            self.line("batch = tl.program_id(1)")
        places = decode(form.outer, m) | decode(form.inner, n) | decode(form.batch, batch)
        reduction = next(part for part in ir.walk(self.kernel.element) if part.op == "reduce")
        left, right = reduction.args[0].args
        left, right = (left, right) if left.axes & set(form.outer) else (right, left)
        kept, self.raw = dict(self.names), not self.interpreted
        self.line("acc = tl.zeros([TILE_M, TILE_N], tl.float32)")
        self.loop(count_k, "TILE_K")
        k = self.steps("k", count_k, "start", "TILE_K", "[None, :]")
        k_rows = self.steps("k_rows", count_k, "start", "TILE_K", "[:, None]")  # the same, along the other dimension
        a = self.write(substitute(left, places | decode(form.over, k)))
        b = self.write(substitute(right, places | decode(form.over, k_rows)))
        precision = f', input_precision="{self.kernel.precision}"' if left.dtype == "fp32" or self.interpreted else ""
        self.line(f"acc = tl.dot({a}, {b}, acc{precision})")
        self.indent, self.names, self.raw = "    ", kept, False
        element = substitute(self.kernel.element, places)
        self.names[next(part for part in ir.walk(element) if part.op == "reduce"), ()] = "acc"
        self.store(places, element, m)

    def write(self, part: Expr, masks: Masks = ()) -> str:
        """Return a name or short text for an expression; `masks` are the conditions under which it is needed."""
        key = (part, masks if part.loads else ())
        if key in self.names:
            return self.names[key]
        if part.op == "number":
            return literal(part.detail, ir.computed(part.dtype))
        if part.op in ("load", "guard", "reduce"):
            self.names[key] = getattr(self, part.op)(part, masks)
            return self.names[key]
        args = [self.write(arg, masks) for arg in part.args]
        if part.op in ("axis", "linear", "within", "fetch"):
            return args[0] if part.op == "fetch" else ir.text_of(part, args)
        if part.op in ("floordiv", "mod"):
            hint = f"{args[0] if args[0].isidentifier() else 'place'}_{'over' if part.op == 'floordiv' else 'mod'}"
            self.names[key] = self.named(f"{hint}_{part.detail}", ir.text_of(part, args))
        elif part.op == "cast":
            widen = ".to(tl.float32)" if ir.computed(part.dtype) != part.dtype else ""
            self.names[key] = self.named("cast", f"({args[0]}).to({TRITON[part.dtype]}){widen}")
        else:
            template = ir.PRIMITIVES[part.op][0]
            args = [f"({arg})" if arg.startswith("-") and "tl." not in template else arg for arg in args]
            self.names[key] = self.named(part.op, template.format(*args))
        return self.names[key]

    def load(self, part: Expr, masks: Masks, outside: str = "0") -> str:
        """Load elements, of which those outside the tile or the masks are not read."""
        place, name = self.write(part.args[0], masks), self.tensor_names[part.detail]
        needed = [mask for loop, mask in self.inside.items() if loop in part.axes and mask]
        if part.axes & set(self.inside):  # else it is a single element, which is there whether it is needed or not
            needed += [mask for mask in masks if mask not in needed]
        for fetched in (inner for inner in ir.walk(part.args[0]) if inner.op == "fetch"):
            row = self.write(fetched.args[0], masks)
            needed.append(f"({row} >= 0) & ({row} < {fetched.detail})")
        mask = f", mask={' & '.join(needed)}, other={outside}" if needed else ""
        widen = ".to(tl.float32)" if ir.computed(part.dtype) != part.dtype and not self.raw else ""
        keep = ', eviction_policy="evict_last"' if self.form.kind == "rows" else ""  # caches drop results before rows
        return self.named(f"{name}_value", f"tl.load({name} + {place}{mask}{keep}){widen}")

    def guard(self, part: Expr, masks: Masks) -> str:
        """Choose by a condition on positions, which also masks the loads that it makes needless."""
        inside, outside, *conditions = part.args
        for place in (condition.args[0] for condition in conditions):
            if not self.write(place, masks).isidentifier():
                self.names[place, masks if place.loads else ()] = self.named("at", self.write(place, masks))
        test = self.named("inside", " & ".join(self.write(condition, masks) for condition in conditions))
        fetches = any(inner.op == "fetch" for inner in ir.walk(inside))
        if inside.op == "load" and inside.axes & set(self.inside) and outside.op == "number" and not fetches:
            return self.load(inside, (*masks, test), self.write(outside))
        inner = self.write(inside, (*masks, test))
        return self.named("guarded", f"tl.where({test}, {inner}, {self.write(outside, masks)})")

    def reduce(self, part: Expr, masks: Masks) -> str:
        """Reduce the columns of the tile."""
        kind, empty = part.detail[0], literal(neutral(part.detail[0], part.dtype), ir.computed(part.dtype))
        return self.named(f"row_{kind}", f"tl.{kind}({self.filled(part, empty, masks)}, axis=1, keep_dims=True)")

    def filled(self, part: Expr, empty: str, masks: Masks = ()) -> str:
        """Return what a reduction combines, with `empty` in the columns outside; a block, even if columns are equal."""
        (body,), (col,) = part.args, part.detail[1]
        mask = self.inside[col] or ("" if col in body.axes else "col >= 0")
        return f"tl.where({mask}, {self.write(body, masks)}, {empty})" if mask else self.write(body, masks)

    def store(self, places: Mapping[Expr, Expr], element: Expr, loop: Expr) -> None:
        result, text = self.kernel.result, self.write(substitute(element, places))
        position = ir.flatten([places.get(each, ir.ZERO) for each in self.kernel.axes], result.shape)
        if not position.axes & set(self.inside):
            position = position + loop  # a single element; a block of pointers needs a block of indices
        needed = " & ".join(mask for each, mask in self.inside.items() if each in position.axes and mask)
        mask = f", mask={needed}" if needed else ""
        self.line(f"tl.store({self.tensor_names[result.name]} + {self.write(position)}, {text}{mask})")

    def steps(self, name: str, count: int, start: str, tile: str, shape: str) -> Expr:
        """Write a tile's steps along an axis, and their mask; return the axis.

        They begin at `start`: 0 if it is "", the loop's variable if it is "start", else that many tiles.
        """
        if start not in ("", "start"):
            start = f"tl.cast({start}, tl.int64) * {tile}" if self.wide else f"{start} * {tile}"
        self.line(f"{name} = {f'{start} + ' if start else ''}tl.arange(0, {tile}){shape}")
        loop = ir.axis(name, max(2, count))
        self.inside[loop] = f"{name}_inside" if count % self.kernel.tile[tile] else ""
        if self.inside[loop]:
            self.line(f"{name}_inside = {name} < {count}")
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


def decode(axes: tuple[Expr, ...], flat: Expr) -> dict[Expr, Expr]:
    """Return the place along each axis from one count over all."""
    places = ir.unflatten(flat if ir.size(axes) > 1 else ir.ZERO, [loop.extent for loop in axes])
    return dict(zip(axes, places, strict=True))
