"""Second stage: infer sizes, compute what is constant, and drop what no output needs."""

from itertools import product
from math import prod

import torch

from mlsys.compiler.ir.expression import linear
from mlsys.compiler.ir.graph import TORCH, BadGraph, Graph, Operation, Tensor
from mlsys.compiler.ir.value import Value, buffer
from mlsys.compiler.rules import apply_rule, given

LARGEST_FOLDED = 1 << 10  # most elements of a tensor that is computed when it is compiled: enough for shapes


def folded(value: Value) -> torch.Tensor | None:
    """Return a value's numbers if each element is one; building an expression computes what is constant."""
    if value.known is not None or prod(value.shape) > LARGEST_FOLDED:
        return value.known
    found = []
    for at in product(*map(range, value.shape)):
        found.append(value.at(*(linear({}, place) for place in at)))
        if found[-1].op != "number":
            return None
    return torch.tensor([element.detail for element in found], dtype=TORCH[value.dtype]).reshape(tuple(value.shape))


def optimize(graph: Graph) -> Graph:
    """Return the graph without constant and dead operations.

    Raises:
        BadGraph: sizes that do not fit, or a tensor that is missing, given twice, or depends on itself.
    """
    values, constants, kept = given(graph), dict(graph.constants), list[Operation]()
    made = {name for operation in graph.operations for name in operation.outputs}
    for operation in graph.operations:
        for name in (name for name in operation.inputs if name and name not in values):
            what = "depends on itself, or is used before it is given: sort the operations, without a cycle"
            what = what if name in made else "is used and nothing gives it: add it to the inputs or the constants"
            raise BadGraph(f"tensor '{name}' {what}")
        results = apply_rule(operation, values)
        for name, value in results.items():
            if name in values:
                raise BadGraph(f"tensor '{name}' is given twice: give each result a name of its own")
            known = folded(value)
            constants |= {} if known is None else {name: known}
            values[name] = buffer(Tensor(name, tuple(value.shape), value.dtype), known)
        if not constants.keys() >= results.keys():
            kept.append(operation)
    computed, outputs = {name for operation in kept for name in operation.outputs}, list[str]()
    for name in graph.outputs:
        if name not in values:
            raise BadGraph(f"output '{name}' is given by no operation: add it or take it from the outputs")
        copied = name not in computed  # an input or a constant
        if copied and f"{name}_copy" not in outputs:
            kept.append(Operation("Identity", (name,), (f"{name}_copy",)))
        outputs.append(f"{name}_copy" if copied else name)
    needed, live = set(outputs), list[Operation]()
    for operation in reversed(kept):
        if needed.intersection(operation.outputs):
            needed.update(operation.inputs)
            live.append(operation)
    constants = {name: value for name, value in constants.items() if name in needed}
    return Graph(graph.inputs, tuple(outputs), tuple(reversed(live)), constants)
