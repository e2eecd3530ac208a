"""Compiler reports: the registers, spills and shared memory that a kernel needs on a GPU, found without one.

Triton compiles for any NVIDIA GPU on any Linux machine, but not in a process in which its interpreter is switched on.
So the checked source of the kernel goes to a separate process, which passes Triton's output to NVIDIA's assembler
(`ptxas -v`) and sends its report back.
"""

import inspect
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.errors import UserError
from mlsys.grading.kernels.source import kernel_source

if TYPE_CHECKING:
    import torch

OPTIONS = ("num_warps", "num_stages")
"""Options that a launch gives to the compiler, beside the kernel's own constants."""

TYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "int64": "i64", "float8_e4m3fn": "fp8e4nv",
}  # fmt: skip
"""Triton's names of element types, by torch's."""


@dataclass(frozen=True)
class CompilerReport:
    """Resources that one kernel needs with one configuration on one architecture.

    Attributes:
        capability: compute capability times ten, such as 90 for an H100.
        constants: the configuration.
        registers: 32-bit registers per thread.
        spilled_bytes: bytes per thread that are stored to local memory because there are not enough registers.
        shared_bytes: shared memory per program.
    """

    capability: int
    constants: Mapping[str, int]
    registers: int
    spilled_bytes: int
    shared_bytes: int

    @property
    def needs(self) -> str:
        """What the kernel needs, in words."""
        return (
            f"{self.registers} registers per thread, {self.spilled_bytes} bytes spilled, "
            f"{self.shared_bytes} bytes of shared memory"
        )

    def __str__(self) -> str:
        chosen = ", ".join(f"{name} {value}" for name, value in self.constants.items())
        return f"sm_{self.capability}, {chosen}: {self.needs}"


def compiler_report(
    kernel: Any,
    configs: Sequence[Mapping[str, int]],
    out: Any,
    *inputs: Any,
    launch: Callable[..., object],
    capabilities: Sequence[int],
) -> list[CompilerReport]:
    """Compile a kernel with each configuration for each architecture.

    Args:
        kernel: a `@triton.jit` function.
        configs: dicts that `launch` passes on as constants.
        out: the output for `launch`; only shape, strides and dtype matter, so a tensor on device "meta" is enough.
        inputs: the inputs, likewise.
        launch: `launch(kernel, constants, out, *inputs)`, which sets the order of the kernel's arguments.
        capabilities: architectures, such as 75 for a T4, 80 for an A100, 90 for an H100 or H200.

    Raises:
        NotAKernel: the kernel uses more than Triton's language.
        UserError: the kernel does not compile; the message is the compiler's.
    """
    jobs = []
    for constants in configs:
        last = _recorded(launch, constants, out, inputs)[-1]
        jobs += [(constants, _job(kernel, last, capability)) for capability in capabilities]
    needs = _compiled(kernel, [job for _, job in jobs])
    return [
        CompilerReport(job["capability"], dict(constants), **need)
        for (constants, job), need in zip(jobs, needs, strict=True)
    ]


def most_needed(
    kernel: Any,
    launches: "Sequence[tuple[Mapping[str, int], torch.Tensor, Sequence[torch.Tensor]]]",
    *,
    launch: Callable[..., object],
    capability: int,
) -> list[CompilerReport]:
    """Compile all that each call of `launch` launches, and report the most that one of its launches needs.

    Args:
        kernel: a `@triton.jit` function.
        launches: constants, output and inputs of each call; only shapes, strides and dtypes of the tensors matter.
        launch: `launch(kernel, constants, out, *inputs)`.
        capability: architecture, as for `compiler_report`.

    Raises:
        NotAKernel, UserError: as `compiler_report`.
    """
    calls = []
    for constants, out, inputs in launches:
        jobs = [_job(kernel, one, capability) for one in _recorded(launch, constants, out, inputs)]
        calls.append(list({json.dumps(job): job for job in jobs}.values()))
    needs = iter(_compiled(kernel, [job for jobs in calls for job in jobs]))
    reports = []
    for (constants, *_), jobs in zip(launches, calls, strict=True):
        found = [next(needs) for _ in jobs]
        most = {name: max(need[name] for need in found) for name in found[0]}
        reports.append(CompilerReport(capability, dict(constants), **most))
    return reports


