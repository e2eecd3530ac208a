"""Operations over rows: softmax and normalizations. They run on the vector unit and are limited by memory.

FLOPs are counted by the rule of `mlsys.ops`; what happens once per row is left out.
"""

from dataclasses import replace

from mlsys.core.arguments import positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.ops.op import Op


def softmax(*, rows: int, cols: int, flops_per_element: int = 5, dtype: str = "fp16") -> Op:
    """Softmax over each row.

    Formula: FLOPs = 5 rows cols (compare for the maximum, subtract it, exponential, add to the sum, divide); each
    element read and written once. A version of several passes over memory reads more.

    Args:
        rows: number of independent rows.
        cols: elements of a row.
        flops_per_element: another count, such as 3 without the guard against overflow (maximum, subtraction).
        dtype: format of input and output.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> softmax(rows=32 * 12 * 512, cols=512, dtype="fp16").intensity
    <Quantity(1.25, 'flop / byte')>
    """
    return _rowwise("softmax", rows, cols, flops_per_element, params_per_col=0, dtype=dtype)


def layernorm(*, rows: int, cols: int, flops_per_element: int = 8, dtype: str = "fp16") -> Op:
    """Layer normalization of each row, with a learned scale and shift per column.

    Formula: FLOPs = 8 rows cols: one addition for the mean; subtract, square, add for the variance; subtract and
    multiply to normalize; multiply and add for the learned scale and shift. Bytes = size (2 rows cols + 2 cols).
    Source: Ba, Kiros, Hinton, Layer Normalization, arXiv:1607.06450 (2016).

    Args:
        rows: number of independent rows.
        cols: elements of a row.
        flops_per_element: another count, such as 6 without scale and shift.
        dtype: format of input, output and parameters.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> norm = layernorm(rows=32 * 512, cols=768, dtype="fp16")
    >>> round(norm.flops.to("MFLOP"), 1), round(norm.intensity, 2)
    (<Quantity(100.7, 'megaflop')>, <Quantity(2.0, 'flop / byte')>)
    """
    return _rowwise("layernorm", rows, cols, flops_per_element, params_per_col=2, dtype=dtype)


def rmsnorm(*, rows: int, cols: int, flops_per_element: int = 4, dtype: str = "fp16") -> Op:
    """Root-mean-square normalization of each row, with a learned scale per column.

    Formula: FLOPs = 4 rows cols (square, add, multiply by 1/rms, multiply by the scale);
    bytes = size (2 rows cols + cols).
    Source: Zhang, Sennrich, Root Mean Square Layer Normalization, NeurIPS 2019.

    Args:
        rows: number of independent rows.
        cols: elements of a row.
        flops_per_element: another count.
        dtype: format of input, output and parameters.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> rmsnorm(rows=1, cols=4096).flops
    <Quantity(16384, 'flop')>
    """
    return _rowwise("rmsnorm", rows, cols, flops_per_element, params_per_col=1, dtype=dtype)


def batchnorm(*, rows: int, channels: int, training: bool = False, dtype: str = "fp16") -> Op:
    """Batch normalization of `rows` positions (n h w of images) in every channel.

    Formula, inference: statistics are constants, folded with the learned scale and shift into one multiply-add:
    FLOPs = 2 rows channels; bytes = size (2 rows channels + 2 channels). Training: a pass that reads the tensor to sum
    x and x^2 comes first: FLOPs = 5 rows channels and one more read.
    Source: Ioffe, Szegedy, Batch Normalization, ICML 2015.

    Args:
        rows: positions over which a channel's statistics are taken.
        channels: channels.
        training: whether mean and variance are computed.
        dtype: format of input, output and parameters.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> batchnorm(rows=512, channels=64, training=True).bytes_read
    <Quantity(131328, 'byte')>
    """
    flops_per_element = 5 if training else 2
    op = _rowwise("batchnorm", rows, channels, flops_per_element, params_per_col=2, dtype=dtype)
    return replace(op, read_count=op.read_count + op.write_count) if training else op


def _rowwise(kind: str, rows: int, cols: int, flops_per_element: int, params_per_col: int, dtype: str) -> Op:
    cols = positive_int("channels" if kind == "batchnorm" else "cols", cols)
    elements = positive_int("rows", rows) * cols
    params = params_per_col * cols
    size = bytes_per_element(dtype)
    return Op(
        name=kind,
        kind=kind,
        engine="vector",
        dtype=dtype,
        flop_count=elements * positive_int("flops_per_element", flops_per_element),
        read_count=size * (elements + params),
        write_count=size * elements,
        params=params,
        resident_count=size * params,
    )
