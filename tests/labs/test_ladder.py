"""The ladder of matrix products: every rung in Triton's interpreter, and compiled for a GPU that is not here."""

import dataclasses
import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.known_lab import compile_kernels

from mlsys import Hardware
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import Device, torch_sees_gpu
from mlsys.units import ureg

pytestmark = pytest.mark.proof

LAB = Path(__file__).parents[2] / "labs/tiling"
FOLDER = LAB / "ladder"
KERNELS = Path(__file__).parents[1] / "helpers/ladder_kernels.py"
RUNGS = [path.stem for path in sorted(FOLDER.glob("[0-9][0-9]_*.py"))]
OWN_KERNELS = RUNGS[:-1]  # the last calls that of fast.py
SHARED_BYTES = int(Hardware.get("h100-sxm").field("shared_memory_per_block").value.m_as("byte"))
H200 = Device("gpu", "NVIDIA H200", (9, 0), multiprocessors=132, shared_bytes=SHARED_BYTES)
TENSOR_CORES_FROM, COPY_ENGINE_FROM = "04_tensor_cores", "08_tensor_copies"

on_cpu = pytest.mark.skipif(torch_sees_gpu(), reason="the rungs would run on the GPU")


@cache
def bench():
    return runpy.run_path(str(LAB / "bench.py"))


@cache
def harness():
    return bench()["harness_module"]()


def test_there_is_a_rung_for_every_number_up_to_the_last():
    assert [rung[:2] for rung in RUNGS] == [f"{number:02}" for number in range(1, len(RUNGS) + 1)]
    assert harness().rungs() == RUNGS


@on_cpu
@pytest.mark.parametrize("rung", OWN_KERNELS)
def test_a_rung_computes_the_product_of_every_shape_that_it_claims(rung):
    module = harness().load(rung)
    for shape in harness().small_shapes(module):
        harness().check(module.matmul, shape)


@on_cpu
@pytest.mark.parametrize("tile", [(16, 16, 64), (64, 32, 16)])
def test_the_growing_tile_computes_the_product(tile):
    growing = harness().load("06_pipelined").matmul
    names = dict(zip(("TILE_M", "TILE_N", "TILE_K"), tile, strict=True))
    harness().check(lambda a, b, out: growing(a, b, out, names, 4), (40, 33, 70))


def test_a_wrong_product_is_told():
    def forgets_a_column(a, b, out):
        torch.matmul(a, b, out=out)
        out[:, -1] = 0

    with pytest.raises(ArithmeticError, match="relative error"):
        harness().check(forgets_a_column, (64, 48, 80))
    with pytest.raises(ArithmeticError, match="nan"):
        harness().check(lambda a, b, out: None, (64, 48, 80))


@on_cpu
def test_rows_that_the_copy_engine_cannot_take_are_refused_with_a_way_out():
    a, b, out = harness().matrices(16, 20, 16)
    with pytest.raises(harness().CannotMultiply, match=r"N = 20 and K = 16.*07_grouped\.py"):
        harness().load(COPY_ENGINE_FROM).matmul(a, b, out)


@on_cpu
def test_a_rung_runs_by_itself():
    command = [sys.executable, FOLDER / "04_tensor_cores.py"]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "in Triton's interpreter" in done.stdout
    assert done.stdout.count("right, relative error") == 2


@on_cpu
def test_the_benchmark_goes_on_after_a_rung_that_fails(monkeypatch):
    rows = bench()["ladder_rows"]
    module = rows.__globals__
    ladder = harness()
    monkeypatch.setattr(ladder, "SIDE", 32)
    monkeypatch.setattr(ladder, "small_shapes", lambda module: [(16, 8, 8)])
    monkeypatch.setitem(module, "FLOAT16_TILE_SIDES", (32,))
    monkeypatch.setitem(module, "FLOAT16_TILES", ((16, 16, 16, 1),))
    monkeypatch.setitem(module, "matrices", lambda shape, dtype: ladder.matrices(*shape))

    def product_row(ceilings, name, variant, shape, dtype, call, tensors):
        call()
        a, b, out = tensors
        module["check_product"](out, a @ b, a, b, variant)
        return name, variant, shape, dtype

    monkeypatch.setitem(module, "product_row", product_row)
    ceilings = Ceilings(H200, ureg.Quantity(1000, "GB/s"), {})
    found = []
    with pytest.raises(ExceptionGroup) as failed:
        found.extend(rows(ceilings))  # the last rung runs on no CPU
    assert "in rung 10_persistent" in failed.value.exceptions[0].__notes__
    found = list(bench()["tile_rows"](ceilings))
    assert found == [("tile sides", "16x16x16", (32, 32, 32), "fp16")]
    older = dataclasses.replace(ceilings, device=dataclasses.replace(H200, capability=(8, 0)))
    assert [variant for _, variant, *_ in rows(older)] == [ladder.title(rung) for rung in RUNGS[:7]]


def job(rung):
    module = harness().load(rung)
    kernel = next(name for name in vars(module) if name.endswith("_kernel"))
    tile = getattr(module, "TILE", None)
    constants = dict(tile) if tile else {"ELEMENTS": module.ELEMENTS}
    if hasattr(module, "GROUP_M"):
        constants["GROUP_M"] = module.GROUP_M
    made = {"kernel": kernel, "dtype": "fp16", "capability": 90, "constants": constants}
    if rung >= COPY_ENGINE_FROM:
        m, n, k = tile.values()
        made["descriptors"] = {"a": [m, k], "b": [k, n], "c": [m, n]}
    large = tile and tile["TILE_M"] >= 128
    return made | {"num_warps": 8 if large else 4, "num_stages": 3 if rung >= "06" else 1}


@pytest.fixture(scope="module")
def compiled():
    """What every rung needs on an H100 or H200, and then what the pipelined one needs with each tile."""
    tiles = [
        job("06_pipelined") | {"constants": {"TILE_M": m, "TILE_N": n, "TILE_K": k}, "num_warps": warps}
        for m, n, k, warps in bench()["FLOAT16_TILES"]
    ]
    found = compile_kernels(KERNELS, [*map(job, OWN_KERNELS), *tiles])
    return dict(zip(OWN_KERNELS, found, strict=False)), found[len(OWN_KERNELS) :]


@pytest.mark.parametrize("rung", OWN_KERNELS)
def test_a_rung_compiles_for_hopper_and_uses_what_it_is_about(rung, compiled):
    needs = compiled[0][rung]
    assert needs["spilled_bytes"] == 0
    assert needs["shared_bytes"] <= SHARED_BYTES
    assert needs["tensor_cores"] == (rung >= TENSOR_CORES_FROM)
    assert needs["tensor_copies"] == (rung >= COPY_ENGINE_FROM)


def test_tiles_grow_until_their_sums_no_longer_fit_the_registers(compiled):
    assert all(needs["shared_bytes"] <= SHARED_BYTES for needs in compiled[1])
    *fitting, too_large = [needs["spilled_bytes"] for needs in compiled[1]]
    assert fitting == [0] * len(fitting)
    assert too_large > 0