def _recorded(
    launch: Callable[..., object], constants: Mapping[str, int], out: Any, inputs: Sequence[Any]
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return the arguments of all launches of one call, by place and by name."""
    kernel = _Recorder()
    launch(kernel, constants, out, *inputs)
    return kernel.launches


def _job(kernel: Any, launched: tuple[tuple[Any, ...], dict[str, Any]], capability: int) -> dict[str, Any]:
    """Return what the process that compiles must know of a launch."""
    values, keywords = launched
    names = list(inspect.signature(kernel.fn).parameters)
    for name in keywords:
        if name not in names and name not in OPTIONS:
            constants = ", ".join(names[len(values) :])
            raise UserError(f"{kernel.fn.__name__} has no constant {name}: give {constants}, {' or '.join(OPTIONS)}")
    for name in names[len(values) :]:
        if name not in keywords:
            raise UserError(f"{kernel.fn.__name__} needs a value for {name}, and the launch gives none")
    return _arguments(names, values, keywords) | {
        "options": {name: keywords[name] for name in OPTIONS if name in keywords},
        "capability": capability,
    }


def _compiled(kernel: Any, jobs: list[dict[str, Any]]) -> list[dict[str, int]]:
    """Compile a kernel for all jobs, in a process without Triton's interpreter."""
    text = kernel_source(_sources(kernel, {}), kernel.fn.__name__).text
    request = {"kernel": text, "name": kernel.fn.__name__, "jobs": jobs}
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", f"from {__name__} import answer; answer()"]
    done = subprocess.run(
        command, input=json.dumps(request), capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise UserError(f"{kernel.fn.__name__} does not compile:\n{done.stderr.strip()[-2000:]}")
    found: list[dict[str, int]] = json.loads(done.stdout)
    return found


class _Recorder:
    """A stand-in for a kernel, which keeps the arguments of all its launches."""

    def __init__(self) -> None:
        self.launches: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __getitem__(self, grid: object) -> Callable[..., None]:
        def keep(*values: Any, **keywords: Any) -> None:
            self.launches.append((values, keywords))

        return keep


def _sources(kernel: Any, found: dict[str, str]) -> list[str]:
    """Return the text of a kernel, of the jit functions that it calls and of the constants that it names."""
    found[kernel.fn.__name__] = inspect.getsource(kernel.fn)
    for name in kernel.fn.__code__.co_names:
        value = kernel.fn.__globals__.get(name)
        value = getattr(value, "value", value)  # of a tl.constexpr
        if name not in found and hasattr(value, "fn"):
            _sources(value, found)
        elif isinstance(value, float):
            found[name] = f"{name} = float('{value}')" if not math.isfinite(value) else f"{name} = {value!r}"
        elif isinstance(value, (bool, int, str)):
            found[name] = f"{name} = {value!r}"
    return list(found.values())


def _arguments(names: list[str], values: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return types and constants as the JIT takes them: ones are constants, multiples of 16 are known to be such."""
    constants = {name: value for name, value in keywords.items() if name not in OPTIONS}
    signature: dict[str, str] = {}
    divisible = []
    for index, (name, value) in enumerate(zip(names, values, strict=False)):
        if hasattr(value, "dtype"):
            signature[name] = "*" + TYPES[str(value.dtype).removeprefix("torch.")]
            divisible.append(index)
        elif isinstance(value, float):
            signature[name] = "fp32"
        elif value == 1:
            constants[name] = value
        else:
            signature[name] = "i32"
            divisible += [index] if value % 16 == 0 else []
    return {
        "signature": signature | dict.fromkeys(constants, "constexpr"),
        "constants": constants,
        "divisible": divisible,
    }


def compile_job(kernel: Any, job: Mapping[str, Any]) -> Any:
    """Compile one kernel for one architecture, in a process without Triton's interpreter."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    divisible = {(index,): [["tt.divisibility", 16]] for index in job["divisible"]}
    return triton.compile(
        ASTSource(kernel, job["signature"], job["constants"], divisible),
        target=GPUTarget("cuda", job["capability"], 32),
        options=job["options"],
    )


def _needs(kernel: Any, job: Mapping[str, Any]) -> dict[str, int]:
    """Return registers, spilled bytes and shared memory of one kernel on one architecture."""
    compiled = compile_job(kernel, job)
    registers, spilled_bytes = assemble(compiled.asm["ptx"])
    return {
        "registers": registers,
        "spilled_bytes": spilled_bytes,
        "shared_bytes": int(compiled.metadata.shared),
    }


def assemble(ptx: str, *options: str) -> tuple[int, int]:
    """Return registers and spilled bytes per thread, as NVIDIA's assembler reports them for the PTX's architecture."""
    import triton

    found = re.search(r"\.target (\w+)", ptx)
    assert found is not None
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        assembler = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
        command = [str(assembler), "-v", f"-arch={found[1]}", *options, file.name, "-o", "/dev/null"]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers, spilled = (re.search(text, report) for text in (r"Used (\d+) registers", r"(\d+) bytes spill stores"))
    assert registers is not None
    assert spilled is not None
    return int(registers[1]), int(spilled[1])


def answer() -> None:
    """Compile what the standard input asks for, and print what it needs; or say what the compiler says, and fail."""
    from triton.compiler.errors import CompilationError

    from mlsys.core.cells import run_cell

    request = json.load(sys.stdin)
    names: dict[str, Any] = {"__name__": "kernel"}
    run_cell(request["kernel"], "your kernel", names)
    try:
        print(json.dumps([_needs(names[request["name"]], job) for job in request["jobs"]]))
    except CompilationError as error:
        sys.exit(str(error))
    except Exception as error:  # whatever the compiler fails with; what it has printed itself comes before this
        sys.exit(f"{type(error).__name__}: {error}")
