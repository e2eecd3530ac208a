"""Time what mlsys.compiler makes beside torch.compile on this GPU: one command, one process, at most nine minutes.

    python benchmarks/compiler.py

For each graph the answer is checked first, against torch in float64. Then ours and torch.compile's take turns (ABBA).
"call" is a call from Python, as a user makes it. "graph" replays many calls from a CUDA graph, so that kernels alone
count. A cold compile runs in a process of its own with empty caches, from `import torch` to the first result. Ratios
are torch.compile's time over ours. A graph that fails is told at the end, and the status is then 1.

The record is `labs/results/compiler/<device>.json`. What no time is left for is left out, and told too.
"""

import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mlsys.bench.row import row
from mlsys.bench.run import commit_of, record_of
from mlsys.compiler import compile
from mlsys.compiler.fuse import fuse
from mlsys.compiler.ir.expression import size
from mlsys.compiler.pipeline import seconds_of
from mlsys.compiler.schedule import candidates
from mlsys.hardware import Hardware
from mlsys.measure.device import gpu_device
from mlsys.measure.records import RESULTS_FOLDER, Row, save

ROOT = Path(__file__).parents[1]
PEER = "torch.compile"
ROWS, COLUMNS, BATCHES = 8192, (4096, 8192), (32, 64, 128, 256)
ELEMENTS = (2**16, 2**20, 2**24)
"""From an activation of MobileNetV2 for one image to one of GPT-2 for eight sequences."""
TORCH = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
TOLERANCE = {"fp32": 2e-5, "fp16": 4e-3, "bf16": 2e-2}
"""Largest difference from float64, relative to the largest result."""
MINUTES = 8.0
COLD_RUNS = 2
COLD_LIMIT_S, COLD_ROOM_S = 60, 17


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
NORMS: dict[str, Callable[[int], nn.Module]] = {
    "softmax": lambda columns: nn.Softmax(-1),
    "layer normalization": nn.LayerNorm,
    "RMSNorm": nn.RMSNorm,
}


@dataclass(frozen=True)
class Workload:
    """A graph to compile; `theirs` is what torch.compile gets."""

    group: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    module: nn.Module
    theirs: Callable[..., Tensor]
    inputs: tuple[Tensor, ...]

    def __str__(self) -> str:
        return f"{self.name} {' x '.join(map(str, self.shape))} {self.dtype}"


def mlp(dtype: str) -> nn.Module:
    """Return three layers of 1024 with ReLU between."""
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).cuda().to(TORCH[dtype])


def workloads() -> Iterator[Workload]:
    """Yield the graphs; those that take longest to measure come last."""

    def random(shape: tuple[int, ...], dtype: str) -> Tensor:
        return torch.randn(shape, device="cuda", dtype=TORCH[dtype])

    for dtype in ("fp32", "bf16"):
        for columns in COLUMNS:
            for name, norm in NORMS.items():
                module, shape = norm(columns).cuda().to(TORCH[dtype]), (ROWS, columns)
                yield Workload("rows", name, shape, dtype, module, module, (random(shape, dtype),))
    for dtype in ("fp16", "fp32"):
        for batch in BATCHES:
            module, shape = mlp(dtype), (batch, 1024)
            yield Workload("MLP", "MLP", shape, dtype, module, module, (random(shape, dtype),))
    for elements in reversed(ELEMENTS):
        for dtype in ("fp32", "bf16"):
            for name, function in CHAINS.items():
                inputs = tuple(random((elements,), dtype) for _ in range(3))
                yield Workload("chains", name, (elements,), dtype, Function(function), function, inputs)


def measured(work: Workload) -> Iterator[Row]:
    """Check and time one graph; raises AssertionError if the answer is wrong."""
    torch._dynamo.reset()
    module = work.module.eval().requires_grad_(False)
    ours, theirs = compile(module, work.inputs, "cuda"), torch.compile(work.theirs)
    with torch.no_grad():
        for own in (ours(*work.inputs)[0], ours(*work.inputs)[0]):  # the second is launched without Triton's dispatch
            check(work, own)
        theirs(*work.inputs)
        for variant in ("call", "graph"):
            yield row(
                "book", f"{work.group}: {work.name}", variant, work.shape, work.dtype, graph=variant == "graph",
                call=partial(ours, *work.inputs), peers={PEER: partial(theirs, *work.inputs)}, budget_s=0.1,
            )  # fmt: skip


