"""Compile launches of kernels for a GPU that need not be here: the shared memory of each, or why it fails, as JSON.

Run in a process of its own, without TRITON_INTERPRET: `python compile_launches.py < launches.json`, where each launch
is the text of a kernel, its name, and a job as `mlsys.grading.kernels.compiler_report` makes it. Registers and spills,
which take that report a second run of the assembler, are not asked for.
"""

import json
import sys
from functools import cache
from typing import Any

from mlsys.core.cells import run_cell
from mlsys.grading.kernels.compiler_report import compile_job


@cache
def kernel_of(text: str, name: str) -> Any:
    """Make a kernel from its text."""
    names: dict[str, Any] = {"__name__": "kernel"}
    run_cell(text, "a kernel", names)
    return names[name]


def shared_bytes(text: str, name: str, job: dict[str, Any]) -> int | str:
    """Return the bytes of shared memory that a launch takes, or what the compiler says against it."""
    kernel = kernel_of(text, name)
    try:
        return int(compile_job(kernel, job).metadata.shared)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[-300:]}"


if __name__ == "__main__":
    found = [shared_bytes(*launch) for launch in json.load(sys.stdin)]
    print(json.dumps(found))  # after all that the compiler prints itself
