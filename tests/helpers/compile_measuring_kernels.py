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
HALF = FLOAT | {"a_ptr": "*fp16", "b_ptr": "*fp16", "steps": "i32"}
WHOLE = dict.fromkeys(("ring_ptr", "place_ptr", "x_ptr"), "*i32") | {"steps": "i32"}
TYPES = {
    "mma_kernel": HALF,
    "triad_kernel": FLOAT | dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp32"),
    "chase_kernel": WHOLE,
    "waiting_reads_kernel": WHOLE,
}
WARPS = {"mma_kernel": 8, "triad_kernel": 8, "chase_kernel": 1}
JOBS = {
    "special_kernel": {"FUNCTION": "exp2", "STEPS": 2048, "CHAINS": triton_kernels.FMA_CHAINS},
    "chase_kernel": {},
    "waiting_reads_kernel": {"PROGRAMS": 132, "BLOCK": triton_kernels.WAITING_BLOCK},
    "fma_kernel": {"STEPS": 2048, "CHAINS": triton_kernels.FMA_CHAINS},
    "triad_kernel": {"BLOCK": triton_kernels.TRIAD_BLOCK},
    "strided_sum_kernel": {"STRIDE": 1, "BLOCK": triton_kernels.STRIDE_BLOCK},
    "empty_kernel": {},
}
MMA = {"TILE_M": 128, "TILE_K": 64, "PRECISION": "ieee", "SUM": triton_kernels.tl.float32}


def compiled(name, constants, capability):
    kernel = getattr(triton_kernels, name)
    types = TYPES.get(name, FLOAT)
    signature = {arg: types.get(arg, "constexpr") for arg in kernel.arg_names}
    divisible = {(i,): [["tt.divisibility", 16]] for i, arg in enumerate(kernel.arg_names) if arg.endswith("_ptr")}
    source = ASTSource(kernel, signature, constants, divisible)
    options = {"num_warps": WARPS.get(name, 4)}
    ptx = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["ptx"]
    _, spilled_bytes = assemble(ptx)
    loop = loop_of(ptx)
    return {
        "fma": len(re.findall(r"\bfma\.rn\.f32\b", ptx)),
        "exp2": len(re.findall(r"\bex2\.approx\S*", ptx)),
        "global_loads": re.findall(r"ld\.global\S*", ptx),
        "products": sorted(
            {f"{kind}.{shape}" for kind, shape in re.findall(r"\b(w?g?mma)\.\S*?\.(m\d+n\d+k\d+)", loop)}
        ),
        "loop_loads": re.findall(r"ld\.global\S*", loop),
        "waits_for_all_but": [int(left) for left in re.findall(r"wgmma\.wait_group\S* (\d+)", ptx)],
        "spilled_bytes": spilled_bytes,
    }


def loop_of(ptx):
    """Cut out what runs again and again: from the first label that a later branch goes back to, to that branch."""
    for label in re.findall(r"^(\$\w+):", ptx, re.MULTILINE):
        start = ptx.index(f"{label}:")
        again = max((m.start() for m in re.finditer(rf"bra\s+{re.escape(label)};", ptx)), default=-1)
        if again > start:
            return ptx[start:again]
    return ""


if __name__ == "__main__":
    capability = int(sys.argv[1])
    jobs = dict(JOBS)
    if capability >= 80:
        jobs["mma_kernel"] = MMA | {"TILE_N": 256 if capability >= 90 else 128}
    found = {name: compiled(name, constants, capability) for name, constants in jobs.items()}
    apart = JOBS["strided_sum_kernel"] | {"STRIDE": 8}
    found["strided_sum_kernel, apart"] = compiled("strided_sum_kernel", apart, capability)
    json.dump(found, sys.stdout)
