"""Time what mlsys.compiler emits beside torch.compile on this GPU, and the cold compile of both.

    python benchmarks/compiler.py [--autotune]

Ratios are torch.compile's time over ours. "graph" replays both from CUDA graphs, so that kernels alone count; "call"
is a call from Python. Cold compiles run in new processes with empty caches, from the imports' end to the first result.
The rows are also written to `_build/bench/compiler.json`.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from mlsys.compiler import compile
from mlsys.measure.timing import time_pair

ROOT = Path(__file__).parents[1]
ROWS, COLUMNS, BATCHES = 8192, (4096, 8192), (32, 64, 128, 256)
ELEMENTS = (2**20, 2**24, 2**26)


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        """Call the function."""
        return self.function(*inputs)


CHAINS: dict[str, Callable[..., Tensor]] = {
    "relu(x y + z)": lambda x, y, z: functional.relu(x * y + z),
    "gelu(x) y": lambda x, y, z: functional.gelu(x) * y,
    "silu(x) y + z": lambda x, y, z: functional.silu(x) * y + z,
    "sigmoid, tanh, clamp": lambda x, y, z: (torch.sigmoid(x) * torch.tanh(y) + z).clamp(-1, 1),
    "eight steps": lambda x, y, z: torch.sqrt(torch.abs((x + y) * (x - z)) + 1.0) * torch.exp(-torch.abs(z)) / 2.0,
}


def workloads() -> Iterator[tuple[str, str, nn.Module, tuple[Tensor, ...]]]:
    """Yield group, name, module and inputs."""
    for dtype in (torch.float32, torch.bfloat16):
        kind = str(dtype).removeprefix("torch.")
        for name, function in CHAINS.items():
            for elements in ELEMENTS:
                inputs = tuple(torch.randn(elements, device="cuda", dtype=dtype) for _ in range(3))
                yield "chains", f"{name}, {elements}, {kind}", Function(function), inputs
        for columns in COLUMNS:
            x = torch.randn(ROWS, columns, device="cuda", dtype=dtype)
            norms = {"softmax": nn.Softmax(-1), "layernorm": nn.LayerNorm(columns), "rmsnorm": nn.RMSNorm(columns)}
            for name, module in norms.items():
                yield "rows", f"{name}, {columns}, {kind}", module.cuda().to(dtype), (x,)
    for batch in BATCHES:
        for dtype in (torch.float16, torch.float32):
            model, x = mlp(dtype), torch.randn(batch, 1024, device="cuda", dtype=dtype)
            yield "mlp", f"batch {batch}, {str(dtype).removeprefix('torch.')}", model, (x,)


def mlp(dtype: torch.dtype) -> nn.Module:
    """Return three layers of 1024 with ReLU between."""
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).cuda().to(dtype)


def measure(autotune: bool) -> list[dict[str, object]]:
    """Time every workload, after a look at its result."""
    rows: list[dict[str, object]] = []
    for group, name, module, inputs in workloads():
        torch._dynamo.reset()
        module.eval().requires_grad_(False)
        ours, theirs = compile(module, inputs, "cuda", autotune=autotune), torch.compile(module)
        with torch.no_grad():
            want = module(*inputs)
            torch.testing.assert_close(ours(*inputs)[0], want, rtol=2e-2, atol=2e-2 * want.abs().max().item())
            theirs(*inputs)
            graph = time_pair(partial(ours, *inputs), partial(theirs, *inputs), on_gpu=True, cold=True, graph=True)
            call = time_pair(partial(ours, *inputs), partial(theirs, *inputs), on_gpu=True)
        row = {"group": group, "name": name, "us": graph.candidate_s * 1e6, "graph": graph.ratio, "call": call.ratio}
        rows.append(row)
        print(
            f"{group:8}{name:42}{graph.candidate_s * 1e6:9.1f} us  graph {graph.ratio:.2f}  call {call.ratio:.2f}",
            flush=True,
        )
    return rows


COLD = {
    "ours": "compiled = mlsys.compiler.compile(model, [x], 'cuda'); compiled(x)",
    "torch.compile": "compiled = torch.compile(model); compiled(x)",
}
SETUP = """
import sys, time
sys.path[:0] = {path!r}
import torch, triton, torch._inductor.compile_fx, torch.export, mlsys.compiler
from compiler import mlp
x = torch.randn(64, 1024, device="cuda", dtype=torch.float16)
model = mlp(torch.float16).eval().requires_grad_(False)
model(x)
torch.cuda.synchronize()
start = time.perf_counter()
{work}
torch.cuda.synchronize()
print(time.perf_counter() - start)
"""


def cold_compile(work: str) -> float:
    """Return the seconds of compiling and first calling the MLP, in a process with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TRITON_CACHE_DIR": f"{folder}/triton", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        code = SETUP.format(path=[str(ROOT), str(Path(__file__).parent)], work=work)
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | caches, capture_output=True, text=True, check=True
        )
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure all, print the geometric means, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--autotune", action="store_true", help="time tiles instead of choosing them by rule")
    start = time.perf_counter()
    rows = measure(parser.parse_args().autotune)
    for group in dict.fromkeys(row["group"] for row in rows):
        for kind in ("graph", "call"):
            ratios = [float(str(row[kind])) for row in rows if row["group"] == group]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{group}, {kind}: geometric mean {mean:.2f}, least {min(ratios):.2f}, of {len(ratios)}")
    cold = {name: min(cold_compile(work) for _ in range(2)) for name, work in COLD.items()}
    print(f"cold compile of the MLP: {cold}; all in {time.perf_counter() - start:.0f} s")
    target = ROOT / "_build" / "bench" / "compiler.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"device": torch.cuda.get_device_name(), "rows": rows, "cold_s": cold}, indent=1))


if __name__ == "__main__":
    main()
