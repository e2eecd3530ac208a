"""Check which operations of a small graph share a kernel, as a student's compiler pass decides, and compile them.

A graph is plain data: {"inputs": {name: (rows, columns)}, "ops": [(result, kind, arguments), ...], "outputs": [name]}.
Operations stand in an order in which they can run. A plan is a list of groups in running order, each a list of results.
A group is one kernel: it reads what it needs from memory, once, and stores one result.

>>> graph = {"inputs": {"x": (4, 8)}, "ops": [("e", "exp", ("x",)), ("y", "relu", ("e",))], "outputs": ["y"]}
>>> least_bytes(graph), plan_bytes(graph, [["e"], ["y"]])
(256, 512)
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlsys.grading.checks.assertions import shown
from mlsys.grading.verdicts import WrongAnswer

if TYPE_CHECKING:
    from mlsys.compiler import Compiled
    from mlsys.grading.draws import Draws

ITEMSIZE = 4
"""Bytes of an element; all tensors are float32."""

MAX_READS = 4
"""Most tensors that a kernel may read from memory: each keeps registers busy."""

MAX_SEARCHED = 14
"""Most operations of a graph whose best plan is found by trying every choice of what is stored."""

ONNX = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "max": "Max",
    "relu": "Relu",
    "exp": "Exp",
    "row_sum": "ReduceSum",
    "row_max": "ReduceMax",
    "matmul": "MatMul",
}
"""Kinds of operations, with ONNX's names."""

REDUCTIONS = ("row_sum", "row_max")

Graph = Mapping[str, Any]
Groups = Sequence[Sequence[str]]


def shapes(graph: Graph) -> dict[str, tuple[int, int]]:
    """Return (rows, columns) of every tensor: a side of 1 is repeated, and reductions give one column."""
    found: dict[str, tuple[int, int]] = {name: (rows, cols) for name, (rows, cols) in graph["inputs"].items()}
    for result, kind, arguments in graph["ops"]:
        sizes = [found[name] for name in arguments]
        if kind == "matmul":
            found[result] = sizes[0][0], sizes[1][1]
        elif kind in REDUCTIONS:
            found[result] = sizes[0][0], 1
        else:
            found[result] = max(rows for rows, _ in sizes), max(cols for _, cols in sizes)
    return found


def assert_groups(plan: object, graph: Graph, *, name: str = "the graph") -> None:
    """Raise `WrongAnswer` unless a plan is legal, computes the graph, and moves the least bytes that a plan can.

    Args:
        plan: what the student's function returned: a list of lists of results.
        graph: what is compiled.
        name: what to call the graph in messages.
    """
    groups = _checked(plan, graph, name)
    reason = why_illegal(graph, groups)
    if reason:
        raise WrongAnswer(f"{name}: {reason}")
    due = _run(graph, [[result] for result, _, _ in graph["ops"]])
    if not np.array_equal(_run(graph, groups), due, equal_nan=True):
        raise WrongAnswer(f"{name}: the plan computes other values than the graph")  # a legal plan never does
    moved, least = plan_bytes(graph, groups), least_bytes(graph)
    if moved > least:
        raise WrongAnswer(
            f"{name}: the plan is legal, and its {len(groups)} kernels move {moved:,} bytes; a better plan moves "
            f"{(moved - least) / moved:.0%} less"
        )


def why_illegal(graph: Graph, groups: Groups) -> str:
    """Return why a plan is not legal, or "" if it is; every operation is in one group."""
    kinds = {result: (kind, arguments) for result, kind, arguments in graph["ops"]}
    stored: set[str] = set(graph["inputs"])
    for number, group in enumerate(groups):
        members = set(group)
        reads, result = _edges(graph, members)
        missing = sorted(reads - stored)
        if missing:
            return f"group {number} reads {missing[0]}, which no earlier group stores"
        if len(result) != 1:
            used = " and ".join(sorted(result))
            return f"group {number} must store one result, and {used} are used outside of it"
        if len(reads) > MAX_READS:
            return f"group {number} reads {len(reads)} tensors from memory, and a kernel may read {MAX_READS}"
        products = [one for one in group if kinds[one][0] == "matmul"]
        if len(products) > 1:
            return f"group {number} has {len(products)} matrix products, and a kernel may have one"
        for one in products:
            if members & set(kinds[one][1]):
                return f"group {number}: matrix product {one} must read both arguments from memory"
            if any(kinds[other][0] in REDUCTIONS for other in group):
                return f"group {number} has a matrix product and a reduction, and a kernel may have one of them"
        stored |= result
    return ""


