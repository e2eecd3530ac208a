"""Matrix products: by number format, with 2:4 sparse weights, and as a layer of growing batch."""

from collections.abc import Iterator

import torch

from mlsys import ops
from mlsys.bench.suite.setting import Setting
from mlsys.grading.checks.assertions import assert_close
from mlsys.measure.gpu_ceilings import PRECISIONS, precisions_of, product
from mlsys.measure.records import Row
from mlsys.measure.timing import rotate

LIBRARY = "vendor library"


def matmul_by_dtype(setting: Setting) -> Iterator[Row]:
    """Time the vendor library's square products in every format, held against products that stay on the chip."""
    for precision in precisions_of(setting.ceilings.device):
        ceiling = setting.ceilings.product_roof(precision).m_as("TFLOP/s")
        for side in setting.sizes.matmul:
            call = product(precision, side, side, side, setting.device)
            how = {"call": call, "work": 2 * side**3 / 1e12, "ceiling": ceiling, "rate_unit": "TFLOP/s"}
            yield setting.row("matmul by dtype", LIBRARY, (side,) * 3, precision, graph=True, **how)


def sparse_matmul(setting: Setting) -> Iterator[Row]:
    """Time products with 2:4 sparse weights beside the same dense ones, each queued from Python.

    The rate counts the FLOPs of the weights that are kept, half of a dense product's, so that the dense ceiling holds;
    the speed-up is the ratio to the peer "dense". Needs sparse tensor cores: Ampere (8.0) or later.

    PyTorch 2.11 prepares cuSPARSELt's plan anew in every call, which holds up the host for about 0.46 ms
    (github.com/pytorch/pytorch/pull/177866, which keeps the plan). At a side of 4,096 the GPU is done sooner, and on an
    H200 the product has 0.29 of the dense one's speed; at 8,192 the GPU is the slower of the two, and the product has
    1.09 of it. `sparse_matmul_in_graph` leaves the host out.
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


def dense_layer_by_batch(setting: Setting) -> Iterator[Row]:
    """Time a dense layer in fp16 whose weights come from memory each time, from batch 1 on.

    The ceiling is the measured roofline's: the lower of the products' roof and read bandwidth times intensity.
    """
    side = setting.sizes.dense_side
    sets = max(2, 4 * setting.ceilings.device.cache_bytes // (2 * side * side))
    weights = [(setting.randn(side, side, dtype=torch.float16),) for _ in range(sets)]
    for batch in setting.sizes.batches:
        layer = ops.linear(batch=batch, d_in=side, d_out=side, dtype="fp16")
        roofs = (setting.ceilings.product_roof("fp16"), setting.ceilings.bandwidth("read") * layer.intensity)
        x = setting.randn(batch, side, dtype=torch.float16)
        how = {
            "call": rotate(lambda weight, x=x: torch.nn.functional.linear(x, weight), weights),
            "work": layer.flops.m_as("TFLOP"),
            "ceiling": min(roof.m_as("TFLOP/s") for roof in roofs),
            "rate_unit": "TFLOP/s",
        }
        yield setting.row("dense layer by batch", LIBRARY, (batch, side, side), "fp16", graph=True, **how)
