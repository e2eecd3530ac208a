"""Third stage: decide which results stay in registers, and so which operations share a kernel.

A result that is not written to memory is inlined into the expressions that use it. It is inlined if every kernel keeps
a form that the lowering can write, and if the estimated time falls: bytes that are no longer moved and launches that
are no longer made, against what is computed more than once.
"""

from collections.abc import Callable, Mapping
from functools import partial

from mlsys.compiler.ir.expression import PRIMITIVES, Expr, axis, number, size, walk
from mlsys.compiler.ir.graph import BadGraph, Graph, Operation, Tensor
from mlsys.compiler.ir.program import Form, Kernel, Program
from mlsys.compiler.ir.value import Value
from mlsys.compiler.rules import apply_rule, tensors_of
from mlsys.hardware import Accelerator

LAUNCH_S = 1e-6  # seconds that a kernel adds in a CUDA graph: labs/results/nvidia-h200.json, launch latency
LARGEST_KERNEL = 300  # most distinct parts of a kernel's expression: a page of text, which a reader still follows
MOVES = "expand flatten identity reshape squeeze transpose unsqueeze view".split()  # not worth a word in a name
SMALLEST_PRODUCT = 4  # least rows and columns for which a kernel uses tl.dot, which pads each to 16


def form_of(element: Expr, axes: tuple[Expr, ...]) -> Form | None:
    """Return the form of a kernel, or None if the lowering has none for it."""
    parts = list(walk(element))
    reductions = [part for part in parts if part.op == "reduce"]
    if not reductions:
        return Form("map", axes)
    if any(part.op == "reduce" for guard in parts if guard.op == "guard" for part in walk(guard)):
        return None
    product = _product_form(reductions[0], axes) if len(reductions) == 1 else None
    if product is not None:
        return product
    free = frozenset().union(*(reduction.axes for reduction in reductions))
    lengths = {size(reduction.detail[1]) for reduction in reductions}
    inner = tuple(loop for loop in axes if loop not in free and loop.extent != 1)
    if len(lengths) > 1 or not free <= set(axes) or (inner and size(inner) not in lengths):
        return None
    return Form("rows", tuple(loop for loop in axes if loop not in inner), inner, (axis("col", lengths.pop()),))


def _product_form(reduction: Expr, axes: tuple[Expr, ...]) -> Form | None:
    (body,), (kind, over) = reduction.args, reduction.detail
    if kind != "sum" or body.op != "mul" or body.dtype not in ("fp32", "fp16", "bf16"):
        return None
    for factor in body.args:  # a load, or a guarded one that is 0 outside: what tl.dot takes as it is
        plain = factor.args[0] if factor.op == "guard" and factor.args[1].detail == 0 else factor
        if plain.op != "load" or len(factor.loads) != 1 or not factor.axes & set(over):
            return None
    left, right = (factor.axes for factor in body.args)
    rows, columns = (tuple(a for a in axes if a in side) for side in (left - right, right - left))
    rows, columns = (columns, rows) if axes and axes[-1] in rows else (rows, columns)
    batch = tuple(a for a in axes if a not in (*rows, *columns))
    if min(size(rows), size(columns)) < SMALLEST_PRODUCT or any(a.extent > 1 and a not in left & right for a in batch):
        return None
    return Form("product", rows, columns, over, batch)


def seconds(kernel: Kernel, tensors: Mapping[str, Tensor], bandwidth: float, flops: float, units: int) -> float:
    """Estimate a kernel's time: the longer of moving its bytes and doing its arithmetic, and a launch.

    Every tensor is read once from memory, however often a kernel uses it. A kernel with fewer programs than the chip
    has `units`, multiprocessors, uses as many of them. Bandwidth and FLOPs are of the whole chip, in a second.
    """
    form, element, moved = kernel.form, kernel.element, kernel.result.nbytes
    columns = max(size(form.inner), size(form.over) if form.kind == "rows" else 1)
    steps = size(form.outer) * columns * size(form.batch)
    for tensor in {load.detail: tensors[load.detail] for load in element.loads}.values():
        most = tensor.elements if form.kind == "product" else min(tensor.elements, steps)
        moved += tensor.nbytes * most // max(1, tensor.elements)
    work = sum(PRIMITIVES[part.op][1] if part.op in PRIMITIVES else part.op == "reduce" for part in walk(element))
    work = work * steps + (2 * steps * size(form.over) if form.kind == "product" else 0)
    share = min(1.0, size(form.outer) / units) if form.kind == "rows" else 1.0
    return LAUNCH_S + max(moved / bandwidth, work / flops) / share