CHAPTER = ROOT / "book" / "software" / "compilers.md"


def chapter_rows() -> Iterator[Row]:
    """Time the network that the chapter on compilers follows, also with stages that do the least that is right."""
    names: dict[str, Any] = {"nn": nn, "F": functional, "h200": Hardware.get("h200"), "fuse": fuse, "size": size}
    names |= {"replace": replace, "ceil": math.ceil}
    for listing in ("class Network", "def nothing_fused", "def small_tiles"):
        (text,) = re.findall(rf"```[^\n]*\n({listing}.*?)```", CHAPTER.read_text(encoding="utf-8"), re.DOTALL)
        exec(text, names)
    shape, dtype = (2048, 1024), "fp16"
    module, x = names["Network"](shape[1]).cuda().half(), torch.randn(shape, device="cuda", dtype=torch.float16)
    work = Workload("chapter", "network", shape, dtype, module.eval().requires_grad_(False), module, (x,))
    theirs = torch.compile(module)
    ways: dict[str, Any] = {"": {}, ", nothing fused": {"fuse": names["nothing_fused"]}}
    ways[", small tiles"] = {"schedule": names["small_tiles"]}
    with torch.no_grad():
        for way, stages in ways.items():
            ours = compile(module, [x], "cuda", stages=stages)
            for own in (ours(x)[0], ours(x)[0]):
                check(work, own)
            for kind in ("call", "graph"):
                peers = {PEER: partial(theirs, x), "eager": partial(module, x)}
                yield row(
                    "book", "chapter: network", kind + way, shape, dtype, graph=kind == "graph", call=partial(ours, x),
                    peers=peers, budget_s=0.1,
                )  # fmt: skip


def check(work: Workload, got: Tensor) -> None:
    """Hold a result to float64."""
    want = deepcopy(work.module).double()(*(value.double() for value in work.inputs))
    error = ((got.double() - want).abs().max() / want.abs().max()).item()
    assert error <= TOLERANCE[work.dtype], f"off by {error:.1e} of the largest result"


COLD = {
    "ours": """from mlsys.compiler import compile
imported = time.perf_counter()
compiled = compile(model, [x], 'cuda')
print(f"imports {imported - start:.1f} s, compile {time.perf_counter() - imported:.1f} s, then the first call")
compiled(x)""",
    PEER: "torch.compile(model)(x)",
}
MLP_TEXT = "nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(1024, 1024), nn.ReLU())))"
NETWORKS = {"MLP": (MLP_TEXT, (64, 1024)), "GPT-2 block": ("GptBlock()", (1, 128, 768))}
SETUP = """
import sys, time
sys.path[:0] = {path!r}
import torch
from torch import nn
from helpers.compiled_models import GptBlock
model, x = {model}.cuda().half().eval().requires_grad_(False), torch.ones({shape}, device="cuda", dtype=torch.float16)
model(x)
torch.cuda.synchronize()
start = time.perf_counter()
{work}
torch.cuda.synchronize()
print(time.perf_counter() - start)
"""


def cold_seconds(model: str, shape: tuple[int, ...], work: str) -> float:
    """Return the seconds of importing a compiler, compiling and a first call, in a process with empty caches."""
    code = SETUP.format(path=[str(ROOT), str(ROOT / "tests")], model=model, shape=shape, work=work)
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TRITON_CACHE_DIR": f"{folder}/triton", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | caches, capture_output=True, text=True, timeout=COLD_LIMIT_S
        )
    if done.returncode:
        raise RuntimeError(f"a cold compile failed: {done.stderr.strip()[-400:]}")
    print("   ", done.stdout.strip().replace("\n", ": "), flush=True)
    return float(done.stdout.split()[-1])


