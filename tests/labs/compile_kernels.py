"""Compile kernels for GPUs that need not be here, and print what each needs as JSON.

Run in a process of its own, without TRITON_INTERPRET:

    python compile_kernels.py MODULE.py < jobs.json

where each job is {"kernel", "dtype", "capability", "constants", "num_warps"}, and where needed "num_stages"; "types" of
arguments that are neither pointers to dtype nor integers; "descriptors", the blocks of arguments that are tensor
descriptors; and "odd", arguments that 16 need not divide.
"""

import importlib.util
import json
import re
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from mlsys.grading.compiler_report import assemble


def compile_job(kernel, job):
    """Shared memory, registers, spilled bytes and telling instructions of one kernel on one architecture."""
    # As the JIT does for contiguous matrices whose sides 16 divides: strides of 1 are constants, the rest divisible.
    ones = [name for name in ("stride_ak", "stride_bn", "stride_cn") if name in kernel.arg_names]
    constants = job["constants"] | dict.fromkeys(ones, 1)
    types = {name: f"*{job['dtype']}" if name.endswith("_ptr") else "i32" for name in kernel.arg_names}
    descriptors = job.get("descriptors", {})
    types |= job.get("types", {}) | {name: f"tensordesc<{job['dtype']}{block}>" for name, block in descriptors.items()}
    signature = types | dict.fromkeys(constants, "constexpr")
    odd = {*constants, *descriptors, *job.get("odd", ())}
    others = [name for name in kernel.arg_names if name not in odd]
    divisible = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in others}
    compiled = triton.compile(
        ASTSource(kernel, signature, constants, divisible),
        target=GPUTarget("cuda", job["capability"], 32),
        options={name: job[name] for name in ("num_warps", "num_stages") if name in job},
    )
    ptx = compiled.asm["ptx"]
    registers, spilled_bytes = assemble(ptx)
    return {
        "shared_bytes": compiled.metadata.shared,
        "registers": registers,
        "spilled_bytes": spilled_bytes,
        "tensor_cores": "mma" in ptx,
        "tensor_copies": "cp.async.bulk.tensor" in ptx,
        "multiply_adds": len(re.findall(r"\bfma\.rn\.f32\b", ptx)),
        "wide_loads": len(re.findall(r"\bld\.global\.v4\.b32\b", ptx)),
    }


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("kernels", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print(json.dumps([compile_job(getattr(module, job["kernel"]), job) for job in json.load(sys.stdin)]))
