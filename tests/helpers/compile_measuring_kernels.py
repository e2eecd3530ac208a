"""Compile the measuring kernels for GPUs that need not be here; print what each came to as JSON.

Runs in a process of its own, without TRITON_INTERPRET.
"""

import json
import re
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from mlsys.grading.kernels.compiler_report import assemble
from mlsys.measure import triton_kernels

FLOAT = {"out_ptr": "*fp32", "x_ptr": "*fp32", "sums_ptr": "*fp32", "scale": "fp32", "shift": "fp32"}
JOBS = {
    "fma_kernel": {"STEPS": 2048, "CHAINS": triton_kernels.FMA_CHAINS},
    "strided_sum_kernel": {"STRIDE": 1, "BLOCK": triton_kernels.STRIDE_BLOCK},
    "empty_kernel": {},
}


def compiled(name, constants, capability):
    kernel = getattr(triton_kernels, name)
    signature = {arg: FLOAT.get(arg, "constexpr") for arg in kernel.arg_names}
    divisible = {(i,): [["tt.divisibility", 16]] for i, arg in enumerate(kernel.arg_names) if arg.endswith("_ptr")}
    source = ASTSource(kernel, signature, constants, divisible)
    ptx = triton.compile(source, target=GPUTarget("cuda", capability, 32)).asm["ptx"]
    _, spilled_bytes = assemble(ptx)
    return {
        "fma": len(re.findall(r"\bfma\.rn\.f32\b", ptx)),
        "global_loads": re.findall(r"ld\.global\S*", ptx),
        "spilled_bytes": spilled_bytes,
    }


if __name__ == "__main__":
    json.dump({name: compiled(name, constants, int(sys.argv[1])) for name, constants in JOBS.items()}, sys.stdout)
