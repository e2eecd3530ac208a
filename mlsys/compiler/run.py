"""Run a compiled program: load its source, place its tensors, and launch its kernels."""

import hashlib
import linecache
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch

from mlsys.compiler.ir.graph import TORCH
from mlsys.compiler.lower import Source
from mlsys.errors import UserError


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
    """Kernels that are ready to launch, with the memory of their intermediate tensors and constants."""

    def __init__(self, source: Source, device: str) -> None:
        if device == "cpu":
            interpret()
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
        self.launches: list[tuple[Any, tuple[int, ...], tuple[Any, ...]]] | None = None

    def __call__(self, given: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Run the kernels on inputs by name; returns the outputs in order."""
        made = {n: torch.empty(self.tensors[n].shape, dtype=TORCH[self.tensors[n].dtype], device=self.device) for n in self.graph.outputs}
        have = self.kept | dict(given) | made
        self.run(_launch, *(have[name] for name in self.arguments))
        return [made[name] for name in self.graph.outputs]


def _launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **settings: Any) -> None:
    if 0 not in grid:
        kernel[grid](*arguments, **settings)


