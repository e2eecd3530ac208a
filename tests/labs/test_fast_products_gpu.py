"""The tiling lab's fastest products on a GPU: `python -m pytest tests/labs/test_fast_products_gpu.py -m gpu`."""

import runpy
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.on_gpu import needs_gpu

BENCH = Path(__file__).parents[2] / "labs/tiling/bench.py"
SHAPES = [(1, 1, 1), (1, 300, 31), (129, 257, 33), (640, 1000, 1003), (2100, 2100, 70)]


@cache
def fast():
    return runpy.run_path(str(BENCH))["fast_module"]()


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(600)  # each plan is compiled for several kinds of strides
@pytest.mark.parametrize("how", ["plain", "transposed", "sliced"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_plan_computes_the_product_in_every_layout(dtype, shape, how):
    m, n, k = shape
    a, b, out = (matrix(sides, how).to(dtype) for sides in ((m, k), (k, n), (m, n)))
    exact = a.double() @ b.double()
    plans = fast().FLOAT32_PLANS if dtype == torch.float32 else fast().TENSOR_CORE_PLANS
    tolerance = 1e-5 if dtype == torch.float32 else torch.finfo(dtype).eps
    for plan in plans:
        out.fill_(float("nan"))
        assert fast().matmul(a, b, out, plan) is out
        error = (out.double() - exact).norm() / exact.norm()
        assert error <= tolerance, (plan, error)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(("dtype", "k"), [(torch.float32, 36), (torch.bfloat16, 33)])
def test_what_lies_beside_a_matrix_does_not_count(dtype, k):
    wide = torch.full((64, 40), float("nan"), dtype=dtype, device="cuda")
    wide[:, :k] = torch.randn(64, k, device="cuda")
    a, b = wide[:, :k], torch.randn(k, 64, device="cuda").to(dtype)
    assert (fast().in_fours if dtype == torch.float32 else fast().copied)(a) is a
    out = fast().matmul(a, b, torch.empty(64, 64, dtype=dtype, device="cuda"))
    torch.testing.assert_close(out, (a.double() @ b.double()).to(dtype))


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_repeated_launch_multiplies_what_the_matrices_hold_then(dtype):
    a, b, out = (torch.zeros(256, 256, dtype=dtype, device="cuda") for _ in range(3))
    fast().matmul(a, b, out)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        fast().matmul(a, b, out)
    for repeat in (lambda: fast().matmul(a, b, out), graph.replay):
        a.copy_(torch.randn(256, 256))
        b.copy_(torch.randn(256, 256))
        out.fill_(float("nan"))
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            repeat()
            found = out.clone()
        torch.cuda.current_stream().wait_stream(stream)
        rtol = 1e-5 if dtype == torch.float32 else 1.6e-2  # sums of 256 products, about 16 in size
        torch.testing.assert_close(found, (a.double() @ b.double()).to(dtype), rtol=rtol, atol=1e-4)


@pytest.mark.gpu
@needs_gpu
def test_matrices_that_are_copied_are_copied_at_every_call():
    a, b = (torch.randn(65, 65, device="cuda").to(torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    for _ in range(3):
        a.mul_(2)
        torch.testing.assert_close(fast().matmul(a, b, out), (a.double() @ b.double()).to(torch.bfloat16))


def matrix(sides, how):
    """Random, in memory as it is, column after column, or as a piece of a larger one."""
    rows, columns = sides
    if how == "transposed":
        return torch.randn(columns, rows, device="cuda").T
    if how == "sliced":
        return torch.randn(rows + 3, columns + 5, device="cuda")[1:-2, 3:-2]
    return torch.randn(rows, columns, device="cuda")
