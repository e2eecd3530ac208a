"""Compile what mlsys.compiler emits for a GPU that need not be here; prints what failed, as JSON.

Run in a process of its own, without TRITON_INTERPRET: `python compile_programs.py FIRST LAST`, seeds of drawn graphs,
or `python compile_programs.py networks` for the small networks.
"""

import json
import sys
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from helpers.drawn_graphs import draw
from mlsys.compiler.fuse import fuse
from mlsys.compiler.import_onnx import from_onnx
from mlsys.compiler.ir.graph import TRITON, Graph
from mlsys.compiler.lower import lower
from mlsys.compiler.memory import plan
from mlsys.compiler.optimize import optimize
from mlsys.compiler.run import load_source
from mlsys.compiler.schedule import schedule
from mlsys.hardware import Hardware

POINTERS = {"float32": "fp32", "float64": "fp64", "float16": "fp16", "bfloat16": "bf16", "int1": "i1"}
TARGET = GPUTarget("cuda", 90, 32)


def compile_program(graph: Graph) -> int:
    """Compile every kernel of a graph; returns their number."""
    chip = Hardware.get("h200")
    program = lower(plan(schedule(fuse(optimize(graph), chip), chip, "cuda")), "cuda")
    count = 0

    def launch(kernel: Any, grid: Any, *arguments: str, num_warps: int, num_stages: int, **tile: int) -> None:
        nonlocal count
        count += 1
        names = [name for name in kernel.arg_names if name not in tile]
        signature = {name: f"*{pointer(program.tensors[a].dtype)}" for name, a in zip(names, arguments, strict=True)}
        divisible = {(n,): [["tt.divisibility", 16]] for n in range(len(names))}
        made = ASTSource(kernel, signature | dict.fromkeys(tile, "constexpr"), tile, divisible)
        triton.compile(made, target=TARGET, options={"num_warps": num_warps, "num_stages": num_stages})

    load_source(program.text)["run"](launch, *program.arguments)
    return count


def pointer(dtype: str) -> str:
    """Return Triton's short name of a format."""
    name = TRITON[dtype].removeprefix("tl.")
    return POINTERS.get(name, name.replace("uint", "u").replace("int", "i"))


def graphs(first: str, *last: str) -> Any:
    """Yield the graphs that are asked for, by name."""
    if last:
        for seed in range(int(first), int(last[0])):
            yield str(seed), from_onnx(draw(seed)[0])
        return
    from compiler.test_models import SMALL

    from helpers.compiled_models import seeded
    from mlsys.compiler.import_torch import from_torch

    for name, make in SMALL.items():
        model, inputs = make()
        yield name, from_torch(seeded(model), inputs)
        if name == "gpt2 block":
            yield f"{name} in fp16", from_torch(model.half(), [value.half() for value in inputs])


def main() -> None:
    """Compile all, and print the number of kernels and what failed."""
    failed, count = {}, 0
    for name, graph in graphs(*sys.argv[1:]):
        try:
            count += compile_program(graph)
        except Exception as error:
            cause = error.__cause__ or error
            failed[name] = f"{type(error).__name__}: {str(cause)[-600:]}"
    json.dump({"kernels": count, "failed": failed}, sys.stdout)


if __name__ == "__main__":
    main()
