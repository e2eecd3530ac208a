"""Numbers in blocks: each is stored in a narrow format, and every few neighbors share one scale."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlsys.core.arguments import positive_int
from mlsys.errors import InvalidValue, UnknownName
from mlsys.numerics.formats import FLOAT_FORMATS, FloatArray, float_format
from mlsys.numerics.integers import IntFormat

BLOCK_INTEGERS = ("int8", "int4")
"""Integer formats that blocks may have, beside the floating-point formats."""


def round_in_blocks(values: ArrayLike, form: str, block: int | None = None) -> FloatArray:
    """Round to a narrow format with one scale for each block of neighbors in the last dimension.

    Formula: scale = max|x| of the block / largest number of the format; the result is scale round(x / scale). The
    scale itself is not rounded, as if it were stored in FP32.
    Source: Rouhani et al., Microscaling Data Formats for Deep Learning, arXiv:2310.10537 (2023), whose scales are
    powers of two.

    Args:
        values: a tensor of finite numbers.
        form: "int8" or "int4", whose lowest integer stays unused, or the name of a floating-point format.
        block: how many neighbors share a scale; the last block of a row may be shorter. Without it, one scale serves
            the whole tensor.

    Returns:
        The numbers that are stored, in the shape of `values`.

    Raises:
        InvalidValue: if the tensor is empty or not finite, or the block is not a positive integer.
        UnknownName: if there is no such format.

    >>> round_in_blocks([0.1, -0.6, 40.0, 100.0], "int4", block=2).round(3).tolist()
    [0.086, -0.6, 42.857, 100.0]
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0 or not np.isfinite(x).all():
        raise InvalidValue("values are empty or not all finite: nothing sets a scale")
    largest, to_grid = _grid(form)
    if block is None:
        return _scaled(x, np.abs(x).max() / largest, to_grid)
    size = positive_int("block", block)
    rows = np.atleast_1d(x)
    result = np.empty_like(rows)
    for start in range(0, rows.shape[-1], size):
        part = rows[..., start : start + size]
        scale = np.abs(part).max(axis=-1, keepdims=True) / largest
        result[..., start : start + size] = _scaled(part, scale, to_grid)
    return result.reshape(x.shape)


def _grid(form: str) -> tuple[float, Callable[[FloatArray], Any]]:
    """The largest number of a format, and what rounds to it."""
    if form in BLOCK_INTEGERS:
        integers = IntFormat(int(form.removeprefix("int")))
        return integers.max, integers.round
    if form not in FLOAT_FORMATS:
        raise UnknownName.of("format for blocks", form, (*BLOCK_INTEGERS, *FLOAT_FORMATS))
    target = float_format(form)
    return target.max, target.round


def _scaled(x: FloatArray, scale: ArrayLike, to_grid: Callable[[FloatArray], Any]) -> FloatArray:
    step = np.where(np.asarray(scale) == 0, 1.0, scale)  # a block of zeros needs no scale
    result: FloatArray = step * to_grid(x / step)
    return result
