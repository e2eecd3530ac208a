"""Matrix products: by number format, by how their rows are aligned, and as a layer of growing batch."""

from collections.abc import Iterator

import torch

from mlsys import ops
from mlsys.bench.suite.setting import Setting
from mlsys.measure.gpu_ceilings import precisions_of, product
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


def matmul_by_alignment(setting: Setting) -> Iterator[Row]:
    """Time fp16 products of sides around a power of two: the rows of all three matrices then begin anywhere."""
    ceiling = setting.ceilings.product_roof("fp16").m_as("TFLOP/s")
    for side in setting.sizes.aligned:
        m = max(setting.sizes.aligned) // 2
        call = product("fp16", m, side, side, setting.device)
        how = {"call": call, "work": 2 * m * side**2 / 1e12, "ceiling": ceiling, "rate_unit": "TFLOP/s"}
        yield setting.row("matmul by alignment", LIBRARY, (m, side, side), "fp16", graph=True, **how)


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
