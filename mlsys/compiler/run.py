"""Last step: load the source, place its tensors, and launch its kernels."""

import hashlib
import linecache
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from mlsys.compiler.ir.graph import TORCH
from mlsys.compiler.ir.program import Program

ALIGNED = 16  # bytes to which Triton assumes a tensor to be aligned once it has compiled a kernel for such tensors


def load_source(text: str) -> dict[str, Any]:
    """Execute a program's source and return what it defines."""
    name = f"<mlsys.compiler {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)  # Triton reads the source again
    module: dict[str, Any] = {"__name__": name}
    exec(compile(text, name, "exec"), module)
    return module


class Loaded:
    """A program that is ready to run, with the memory of its intermediate tensors and constants.

    On a GPU the first call compiles the kernels; later calls launch what it compiled, without Triton's own dispatch.
    """

    def __init__(self, program: Program, device: str) -> None:
        self.program, self.device = program, torch.device(device)
        self.run: Callable[..., None] = load_source(program.text)["run"]
        self.again: list[tuple[Any, tuple[Any, ...], list[Any], list[tuple[int, str]]]] = []
        memory = torch.empty(program.memory, dtype=torch.uint8, device=device)
        self.kept = {name: value.contiguous().to(device) for name, value in program.graph.constants.items()}
        for name, offset in program.offsets.items():
            tensor = program.tensors[name]
            self.kept[name] = memory[offset : offset + tensor.size].view(TORCH[tensor.dtype]).view(tensor.shape)

    def __call__(self, given: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Run the kernels on inputs by name; returns the outputs in order."""
        have = {name: value.clone() if value.data_ptr() % ALIGNED else value for name, value in given.items()}
        for tensor in map(self.program.tensors.__getitem__, self.program.graph.outputs):
            have[tensor.name] = torch.empty(tensor.shape, dtype=TORCH[tensor.dtype], device=self.device)
        if not self.again:
            self.run(partial(self.launch, self.kept | have), *self.program.arguments)
        else:
            stream = torch.cuda.current_stream(self.device).cuda_stream
            for compiled, grid, arguments, changing in self.again:
                for place, name in changing:
                    arguments[place] = have[name]
                compiled.run(*grid, stream, compiled.function, compiled.packed_metadata, None, None, None, *arguments)
        return [have[name] for name in self.program.graph.outputs]

    def launch(
        self, have: Mapping[str, torch.Tensor], kernel: Any, grid: tuple[int, ...], *names: str, **settings: int
    ) -> None:
        """Launch a kernel on tensors by name; on a GPU, keep what launches it again."""
        if 0 in grid:
            return
        compiled = kernel[grid](*(have[name] for name in names), **settings)
        if self.device.type == "cuda":
            arguments = [have[name] for name in names] + [settings[n] for n in settings if n in kernel.arg_names]
            changing = [(place, name) for place, name in enumerate(names) if name not in self.kept]
            self.again.append((compiled, (*grid, 1, 1)[:3], arguments, changing))
