"""Compile kernels for GPUs that need not be here: which of them fail, and why, as JSON.

Run in a process of its own, without TRITON_INTERPRET: `python compile_texts.py < texts.json`, where each text, by its
name, is a pair of the source and the name of a kernel that takes x_ptr, out_ptr, size, TILE and defaults.
"""

import json
import sys
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from mlsys.core.cells import run_cell

CAPABILITIES = (75, 90)


def compile_text(text: str, name: str, label: str) -> None:
    """Compile one kernel for each architecture."""
    names: dict[str, Any] = {"__name__": "kernel"}
    run_cell(text, label, names)
    kernel = names[name]
    x, out, size, *_ = kernel.arg_names
    constants = {"TILE": 16} | {p.name: p.default for p in kernel.params if p.has_default}
    signature = {x: "*fp32", out: "*fp32", size: "i32"} | dict.fromkeys(constants, "constexpr")
    for capability in CAPABILITIES:
        triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", capability, 32))


def main() -> None:
    """Compile all texts of stdin, and print the first line of what went wrong."""
    failed = {}
    for label, (text, name) in json.load(sys.stdin).items():
        try:
            compile_text(text, name, label)
        except Exception as error:
            cause = error.__cause__ or error
            failed[label] = f"{type(error).__name__}: {str(cause)[-300:]}"
    json.dump(failed, sys.stderr)


if __name__ == "__main__":
    main()
