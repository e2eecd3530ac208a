"""Softmax, norms, element-wise steps and embedding: work of little arithmetic, which moving bytes limits."""

from collections.abc import Iterator
from functools import partial

import torch
from torch.nn import functional

from mlsys import ops
from mlsys.bench.suite.setting import Setting, compiled, liger
from mlsys.measure.gpu_ceilings import PRECISIONS
from mlsys.measure.records import Row

EPSILON = 1e-5


def softmax(setting: Setting) -> Iterator[Row]:
    """Time a softmax of every row: one read and one write of the tensor, if a row is kept on the chip.

    A peer's rate is the work over its `reference_s`. The H200's record of November 2026 has only ratios, and `achieved`
    over the ratio gives Liger, at 4,096 columns, 105% of the triad. But that ratio varied between rounds, so that the
    rate is anywhere from 98% to 112%; why it varied, the record does not say. In the row "fused softmax", replayed from
    graphs, the ratio is steady and Liger has 95%.
    """
    rows, dtype = setting.sizes.rows, setting.half
    for columns in setting.sizes.columns:
        x = setting.randn(rows, columns, dtype=PRECISIONS[dtype])
        call = partial(torch.softmax, x, -1)
        others = compiled(lambda x: torch.softmax(x, -1), x) | liger("LigerSoftmaxFunction", x)
        moved = ops.softmax(rows=rows, cols=columns, dtype=dtype).bytes.m_as("byte")
        how = {"call": call, "peers": setting.peers(call, others), "moved": moved, "mix": "copy"}
        yield setting.bandwidth_row("softmax", "torch", (rows, columns), dtype, **how)


def layernorm(setting: Setting) -> Iterator[Row]:
    """Time a layernorm with scale and shift: one read and one write of the tensor."""
    rows, dtype = setting.sizes.rows, setting.half
    for columns in setting.sizes.columns:
        x = setting.randn(rows, columns, dtype=PRECISIONS[dtype])
        scale, shift = (setting.randn(columns, dtype=PRECISIONS[dtype]) for _ in range(2))
        call = partial(functional.layer_norm, x, (columns,), scale, shift, EPSILON)
        others = compiled(functional.layer_norm, x, (columns,), scale, shift, EPSILON)
        others |= liger("LigerLayerNormFunction", x, scale, shift, EPSILON)
        moved = ops.layernorm(rows=rows, cols=columns, dtype=dtype).bytes.m_as("byte")
        how = {"call": call, "peers": setting.peers(call, others), "moved": moved, "mix": "copy"}
        yield setting.bandwidth_row("layernorm", "torch", (rows, columns), dtype, **how)


def unfused_chain(setting: Setting) -> Iterator[Row]:
    """Time the three steps of the lab's "fused chain" one by one, as torch runs them, replayed from graphs."""
    rows, columns, dtype = setting.sizes.rows, setting.sizes.chain_columns, setting.half
    kind = PRECISIONS[dtype]
    x = setting.randn(rows, columns, dtype=kind)
    mean, gamma, beta, scale = (setting.randn(columns, dtype=kind) for _ in range(4))
    var = setting.randn(columns, dtype=kind).square()
    steps = {
        "ReLU": (partial(functional.relu, x), 0),
        "batch normalization": (partial(functional.batch_norm, x, mean, var, gamma, beta, False, 0.1, EPSILON), 4),
        "scale": (partial(torch.mul, x, scale), 1),
    }
    for variant, (call, vectors) in steps.items():
        moved = (2 * rows + vectors) * columns * x.element_size()
        how = {"call": call, "moved": moved, "mix": "copy", "graph": True}
        yield setting.bandwidth_row("unfused chain", variant, (rows, columns), dtype, **how)


def residual_norm(setting: Setting) -> Iterator[Row]:
    """Time a sum and its RMS normalization as one kernel with fewer and fewer warps, beside torch, from graphs.

    Fewer warps give each thread more of the row, until its registers do not suffice.
    """
    from mlsys.measure.triton_kernels import add_norm

    rows, columns, dtype = setting.sizes.rows, setting.sizes.norm_columns, setting.half
    x, r = (setting.randn(rows, columns, dtype=PRECISIONS[dtype]) for _ in range(2))
    g = setting.randn(columns, dtype=PRECISIONS[dtype])
    out = torch.empty_like(x), torch.empty_like(x)

    def separate(x: torch.Tensor, r: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = x + r
        return h, functional.rms_norm(h, (columns,), g, EPSILON)

    moved = (4 * rows + 1) * columns * x.element_size()
    for warps in setting.sizes.norm_warps:
        call = partial(add_norm, x, r, g, out, EPSILON, warps)
        others = {"eager torch": partial(separate, x, r, g)} | compiled(separate, x, r, g)
        how = {"call": call, "peers": setting.peers(call, others), "moved": moved, "mix": "copy", "graph": True}
        yield setting.bandwidth_row("residual norm", f"warps {warps}", (rows, columns), dtype, **how)


def embedding(setting: Setting) -> Iterator[Row]:
    """Time sums of randomly gathered table rows, from rows shorter than a memory transaction to long ones."""
    bags, bag_size = setting.sizes.bags, setting.sizes.bag_size
    for dim in setting.sizes.row_elements:
        op = ops.embedding_bag(bags=bags, bag_size=bag_size, dim=dim, dtype="fp32")
        table = setting.randn(setting.sizes.table_bytes // (4 * dim), dim)
        picked = torch.randint(table.shape[0], (bags, bag_size), device=setting.device)
        call = partial(functional.embedding_bag, picked, table, mode="sum")
        others = {"gather, then sum": lambda picked=picked, table=table: functional.embedding(picked, table).sum(1)}
        how = {"call": call, "peers": setting.peers(call, others), "moved": op.bytes.m_as("byte"), "mix": "read"}
        yield setting.bandwidth_row("embedding", "torch", (bags, bag_size, dim), "fp32", **how)