def plan_bytes(graph: Graph, groups: Groups) -> int:
    """Return the bytes that the kernels of a plan read and write."""
    size = {name: rows * cols * ITEMSIZE for name, (rows, cols) in shapes(graph).items()}
    return sum(size[name] for group in groups for side in _edges(graph, set(group)) for name in side)


def least_bytes(graph: Graph) -> int:
    """Return the least bytes of all legal plans.

    What is stored determines a plan: a result that is not stored is in the group of those that use it, which must be
    the same one. So every choice of what is stored is tried.
    """
    results = [result for result, _, _ in graph["ops"]]
    if len(results) > MAX_SEARCHED:
        raise ValueError(f"{len(results)} operations are too many to try every choice: use {MAX_SEARCHED} at most")
    users = {name: [result for result, _, arguments in graph["ops"] if name in arguments] for name in results}
    moved = []
    for choice in product((True, False), repeat=len(results)):
        groups = _groups_of(graph, users, dict(zip(results, choice, strict=True)))
        if groups is not None and not why_illegal(graph, groups):
            moved.append(plan_bytes(graph, groups))
    return min(moved)


def _groups_of(graph: Graph, users: dict[str, list[str]], stored: Mapping[str, bool]) -> list[list[str]] | None:
    home: dict[str, str] = {}
    for result in reversed(users):
        if stored[result]:
            home[result] = result
            continue
        homes = {home[user] for user in users[result]}
        if result in graph["outputs"] or len(homes) != 1:
            return None
        home[result] = homes.pop()
    return [[one for one in users if home[one] == result] for result in users if stored[result]]


def _edges(graph: Graph, members: set[str]) -> tuple[set[str], set[str]]:
    """Return what a group reads from memory, and what is used outside of it."""
    reads, result = set(), members & set(graph["outputs"])
    for name, _, arguments in graph["ops"]:
        if name in members:
            reads |= set(arguments) - members
        else:
            result |= set(arguments) & members
    return reads, result


def _run(graph: Graph, groups: Groups) -> NDArray[np.float64]:
    """Return the outputs that a plan computes, one after the other, for inputs of small integers.

    Each group sees only what is in memory.
    """
    memory: dict[str, NDArray[np.float64]] = {}
    for number, (name, shape) in enumerate(graph["inputs"].items()):
        rows, cols = (min(side, 3) for side in shape)  # the values tell operations apart also where sides are short
        memory[name] = 1 + (np.arange(rows * cols, dtype=np.float64).reshape(rows, cols) * (number + 1)) % 5
    order = {result: (kind, arguments) for result, kind, arguments in graph["ops"]}
    for group in groups:
        inside: dict[str, NDArray[np.float64]] = {}
        for name in (name for name in order if name in group):
            kind, arguments = order[name]
            inside[name] = _apply(kind, [inside[one] if one in inside else memory[one] for one in arguments])
        for name in _edges(graph, set(group))[1]:
            memory[name] = inside[name]
    return np.concatenate([memory[name].ravel() for name in graph["outputs"]])


def _apply(kind: str, values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    functions: dict[str, Any] = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "max": np.maximum,
        "relu": lambda x: np.maximum(x, 0),
        "exp": lambda x: np.exp(np.minimum(x, 20)),
        "row_sum": lambda x: x.sum(axis=1, keepdims=True),
        "row_max": lambda x: x.max(axis=1, keepdims=True),
        "matmul": np.matmul,
    }
    with np.errstate(all="ignore"):  # long products may become infinite, which is as good a value as any
        result: NDArray[np.float64] = functions[kind](*values)
    return result


def _checked(plan: object, graph: Graph, name: str) -> list[list[str]]:
    """Return a plan as it must be, each operation in one group, or raise `WrongAnswer`."""
    if not isinstance(plan, list | tuple):
        raise WrongAnswer(f"{name}: return a list of groups, got {shown(plan)}")
    results = {result for result, _, _ in graph["ops"]}
    seen: set[str] = set()
    groups = []
    for number, group in enumerate(plan):
        if not isinstance(group, list | tuple) or not group:
            raise WrongAnswer(f"{name}: group {number} must be a list of results, got {shown(group)}")
        for one in group:
            if type(one) is not str or one not in results:
                raise WrongAnswer(f"{name}: group {number} has {shown(one)}, and no operation has that result")
            if one in seen:
                raise WrongAnswer(f"{name}: {one} is computed twice; every operation is in one group")
            seen.add(one)
        groups.append([one for one in group if type(one) is str])
    left = sorted(results - seen)
    if left:
        raise WrongAnswer(f"{name}: {left[0]} is in no group")
    return groups


