"""Compile kernels for GPUs that need not be here, and print what each needs as JSON.

Run in a process of its own, without TRITON_INTERPRET:

    python compile_kernels.py MODULE.py < jobs.json

where each job is {"kernel", "dtype", "capability", "constants", "num_warps"}, and where needed "num_stages" and
"maxnreg"; "descriptors", the blocks of arguments that are tensor descriptors; "types" of arguments that are neither
pointers to dtype nor integers nor descriptors of dtype; "odd", arguments that 16 need not divide; and for a kernel in
Gluon "float32_plan" or "specialized_plan", from which the module makes its constants.
"""

import importlib.util
import json
import re
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource, GluonJITFunction

from mlsys.grading.kernels.compiler_report import assemble

OPTIONS = ("num_warps", "num_stages", "maxnreg")
"""Options of the compiler that a job may give."""


def compile_job(module, job):
    """Shared memory, registers, spilled bytes and telling instructions of one kernel on one architecture."""
    kernel = getattr(module, job["kernel"])
    # As the JIT does for contiguous matrices whose sides 16 divides: strides of 1 are constants, the rest divisible.
    ones = [name for name in ("stride_ak", "stride_bn", "stride_cn") if name in kernel.arg_names]
    constants = job["constants"] | dict.fromkeys(ones, 1)
    types = {name: f"*{job['dtype']}" if name.endswith("_ptr") else "i32" for name in kernel.arg_names}
    descriptors = job.get("descriptors", {})
    source = GluonASTSource if isinstance(kernel, GluonJITFunction) else ASTSource
    options, layouts = {name: job[name] for name in OPTIONS if name in job}, {}
    if "float32_plan" in job:
        constants |= module.float32_layouts(module.Plan(**job["float32_plan"]))
        layouts = {name: f",{module.plain_shared(len(block))!r}" for name, block in descriptors.items()}
        options |= {"ptx_options": module.ASSEMBLER_OPTIONS}
    if "specialized_plan" in job:
        plan = module.Plan(**job["specialized_plan"])
        constants |= module.layouts(plan, job["d"]) | {"REGISTERS": module.REGISTERS}
        layouts = {name: f",{module.shared_layout(len(block))!r}" for name, block in descriptors.items()}
    blocks = {name: f"{block}{layouts.get(name, '')}" for name, block in descriptors.items()}
    types |= {name: f"tensordesc<{job['dtype']}{block}>" for name, block in blocks.items()} | job.get("types", {})
    signature = types | dict.fromkeys(constants, "constexpr")
    odd = {*constants, *descriptors, *job.get("odd", ())}
    others = [name for name in kernel.arg_names if name not in odd]
    divisible = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in others}
    compiled = triton.compile(
        source(kernel, signature, constants, divisible),
        target=GPUTarget("cuda", job["capability"], 32),
        options=options,
    )
    ptx = compiled.asm["ptx"]
    registers, spilled_bytes = assemble(ptx, *options.get("ptx_options", "").split())
    return {
        "shared_bytes": compiled.metadata.shared,
        "registers": registers,
        "spilled_bytes": spilled_bytes,
        "tensor_cores": "mma" in ptx,
        "tensor_copies": "cp.async.bulk.tensor" in ptx,
        "multiply_adds": len(re.findall(r"\bfma\.rn\.f32\b", ptx)),
        "groups_of_warps": "setmaxnreg" in ptx,
        "wide_copies": len(re.findall(r"\bcp\.async\.cg\.shared\.global\b", ptx)),
        "wide_stores": len(re.findall(r"\bst\.global\.v4\.b32\b", ptx)),
        "wide_loads": len(re.findall(r"\bld\.global\.v4\.b32\b", ptx)),
    }


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("kernels", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print(json.dumps([compile_job(module, job) for job in json.load(sys.stdin)]))