def cold_rows(name: str) -> Iterator[Row]:
    """Compile a network cold, ours and torch.compile's in turn."""
    model, shape = NETWORKS[name]
    pairs = []
    for run in range(COLD_RUNS):
        order = list(COLD) if run % 2 == 0 else list(COLD)[::-1]
        pairs.append({who: cold_seconds(model, shape, COLD[who]) for who in order})
    ours, theirs = (sorted(pair[who] for pair in pairs) for who in COLD)
    ratios = sorted(pair[PEER] / pair["ours"] for pair in pairs)
    median = statistics.median
    yield Row(
        "book", "cold compile", name, shape, "fp16", median(ours), ours[0], ours[-1], None, None, None,
        {PEER: median(ratios)}, {PEER: (ratios[0], ratios[-1])}, {PEER: median(theirs)},
    )  # fmt: skip


def tell_candidates(work: Workload) -> Iterator[Row]:
    """Time every schedule of a graph's first kernel, for a look at the rule that chooses."""
    from mlsys.compiler.import_torch import from_torch
    from mlsys.compiler.optimize import optimize

    chip = Hardware.get("h200")
    program = fuse(optimize(from_torch(work.module.eval().requires_grad_(False), work.inputs)), chip)
    found = []
    for kernel in candidates(program.kernels[0], chip, "cuda"):
        tile = "x".join(map(str, kernel.tile.values()))
        found.append(f"{tile}w{kernel.warps}: {seconds_of(kernel, program, 'cuda') * 1e6:.1f}")
    print(f"{work!s:42}", ", ".join(found), end="")
    yield from ()


def line(found: Row) -> str:
    """Return a row as a part of a line of the table."""
    return (
        f"  {found.variant:5}{found.median_s * 1e6:9.1f} {found.reference_s[PEER] * 1e6:9.1f}{found.peers[PEER]:6.2f}"
    )


def summary(rows: list[Row]) -> Iterator[str]:
    """Yield the geometric mean and the least ratio of each group, beside what is aimed at."""
    aims = {"chains": (1.3, 0), "rows": (1.3, 1.0), "MLP": (1.0, 0)}
    for group, (mean_aim, least_aim) in aims.items():
        for variant in ("call", "graph"):
            ratios = [r.peers[PEER] for r in rows if r.name.startswith(f"{group}:") and r.variant == variant]
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                aim = f"aims {mean_aim} and {least_aim}" if variant == "call" else ""
                yield f"{group}, {variant}: geometric mean {mean:.2f}, least {min(ratios):.2f}, of {len(ratios)}  {aim}"


def main() -> int:
    """Measure, print, and write the record; the status is 1 if a graph failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commit", help="what is measured, where there is no git")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="until nothing new is begun")
    parser.add_argument("--out", type=Path, default=ROOT / RESULTS_FOLDER / "compiler")
    parser.add_argument("--candidates", action="store_true", help="also time schedules that were not chosen")
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    rows, failed, late = list[Row](), list[str](), list[str]()

    def attempt(name: str, work: Callable[[], Iterator[Row]], seconds: float = 10) -> None:
        if time.monotonic() + seconds > end:
            late.append(name)
            return
        try:
            found = list(work())
            rows.extend(found)
            print(f"{name:42}" * bool(found), *map(line, found), flush=True)
        except Exception as error:  # the other graphs are measured all the same
            traceback.print_exc(file=sys.stdout)
            failed.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")

    print(f"microseconds of ours and of {PEER}, and their ratio")
    attempt("the network of the chapter", chapter_rows)
    for group in ("rows", "cold", "MLP", "chains"):
        for name in NETWORKS if group == "cold" else ():
            attempt(f"cold compile of {name}", partial(cold_rows, name), COLD_RUNS * 2 * COLD_ROOM_S)
        for work in (work for work in workloads() if work.group == group):
            attempt(str(work), partial(measured, work))
        if options.candidates and group in ("rows", "MLP"):
            print("microseconds of kernels by tile and warps, the rule's choice first")
            for work in (work for work in workloads() if work.group == group):
                attempt(str(work), partial(tell_candidates, work))
    commit = options.commit or commit_of(ROOT)
    print(f"record: {save(record_of(gpu_device(), commit, rows), options.out)}")
    print("\n".join(f"cold compile,{line(found)}" for found in rows if found.name == "cold compile"))
    print("\n".join([*summary(rows), *(f"FAILED {text}" for text in failed)]))
    if late:
        print(f"no time left for {len(late)}: {'; '.join(late[:8])}")
    print(f"{options.minutes * 60 - (end - time.monotonic()):.0f} s in all")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
