"""Windows that slide over images: how many positions they have, pooling, and the im2col copy.

Images are n x c x h x w; a window parameter is one integer for both directions or a pair (vertical, horizontal).
"""

from collections.abc import Sequence
from typing import TypeAlias

from mlsys.core.arguments import non_negative_int, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.ops.op import Op

Pair: TypeAlias = int | Sequence[int]
"""One integer for both directions, or (vertical, horizontal)."""


def im2col(
    *,
    n: int,
    c_in: int,
    h: int,
    w: int,
    kernel: Pair,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    dtype: str = "fp16",
) -> Op:
    """The copy that turns a convolution into a matrix product: every window becomes a row.

    Formula: no FLOPs; reads size n c_in h w, writes size (n h_out w_out) x (c_in kernel_h kernel_w).
    Source: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, arXiv:1410.0759 (2014).

    Args:
        n: images.
        c_in: channels of an image.
        h: height of an image.
        w: width of an image.
        kernel: size of the filter.
        stride: step of the filter.
        padding: rows or columns of zeros added on each side.
        dilation: distance between two taps of the filter.
        dtype: format of the images.

    Raises:
        InvalidValue: if a size is not a positive integer, or the filter is larger than the padded image.
        UnknownName: if the dtype is unknown.

    >>> copy = im2col(n=32, c_in=128, h=56, w=56, kernel=3, padding=1, dtype="fp16")
    >>> copy.bytes_written / copy.bytes_read
    <Quantity(9.0, 'dimensionless')>
    """
    n, c_in, h, w = all_positive(n=n, c_in=c_in, h=h, w=w)
    (kernel_h, kernel_w), h_out, w_out = windows(h, w, kernel, stride, padding, dilation)
    size = bytes_per_element(dtype)
    columns = n * h_out * w_out * c_in * kernel_h * kernel_w
    return Op("im2col", "im2col", "vector", dtype, 0, size * n * c_in * h * w, size * columns)


def pool2d(
    *,
    n: int,
    channels: int,
    h: int,
    w: int,
    kernel: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dtype: str = "fp16",
) -> Op:
    """Average or maximum pooling; global pooling is kernel = (h, w).

    Formula: FLOPs = n channels h_out w_out kernel_h kernel_w: one addition (or comparison) for each element of a window
    but one, and one division (none for a maximum). Bytes = size n channels (h w + h_out w_out).

    Args:
        n: images.
        channels: channels of image and result.
        h: height of an image.
        w: width of an image.
        kernel: size of the window.
        stride: step of the window; without it, the size of the window.
        padding: rows or columns added on each side.
        dtype: format of the images.

    Raises:
        InvalidValue: if a size is not a positive integer, or the window is larger than the padded image.
        UnknownName: if the dtype is unknown.

    >>> pool2d(n=1, channels=2048, h=7, w=7, kernel=7).flops
    <Quantity(100352, 'flop')>
    """
    n, channels, h, w = all_positive(n=n, channels=channels, h=h, w=w)
    (kernel_h, kernel_w), h_out, w_out = windows(h, w, kernel, kernel if stride is None else stride, padding, 1)
    outputs = n * channels * h_out * w_out
    size = bytes_per_element(dtype)
    flops = outputs * kernel_h * kernel_w
    return Op("pool2d", "pool2d", "vector", dtype, flops, size * n * channels * h * w, size * outputs)


def conv_output_size(size: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Positions of a window along one direction: floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.

    Args:
        size: elements along this direction.
        kernel: taps of the window.
        stride: step of the window.
        padding: elements added at each end.
        dilation: distance between two taps.

    Raises:
        InvalidValue: if a size is not a positive integer, or the window is larger than the padded size.

    >>> conv_output_size(224, kernel=7, stride=2, padding=3)
    112
    """
    size, kernel, stride, dilation = all_positive(size=size, kernel=kernel, stride=stride, dilation=dilation)
    padding = non_negative_int("padding", padding)
    reach = dilation * (kernel - 1) + 1
    if reach > size + 2 * padding:
        raise InvalidValue(
            f"a window of {kernel} taps at dilation {dilation} spans {reach}, more than the padded size "
            f"{size} + 2 x {padding} = {size + 2 * padding}: use a smaller kernel or more padding"
        )
    return (size + 2 * padding - reach) // stride + 1


def windows(
    h: int, w: int, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> tuple[tuple[int, int], int, int]:
    """The kernel as a pair, and the positions of the window vertically and horizontally."""
    pairs = [_pair(*p) for p in (("kernel", kernel), ("stride", stride), ("padding", padding), ("dilation", dilation))]
    h_out, w_out = (conv_output_size(size, *(p[i] for p in pairs)) for i, size in enumerate((h, w)))
    return (int(pairs[0][0]), int(pairs[0][1])), h_out, w_out


def _pair(name: str, value: Pair) -> tuple[int, int]:
    if not isinstance(value, Sequence):
        return value, value
    if len(value) != 2:
        raise InvalidValue(f"{name} is {value!r}: give one integer or a pair (vertical, horizontal)")
    return value[0], value[1]


def all_positive(**sizes: int) -> tuple[int, ...]:
    """The sizes as plain integers, once each is known to be a positive one."""
    return tuple(positive_int(name, value) for name, value in sizes.items())
