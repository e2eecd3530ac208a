"""The tiling lab's fastest kernels, compiled for a GPU that is not here, and the rules that choose between them.

The kernels that the lab itself asks for are in `test_tiling_lab.py`.
"""

import runpy
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.known_gpus import A100, H200, NO_GPU, SMALL, T4
from helpers.known_lab import compile_kernels

from mlsys.grading import use_device
from mlsys.measure.device import Device

pytestmark = pytest.mark.proof

LAB = Path(__file__).parents[2] / "labs/tiling"
SMALLEST = Device("gpu", "a GPU with less", (9, 0), multiprocessors=40, shared_bytes=48 * 1024)
SHAPES = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (4095, 4097, 4093), (8192, 8192, 512), (1, 1, 1)]
ITEMSIZE = {"fp32": 4, "fp16": 2, "bf16": 2}


@cache
def fast():
    """`fast.py`, which imports triton: as late as the labs' own cells do."""
    use_device()
    return runpy.run_path(str(LAB / "bench.py"))["fast_module"]()


@cache
def plans():
    return [
        *(("fp32", plan) for plan in fast().FLOAT32_PLANS),
        *((dtype, plan) for dtype in ("fp16", "bf16") for plan in fast().TENSOR_CORE_PLANS),
    ]


def job(dtype, plan):
    m, n, k = plan.tile_m, plan.tile_n, plan.tile_k
    made = {"dtype": dtype, "capability": 90, "num_warps": plan.num_warps}
    if dtype == "fp32":
        return made | {
            "kernel": "float32_kernel",
            "constants": {"GROUP_M": fast().GROUP_M, "STAGES": plan.num_stages},
            "descriptors": {"a": [k // 4, m, 4], "b": [k, n]},
            "float32_plan": asdict(plan),
        }
    constants = {"TILE_M": m, "TILE_N": n, "TILE_K": k, "GROUP_M": fast().GROUP_M}
    return made | {
        "kernel": "persistent_kernel" if plan.persistent else "tile_kernel",
        "constants": constants | ({"PARTS": plan.parts} if plan.persistent else {}),
        "num_stages": plan.num_stages,
        "descriptors": {"a": [m, k], "b": [k, n], "c": [m, n // plan.parts]},
    }


@pytest.fixture(scope="module")
def compiled():
    """What each plan needs on an H100 or H200."""
    return compile_kernels(LAB / "fast.py", [job(dtype, plan) for dtype, plan in plans()])


def test_every_plan_compiles_for_hopper_without_spills_and_takes_what_it_says(compiled):
    for (dtype, plan), needs in zip(plans(), compiled, strict=True):
        assert needs["spilled_bytes"] == 0, (dtype, plan)
        assert needs["shared_bytes"] <= plan.shared_bytes(ITEMSIZE[dtype]) <= H200.shared_bytes, (dtype, plan)
        assert needs["tensor_copies"], (dtype, plan)
        assert needs["tensor_cores"] == (dtype != "fp32"), (dtype, plan)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rule_chooses_what_fits_the_device(shape):
    for device in (H200, SMALL):
        assert fast().tensor_core_plan(*shape, device).shared_bytes(2) <= device.shared_bytes
        assert fast().float32_plan(*shape, device).shared_bytes(4) <= device.shared_bytes
    with pytest.raises(fast().CannotMultiply, match="49,152 bytes of shared memory"):
        fast().tensor_core_plan(*shape, SMALLEST)


def test_fewer_tiles_than_multiprocessors_make_the_rule_choose_smaller_ones():
    chosen = [fast().tensor_core_plan(side, side, side, H200) for side in (1024, 2048, 8192)]
    areas = [plan.tile_m * plan.tile_n for plan in chosen]
    assert areas == sorted(areas)
    assert fast().LARGE.tiles(1024, 1024) < H200.multiprocessors
    assert areas[0] < fast().LARGE.tile_m * fast().LARGE.tile_n


@pytest.mark.parametrize(
    ("device", "dtype", "shapes", "says"),
    [
        (NO_GPU, torch.float32, ((8, 8), (8, 8), (8, 8)), "no CUDA GPU found here"),
        (T4, torch.bfloat16, ((8, 8), (8, 8), (8, 8)), "Tesla T4 has no bfloat16"),
        (A100, torch.float16, ((8, 8), (8, 8), (8, 8)), "NVIDIA A100 has no TMA"),
        (H200, torch.float32, ((8, 4), (8, 8), (8, 8)), r"\(8, 4\) and \(8, 8\)"),
        (H200, torch.float32, ((8, 0), (0, 8), (8, 8)), "1 or more"),
        (H200, torch.float64, ((8, 8), (8, 8), (8, 8)), "torch.float64"),
        (H200, torch.float32, ((8, 8), (8, 8), (8, 8)), "one CUDA GPU"),
    ],
)
def test_what_the_kernels_cannot_take_is_refused_before_a_launch(device, dtype, shapes, says):
    a, b, out = (torch.empty(shape, dtype=dtype) for shape in shapes)
    with pytest.raises(fast().CannotMultiply, match=says):
        fast().check(a, b, out, device)


@pytest.mark.parametrize(
    ("x", "fits"),
    [
        (torch.empty(5, 8, dtype=torch.bfloat16), True),
        (torch.empty(5, 7, dtype=torch.bfloat16), False),
        (torch.empty(8, 5, dtype=torch.bfloat16).T, False),
        (torch.empty(5, 17, dtype=torch.bfloat16)[:, 1:], False),
        (torch.empty(5, 4), True),
    ],
)
def test_rows_that_do_not_start_at_16_bytes_are_copied_into_padded_ones(x, fits):
    x.fill_(3)
    made = fast().copied(x)
    assert (made is x) == fits
    assert torch.equal(made, x)
    assert made.stride(1) == 1
    assert made.stride(0) * made.element_size() % 16 == made.data_ptr() % 16 == 0
