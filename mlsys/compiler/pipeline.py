"""All stages in order: `compile`."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from mlsys.compiler.fuse import fuse
from mlsys.compiler.import_onnx import as_array, as_tensor, from_onnx
from mlsys.compiler.ir.graph import OF_TORCH, TORCH, Graph, Tensor
from mlsys.compiler.ir.program import Kernel, Program
from mlsys.compiler.ir.value import NeedsValue
from mlsys.compiler.lower import lower
from mlsys.compiler.memory import plan
from mlsys.compiler.optimize import optimize
from mlsys.compiler.rules import RULES
from mlsys.compiler.run import Loaded
from mlsys.compiler.schedule import candidates, schedule
from mlsys.core.arguments import one_of
from mlsys.errors import InvalidValue, UserError
from mlsys.hardware import Accelerator, Hardware
from mlsys.measure.device import torch_sees_gpu
from mlsys.measure.timing import time_kernel

OPS = frozenset(RULES)
"""Names of the ONNX operations that the compiler has."""

LARGEST_SHAPE = 64  # most elements of an integer input that may say a shape, for whose value a program is compiled
Array = torch.Tensor | np.ndarray
Stage = Callable[[Any], Any]


class Compiled:
    """A compiled model: call it with one tensor or NumPy array for each input.

    `stages` has the printed form of what each stage gave, by the stage's name, and `source` the Triton text.
    """

    def __init__(self, graph: Graph, stages: Mapping[str, Stage], device: str, as_torch: bool) -> None:
        self._graph, self._given, self._device, self._as_torch = graph, stages, device, as_torch
        self._loaded: dict[tuple[Any, ...], Loaded] = {}
        self._by_value = False  # whether the program depends on the values of inputs
        self.stages, self.source = {"import": str(graph)}, ""

    def loaded_for(self, inputs: Sequence[torch.Tensor] | None) -> Loaded | None:
        """Return the program; if inputs say shapes, the one for their values, or None as long as there are none."""
        tensors = self._graph.inputs
        short = [n for n, t in enumerate(tensors) if "int" in t.dtype and t.elements <= LARGEST_SHAPE]
        if not self._by_value:
            try:
                return self._build({})
            except NeedsValue:
                if not short:
                    raise
                self._by_value = True
        return self._build({tensors[n].name: inputs[n].cpu() for n in short}) if inputs else None

    def _build(self, known: Mapping[str, torch.Tensor]) -> Loaded:
        key = tuple((name, *value.reshape(-1).tolist()) for name, value in known.items())
        if key in self._loaded:
            return self._loaded[key]
        free = tuple(tensor for tensor in self._graph.inputs if tensor.name not in known)
        data: Any = replace(self._graph, inputs=free, constants={**self._graph.constants, **known})
        for name, stage in self._given.items():
            data = stage(data)
            self.stages[name] = str(data)
        if not isinstance(data, Program) or not data.text:
            raise InvalidValue(f"the last stage gave {type(data).__name__}: let it return a Program with its text")
        self.source, self._loaded[key] = data.text, Loaded(data, self._device)
        return self._loaded[key]

    def __call__(self, *inputs: Array) -> list[Any]:
        """Run the model; the outputs are torch tensors if the first input is one, else NumPy arrays."""
        tensors, wanted = [as_tensor(value) for value in inputs], self._graph.inputs
        if len(tensors) != len(wanted):
            raise InvalidValue(f"the model has {len(wanted)} inputs, got {len(tensors)}: give one tensor for each")
        for tensor, need in zip(tensors, wanted, strict=True):
            if tuple(tensor.shape) != need.shape or tensor.dtype != TORCH[need.dtype]:
                got = f"{OF_TORCH.get(tensor.dtype, tensor.dtype)}{list(tensor.shape)}"
                want = f"{need.dtype}{list(need.shape)}"
                raise InvalidValue(f"input '{need.name}' is {got}: give {want}, or compile again")
        loaded = self.loaded_for(tensors)
        assert loaded is not None
        placed = [tensor.to(loaded.device).contiguous() for tensor in tensors]
        outputs = loaded({need.name: tensor for need, tensor in zip(wanted, placed, strict=True)})
        if isinstance(inputs[0], torch.Tensor) if inputs else self._as_torch:
            return outputs
        dtypes = [loaded.program.tensors[name].dtype for name in loaded.program.graph.outputs]
        return list(map(as_array, outputs, dtypes))


def compile(
    model: Any,
    inputs: Sequence[Array] | Array | None = None,
    device: str = "cpu",
    *,
    chip: str = "h200",
    autotune: bool = False,
    stages: Mapping[str, Stage] | None = None,
) -> Compiled:
    """Compile an ONNX `ModelProto` or a torch module into Triton kernels.

    Args:
        model: the model.
        inputs: example inputs; a torch module needs them, and so does an ONNX model with dynamic dimensions.
        device: "cuda", or "cpu" for Triton's interpreter.
        chip: id of the chip whose data the cost model and the schedule use; see `mlsys.hardware`.
        autotune: time several tiles of each kernel on the GPU, instead of choosing one by rule.
        stages: functions to use instead of the stages "optimize", "fuse", "schedule", "memory" and "lower".

    Raises:
        UnsupportedOp: an operation that the compiler lacks.
        BadGraph: a graph that cannot be compiled as it is.
        UserError: another argument that does not fit, or Triton imported before without its interpreter.
    """
    one_of("device", device, ("cpu", "cuda"))
    if device == "cuda" and not torch_sees_gpu():
        raise InvalidValue("device is 'cuda' and torch finds no GPU: use device='cpu'")
    if autotune and device != "cuda":
        raise InvalidValue("autotune times kernels on a GPU and device is 'cpu': leave it out, or use 'cuda'")
    if device == "cpu":  # torch.export imports Triton, so before it
        if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
            raise UserError("triton is already imported to compile: set TRITON_INTERPRET=1 before, or use a GPU")
        os.environ["TRITON_INTERPRET"] = "1"
    accelerator = Hardware.get(chip)
    own: dict[str, Stage] = {
        "optimize": optimize,
        "fuse": lambda graph: fuse(graph, accelerator),
        "schedule": lambda program: (autotuned if autotune else schedule)(program, accelerator, device),
        "memory": plan,
        "lower": lambda program: lower(program, device),
    }
    for name in stages or {}:
        one_of("stages", name, own)
    given = [inputs] if isinstance(inputs, torch.Tensor | np.ndarray) else inputs
    examples = None if given is None else [as_tensor(value) for value in given]
    if isinstance(model, torch.nn.Module):
        from mlsys.compiler.import_torch import from_torch

        if examples is None:
            raise InvalidValue("a torch module has no sizes of its own: give example inputs")
        graph = from_torch(model, examples)
    else:
        graph = from_onnx(model, examples)
    compiled = Compiled(graph, {**own, **(stages or {})}, device, isinstance(model, torch.nn.Module))
    compiled.loaded_for(examples)
    return compiled


def autotuned(program: Program, chip: Accelerator, device: str) -> Program:
    """Choose each kernel's tile by timing its candidates on the GPU, alone and with random inputs."""

    def example(tensor: Tensor) -> torch.Tensor:  # zeros where numbers could be indices
        values = torch.zeros(tensor.shape, dtype=TORCH[tensor.dtype], device=device)
        return values.normal_() if values.is_floating_point() else values

    def seconds(kernel: Kernel) -> float:
        loads = {load.detail: program.tensors[load.detail] for load in kernel.element.loads}
        graph = Graph(tuple(loads.values()), (kernel.result.name,), (), {})
        loaded = Loaded(lower(plan(replace(program, graph=graph, kernels=(kernel,))), device), device)
        given = {name: example(tensor) for name, tensor in loads.items()}
        return time_kernel(lambda: loaded(given), on_gpu=True, cold=True, graph=True, budget_s=0.02).median_s

    best = tuple(min(candidates(kernel, chip, device), key=seconds) for kernel in program.kernels)
    return replace(program, kernels=best)
