"""The precision lab's products of int4 weights on a GPU: `python -m pytest tests/labs/test_fast_int4_gpu.py -m gpu`."""

import runpy
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.on_gpu import needs_gpu

BENCH = Path(__file__).parents[2] / "labs/precision/bench.py"
CASES = [  # batch, n, k, and the plan, or that of the rule
    (1, 128, 256, None),
    (33, 8192, 1024, None),
    (200, 136, 4096, None),
    (256, 14336, 512, None),
    (3, 72, 256, (16, 64, 4, 3, 1)),
    (40, 72, 128, (64, 64, 4, 3, 1, True)),
    (150, 200, 1280, (64, 64, 4, 3, 3, True)),
    (150, 200, 1280, (128, 64, 4, 3, 4, True)),
    (300, 200, 1152, (256, 128, 8, 3, 2, True)),
    (16, 64, 256, (64, 64, 4, 3, 4, True)),  # more splits than groups
]


@cache
def fast():
    return runpy.run_path(str(BENCH))["fast_module"]()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_each_kernel_computes_the_product_and_gives_equal_bits_again(dtype, case):
    m, n, k, plan = case
    x = torch.randn(m, k, device="cuda").to(dtype)
    packed = fast().pack_int4(torch.randn(n, k, device="cuda").to(dtype))
    exact = x.double() @ packed.whole().double().T
    found = []
    for _ in range(3):
        out = torch.full((m, n), float("nan"), dtype=dtype, device="cuda")
        found.append(fast().int4_matmul(x, packed, out, plan and fast().Int4Plan(*plan)))
    assert (found[0].double() - exact).norm() / exact.norm() <= torch.finfo(dtype).eps
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
