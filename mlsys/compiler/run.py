"""Run a compiled program: load its source, place its tensors, and launch its kernels."""

import hashlib
import linecache
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from mlsys.compiler.ir.graph import TORCH, Tensor
from mlsys.compiler.lower import Source
from mlsys.errors import UserError

ALIGNED = 16
"""Bytes to which Triton assumes a tensor's start to be aligned once it has compiled a kernel for such tensors."""


def load_source(text: str) -> dict[str, Any]:
    """Execute a program's source and return what it defines."""
    name = f"<mlsys.compiler {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)  # Triton reads the source again
    module: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), module)
    return module


def interpret() -> None:
    """Make Triton run kernels in its interpreter.

    Raises:
        UserError: Triton was imported before without it.
    """
    if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
        raise UserError("triton is already imported to compile: set TRITON_INTERPRET=1 before, or use device='cuda'")
    os.environ["TRITON_INTERPRET"] = "1"


class Program:
    """Kernels that are ready to launch, with the memory of their intermediate tensors and constants.

    On a GPU the first call compiles the kernels and keeps each with its arguments; later calls launch them without
    going through Triton's own dispatch again.
    """

    def __init__(self, source: Source, device: str) -> None:
        self.device = torch.device(device)
        self.graph = source.plan.schedule.fused.graph
        self.tensors, self.arguments = source.plan.schedule.fused.tensors, source.arguments
        self.run: Callable[..., None] = load_source(source.text)["run"]
        self.memory = torch.empty(source.plan.total, dtype=torch.uint8, device=device)
        self.kept = {name: value.contiguous().to(device) for name, value in self.graph.constants.items()}
        for name, offset in source.plan.offsets.items():
            tensor = self.tensors[name]
            place = self.memory[offset : offset + tensor.size].view(TORCH[tensor.dtype])
            self.kept[name] = place.view(tensor.shape)
        self.bound: list[tuple[Callable[..., None], tuple[int, ...], list[Any], list[tuple[int, str]]]] = []

    def __call__(self, given: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Run the kernels on inputs by name; returns the outputs in order."""
        given = {name: value.clone() if value.data_ptr() % ALIGNED else value for name, value in given.items()}
        made = {name: self.empty(self.tensors[name]) for name in self.graph.outputs}
        have = {**self.kept, **given, **made}
        if not self.bound:
            self.run(partial(self.launch, have), *self.arguments)
            return [made[name] for name in self.graph.outputs]
        stream = torch.cuda.current_stream(self.device).cuda_stream
        for launch, grid, arguments, fresh in self.bound:
            for place, name in fresh:
                arguments[place] = have[name]
            launch(*grid, stream, *arguments)
        return [made[name] for name in self.graph.outputs]

    def empty(self, tensor: Tensor) -> torch.Tensor:
        """Return new memory for a tensor."""
        return torch.empty(tensor.shape, dtype=TORCH[tensor.dtype], device=self.device)

    def launch(
        self, have: Mapping[str, torch.Tensor], kernel: Any, grid: tuple[int, ...], *names: str, **settings: Any
    ) -> None:
        """Launch a kernel on tensors by name; on a GPU, keep what launches it again."""
        if 0 in grid:
            return
        compiled = kernel[grid](*(have[name] for name in names), **settings)
        if self.device.type == "cuda":
            sizes = [value for name, value in settings.items() if name in kernel.arg_names]
            fresh = [(place, name) for place, name in enumerate(names) if name not in self.kept]
            again = partial(_relaunch, compiled.run, compiled.function, compiled.packed_metadata)
            self.bound.append((again, (*grid, *[1] * (3 - len(grid))), [*map(have.get, names), *sizes], fresh))


def _relaunch(run: Any, function: Any, metadata: Any, x: int, y: int, z: int, stream: int, *values: Any) -> None:
    run(x, y, z, stream, function, metadata, None, None, None, *values)
