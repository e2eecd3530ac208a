"""Choose each kernel's tile by timing: the option `autotune` of `compile`, in place of the rule in `schedule`."""

from dataclasses import replace

import torch

from mlsys.compiler.fuse import Fused
from mlsys.compiler.ir.expression import Load, walk
from mlsys.compiler.ir.graph import TORCH, Graph, Tensor
from mlsys.compiler.lower import lower
from mlsys.compiler.memory import plan
from mlsys.compiler.run import Program
from mlsys.compiler.schedule import Schedule, Scheduled, candidates
from mlsys.hardware import Accelerator
from mlsys.measure.timing import time_kernel

BUDGET_S = 0.02
"""Seconds for which each candidate is timed."""


def tuned(fused: Fused, chip: Accelerator) -> Schedule:
    """Time every kernel's candidates on the GPU, each alone with random inputs, and keep the fastest."""
    chosen = []
    for kernel in fused.kernels:
        loads = {part.buffer: fused.tensors[part.buffer] for part in walk(kernel.element) if isinstance(part, Load)}
        given = {name: example(tensor) for name, tensor in loads.items()}
        graph = Graph(tuple(loads.values()), (kernel.result.name,), (), {})
        alone = replace(fused, graph=graph, kernels=(kernel,))
        timed = [(seconds(alone, one, given), one) for one in candidates(kernel, chip, "cuda")]
        chosen.append(min(timed, key=lambda row: row[0])[1])
    return Schedule(fused, tuple(chosen))


def seconds(alone: Fused, scheduled: Scheduled, given: dict[str, torch.Tensor]) -> float:
    """Return the median time of a kernel under a schedule."""
    program = Program(lower(plan(Schedule(alone, (scheduled,))), "cuda"), "cuda")
    return time_kernel(lambda: program(given), on_gpu=True, cold=True, graph=True, budget_s=BUDGET_S).median_s


def example(tensor: Tensor) -> torch.Tensor:
    """Return random numbers, or zeros where they could be indices."""
    if TORCH[tensor.dtype].is_floating_point:
        return torch.randn(tensor.shape, device="cuda").to(TORCH[tensor.dtype])
    return torch.zeros(tensor.shape, dtype=TORCH[tensor.dtype], device="cuda")
