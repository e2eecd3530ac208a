"""The fusion lab's fastest kernels on a GPU: `python -m pytest tests/labs/test_fast_rows_gpu.py -m gpu`."""

import runpy
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.exact_rows import OPS, exact
from helpers.on_gpu import needs_gpu

BENCH = Path(__file__).parents[2] / "labs/fusion/bench.py"
WIDTHS = (256, 257, 1000, 1536, 3000, 4096, 5000, 10000, 12288, 16384, 24576, 32768, 40000, 50001, 65536)


@cache
def fast():
    return runpy.run_path(str(BENCH))["fast_module"]()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(600)  # each width is compiled
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("op", OPS)
def test_every_width_and_count_of_rows_is_right(op, dtype):
    """More rows than programs at a time, one row, and a result that replaces its input."""
    least = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps  # the step between the smallest numbers
    for columns in WIDTHS:
        vectors = [torch.randn(columns, device="cuda").to(dtype) for _ in fast().VECTORS[op]]
        if op == "chain":
            vectors[1].square_()
        for rows, gap in ((1001, 0), (1, 0), (301, 8)):
            whole = torch.randn(rows, columns + gap, device="cuda").to(dtype)
            x = whole[:, :columns]
            right = exact(op, x, *vectors)
            scale = right.abs() + 1e-2 * right.abs().amax(1, keepdim=True)
            for out in (torch.full_like(whole, float("nan"))[:, :columns], x):
                assert getattr(fast(), op)(x, *vectors, out=out) is out
                error = (((out.double() - right).abs() - least).clamp(min=0) / scale).max().item()
                assert error <= max(2 * torch.finfo(dtype).eps, 1e-4), (columns, rows, gap, out is x)
