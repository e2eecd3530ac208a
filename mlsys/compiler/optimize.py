"""Second stage: infer sizes, compute what is constant, and drop what no output needs."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import torch

from mlsys.compiler.ir.graph import (
    NARROW_FLOATS,
    NARROW_INTEGERS,
    BadGraph,
    Graph,
    Operation,
    Tensor,
    UnsupportedOp,
    in_order,
    tensor_of,
)
from mlsys.compiler.ir.index import index
from mlsys.compiler.ir.primitives import can_fold, evaluate
from mlsys.compiler.rules.values import RULES, Call, Value, buffer_value, constant_value, new_axes

_SHAPES = "Expand Flatten Reshape Shape Size Squeeze Transpose Unsqueeze"
MOVES = frozenset(f"Cast CastLike Concat Gather Identity Slice Split Tile {_SHAPES}".split())
"""Operations that have narrow formats."""

LARGEST_FOLDED = 1 << 16
"""Most elements of a tensor that is computed at compile time: enough for shapes and masks, little for the source."""


def outcomes(operation: Operation, values: Mapping[str, Value]) -> dict[str, Value]:
    """Apply an operation's rule to its inputs; returns the used outputs by name.

    Raises:
        BadGraph: the operation lacks an input or attribute, or has too many.
    """
    call = Call(operation.op, operation.attributes, len(operation.outputs))
    inputs = [values[name] if name else None for name in operation.inputs]
    try:
        found = RULES[operation.op](call, *inputs)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadGraph(f"{operation} does not fit the rule of {operation.op} ({error}): check its inputs") from error
    narrow = [v.dtype for v in inputs if v is not None and v.dtype in (*NARROW_FLOATS, *NARROW_INTEGERS)]
    if narrow and operation.op not in MOVES:
        raise UnsupportedOp(f"{operation.op} of {narrow[0]} is not computed: cast the tensor to fp16 or fp32 before")
    found = found if isinstance(found, tuple) else (found,)
    if len(found) < len(operation.outputs):
        raise BadGraph(f"{operation} asks {operation.op} for {len(operation.outputs)} outputs: use {len(found)}")
    return {name: replace(v, name=name, _made={}) for name, v in zip(operation.outputs, found, strict=False) if name}


def given_values(graph: Graph) -> dict[str, Value]:
    """Return the graph's inputs and constants."""
    values = {tensor.name: buffer_value(tensor) for tensor in graph.inputs}
    return values | {name: constant_value(name, value) for name, value in graph.constants.items()}


def optimize(graph: Graph) -> Graph:
    """Return the graph without constant and dead operations, in an order in which it can run.

    Raises:
        BadGraph: sizes that do not fit, or a tensor that is missing, given twice, or depends on itself.
    """
    values, constants = given_values(graph), dict(graph.constants)
    kept = []
    for operation in in_order(graph.operations, values):
        results = outcomes(operation, values)
        for name, value in results.items():
            known = _known(value, operation, values)
            if known is not None:
                constants[name] = known
            values[name] = buffer_value(Tensor(name, value.shape, value.dtype), known)
        if not all(name in constants for name in results):
            kept.append(operation)
    for name in graph.outputs:
        if name not in values:
            raise BadGraph(f"output '{name}' is given by no operation: add it or take it from the outputs")
    outputs = []
    for name in graph.outputs:  # an input or a constant that is also an output is copied by a kernel
        given = not any(name in operation.outputs for operation in kept)
        outputs.append(f"{name}_copy" if given else name)
        if given and outputs.count(outputs[-1]) == 1:
            kept.append(Operation("Identity", (name,), (outputs[-1],)))
    needed, live = set(outputs), []
    for operation in reversed(kept):
        if needed.intersection(operation.outputs):
            needed.update(operation.inputs)
            live.append(operation)
    return Graph(graph.inputs, tuple(outputs), tuple(live[::-1]), {n: v for n, v in constants.items() if n in needed})


def _known(value: Value, operation: Operation, values: Mapping[str, Value]) -> torch.Tensor | None:
    if value.known is not None:
        return value.known
    inputs = {n: known for n in operation.inputs if n and (known := values[n].known) is not None}
    variable = any(name and name not in inputs for name in operation.inputs)
    if variable or prod(value.shape) > LARGEST_FOLDED:
        return None
    axes = new_axes("i", value.shape)
    element = value.at(*map(index, axes))
    return evaluate(element, axes, inputs) if can_fold(element) else None


def tensors_of(graph: Graph) -> dict[str, Tensor]:
    """Return every tensor of an optimized graph, described, by name."""
    tensors = {tensor.name: tensor for tensor in graph.inputs}
    tensors |= {name: tensor_of(name, value) for name, value in graph.constants.items()}
    values = given_values(graph)
    for operation in graph.operations:
        for name, value in outcomes(operation, values).items():
            tensors[name] = Tensor(name, value.shape, value.dtype)
            values.setdefault(name, buffer_value(tensors[name]))
    return tensors
