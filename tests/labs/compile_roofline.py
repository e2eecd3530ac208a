"""Compile the kernels of the roofline lab for GPUs that need not be here, and print what each needs as JSON.

Run in a process of its own, without TRITON_INTERPRET:

    python compile_roofline.py MODULE.py < jobs.json

where each job is {"kernel", "types", "constants", "capability", "num_warps"}; `types` gives a type per argument.
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
    """Shared memory, registers, spilled bytes and multiply-adds of one kernel on one architecture."""
    constants = job["constants"]
    signature = job["types"] | dict.fromkeys(constants, "constexpr")
    # As the JIT does for aligned tensors whose sizes 16 divides; the count of steps may be any number.
    divisible = {
        (i,): [["tt.divisibility", 16]]
        for i, name in enumerate(kernel.arg_names)
        if name not in constants and name != "steps"
    }
    compiled = triton.compile(
        ASTSource(kernel, signature, constants, divisible),
        target=GPUTarget("cuda", job["capability"], 32),
        options={"num_warps": job["num_warps"]},
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
        "multiply_adds": len(re.findall(r"\bfma\.rn\.f32\b", ptx)),
        "wide_loads": len(re.findall(r"\bld\.global\.v4\.b32\b", ptx)),
    }


if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("kernels", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print(json.dumps([compile_job(getattr(module, job["kernel"]), job) for job in json.load(sys.stdin)]))
