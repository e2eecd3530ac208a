"""First stage, for ONNX: read a model's operations, attributes and constants."""

from collections.abc import Sequence
from typing import Any

import torch

from mlsys.compiler.ir.graph import DTYPES, TORCH, BadGraph, Graph, Operation, Tensor

OLDEST_OPSET = 13  # before, Softmax and others meant something else; And, Or and Not did not
_NAMES = {number: name for name, number in DTYPES.items()}


def from_onnx(model: Any, inputs: Sequence[torch.Tensor] | None = None) -> Graph:
    """Read an ONNX `ModelProto`; example inputs give the sizes of dynamic dimensions.

    Raises:
        BadGraph: a dimension, format or opset that the compiler lacks.
    """
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if opset < OLDEST_OPSET and not {node.op_type for node in model.graph.node} <= {"And", "Or", "Not"}:
        raise BadGraph(f"the model has opset {opset}: convert it to {OLDEST_OPSET} with onnx.version_converter")
    constants = {entry.name: _constant(entry) for entry in model.graph.initializer}
    formal = [entry for entry in model.graph.input if entry.name not in constants]
    tensors = tuple(_tensor(entry, inputs[n] if inputs else None) for n, entry in enumerate(formal))
    operations = []
    for node in model.graph.node:
        attributes = {entry.name: _attribute(entry, node.output[0]) for entry in node.attribute}
        if node.op_type == "Split" and len(node.input) == 1:
            attributes.setdefault("num_outputs", len(node.output))
        op = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        operations.append(Operation(op, tuple(node.input), tuple(node.output), attributes))
    return Graph(tensors, tuple(entry.name for entry in model.graph.output), tuple(operations), constants)


def _dtype(name: str, number: int) -> str:
    if number not in _NAMES:
        raise BadGraph(f"tensor '{name}' has ONNX's format number {number}: convert it to one of {', '.join(DTYPES)}")
    return _NAMES[number]


def _constant(entry: Any) -> torch.Tensor:
    from onnx import numpy_helper

    dtype, value = _dtype(entry.name, entry.data_type), numpy_helper.to_array(entry)
    return torch.from_numpy(value.astype("float32") if dtype == "bf16" else value.copy()).to(TORCH[dtype])


def _tensor(entry: Any, example: torch.Tensor | None) -> Tensor:
    kind = entry.type.tensor_type
    if not entry.type.HasField("tensor_type"):
        raise BadGraph(f"input '{entry.name}' is no tensor but a {entry.type.WhichOneof('value')}: give tensors alone")
    for dimension in kind.shape.dim if example is None else ():
        if not dimension.HasField("dim_value"):
            what = "fix it in the model, or give example inputs, whose sizes are then compiled in"
            raise BadGraph(f"input '{entry.name}' has the dynamic dimension '{dimension.dim_param}': {what}")
    shape = [d.dim_value for d in kind.shape.dim] if example is None else example.shape
    return Tensor(entry.name, tuple(shape), _dtype(entry.name, kind.elem_type))


def _attribute(entry: Any, output: str) -> Any:
    from onnx import helper

    value = helper.get_attribute_value(entry)
    if entry.name == "to":
        return _dtype(output, value)
    if hasattr(value, "data_type"):
        return _constant(value)
    return value.decode() if isinstance(value, bytes) else list(value) if hasattr(value, "__len__") else value