def kernel_of(result: Tensor, value: Value, lines: tuple[str, ...] = ()) -> Kernel | None:
    """Return a kernel that computes a value, or None if no form fits."""
    axes = tuple(axis(f"i{n}", length) for n, length in enumerate(value.shape))
    element = value.at(*axes) if result.elements else number(0, value.dtype)
    form = form_of(element, axes)
    words = [line.partition(" = ")[2].partition("(")[0].lower() for line in lines]
    words = [word for word in words if word not in MOVES] or words
    name = "_".join(words if len(words) <= 3 else [*words[:2], "and_more", words[-1]])
    return Kernel(name, result, axes, element, form, lines) if form else None


def fuse(graph: Graph, chip: Accelerator) -> Program:
    """Divide a graph into kernels; raises BadGraph for an operation that no form of kernel fits."""
    stored = tensors_of(graph)
    tensors = {name: Tensor(name, tuple(value.shape), value.dtype) for name, value in stored.items()}
    units, registers, threads = (chip.field(n).value.m for n in ("sm_count", "registers_per_sm", "threads_per_sm"))
    bandwidth, flops = chip.memory_bw.m_as("byte/s"), chip.peak("fp32", engine="vector").m_as("flop/s")
    estimate = partial(seconds, tensors=tensors, bandwidth=bandwidth, flops=flops, units=units)
    most_loads = int(registers / (threads / 2)) // 4  # four elements of each tensor a thread, at half of the threads
    values, inside = dict(stored), dict[str, tuple[str, ...]]()  # as later operations see them; what is in them
    kernels, decisions = list[Kernel](), list[str]()
    for operation in graph.operations:
        told = dict.fromkeys(line for name in operation.inputs for line in inside.get(name, ()))
        lines = (*told, str(operation))
        for name, value in apply_rule(operation, values).items():
            users = [user for user in graph.operations if name in user.inputs]
            if not users and name not in graph.outputs:
                continue
            kernel = kernel_of(tensors[name], value, lines)
            reason = "stored, an output of the graph"
            if name not in graph.outputs:
                reason = _why_stored(kernel, name, value, users, stored, values, tensors, estimate, most_loads)
            decisions.append(f"{name}: {reason or 'inlined'}")
            if not reason:
                values[name], inside[name] = value, lines
            elif kernel is None:
                raise BadGraph(f"no form of kernel fits tensor '{name}', {lines[-1]}: split the operation")
            else:
                kernels.append(kernel)
    return Program(graph, tensors, tuple(kernels), tuple(decisions))


def _why_stored(
    own: Kernel | None, name: str, value: Value, users: list[Operation], stored: Mapping[str, Value],
    values: Mapping[str, Value], tensors: Mapping[str, Tensor], estimate: Callable[[Kernel], float], most_loads: int,
) -> str:  # fmt: skip
    """The reason why a result is written to memory, or "" if it is inlined."""
    if own is None:
        return "stored, its expression has no form by itself"
    if own.element.op == "number":
        return ""
    apart, together = estimate(own), 0.0
    for user in users:
        inlined = apply_rule(user, {**values, name: value})
        for output, read in apply_rule(user, {**values, name: stored[name]}).items():
            before, after = kernel_of(tensors[output], read), kernel_of(tensors[output], inlined[output])
            if after is None:
                return f"stored, {user.op} cannot compute it in the same loops"
            if "product" in (own.form.kind, before and before.form.kind) and after.form.kind != "product":
                return f"stored, {user.op} would not be a matrix product any more"
            if len(after.element.loads) > most_loads or sum(1 for _ in walk(after.element)) > LARGEST_KERNEL:
                return f"stored, {user.op} would hold {len(after.element.loads)} tensors in registers"
            apart += estimate(before) if before else 0
            together += estimate(after)
    if together > apart:
        return f"stored, inlining takes {together * 1e6:.1f} us instead of {apart * 1e6:.1f}"
    return ""
