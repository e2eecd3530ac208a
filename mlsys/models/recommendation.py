"""DLRM, a recommendation model: dense features through an MLP, categories through embedding tables."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from mlsys import ops
from mlsys.core.arguments import positive_int
from mlsys.models.model import Model
from mlsys.models.shapes import shapes
from mlsys.ops import Op

SIGMOID_FLOPS = 4
"""Negate, exponential, sum, division."""


def dlrm(*, batch: int = 2048, dtype: str = "fp32") -> Model:
    """DLRM as MLPerf trains it on Criteo Terabyte: 26 tables, one row of each per sample.

    The 26 rows and the dense features' vector are multiplied pairwise (a 27 x 27 product per sample, of which the 351
    entries below the diagonal are kept) and go, with the dense vector, through a second MLP.
    Source: Naumov et al., Deep Learning Recommendation Model for Personalization and Recommendation Systems,
    arXiv:1906.00091 (2019), and its reference code.

    Args:
        batch: samples.
        dtype: number format.

    Raises:
        InvalidValue: if the batch is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> from mlsys import models
    >>> model = models.dlrm(batch=2048)
    >>> round(model.weight_bytes.to("GB"), 1)
    <Quantity(96.1, 'gigabyte')>
    """
    shape = shapes().dlrm
    batch = positive_int("batch", batch)
    dim, tables = shape.dense[-1], shape.table_rows
    vectors = len(tables) + 1
    lookups = [
        ops.embedding(lookups=batch, dim=dim, table_rows=rows, dtype=dtype).named(f"table{i}")
        for i, rows in enumerate(tables)
    ]
    pairs = vectors * (vectors - 1) // 2
    product = ops.batched_matmul(batch=batch, m=vectors, n=vectors, k=dim, dtype=dtype)
    # Both factors are the same tensor, so it is read once.
    interaction = replace(product, name="interaction", read_count=product.read_count // 2)
    all_ops = [
        *_mlp("bottom", batch, shape.dense, dtype, last="relu"),
        *lookups,
        interaction,
        *_mlp("top", batch, [dim + pairs, *shape.top], dtype, last="sigmoid"),
    ]
    return Model(f"DLRM, batch {batch}", dtype, tuple(all_ops), shape.document)


def _mlp(name: str, batch: int, widths: Sequence[int], dtype: str, last: str) -> list[Op]:
    made: list[Op] = []
    steps = len(widths) - 1
    for i, (d_in, d_out) in enumerate(pairwise(widths), start=1):
        activation = last if i == steps else "relu"
        made.append(ops.linear(batch=batch, d_in=d_in, d_out=d_out, bias=True, dtype=dtype).named(f"{name}.{i}"))
        flops = SIGMOID_FLOPS if activation == "sigmoid" else 1
        op = ops.elementwise(elements=batch * d_out, flops_per_element=flops, dtype=dtype)
        made.append(op.named(f"{name}.{i}.{activation}"))
    return made