def draw_graph(draw: "Draws", count: int) -> dict[str, Any]:
    """Draw a graph of `count` operations on matrices of one shape, in which every result is used or is an output."""
    rows, cols = draw.integer(60, 90), draw.integer(100, 200)
    inputs = {"x": (rows, cols), "w": (cols, cols)}
    ops: list[tuple[str, str, tuple[str, ...]]] = []
    matrices, unused = ["x"], ["x"]

    def one_of(names: Sequence[str]) -> str:
        return names[draw.integer(0, len(names) - 1)]

    for result in (f"t{number}" for number in range(count)):
        fresh = [name for name in unused if name in matrices]
        first = one_of(fresh if fresh and draw.integer(1, 10) <= 7 else matrices)
        kind = one_of("relu exp add add mul mul sub max row_sum row_max in in in matmul".split())
        arguments: tuple[str, ...] = (first,)
        if kind == "matmul":
            arguments = (first, "w")
        elif kind == "in":
            name = f"v{len(inputs)}"
            inputs[name] = ((rows, cols), (rows, cols), (1, cols), (rows, 1))[draw.integer(0, 3)]
            kind, arguments = one_of(("add", "mul")), (first, name)
        elif kind in ("add", "mul", "sub", "max"):
            others = [name for name in unused if name != first] or [name for name in matrices if name != first]
            arguments = (first, one_of(others) if others else "x")
        ops.append((result, kind, arguments))
        unused = [name for name in unused if name not in arguments] + [result]
        matrices += [] if kind in REDUCTIONS else [result]
    used = {name for _, _, arguments in ops for name in arguments}
    outputs = [name for name in unused if name not in inputs]
    return {"inputs": {name: size for name, size in inputs.items() if name in used}, "ops": ops, "outputs": outputs}


def compile_groups(graph: Graph, groups: Groups, device: str, plan_memory: Any = None) -> "Compiled":
    """Compile a graph with `mlsys.compiler`, whose stage "fuse" follows a plan.

    Args:
        graph: what is compiled.
        groups: a legal plan.
        device: "cpu" or "cuda".
        plan_memory: function that places the intermediate tensors, from (lower, upper, size) to offsets; the
            compiler's own if it is left out.
    """
    from dataclasses import replace
    from functools import partial

    from mlsys.compiler import Compiled
    from mlsys.compiler.fuse import kernel_of
    from mlsys.compiler.ir import graph as ir
    from mlsys.compiler.ir.program import Program
    from mlsys.compiler.ir.value import buffer
    from mlsys.compiler.lower import lower
    from mlsys.compiler.memory import plan
    from mlsys.compiler.optimize import optimize
    from mlsys.compiler.rules import apply_rule, given
    from mlsys.compiler.schedule import schedule
    from mlsys.hardware import Hardware

    def follow(source: ir.Graph) -> Program:
        values = given(source)
        tensors = {tensor.name: tensor for tensor in source.inputs}
        stored = {name for group in groups for name in _edges(graph, set(group))[1]}
        home = {name: number for number, group in enumerate(groups) for name in group}
        kernels: dict[str, Any] = {}
        for operation in source.operations:
            ((name, value),) = apply_rule(operation, values).items()
            tensors[name] = ir.Tensor(name, tuple(value.shape), value.dtype)
            lines = tuple(str(one) for one in source.operations if home[one.outputs[0]] == home[name])
            values[name] = value
            if name in stored:
                kernel = kernel_of(tensors[name], value, lines)
                if kernel is None:
                    raise WrongAnswer(f"the compiler has no form of kernel for the group of {name}")
                kernels[name] = kernel
                values[name] = buffer(tensors[name])
        order = sorted(kernels, key=lambda name: home[name])
        return Program(source, tensors, tuple(kernels[name] for name in order))

    def placed(program: Program) -> Program:
        program = plan(program)
        if plan_memory is None or not program.lifetimes:
            return program
        offsets = plan_memory(list(program.lifetimes.values()))
        return replace(program, offsets=dict(zip(program.lifetimes, offsets, strict=True)))

    inputs = tuple(ir.Tensor(name, tuple(shape), "fp32") for name, shape in graph["inputs"].items())
    operations = tuple(
        ir.Operation(ONNX[kind], tuple(arguments), (result,), {"axes": (1,)} if kind in REDUCTIONS else {})
        for result, kind, arguments in graph["ops"]
    )
    stages: dict[str, Any] = {
        "optimize": optimize,
        "fuse": follow,
        "schedule": partial(schedule, chip=Hardware.get("h200"), device=device),
        "memory": placed,
        "lower": partial(lower, device=device),
    }
    compiled = Compiled(ir.Graph(inputs, tuple(graph["outputs"]), operations, {}), stages, device, as_torch=True)
    compiled.load(None)
    return compiled
