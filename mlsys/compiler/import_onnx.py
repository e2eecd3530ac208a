"""First stage, for ONNX: read a model's operations, attributes and constants."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mlsys.compiler.ir.graph import DTYPES, NARROW, BadGraph, Graph, Operation, Tensor, UnsupportedOp
from mlsys.compiler.rules import RULES

OLDEST_OPSET = 13  # before, Softmax and others meant something else; And, Or, Xor and Not did not
_NAMES = {number: name for name, number in DTYPES.items()}


def from_onnx(model: Any, inputs: Sequence[torch.Tensor] | None = None) -> Graph:
    """Read an ONNX `ModelProto`; example inputs give the sizes of dynamic dimensions.

    Raises:
        UnsupportedOp: an operation that the compiler lacks.
        BadGraph: a dimension, format or opset that it lacks.
    """
    ops = [node.op_type if node.domain in ("", "ai.onnx") else node.domain for node in model.graph.node]
    for op in (op for op in ops if op not in RULES):
        what = "write it with those of mlsys.compiler.OPS, or add a rule for it in mlsys/compiler/rules.py"
        raise UnsupportedOp(f"the compiler has no operation {op!r}: {what}")
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if opset < OLDEST_OPSET and not set(ops) <= {"And", "Or", "Xor", "Not"}:
        raise BadGraph(f"the model has opset {opset}: convert it to {OLDEST_OPSET} with onnx.version_converter")
    constants = {entry.name: _constant(entry) for entry in model.graph.initializer}
    formal = [entry for entry in model.graph.input if entry.name not in constants]
    tensors = tuple(_tensor(entry, inputs[n] if inputs else None) for n, entry in enumerate(formal))
    operations = []
    for node in model.graph.node:
        attributes = {entry.name: _attribute(entry, node.output[0]) for entry in node.attribute}
        if node.op_type == "Split" and len(node.input) == 1:
            attributes.setdefault("num_outputs", len(node.output))
        operations.append(Operation(node.op_type, tuple(node.input), tuple(node.output), attributes))
    return Graph(tensors, tuple(entry.name for entry in model.graph.output), tuple(operations), constants)


def as_tensor(value: Any) -> torch.Tensor:
    """Return a NumPy array as a torch tensor; a format that NumPy and torch lack as integers of its codes."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    array = np.array(value)
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    if array.dtype.name in ("int4", "int2", "uint4", "uint2"):
        array = array.astype(f"{array.dtype.name.rstrip('24')}8")
    return torch.from_numpy(array.view(np.uint8) if array.dtype.name.startswith(("float8", "float4")) else array)


def as_array(value: torch.Tensor, dtype: str) -> Any:
    """Return a torch tensor of a format as a NumPy array, the inverse of `as_tensor`."""
    if dtype not in (*NARROW, "bf16"):
        return value.cpu().numpy()
    from onnx import helper

    array = (value.view(torch.int16) if dtype == "bf16" else value).cpu().numpy()
    kind = helper.tensor_dtype_to_np_dtype(DTYPES[dtype])
    return array.astype(kind) if "int" in dtype else array.view(kind)


def _dtype(name: str, number: int) -> str:
    if number not in _NAMES:
        raise BadGraph(f"tensor '{name}' has ONNX's format number {number}: convert it to one of {', '.join(DTYPES)}")
    return _NAMES[number]


def _constant(entry: Any) -> torch.Tensor:
    from onnx import numpy_helper

    _dtype(entry.name, entry.data_type)
    return as_tensor(numpy_helper.to_array(entry))


def _tensor(entry: Any, example: torch.Tensor | None) -> Tensor:
    if not entry.type.HasField("tensor_type"):
        raise BadGraph(f"input '{entry.name}' is no tensor but a {entry.type.WhichOneof('value')}: give tensors alone")
    kind = entry.type.tensor_type
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
