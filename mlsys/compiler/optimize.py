"""Second stage: check that operations fit together, compute what is constant, and drop what no output needs."""

from itertools import product
from math import prod

import torch

from mlsys.compiler.ir.expression import linear
from mlsys.compiler.ir.graph import TORCH, Graph, Operation, Tensor
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
    """Return the graph without constant and dead operations; raises BadGraph if operations do not fit together."""
    values, constants, kept = given(graph), dict(graph.constants), list[Operation]()
    for operation in graph.operations:
        results, known = apply_rule(operation, values), dict[str, torch.Tensor]()
        for name, value in results.items():
            numbers = folded(value)
            known |= {} if numbers is None else {name: numbers}
            values[name] = buffer(Tensor(name, tuple(value.shape), value.dtype), numbers)
        if known.keys() == results.keys():
            constants |= known
        else:
            kept.append(operation)
    needed, live = set(graph.outputs), list[Operation]()
    for operation in reversed(kept):
        if needed.intersection(operation.outputs):
            needed.update(operation.inputs)
            live.append(operation)
    constants = {name: value for name, value in constants.items() if name in needed}
    return Graph(graph.inputs, graph.outputs, tuple(reversed(live)), constants)
