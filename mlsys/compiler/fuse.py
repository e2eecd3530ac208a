"""Third stage: decide which results stay in registers, and so which operations share a kernel.

A result that is not written to memory is inlined into the expressions that use it. It is inlined if every kernel keeps
a form that the lowering can write, and if the estimated time falls: bytes that are no longer moved and launches that
are no longer made, against what is computed more than once.
"""

from collections.abc import Mapping
from keyword import iskeyword

from mlsys.compiler.ir.expression import PRIMITIVES, Expr, axis, number, size, walk
from mlsys.compiler.ir.graph import BadGraph, Graph, Operation, Tensor
from mlsys.compiler.ir.program import Form, Kernel, Program
from mlsys.compiler.ir.value import Value, buffer
from mlsys.compiler.rules import apply_rule, given
from mlsys.hardware import Accelerator

LAUNCH_S = 1e-6  # seconds that a kernel adds in a CUDA graph: labs/results/nvidia-h200.json, launch latency
LARGEST_KERNEL = 300  # most distinct parts of a kernel's expression: a page of text, which a reader still follows
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
    plain = ("load", "number", "guard", "cast", "within")
    if kind != "sum" or body.op != "mul" or body.dtype not in ("fp32", "fp16", "bf16"):
        return None
    if any(part.op not in plain and part.dtype != "index" for arg in body.args for part in walk(arg)):
        return None
    left, right = (arg.axes for arg in body.args)
    if any(len(arg.loads) != 1 or not arg.axes & set(over) for arg in body.args):
        return None
    rows, columns = (tuple(a for a in axes if a in side) for side in (left - right, right - left))
    rows, columns = (columns, rows) if axes and axes[-1] in rows else (rows, columns)
    batch = tuple(a for a in axes if a not in (*rows, *columns))
    if min(size(rows), size(columns)) < SMALLEST_PRODUCT or any(a.extent > 1 and a not in left & right for a in batch):
        return None
    return Form("product", rows, columns, over, batch)


def seconds(element: Expr, result: Tensor, form: Form, tensors: Mapping[str, Tensor], chip: Accelerator) -> float:
    """Estimate a kernel's time: the longer of moving its bytes and doing its arithmetic, and a launch.

    Every tensor is read once from memory, however often a kernel uses it; a kernel with fewer programs than the chip
    has multiprocessors uses as many of them.
    """
    columns = max(size(form.inner), size(form.over) if form.kind == "rows" else 1)
    steps, moved = size(form.outer) * columns * size(form.batch), result.size
    for tensor in {load.detail: tensors[load.detail] for load in element.loads}.values():
        most = tensor.elements if form.kind == "product" else min(tensor.elements, steps)
        moved += tensor.size * most // max(1, tensor.elements)
    work = sum(PRIMITIVES[part.op][1] if part.op in PRIMITIVES else part.op == "reduce" for part in walk(element))
    work = work * steps + (2 * steps * size(form.over) if form.kind == "product" else 0)
    share = min(1.0, size(form.outer) / chip.field("sm_count").value.m) if form.kind == "rows" else 1.0
    arithmetic = work / chip.peak("fp32", engine="vector").m_as("flop/s")
    return LAUNCH_S + float(max(moved / chip.memory_bw.m_as("byte/s"), arithmetic)) / share


def most_loads(chip: Accelerator) -> int:
    """Return how many tensors a kernel may read: four elements of each a thread, at half the chip's threads."""
    return int(chip.field("registers_per_sm").value.m / (chip.field("threads_per_sm").value.m / 2)) // 4


def kernel_of(result: Tensor, value: Value) -> tuple[tuple[Expr, ...], Expr, Form | None]:
    """Return the axes of a kernel that computes a value, the element at them, and the kernel's form."""
    axes = tuple(axis(f"i{n}", length) for n, length in enumerate(value.shape))
    element = value.at(*axes) if result.elements else number(0, value.dtype)
    return axes, element, form_of(element, axes)


def fuse(graph: Graph, chip: Accelerator) -> Program:
    """Divide a graph into kernels; raises BadGraph for an operation that no form of kernel fits."""
    stored, tensors = given(graph), {tensor.name: tensor for tensor in graph.inputs}
    tensors |= {name: Tensor(name, tuple(value.shape), value.dtype) for name, value in stored.items()}
    for operation in graph.operations:
        for name, value in apply_rule(operation, stored).items():
            tensors[name] = Tensor(name, tuple(value.shape), value.dtype)
            stored[name] = buffer(tensors[name])
    values, inside = dict(stored), dict[str, tuple[str, ...]]()  # as later operations see them; what is in them
    kernels, decisions = list[Kernel](), list[str]()
    for operation in graph.operations:
        told = dict.fromkeys(line for name in operation.inputs for line in inside.get(name, ()))
        lines = (*told, str(operation))
        for name, value in apply_rule(operation, values).items():
            users = [user for user in graph.operations if name in user.inputs]
            if not users and name not in graph.outputs:
                continue
            axes, element, form = kernel_of(tensors[name], value)
            reason = "stored, an output of the graph"
            if name not in graph.outputs:
                reason = _why_stored(name, value, users, stored, values, tensors, chip)
            decisions.append(f"{name}: {reason or 'inlined'}")
            if not reason:
                values[name], inside[name] = value, lines
            elif form is None:
                raise BadGraph(f"no form of kernel fits tensor '{name}', {lines[-1]}: split the operation")
            else:
                called = _name(lines, [kernel.name for kernel in kernels])
                kernels.append(Kernel(called, tensors[name], axes, element, form, lines))
    return Program(graph, tensors, tuple(kernels), tuple(decisions))


def _name(lines: tuple[str, ...], taken: list[str]) -> str:
    words = [line.partition(" = ")[2].partition("(")[0].lower() for line in lines]
    base = "_".join(words if len(words) <= 3 else [*words[:2], "and_more", words[-1]])
    base = f"k_{base}" if iskeyword(base) else base
    same = sum(other.rstrip("_0123456789") == base for other in taken)
    return f"{base}_{same + 1}" if same else base


def _why_stored(
    name: str, value: Value, users: list[Operation], stored: Mapping[str, Value], values: Mapping[str, Value],
    tensors: Mapping[str, Tensor], chip: Accelerator,
) -> str:  # fmt: skip
    """The reason why a result is written to memory, or "" if it is inlined."""
    _, own, form = kernel_of(tensors[name], value)
    if form is None:
        return "stored, its expression has no form by itself"
    if own.op == "number":
        return ""
    apart, together = seconds(own, tensors[name], form, tensors, chip), 0.0
    for user in users:
        inlined = apply_rule(user, {**values, name: value})
        for output, read in apply_rule(user, {**values, name: stored[name]}).items():
            _, before, form_before = kernel_of(tensors[output], read)
            _, after, form_after = kernel_of(tensors[output], inlined[output])
            if form_after is None:
                return f"stored, {user.op} cannot compute it in the same loops"
            if "product" in (form.kind, form_before and form_before.kind) and form_after.kind != "product":
                return f"stored, {user.op} would not be a matrix product any more"
            if len(after.loads) > most_loads(chip) or sum(1 for _ in walk(after)) > LARGEST_KERNEL:
                return f"stored, {user.op} would hold {len(after.loads)} tensors in registers"
            apart += seconds(before, tensors[output], form_before, tensors, chip) if form_before else 0
            together += seconds(after, tensors[output], form_after, tensors, chip)
    if together > apart:
        return f"stored, inlining takes {together * 1e6:.1f} us instead of {apart * 1e6:.1f}"
    return ""
