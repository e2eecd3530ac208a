"""Compile launches of kernels for a GPU that need not be here: the shared memory of each, or why it fails, as JSON.

Run in a process of its own, without TRITON_INTERPRET: `python compile_launches.py < launches.json`, where each launch
is the text of a kernel, its name, and a job as `mlsys.grading.kernels.compiler_report` makes it. Registers and spills,
which take that report a second run of the assembler, are not asked for.
"""

import json
import sys
from functools import cache
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from mlsys.core.cells import run_cell


@cache
def kernel_of(text: str, name: str) -> Any:
    """Make a kernel from its text."""
    names: dict[str, Any] = {"__name__": "kernel"}
    run_cell(text, "a kernel", names)
    return names[name]


def shared_bytes(text: str, name: str, job: dict[str, Any]) -> int | str:
    """Return the bytes of shared memory that a launch takes, or what the compiler says against it."""
    divisible = {(index,): [["tt.divisibility", 16]] for index in job["divisible"]}
    source = ASTSource(kernel_of(text, name), job["signature"], job["constants"], divisible)
    try:
        compiled = triton.compile(source, target=GPUTarget("cuda", job["capability"], 32), options=job["options"])
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[-300:]}"
    return int(compiled.metadata.shared)


if __name__ == "__main__":
    found = [shared_bytes(*launch) for launch in json.load(sys.stdin)]
    print(json.dumps(found))  # after all that the compiler prints itself
