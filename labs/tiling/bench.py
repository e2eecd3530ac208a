"""What the tiling lab measures for the record.

The tile sizes in float32 and the challenge's kernel in float16, both the lab's own; the ladder of kernels in float16,
`ladder/`, and one of them with growing tiles; and the fastest products, `fast.py`, in float32 and bf16. All are
replayed from CUDA graphs, as in the lab's races. Two more rows are for what that leaves out, the host's part of a call:
"fast matmul, launched by the host" has the GPU's time where each call is launched when the host comes to it, and "fast
matmul, host" the host's own time for a call, on matrices so small that the GPU never keeps it waiting.
"""

import importlib
import importlib.util
import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from mlsys.bench.lab import lab_module
from mlsys.bench.row import row
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.records import Row

LADDER = (  # tile_m, tile_n, tile_k, warps
    (16, 16, 16, 1),
    (32, 32, 32, 4),
    (64, 64, 32, 4),
    (128, 64, 16, 8),
)
SIDES = (2048, 4096)
TENSOR_CORE_SHAPES = (
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 8192, 512),
    (4096, 14336, 4096),
    (4095, 4097, 4093),  # no row starts where a descriptor wants it
)
FLOAT16_TILES = (  # tile_m, tile_n, tile_k, warps: the same kernel each time
    (16, 16, 64, 1),
    (32, 32, 64, 2),
    (64, 64, 64, 4),
    (128, 128, 64, 8),
    (128, 256, 64, 8),
    (256, 256, 64, 8),  # its sums need more registers than there are
)
LAUNCHED_SIDES = (1024, 2048)
HOST_SIDE = 128
FLOAT16_TILE_SIDES = (2048, 4096, 8192)
DRAWN = 3
"""Shapes that are drawn anew in every run, so that no plan can be made for them."""


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time the lab's kernels and the fastest ones beside cuBLAS; tf32 stays off, for float32 means float32 here."""
    torch.backends.cuda.matmul.allow_tf32 = False
    for side in SIDES:
        for tile_m, tile_n, tile_k, warps in LADDER:
            constants = {"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k, "GROUP_M": 8, "num_warps": warps}
            yield lab_row(names, ceilings, "tiling ladder", side, "fp32", constants)
    if ceilings.device.has_triton_tensor_cores:
        for side in SIDES:
            constants = names["tensor_config"]((side, side, side), "fp16")
            yield lab_row(names, ceilings, "tensor-core matmul", side, "fp16", constants)
    fast = fast_module()
    if (ceilings.device.capability or (0, 0)) >= fast.NEEDS:
        for side in SIDES:
            yield fast_row(fast, ceilings, (side, side, side), "fp32")
        draw = random.SystemRandom()
        drawn = [tuple(draw.randint(512, 6000) for _ in "mnk") for _ in range(DRAWN)]
        for shape in (*TENSOR_CORE_SHAPES, *drawn):
            yield fast_row(fast, ceilings, shape, "bf16")
        for side in LAUNCHED_SIDES:
            yield fast_row(fast, ceilings, (side, side, side), "bf16", graph=False)
        for dtype in ("fp32", "bf16"):
            yield host_row(fast, dtype)
    if ceilings.device.has_triton_tensor_cores:
        yield from ladder_rows(ceilings)
        yield from tile_rows(ceilings)


def fast_module() -> ModuleType:
    """`fast.py` beside this file."""
    return lab_module(Path(__file__).with_name("fast.py"))


def ladder_rows(ceilings: Ceilings) -> Iterator[Row]:
    """Time every rung of the ladder that the device can run; one that fails ends alone, and is raised at the end."""
    ladder = harness_module()
    shape = (ladder.SIDE,) * 3
    failed = []
    for rung in ladder.rungs():
        try:
            module = ladder.load(rung)
            if (ceilings.device.capability or (0, 0)) < getattr(module, "NEEDS", (0, 0)):
                continue
            for odd in ladder.small_shapes(module):
                ladder.check(module.matmul, odd)
            a, b, out = matrices(shape, "fp16")
            call = partial(module.matmul, a, b, out)
            yield product_row(ceilings, "matmul ladder", ladder.title(rung), shape, "fp16", call, (a, b, out))
        except Exception as error:
            error.add_note(f"in rung {rung}")
            failed.append(error)
    if failed:
        raise ExceptionGroup("rungs of the ladder failed", failed)


def tile_rows(ceilings: Ceilings) -> Iterator[Row]:
    """Time the pipelined rung with growing tiles, on matrices that the L2 holds and that it does not hold."""
    growing = harness_module().load("06_pipelined").matmul
    for side in FLOAT16_TILE_SIDES:
        a, b, out = matrices((side, side, side), "fp16")
        for tile_m, tile_n, tile_k, warps in FLOAT16_TILES:
            tile = {"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k}
            call = partial(growing, a, b, out, tile, warps)
            variant = f"{tile_m}x{tile_n}x{tile_k}"
            yield product_row(ceilings, "tile sides", variant, (side, side, side), "fp16", call, (a, b, out))


def harness_module() -> ModuleType:
    """What the rungs of the ladder share."""
    folder = str(Path(__file__).with_name("ladder"))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("harness")


def lab_row(
    names: dict[str, Any], ceilings: Ceilings, name: str, side: int, dtype: str, constants: dict[str, int]
) -> Row:
    """One configuration of the lab's kernel on square matrices."""
    a, b, out = matrices((side, side, side), dtype)
    launch, kernel = ("launch_matmul", "matmul_kernel") if dtype == "fp32" else ("launch_tensor", "tensor_kernel")
    call = partial(names[launch], names[kernel], constants, out, a, b)
    variant = f"{constants['TILE_M']}x{constants['TILE_N']}x{constants['TILE_K']}"
    return product_row(ceilings, name, variant, (side, side, side), dtype, call, (a, b, out))


def fast_row(fast: ModuleType, ceilings: Ceilings, shape: tuple[int, ...], dtype: str, *, graph: bool = True) -> Row:
    """The course's fastest product of one shape, by the plan that its rule chooses."""
    a, b, out = matrices(shape, dtype)
    rule = fast.float32_plan if dtype == "fp32" else fast.tensor_core_plan
    plan = rule(*shape, ceilings.device)
    call = partial(fast.matmul, a, b, out)
    variant = f"{plan.tile_m}x{plan.tile_n}x{plan.tile_k}"
    name = "fast matmul" if graph else "fast matmul, launched by the host"
    return product_row(ceilings, name, variant, shape, dtype, call, (a, b, out), graph=graph)


def host_row(fast: ModuleType, dtype: str) -> Row:
    """The host's time for a call of the fastest product, and of torch's, into a given matrix."""
    shape = (HOST_SIDE,) * 3
    a, b, out = matrices(shape, dtype)
    call, peer = partial(fast.matmul, a, b, out), partial(torch.matmul, a, b, out=torch.empty_like(out))
    return row(
        "lab", "fast matmul, host", "launch alone", shape, dtype, call=call, peers={"cuBLAS": peer}, on_gpu=False
    )


def matrices(shape: tuple[int, ...], dtype: str) -> list[torch.Tensor]:
    """Random normal A and B, and room for C."""
    m, n, k = shape
    torch_dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[dtype]
    return [torch.randn(sides, device="cuda").to(torch_dtype) for sides in ((m, k), (k, n), (m, n))]


def product_row(
    ceilings: Ceilings,
    name: str,
    variant: str,
    shape: tuple[int, ...],
    dtype: str,
    call: Any,
    tensors: tuple[torch.Tensor, ...],
    *,
    graph: bool = True,
) -> Row:
    """Time a product beside the library's, after a comparison of some rows with float64."""
    a, b, out = tensors
    library = torch.empty_like(out)
    cublas = partial(torch.matmul, a, b, out=library)
    out.fill_(float("nan"))
    call()
    cublas()
    check_product(out, library, a, b, f"{name} {variant} {shape} {dtype}")
    m, n, k = shape
    return row(
        "lab",
        name,
        variant,
        shape,
        dtype,
        call=call,
        peers={"cuBLAS": cublas},
        work=2 * m * n * k / 1e12,
        ceiling=ceilings.product_roof(dtype).m_as("TFLOP/s"),
        rate_unit="TFLOP/s",
        graph=graph,
    )


def check_product(out: torch.Tensor, library: torch.Tensor, a: torch.Tensor, b: torch.Tensor, what: str) -> None:
    """Raise `ArithmeticError` if `out` has a hole, or is further from float64 than twice the library's product."""
    picked = torch.randperm(a.shape[0], device=a.device)[:64]
    exact = a[picked].double() @ b.double()
    ours, theirs = (float((x[picked].double() - exact).norm() / exact.norm()) for x in (out, library))
    far = float((out.float() - library.float()).norm() / library.float().norm())
    if not (ours <= 2 * theirs + 1e-6 and far <= 4 * theirs + 1e-5):
        raise ArithmeticError(f"{what}: error {ours:.1e} where cuBLAS has {theirs:.1e}; the two differ by {far:.1e}")
