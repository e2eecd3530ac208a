"""Compile kernels for GPUs that need not be here, and print what each needs as JSON.

Run in a process of its own, without TRITON_INTERPRET:

    python compile_kernels.py MODULE.py < jobs.json

where each job is {"kernel", "dtype", "capability", "constants", "num_warps", "num_stages"}, and "descriptors" for
arguments that are tensor descriptors: their blocks by name.
"""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

PTXAS = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"


def compile_job(kernel, job):
    """Shared memory, registers and spilled bytes of one kernel on one architecture."""
    # As the JIT does for contiguous matrices whose sides 16 divides: strides of 1 are constants, the rest divisible.
    ones = [name for name in ("stride_ak", "stride_bn", "stride_cn") if name in kernel.arg_names]
    constants = job["constants"] | dict.fromkeys(ones, 1)
    types = {name: f"*{job['dtype']}" if name.endswith("_ptr") else "i32" for name in kernel.arg_names}
    descriptors = job.get("descriptors", {})
    types |= {name: f"tensordesc<{job['dtype']}{block}>" for name, block in descriptors.items()}
    signature = types | dict.fromkeys(constants, "constexpr")
    others = [name for name in kernel.arg_names if name not in constants and name not in descriptors]
    divisible = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in others}
    compiled = triton.compile(
        ASTSource(kernel, signature, constants, divisible),
        target=GPUTarget("cuda", job["capability"], 32),
        options={"num_warps": job["num_warps"], "num_stages": job["num_stages"]},
    )
    ptx = compiled.asm["ptx"]
    architecture = re.search(r"\.target (\w+)", ptx).group(1)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command = [PTXAS, "-v", f"-arch={architecture}", file.name, "-o", "/dev/null"]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return {
        "shared_bytes": compiled.metadata.shared,
        "registers": int(re.search(r"Used (\d+) registers", report).group(1)),
        "spilled_bytes": int(re.search(r"(\d+) bytes spill stores", report).group(1)),
        "tensor_cores": "mma" in ptx,
        "tensor_copies": "cp.async.bulk.tensor" in ptx,
    }


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("kernels", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print(json.dumps([compile_job(getattr(module, job["kernel"]), job) for job in json.load(sys.stdin)]))
