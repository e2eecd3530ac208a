"""All stages in order: `compile`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from mlsys.compiler.fuse import fuse
from mlsys.compiler.import_onnx import from_onnx
from mlsys.compiler.ir import expression
from mlsys.compiler.ir.graph import OF_TORCH, TORCH, BadGraph, Graph, in_order
from mlsys.compiler.lower import Source, lower
from mlsys.compiler.memory import plan
from mlsys.compiler.optimize import optimize
from mlsys.compiler.rules import RULES, values
from mlsys.compiler.rules.narrow import as_array, as_tensor
from mlsys.compiler.rules.values import NeedsValue
from mlsys.compiler.run import Program, interpret
from mlsys.compiler.schedule import schedule
from mlsys.core.arguments import one_of
from mlsys.errors import InvalidValue
from mlsys.hardware import Hardware
from mlsys.measure.device import torch_sees_gpu

OPS = frozenset(RULES)
"""Names of the ONNX operations that the compiler has."""

Array = torch.Tensor | np.ndarray
Stage = Callable[[Any], Any]


class Compiled:
    """A compiled model: call it with one tensor or NumPy array for each input.

    Attributes:
        stages: the printed form of what each stage gave, by the stage's name.
        source: the Triton text.
    """

    def __init__(self, graph: Graph, stages: Mapping[str, Stage], device: str, as_torch: bool) -> None:
        self._graph, self._given, self._device, self._as_torch = graph, stages, device, as_torch
        self._programs: dict[tuple[Any, ...], Program] = {}
        self._needs: list[str] = []
        self.stages: dict[str, str] = {"import": str(graph)}
        self.source = ""

    def _specialize(self, inputs: Sequence[torch.Tensor] | None) -> Program | None:
        """Return the program for these inputs; it differs only by the values of inputs that say a shape or an axis."""
        by_name = dict(zip((tensor.name for tensor in self._graph.inputs), inputs or (), strict=inputs is not None))
        while True:
            if self._needs and inputs is None:
                return None
            fixed = {name: by_name[name].cpu() for name in self._needs}
            key = tuple((name, *value.reshape(-1).tolist()) for name, value in fixed.items())
            if key not in self._programs:
                try:
                    self._programs[key] = self._compile(fixed)
                except NeedsValue as error:
                    more = [name for name in sources(self._graph, error.tensor) if name not in self._needs]
                    if not more:
                        raise BadGraph(str(error)) from error
                    self._needs += more
                    continue
            return self._programs[key]

    def _compile(self, fixed: Mapping[str, torch.Tensor]) -> Program:
        expression.forget()
        values.restart_axes()
        free = tuple(tensor for tensor in self._graph.inputs if tensor.name not in fixed)
        data: Any = Graph(free, self._graph.outputs, self._graph.operations, {**self._graph.constants, **fixed})
        shown = {"import": str(self._graph)}
        for name, stage in self._given.items():
            data = stage(data)
            shown[name] = str(data)
        if not isinstance(data, Source):
            raise InvalidValue(f"the last stage gave {type(data).__name__}: let it return a lower.Source")
        self.stages, self.source = shown, data.text
        return Program(data, self._device)

    def __call__(self, *inputs: Array) -> list[Any]:
        """Run the model; the outputs are torch tensors if the first input is one, else NumPy arrays.

        Raises:
            InvalidValue: inputs of another number, shape or format than those of the model.
        """
        tensors = [as_tensor(value) for value in inputs]
        wanted = self._graph.inputs
        if len(tensors) != len(wanted):
            raise InvalidValue(f"the model has {len(wanted)} inputs, got {len(tensors)}: give one tensor for each")
        for tensor, need in zip(tensors, wanted, strict=True):
            if tuple(tensor.shape) != need.shape or tensor.dtype != TORCH[need.dtype]:
                got = f"{OF_TORCH.get(tensor.dtype, tensor.dtype)}{list(tensor.shape)}"
                raise InvalidValue(
                    f"input '{need.name}' is {got}: give {need.dtype}{list(need.shape)}, or compile again"
                )
        program = self._specialize(tensors)
        assert program is not None
        device = program.device
        outputs = program({n.name: t.to(device).contiguous() for n, t in zip(wanted, tensors, strict=True)})
        if self._as_torch if not inputs else isinstance(inputs[0], torch.Tensor):
            return outputs
        dtypes = (program.tensors[name].dtype for name in program.graph.outputs)
        return [as_array(value, dtype) for value, dtype in zip(outputs, dtypes, strict=True)]


def sources(graph: Graph, name: str) -> list[str]:
    """Return the integer inputs from which a tensor is computed; none if it depends on another input."""
    upstream = {name}
    for operation in reversed(in_order(graph.operations, [*(t.name for t in graph.inputs), *graph.constants])):
        if upstream.intersection(operation.outputs) and operation.op not in ("Shape", "Size"):
            upstream.update(operation.inputs)
    found = [tensor for tensor in graph.inputs if tensor.name in upstream]
    return [tensor.name for tensor in found] if all(tensor.elements <= 64 for tensor in found) else []


def compile(
    model: Any,
    inputs: Sequence[Array] | Array | None = None,
    device: str = "cpu",
    *,
    chip: str = "h200",
    autotune: bool = False,
    stages: Mapping[str, Stage] | None = None,
) -> Compiled:
    """Compile a model into Triton kernels.

    Args:
        model: an ONNX `ModelProto`, or a torch module.
        inputs: example inputs; a torch module needs them, and so does an ONNX model with dynamic dimensions.
        device: "cuda", or "cpu" for Triton's interpreter.
        chip: id of the chip whose data the cost model and the schedule use; see `mlsys.hardware`.
        autotune: time several tiles of each kernel on the GPU, instead of choosing one by rule.
        stages: functions to use instead of the stages "optimize", "fuse", "schedule", "memory" and "lower"; each is
            called with what the stage before gave.

    Raises:
        UnsupportedOp: an operation that the compiler lacks.
        UserError: Triton was imported before, and not for its interpreter, although the device is "cpu".
        BadGraph: a graph that cannot be compiled as it is.
        UnknownName: no chip has this id.
    """
    one_of("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch_sees_gpu():
        raise InvalidValue("device is 'cuda' and torch finds no GPU: use device='cpu'")
    if device == "cpu":
        interpret()  # torch.export imports Triton, so before it
    accelerator = Hardware.get(chip)
    if isinstance(inputs, torch.Tensor | np.ndarray):
        inputs = [inputs]
    examples = None if inputs is None else [as_tensor(value) for value in inputs]
    own: dict[str, Stage] = {
        "optimize": optimize,
        "fuse": lambda graph: fuse(graph, accelerator),
        "schedule": lambda fused: schedule(fused, accelerator, device),
        "memory": plan,
        "lower": lambda placed: lower(placed, device),
    }
    if autotune:
        if device != "cuda":
            raise InvalidValue("autotune times kernels on a GPU and device is 'cpu': leave it out, or use 'cuda'")
        from mlsys.compiler.tune import tuned

        own["schedule"] = lambda fused: tuned(fused, accelerator)
    for name in stages or {}:
        one_of("stages", name, own)
    if isinstance(model, torch.nn.Module):
        from mlsys.compiler.import_torch import from_torch

        if examples is None:
            raise InvalidValue("a torch module has no sizes of its own: give example inputs")
        graph = from_torch(model, examples)
    else:
        graph = from_onnx(model, examples)
    compiled = Compiled(graph, {**own, **(stages or {})}, device, isinstance(model, torch.nn.Module))
    compiled._specialize(examples)
    return compiled
