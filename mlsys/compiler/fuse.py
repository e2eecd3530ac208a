"""Third stage: decide which results stay in registers, and so which operations share a kernel.

A result that is not written to memory is inlined into the expressions that use it. It is inlined if every kernel keeps
a form that the lowering can write, and if the estimated time falls: bytes that are no longer moved and launches that
are no longer made, against what is computed more than once.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from keyword import iskeyword
from math import prod

from mlsys.compiler.ir.expression import Apply, Constant, Expression, Guard, Load, Reduce, number, walk
from mlsys.compiler.ir.graph import BadGraph, Graph, Operation, Tensor
from mlsys.compiler.ir.index import Axis, index
from mlsys.compiler.ir.primitives import flops
from mlsys.compiler.optimize import given_values, outcomes, tensors_of
from mlsys.compiler.rules.values import Value, buffer_value
from mlsys.hardware import Accelerator

LAUNCH_S = 1e-6
"""Seconds that a kernel adds in a CUDA graph, whatever it computes: labs/results/nvidia-h200.json, launch latency."""

LARGEST_KERNEL = 300
"""Most distinct parts of a kernel's expression: a page of text, which a reader still follows."""

SMALLEST_PRODUCT = 4
"""Least rows and columns for which a kernel uses tl.dot; it pads each to 16."""


@dataclass(frozen=True)
class Form:
    """How the loops of a kernel are divided.

    Attributes:
        kind: "map" computes each element alone, "rows" reduces within rows, "product" is a matrix product.
        outer: axes of the result that become rows (all of them in a map).
        inner: axes of the result within a row, or the columns of a product.
        over: axes that are summed in a product; in "rows" one axis as long as each reduction.
        batch: axes over which a product is repeated.
    """

    kind: str
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...] = ()
    over: tuple[Axis, ...] = ()
    batch: tuple[Axis, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """One kernel: the expression of an element of its result, and the operations that it stands for."""

    name: str
    result: Tensor
    axes: tuple[Axis, ...]
    element: Expression
    form: Form
    operations: tuple[str, ...]

    def __str__(self) -> str:
        places = ", ".join(f"{axis}<{axis.extent}" for axis in self.axes)
        *shared, element = str(self.element).splitlines()
        lines = [*shared, f"{self.result.name}[{places}] = {element.strip()}"]
        return "\n    ".join([f"{self.name} ({self.form.kind})", *map(str.strip, lines)])


@dataclass(frozen=True)
class Fused:
    """A graph as kernels in the order in which they run; `decisions` says why each result is inlined or stored."""

    graph: Graph
    tensors: Mapping[str, Tensor]
    kernels: tuple[Kernel, ...]
    decisions: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*map(str, self.kernels), "", *self.decisions])


def size(axes: tuple[Axis, ...]) -> int:
    """Return the count of steps over axes."""
    return prod(axis.extent for axis in axes)


def form_of(element: Expression, axes: tuple[Axis, ...]) -> Form | None:
    """Return the form of a kernel, or None if the lowering has none for it."""
    parts = list(walk(element))
    reductions = [part for part in parts if isinstance(part, Reduce)]
    if not reductions:
        return Form("map", axes)
    guards = [part for part in parts if isinstance(part, Guard)]
    if any(isinstance(part, Reduce) for guarded in guards for part in walk(guarded)):
        return None
    product = _product_form(reductions, axes)
    if product is not None:
        return product
    free = frozenset().union(*(reduction.axes for reduction in reductions))
    lengths = {size(reduction.over) for reduction in reductions}
    inner = tuple(axis for axis in axes if axis not in free and axis.extent != 1)
    if len(lengths) > 1 or not free <= set(axes) or (inner and size(inner) not in lengths):
        return None
    outer = tuple(axis for axis in axes if axis not in inner)
    return Form("rows", outer, inner, (Axis("col", lengths.pop()),))


def _product_form(reductions: list[Reduce], axes: tuple[Axis, ...]) -> Form | None:
    if len(reductions) != 1 or reductions[0].kind != "sum" or reductions[0].dtype not in ("fp32", "fp16", "bf16"):
        return None
    body, over = reductions[0].body, reductions[0].over
    if not (isinstance(body, Apply) and body.function == "mul" and all(map(_is_operand, body.arguments))):
        return None
    left, right = (argument.axes for argument in body.arguments)
    if not (left & set(over) and right & set(over)):
        return None
    rows = tuple(axis for axis in axes if axis in left - right)
    columns = tuple(axis for axis in axes if axis in right - left)
    if axes and axes[-1] in rows:
        rows, columns = columns, rows
    batch = tuple(axis for axis in axes if axis not in (*rows, *columns))
    if min(size(rows), size(columns)) < SMALLEST_PRODUCT or any(a.extent > 1 for a in batch if a not in left & right):
        return None
    return Form("product", rows, columns, over, batch)


def _is_operand(value: Expression) -> bool:
    parts = list(walk(value))
    plain = all(
        isinstance(part, Load | Constant | Guard) or (isinstance(part, Apply) and part.function == "cast")
        for part in parts
    )
    return plain and sum(isinstance(part, Load) for part in parts) == 1


