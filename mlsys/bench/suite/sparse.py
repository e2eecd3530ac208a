"""Matrix products with sparse weights: two of four kept, single numbers kept, and whole blocks kept."""

from collections.abc import Iterator
from functools import partial

import torch

from mlsys.bench.suite.setting import Setting
from mlsys.grading.checks.assertions import assert_close
from mlsys.measure.gpu_ceilings import PRECISIONS
from mlsys.measure.records import Row

CHECK_ERROR = 0.01
"""Largest relative error of a sparse product: on an H200 the library's for CSR is wrong by 0.002 in fp16, a dense
product by 0.0002."""


def sparse_matmul(setting: Setting) -> Iterator[Row]:
    """Time products with 2:4 sparse weights beside the same dense ones, each queued from Python.

    The rate counts the FLOPs of the weights that are kept, half of a dense product's, so that the dense ceiling holds;
    the speed-up is the ratio to the peer "dense". Needs sparse tensor cores: Ampere (8.0) or later.

    PyTorch 2.11 prepares cuSPARSELt's plan anew in every call, which holds up the host for about 0.46 ms
    (github.com/pytorch/pytorch/pull/177866, which keeps the plan). At a side of 4,096 an H200 is done sooner, so that
    the product is slower than the dense one; at 8,192 it is faster. `sparse_matmul_in_graph` leaves the host out.
    """
    yield from _sparse_products(setting, graph=False)


def sparse_matmul_in_graph(setting: Setting) -> Iterator[Row]:
    """Time the products of `sparse_matmul` replayed from a graph.

    It comes last in the suite: if a library's call cannot be captured, no other measurement is lost with it.
    """
    yield from _sparse_products(setting, graph=True)


def _sparse_products(setting: Setting, graph: bool) -> Iterator[Row]:
    if (setting.ceilings.device.capability or (0, 0)) < (8, 0):
        return
    dtype = setting.half
    ceiling = setting.ceilings.product_roof(dtype).m_as("TFLOP/s")
    for side in setting.sizes.sparse_matmul:
        x, dense = (setting.randn(side, side, dtype=PRECISIONS[dtype]) for _ in range(2))
        dense = prune_2_of_4(dense)
        sparse = torch.sparse.to_sparse_semi_structured(dense)
        library = type(sparse).__name__.removeprefix("SparseSemiStructuredTensor")
        assert_close(sparse @ x, dense @ x, what=f"2:4 sparse product through {library}")
        how = {
            "call": lambda sparse=sparse, x=x: sparse @ x,
            "peers": {"dense": lambda dense=dense, x=x: dense @ x},
            "work": side**3 / 1e12,
            "ceiling": ceiling,
            "rate_unit": "TFLOP/s",
            "graph": graph,
        }
        variant = f"{library}, graph" if graph else library
        yield setting.row("2:4 sparse matmul", variant, (side,) * 3, dtype, **how)


def prune_2_of_4(weight: torch.Tensor) -> torch.Tensor:
    """Set the two smaller magnitudes of every four along a row of `weight` to zero."""
    groups = weight.reshape(-1, 4)
    smallest = groups.abs().topk(2, dim=1, largest=False).indices
    return groups.scatter(1, smallest, 0).view_as(weight)


def matmul_by_density(setting: Setting) -> Iterator[Row]:
    """Time products with ever fewer weights, single ones (CSR) and whole blocks (BSR), beside the dense product.

    All are replayed from graphs, so that what the host does to prepare a call is left out. A row has no rate: FLOP/s of
    the kept weights would make a slow product look fast beside a dense one, and FLOP/s of all weights would count work
    that nobody does.
    """
    side, block = setting.sizes.density_side, setting.sizes.density_block
    dtype = "fp16" if setting.on_gpu else "fp32"  # a CPU has no such products of 16 bits
    x, weight = (setting.randn(side, side, dtype=PRECISIONS[dtype]) for _ in range(2))
    shape, name = (side, side, side), "sparse matmul by density"
    yield setting.row(name, "dense", (*shape, side * side), dtype, call=partial(torch.matmul, weight, x), graph=True)
    for density in setting.sizes.densities:
        chosen = torch.rand(side, side, device=setting.device) < density
        blocks = torch.rand(side // block, side // block, device=setting.device) < density
        blocks = blocks.repeat_interleave(block, 0).repeat_interleave(block, 1)
        for variant, kept in (("CSR", chosen), (f"BSR {block}x{block}", blocks)):
            dense = weight * kept
            sparse = dense.to_sparse_csr() if variant == "CSR" else dense.to_sparse_bsr((block, block))
            expected = (dense @ x).float()
            error = float((sparse @ x - expected).float().norm() / expected.norm())
            if not error < CHECK_ERROR:
                raise ArithmeticError(f"the {variant} product at density {density} is wrong by {error:.1e} of itself")
            stored = sparse.values().numel()
            yield setting.row(name, variant, (*shape, stored), dtype, call=partial(torch.matmul, sparse, x), graph=True)
