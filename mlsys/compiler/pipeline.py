"""All stages in order: `compile`."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from mlsys.compiler.fuse import fuse
from mlsys.compiler.import_onnx import from_onnx
from mlsys.compiler.ir.graph import TORCH, Graph, tensor_of
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

OPS = frozenset(RULES) - {"Cast", "View"}
"""Names of the ONNX operations that the compiler has. Cast is left out: it lacks ONNX's formats of 8 bits and less."""

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
        self._shapes: list[int] = []  # which inputs say shapes, so that each of their values needs a program
        self._last: Loaded | None = None  # the program, if it is the only one
        self.stages, self.source = {"import": str(graph)}, ""

    def load(self, inputs: Sequence[torch.Tensor] | None) -> Loaded | None:
        """Return the program; if inputs say shapes, the one for their values, or None as long as there are none."""
        if inputs is None and self._shapes:
            return None
        known = {self._graph.inputs[n].name: inputs[n].cpu() for n in self._shapes} if inputs else {}
        key = tuple((name, *value.reshape(-1).tolist()) for name, value in known.items())
        if key not in self._loaded:
            try:
                self._loaded[key] = self._build(known)
            except NeedsValue:
                tensors = enumerate(self._graph.inputs)
                self._shapes = [n for n, t in tensors if "int" in t.dtype and t.elements <= LARGEST_SHAPE]
                if known or not self._shapes:
                    raise
                return self.load(inputs)
        return self._loaded[key]

    def _build(self, known: Mapping[str, torch.Tensor]) -> Loaded:
        free = tuple(tensor for tensor in self._graph.inputs if tensor.name not in known)
        data: Any = replace(self._graph, inputs=free, constants={**self._graph.constants, **known})
        for name, stage in self._given.items():
            data, kind = stage(data), Graph if name == "optimize" else Program
            if not isinstance(data, kind):
                raise InvalidValue(f"stage '{name}' gave {type(data).__name__}: let it return a {kind.__name__}")
            self.stages[name] = str(data)
        if not data.text:
            raise InvalidValue("stage 'lower' gave a Program without text: let it fill in `text` and `arguments`")
        self.source = data.text
        return Loaded(data, self._device)

    def __call__(self, *inputs: Array) -> list[Any]:
        """Run the model; the outputs are torch tensors if the first input is one, else NumPy arrays."""
        if self._last is not None and (outputs := self._last.again(inputs)) is not None:
            return outputs
        tensors, wanted = [as_tensor(value) for value in inputs], self._graph.inputs
        if len(tensors) != len(wanted):
            raise InvalidValue(f"the model has {len(wanted)} inputs, got {len(tensors)}: give one tensor for each")
        for tensor, need in zip(tensors, wanted, strict=True):
            if tuple(tensor.shape) != need.shape or tensor.dtype != TORCH[need.dtype]:
                got, want = (str(each).partition(": ")[2] for each in (tensor_of(need.name, tensor), need))
                raise InvalidValue(f"input '{need.name}' is {got}: give {want}, or compile again")
        loaded = self.load(tensors)
        assert loaded is not None
        self._last = None if self._shapes else loaded
        outputs = loaded([tensor for n, tensor in enumerate(tensors) if n not in self._shapes])
        as_torch = isinstance(inputs[0], torch.Tensor) if inputs else self._as_torch
        return outputs if as_torch else [value.cpu().numpy() for value in outputs]


def as_tensor(value: Array) -> torch.Tensor:
    """Return a torch tensor or a NumPy array as a torch tensor."""
    return value.detach() if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))


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
        stages: functions to use instead of the stages "optimize", "fuse", "schedule", "memory" and "lower". A pass of
            your own calls the stage that it replaces: `{"optimize": lambda graph: optimize(own_pass(graph))}`.

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
    if device == "cpu":  # before the lowered source imports Triton
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
    compiled.load(examples)
    return compiled


def autotuned(program: Program, chip: Accelerator, device: str) -> Program:
    """Choose each kernel's tile by timing its candidates on the GPU."""
    kernels = (min(candidates(k, chip, device), key=lambda c: seconds_of(c, program, device)) for k in program.kernels)
    return replace(program, kernels=tuple(kernels))


def seconds_of(kernel: Kernel, program: Program, device: str) -> float:
    """Time a scheduled kernel of a program alone, on random numbers, and on zeros where they could be indices."""
    loads = {load.detail: program.tensors[load.detail] for load in kernel.element.loads}
    graph = Graph(tuple(loads.values()), (kernel.result.name,), (), {})
    loaded = Loaded(lower(plan(replace(program, graph=graph, kernels=(kernel,))), device), device)
    given = [torch.zeros(tensor.shape, dtype=TORCH[tensor.dtype], device=device) for tensor in loads.values()]
    given = [values.normal_() if values.is_floating_point() else values for values in given]
    loaded(given)
    return time_kernel(lambda: loaded.again(given), on_gpu=True, graph=True, budget_s=0.05).median_s