def seconds(element: Expression, result: Tensor, form: Form, tensors: Mapping[str, Tensor], chip: Accelerator) -> float:
    """Estimate a kernel's time: the longer of moving its bytes and doing its arithmetic, and a launch.

    Every tensor is read once from memory, however often a kernel uses it; a kernel with fewer programs than the chip
    has multiprocessors uses as many of them.
    """
    steps = size(form.outer) * max(size(form.inner), size(form.over) if form.kind == "rows" else 1) * size(form.batch)
    loads = [part for part in walk(element) if isinstance(part, Load)]
    read = 0.0
    for tensor in {part.buffer: tensors[part.buffer] for part in loads}.values():
        most = tensor.elements if form.kind == "product" else min(tensor.elements, steps)
        read += tensor.size * most / max(1, tensor.elements)
    work = flops(element) * steps
    share = 1.0
    if form.kind == "product":
        work += 2 * steps * size(form.over)
    elif form.kind == "rows":
        share = min(1.0, size(form.outer) / chip.field("sm_count").value.m)
    moved = (read + result.size) / chip.memory_bw.m_as("byte/s")
    return LAUNCH_S + float(max(moved, work / chip.peak("fp32", engine="vector").m_as("flop/s"))) / share


def most_loads(chip: Accelerator) -> int:
    """Return how many tensors a kernel may read: four elements of each a thread, at half the chip's threads."""
    registers = chip.field("registers_per_sm").value.m / (chip.field("threads_per_sm").value.m / 2)
    return int(registers) // 4


def fuse(graph: Graph, chip: Accelerator) -> Fused:
    """Divide a graph into kernels.

    Raises:
        BadGraph: an operation that no form of kernel fits.
    """
    return _Fusion(graph, chip).run()


class _Fusion:
    def __init__(self, graph: Graph, chip: Accelerator) -> None:
        self.graph, self.chip = graph, chip
        self.tensors = tensors_of(graph)
        self.values = given_values(graph)
        self.users: dict[str, list[Operation]] = defaultdict(list)
        for operation in graph.operations:
            for name in dict.fromkeys(operation.inputs):
                self.users[name].append(operation)
        self.inside: dict[str, tuple[str, ...]] = {}  # operations of each inlined result
        self.kernels: list[Kernel] = []
        self.decisions: list[str] = []

    def run(self) -> Fused:
        for operation in self.graph.operations:
            inlined = [part for name in operation.inputs for part in self.inside.get(name, ())]
            told = tuple(dict.fromkeys([*inlined, str(operation)]))
            for name, value in outcomes(operation, self.values).items():
                if name not in self.users and name not in self.graph.outputs:
                    continue
                reason = self.why_stored(name, value)
                self.decisions.append(f"{name}: {reason or 'inlined'}")
                if reason:
                    self.store(name, value, told)
                    self.values[name] = buffer_value(self.tensors[name])
                else:
                    self.inside[name] = told
                    self.values[name] = value
        return Fused(self.graph, self.tensors, tuple(self.kernels), tuple(self.decisions))

    def element(self, value: Value) -> tuple[tuple[Axis, ...], Expression, Form | None]:
        axes = tuple(Axis(f"i{number}", extent) for number, extent in enumerate(value.shape))
        element = value.at(*map(index, axes)) if size(axes) else number(0, value.dtype)
        return axes, element, form_of(element, axes)

    def store(self, name: str, value: Value, told: tuple[str, ...]) -> None:
        axes, element, form = self.element(value)
        if form is None:
            raise BadGraph(f"no form of kernel fits tensor '{name}', {told[-1]}: split the operation into smaller ones")
        words = [line.partition(" = ")[2].partition("(")[0].lower() for line in told]
        kernel = "k_" * iskeyword(words[0]) + "_".join(
            words[:3] if len(words) <= 3 else [*words[:2], "and_more", words[-1]]
        )
        same = sum(other.name.rstrip("_0123456789") == kernel for other in self.kernels)
        self.kernels.append(
            Kernel(f"{kernel}_{same + 1}" if same else kernel, self.tensors[name], axes, element, form, told)
        )

    def why_stored(self, name: str, value: Value) -> str:
        """The reason why a result is written to memory, or "" if it is inlined."""
        if name in self.graph.outputs:
            return "stored, an output of the graph"
        _, own, form = self.element(value)
        if form is None:
            return "stored, its expression has no form by itself"
        if isinstance(own, Constant):
            return ""
        apart = seconds(own, self.tensors[name], form, self.tensors, self.chip)
        together = 0.0
        for user in self.users[name]:
            for other in self.uses(user, name, value):
                _, before, form_before = self.element(other[0])
                _, after, form_after = self.element(other[1])
                if form_after is None:
                    return f"stored, {user.op} cannot compute it in the same loops"
                kinds = (form.kind, form_before.kind if form_before else "")
                if "product" in kinds and form_after.kind != "product":
                    return f"stored, {user.op} would not be a matrix product any more"
                loads = sum(isinstance(part, Load) for part in walk(after))
                if loads > most_loads(self.chip) or sum(1 for _ in walk(after)) > LARGEST_KERNEL:
                    return f"stored, {user.op} would hold {loads} tensors in registers"
                result = Tensor("", other[0].shape, other[0].dtype)
                if form_before is not None:
                    apart += seconds(before, result, form_before, self.tensors, self.chip)
                together += seconds(after, result, form_after, self.tensors, self.chip)
        if together > apart:
            return f"stored, inlining takes {together * 1e6:.1f} us instead of {apart * 1e6:.1f}"
        return ""

    def uses(self, user: Operation, name: str, value: Value) -> list[tuple[Value, Value]]:
        """What an operation gives with a result read from memory, and with the result inlined."""
        known = {n: self.values.get(n) or buffer_value(self.tensors[n]) for n in user.inputs if n}
        before = outcomes(user, known | {name: buffer_value(self.tensors[name])})
        after = outcomes(user, known | {name: value})
        return [(before[n], after[n]) for n in before if n in self.users or n in self.graph.outputs]
