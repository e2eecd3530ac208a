"""What the roofline lab measures for the record: its vector add, the sweep of its kernel, and the six operations.

All are held against the device's independent roofs: the triad's bandwidth and the chain of multiply-adds.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from mlsys.bench.row import row
from mlsys.bench.suite.setting import compiled
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.records import Row

ADDED = 2**28


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time the lab's kernels and operations; tf32 stays off, for their products are in full float32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    yield vector_add(names, ceilings)
    yield from sweep(names, ceilings)
    yield from six_operations(names, ceilings)


def vector_add(names: dict[str, Any], ceilings: Ceilings) -> Row:
    """The lab's example kernel on long vectors, checked against torch before it is timed."""
    a, b = (torch.randn(ADDED, device=names["DEVICE"]) for _ in range(2))
    out, library = torch.empty_like(a), torch.empty_like(a)
    grid = (ADDED // 1024,)

    def kernel() -> None:
        names["add_kernel"][grid](a, b, out, ADDED, TILE=1024, num_warps=8)  # 4 numbers per thread: one 16-byte load

    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    kernel()
    names["grading"].assert_close(out, a + b, what="add_kernel")
    peers = {"torch": partial(torch.add, a, b, out=library)} | compiled(add, a, b)
    rate = {"work": 3 * a.nbytes / 1e9, "ceiling": ceilings.memory_roof.m_as("GB/s"), "rate_unit": "GB/s"}
    return row("lab", "roofline add", "Triton", (ADDED,), "fp32", call=kernel, peers=peers, **rate, **where(names))


def sweep(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """The kernel with a dial from memory-bound to compute-bound; no library offers this work, so it has no peers."""
    height, width = names["RACES"][0][:2]
    x = torch.rand(height, width, device=names["DEVICE"])
    sums = torch.empty(height, device=names["DEVICE"])
    slope, flat = ceilings.memory_roof.m_as("TB/s"), ceilings.product_roof("fp32").m_as("TFLOP/s")
    for steps in (2**power for power in range(10)):
        shape = (height, width, steps)
        coefficients = torch.randn(steps, device=names["DEVICE"])
        call = partial(
            names["launch_poly"], names["poly_kernel"], names["config"](shape, "fp32"), sums, x, coefficients
        )
        call()
        names["grading"].assert_close(sums, names["polynomial_sums"](x, coefficients), what=f"poly_kernel, K={steps}")
        flops, moved = names["chain_cost"](*shape, 4)
        roof = min(flat, slope * flops / moved)
        rate = {"work": flops / 1e12, "ceiling": roof, "rate_unit": "TFLOP/s"}
        yield row("lab", "roofline sweep", f"K={steps}", shape, "fp32", call=call, **rate, **where(names))


def six_operations(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """The six operations as the lab runs them, each in turn with a fused or another form where there is one."""
    cases = names["six_operations"]()
    x = torch.randn(names["ELEMENTS"] // names["WIDTH"], names["WIDTH"], device=names["DEVICE"])
    scale, shift = torch.randn(2, names["WIDTH"], device=names["DEVICE"])
    bags = names["BAGS"], names["BAG_SIZE"], names["DIM"]
    elements, matrix = names["ELEMENTS"], tuple(x.shape)
    costs: dict[str, tuple[tuple[int, ...], tuple[int, int]]] = {
        "add": ((elements,), names["add_cost"](elements, 4)),
        "softmax": (matrix, names["softmax_cost"](*matrix, 4)),
        "layernorm": (matrix, names["layernorm_cost"](*matrix, 4)),
        "embedding": (bags, names["embedding_cost"](*bags, 4)),
    } | {name: ((side,) * 3, names["matmul_cost"](side, side, side, 4)) for name, side in names["SIDES"].items()}
    peers = {
        "softmax": {"torch.softmax": partial(torch.softmax, x, 1)},
        "layernorm": compiled(functional.layer_norm, x, (names["WIDTH"],), scale, shift),
    }
    slope, flat = ceilings.memory_roof.m_as("byte/s"), ceilings.product_roof("fp32").m_as("flop/s")
    for name, (shape, (flops, moved)) in costs.items():
        bound, _ = names["place"](flops, moved, slope, flat)
        rate = {"work": moved / 1e9, "ceiling": slope / 1e9, "rate_unit": "GB/s"}
        if bound == "compute":
            rate = {"work": flops / 1e12, "ceiling": flat / 1e12, "rate_unit": "TFLOP/s"}
        for run, variant in (("run", name), ("in_order", f"{name} in order")):
            if run in cases[name]:
                how = {"call": cases[name][run], "peers": peers.get(name), **rate}
                yield row("lab", "roofline operations", variant, shape, "fp32", **how, **where(names))


def where(names: dict[str, Any]) -> dict[str, Any]:
    """The clock of the lab's device: a GPU, except in a test of this file."""
    return {"on_gpu": names["DEVICE"] == "cuda"}
