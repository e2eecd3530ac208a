"""What single stages promise, checked on what they give."""

import pytest
import torch
from torch import nn

from mlsys.compiler.fuse import fuse
from mlsys.compiler.import_torch import from_torch
from mlsys.compiler.ir.graph import TORCH
from mlsys.compiler.optimize import optimize
from mlsys.compiler.schedule import schedule
from mlsys.hardware import Hardware

CHIPS = ["t4", "a100-80gb-sxm", "h200"]


def scheduled(model, x, chip):
    accelerator = Hardware.get(chip)
    return schedule(fuse(optimize(from_torch(model, [x])), accelerator), accelerator, "cuda").kernels


@pytest.mark.parametrize("chip", CHIPS)
def test_tiles_of_products_fit_the_shared_memory_and_cover_the_result(chip):
    shared = Hardware.get(chip).field("shared_memory_per_block").value.m_as("byte")
    for rows, columns, depth in ((1024, 4096, 1024), (32, 1024, 64), (100, 7, 33)):
        model, x = nn.Linear(depth, columns, dtype=torch.float16), torch.zeros(rows, depth, dtype=torch.float16)
        (kernel,) = scheduled(model, x, chip)
        tile = kernel.tile
        itemsize = TORCH["fp16"].itemsize
        loaded = (tile["TILE_M"] + tile["TILE_N"]) * tile["TILE_K"] * itemsize * kernel.stages
        assert loaded <= shared
        assert tile["TILE_M"] * tile["TILE_N"] * kernel.grid[0] >= rows * columns


def test_a_small_batch_gets_small_tiles_so_that_more_multiprocessors_work():
    small, large = (
        scheduled(nn.Linear(1024, 1024).half(), torch.zeros(rows, 1024, dtype=torch.float16), "h200")[0]
        for rows in (32, 8192)
    )
    assert small.tile["TILE_N"] < large.tile["TILE_N"]
    assert small.grid[0] > 60


def test_a_mean_of_everything_is_not_computed_again_for_every_element():
    class Centered(nn.Module):
        def forward(self, x):
            return x - x.mean()

    chip = Hardware.get("h200")
    fused = fuse(optimize(from_torch(Centered(), [torch.zeros(4096, 4096)])), chip)
    assert len(fused.kernels) == 2
    small = fuse(optimize(from_torch(Centered(), [torch.zeros(8, 8)])), chip)
    assert len(small.kernels) == 1


def test_a_costly_value_that_many_windows_read_is_stored():
    class Pooled(nn.Module):
        def forward(self, x):
            for _ in range(12):
                x = torch.tanh(torch.erf(x))
            return nn.functional.max_pool2d(x, 7, 1)

    chip = Hardware.get("h200")
    assert len(fuse(optimize(from_torch(Pooled(), [torch.zeros(8, 8, 256, 256)])), chip).kernels) == 2
