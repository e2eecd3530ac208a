"""Convolutions, in groups and depthwise.

Images are n x c x h x w; a window parameter is one integer for both directions or a pair (vertical, horizontal).
"""

from dataclasses import replace
from math import gcd

from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.ops.op import Op
from mlsys.ops.window import Pair, all_positive, windows


def conv2d(
    *,
    n: int,
    c_in: int,
    h: int,
    w: int,
    c_out: int,
    kernel: Pair,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
    bias: bool = False,
    dtype: str = "fp16",
) -> Op:
    """A 2-D convolution of n images of c_in x h x w with c_out filters.

    Formula: FLOPs = 2 n c_out h_out w_out (c_in / groups) kernel_h kernel_w, with padding multiplied like data; bytes
    = size (n c_in h w + c_out (c_in / groups) kernel_h kernel_w) read and size n c_out h_out w_out written. With one
    channel per group (depthwise) nothing is summed over channels, so it runs on the vector unit.

    Args:
        n: images.
        c_in: channels of an image.
        h: height of an image.
        w: width of an image.
        c_out: filters, and channels of the result.
        kernel: size of the filter.
        stride: step of the filter.
        padding: rows or columns of zeros added on each side.
        dilation: distance between two taps of the filter.
        groups: groups of channels that are convolved apart.
        bias: whether there is one learned number per filter, to read and not counted in FLOPs.
        dtype: format of images and filters.

    Raises:
        InvalidValue: if a size is not a positive integer, groups do not divide the channels, or the filter is larger
            than the padded image.
        UnknownName: if the dtype is unknown.

    >>> from mlsys import ops
    >>> layer = ops.conv2d(n=32, c_in=128, h=56, w=56, c_out=256, kernel=3, padding=1, dtype="fp16")
    >>> round(layer.flops.to("GFLOP"), 1), round(layer.intensity)
    (<Quantity(59.2, 'gigaflop')>, <Quantity(762, 'flop / byte')>)
    """
    n, c_in, h, w, c_out, groups = all_positive(n=n, c_in=c_in, h=h, w=w, c_out=c_out, groups=groups)
    for name, channels in (("c_in", c_in), ("c_out", c_out)):
        if channels % groups:
            raise InvalidValue(
                f"{name} is {channels}, groups is {groups}: groups must divide the channels; "
                f"nearest that divides both: {_nearest_common_divisor(c_in, c_out, groups)}"
            )
    (kernel_h, kernel_w), h_out, w_out = windows(h, w, kernel, stride, padding, dilation)
    weights = c_out * (c_in // groups) * kernel_h * kernel_w
    params = weights + (c_out if bias else 0)
    outputs = n * c_out * h_out * w_out
    size = bytes_per_element(dtype)
    return Op(
        name="conv2d",
        kind="conv2d",
        engine="vector" if c_in == groups else "tensor",
        dtype=dtype,
        flop_count=2 * outputs * (c_in // groups) * kernel_h * kernel_w,
        read_count=size * (n * c_in * h * w + params),
        write_count=size * outputs,
        params=params,
        resident_count=size * params,
    )


def depthwise_conv2d(
    *,
    n: int,
    channels: int,
    h: int,
    w: int,
    kernel: Pair,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    bias: bool = False,
    dtype: str = "fp16",
) -> Op:
    """A convolution with one filter per channel, on the vector unit.

    Formula: FLOPs = 2 n channels h_out w_out kernel_h kernel_w: that of `conv2d` with groups = channels.

    Args:
        n: images.
        channels: channels of image and result.
        h: height of an image.
        w: width of an image.
        kernel: size of the filter.
        stride: step of the filter.
        padding: rows or columns of zeros added on each side.
        dilation: distance between two taps of the filter.
        bias: whether there is one learned number per filter.
        dtype: format of images and filters.

    Raises:
        InvalidValue: if a size is not a positive integer, or the filter is larger than the padded image.
        UnknownName: if the dtype is unknown.

    >>> round(depthwise_conv2d(n=32, channels=256, h=56, w=56, kernel=3, padding=1).intensity, 1)
    <Quantity(4.5, 'flop / byte')>
    """
    all_positive(channels=channels)
    op = conv2d(
        n=n,
        c_in=channels,
        h=h,
        w=w,
        c_out=channels,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=channels,
        bias=bias,
        dtype=dtype,
    )
    return replace(op, name="depthwise_conv2d", kind="depthwise_conv2d", engine="vector")


def _nearest_common_divisor(c_in: int, c_out: int, groups: int) -> int:
    common = gcd(c_in, c_out)
    return min((d for d in range(1, common + 1) if common % d == 0), key=lambda d: (abs(d - groups), d))
