"""First stage, for ONNX: read a model's graph, its attributes and its constants."""

from collections.abc import Sequence
from typing import Any

import torch

from mlsys.compiler.ir.graph import NARROW_FLOATS, BadGraph, Graph, Operation, Tensor, check_ops, dtype_of_onnx
from mlsys.compiler.rules.narrow import as_tensor, tables
from mlsys.compiler.rules.values import RULES

OLDEST_OPSET = 13
"""Before, Softmax and others meant something else."""

UNCHANGED = {"And", "Or", "Xor", "Not"}
"""Operations that mean the same in every opset."""


def from_onnx(model: Any, inputs: Sequence[torch.Tensor] | None = None) -> Graph:
    """Read an ONNX `ModelProto`.

    Args:
        model: the model; its dimensions must be numbers unless `inputs` gives them.
        inputs: example inputs in order, whose sizes replace dimensions that are no numbers.

    Raises:
        UnsupportedOp: an operation that the compiler lacks.
        BadGraph: a dimension, format or opset that it lacks.
    """
    check_ops(
        (
            node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
            for node in model.graph.node
        ),
        RULES,
    )
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if opset < OLDEST_OPSET and not {node.op_type for node in model.graph.node} <= UNCHANGED:
        raise BadGraph(
            f"the model has opset {opset}: convert it to {OLDEST_OPSET} or later with onnx.version_converter"
        )
    constants = {entry.name: to_torch(entry) for entry in model.graph.initializer}
    formal = [entry for entry in model.graph.input if entry.name not in constants]
    tensors = tuple(_tensor(entry, inputs[n] if inputs else None) for n, entry in enumerate(formal))
    dtypes = {tensor.name: tensor.dtype for tensor in tensors}
    dtypes |= {entry.name: dtype_of_onnx(entry.name, entry.data_type) for entry in model.graph.initializer}
    operations = []
    for node in model.graph.node:
        attributes = {entry.name: _value(entry) for entry in node.attribute}
        operation = Operation(node.op_type, _trimmed(node.input), _trimmed(node.output), attributes)
        operations.append(_cast(operation, dtypes, constants) if "Cast" in node.op_type else operation)
    return Graph(tensors, tuple(entry.name for entry in model.graph.output), tuple(operations), constants)


def _cast(operation: Operation, dtypes: dict[str, str], constants: dict[str, torch.Tensor]) -> Operation:
    """Return a Cast with the format's name, and with the tables of a narrow format as inputs; see `narrow`."""
    like = dtypes.get(operation.inputs[-1]) if operation.op == "CastLike" else None
    if operation.op == "CastLike" and like is None:
        return operation
    to = like or dtype_of_onnx(operation.outputs[0], operation.attributes["to"])
    dtypes[operation.outputs[0]] = to
    source, saturate = dtypes.get(operation.inputs[0], ""), bool(operation.attributes.get("saturate", 1))
    found: dict[str, torch.Tensor] = {}
    if to in NARROW_FLOATS:
        found = {f"{to}_{name}_{saturate}": value for name, value in tables(to, saturate).items() if name != "numbers"}
    elif source in NARROW_FLOATS:
        found = {f"{source}_numbers": tables(source, True)["numbers"]}
    constants.update(found)
    return Operation("Cast", (operation.inputs[0], *found), operation.outputs, {"to": to})


def to_torch(tensor: Any) -> torch.Tensor:
    """Return the value of an ONNX `TensorProto`."""
    from onnx import numpy_helper

    dtype_of_onnx(tensor.name, tensor.data_type)
    return as_tensor(numpy_helper.to_array(tensor))


def _tensor(entry: Any, example: torch.Tensor | None) -> Tensor:
    if not entry.type.HasField("tensor_type"):
        raise BadGraph(f"input '{entry.name}' is no tensor but a {entry.type.WhichOneof('value')}: give tensors alone")
    kind = entry.type.tensor_type
    if example is not None:
        return Tensor(entry.name, tuple(example.shape), dtype_of_onnx(entry.name, kind.elem_type))
    for dimension in kind.shape.dim:
        if not dimension.HasField("dim_value"):
            raise BadGraph(
                f"input '{entry.name}' has the dynamic dimension '{dimension.dim_param}': fix it in the model, or "
                "give example inputs, whose sizes are then compiled in"
            )
    if not kind.HasField("shape"):
        raise BadGraph(f"input '{entry.name}' has no shape: set it in the model or give example inputs")
    return Tensor(entry.name, tuple(d.dim_value for d in kind.shape.dim), dtype_of_onnx(entry.name, kind.elem_type))


def _trimmed(names: Sequence[str]) -> tuple[str, ...]:
    found = list(names)
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _value(attribute: Any) -> Any:
    from onnx import helper

    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "data_type"):
        return to_torch(value)
    return list(value) if hasattr(value, "__len__") else value
