"""Last step: load the source, place its tensors, and launch its kernels."""

import hashlib
import linecache
from collections.abc import Callable, Mapping, Sequence
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

    On a GPU the first call compiles the kernels. `again` then launches what was compiled, without Triton's dispatch and
    with addresses instead of tensors: a call costs the host few microseconds more than its launches.
    """

    def __init__(self, program: Program, device: str) -> None:
        self.program, self.run = program, load_source(program.text)["run"]
        memory = torch.empty(program.memory, dtype=torch.uint8, device=device)
        self.device = memory.device
        self.kept = {name: value.contiguous().to(device) for name, value in program.graph.constants.items()}
        for name, offset in program.offsets.items():
            tensor = program.tensors[name]
            self.kept[name] = memory[offset : offset + tensor.nbytes].view(TORCH[tensor.dtype]).view(tensor.shape)
        self.compiled: list[tuple[Any, ...]] = []  # how to launch each kernel again, on a GPU
        self.again: Callable[[Sequence[Any]], list[torch.Tensor] | None] = lambda inputs: None

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run the kernels on tensors of the right shapes; returns the outputs in order."""
        placed = [tensor.to(self.device).contiguous() for tensor in inputs]
        placed = [tensor.clone() if tensor.data_ptr() % ALIGNED else tensor for tensor in placed]
        have = self.kept | {tensor.name: value for tensor, value in zip(self.program.graph.inputs, placed, strict=True)}
        made = [kernel.result for kernel in self.program.kernels if kernel.result.name not in have]
        results = {t.name: torch.empty(t.shape, dtype=TORCH[t.dtype], device=self.device) for t in made}
        have |= results
        self.compiled.clear()
        self.run(partial(self.launch, have), *self.program.arguments)
        if self.device.type == "cuda" and results.keys() >= set(self.program.graph.outputs):
            self.again = self.written(results)
        return [have[name] if name in results else have[name].clone() for name in self.program.graph.outputs]

    def launch(self, have: Mapping[str, Any], kernel: Any, grid: tuple[int, ...], *names: str, **settings: int) -> None:
        """Launch a kernel on tensors by name, and keep what launches it again."""
        if 0 not in grid:
            made = kernel[grid](*(have[name] for name in names), **settings)
            constants = [str(settings[name]) for name in settings if name in kernel.arg_names]
            self.compiled.append((made, (*grid, 1, 1)[:3], names, constants))

    def written(self, results: Mapping[str, torch.Tensor]) -> Callable[[Sequence[Any]], list[torch.Tensor] | None]:
        """Write a function that launches again, or returns None if an input is not as the kernels take it.

        Written out line by line it costs the host a third of what loops over inputs and kernels would.
        """
        from triton.runtime import driver

        known: dict[str, Any] = {"Tensor": torch.Tensor, "device": self.device, "empty_like": torch.empty_like}
        known["stream"] = partial(driver.active.get_current_stream, self.device.index)
        at = {name: str(value.data_ptr()) for name, value in self.kept.items()}  # the text of each address
        wanted = self.program.graph.inputs
        taken = ", ".join(f"x{n}" for n in range(len(wanted)))
        lines = [f"if len(inputs) != {len(wanted)}: return None", f"[{taken}] = inputs"]
        for n, tensor in enumerate(wanted):
            known |= {f"shape{n}": torch.Size(tensor.shape), f"dtype{n}": TORCH[tensor.dtype]}
            kind = f"type(x{n}) is not Tensor or x{n}.dtype is not dtype{n} or x{n}.shape != shape{n}"
            lines += [f"if {kind}: return None", f"if x{n}.device != device or not x{n}.is_contiguous(): return None"]
            lines += [f"at{n} = x{n}.data_ptr()", f"if at{n} % {ALIGNED}: return None"]
            at[tensor.name] = f"at{n}"
        for n, (name, value) in enumerate(results.items()):
            known[f"like{n}"] = value.new_empty(()).expand(value.shape)  # of no size; faster than sizes and a format
            lines += [f"y{n} = empty_like(like{n})", f"to{n} = y{n}.data_ptr()"]
            at[name] = f"to{n}"
        lines.append("now = stream()")
        for n, (made, grid, names, constants) in enumerate(self.compiled):
            known |= {f"run{n}": made.run, f"function{n}": made.function, f"packed{n}": made.packed_metadata}
            given = ", ".join([*map(str, grid), "now", f"function{n}", f"packed{n}", "None, None, None"])
            lines.append(f"run{n}({', '.join([given, *(at[name] for name in names), *constants])})")
        order = [f"y{list(results).index(name)}" for name in self.program.graph.outputs]
        exec("def again(inputs):\n    " + "\n    ".join([*lines, f"return [{', '.join(order)}]"]), known)
        return known["again"]  # type: ignore[no-any-return]
