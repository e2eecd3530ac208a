"""Which memory transactions a warp's addresses become, and where a tensor's elements lie.

A GPU moves device memory in sectors of 32 bytes, four to a cache line of 128 bytes. One load of a warp touches every
sector that any of its lanes needs, whole (NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory").

>>> warp_transactions(strided_addresses(stride=1, element_bytes=4), element_bytes=4).efficiency
1.0
>>> warp_transactions(strided_addresses(stride=32, element_bytes=4), element_bytes=4).efficiency
0.125
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from mlsys.core.arguments import int_at_most, non_negative_int, one_of, positive_int
from mlsys.errors import InvalidValue
from mlsys.traffic.near_memory import LRUMemory

SECTOR_BYTES = 32
LINE_BYTES = 128
WARP_LANES = 32

LAYOUTS = ("NCHW", "NHWC")
"""Channels first and channels last."""


@dataclass(frozen=True, slots=True)
class Transactions:
    """What one warp-wide access moves.

    Attributes:
        sectors: Distinct 32-byte sectors.
        lines: Distinct 128-byte lines.
        bytes_used: Distinct bytes that some lane asked for.
    """

    sectors: int
    lines: int
    bytes_used: int

    @property
    def bytes_moved(self) -> int:
        """Bytes of all sectors."""
        return self.sectors * SECTOR_BYTES

    @property
    def efficiency(self) -> float:
        """Share of the moved bytes that some lane asked for: bytes_used / bytes_moved."""
        return self.bytes_used / self.bytes_moved


def warp_transactions(addresses: Iterable[int], *, element_bytes: int) -> Transactions:
    """Count the sectors and lines that the active lanes of one warp touch.

    Args:
        addresses: Byte address of each active lane's element, 1 to 32 of them; masked lanes are left out.
        element_bytes: Bytes that each lane reads.

    Raises:
        InvalidValue: No lanes or more than 32, a negative or fractional address, or an element of no bytes.

    >>> warp_transactions([0, 0, 0], element_bytes=4)
    Transactions(sectors=1, lines=1, bytes_used=4)
    """
    size = positive_int("element_bytes", element_bytes)
    starts = [non_negative_int("address", address) for address in addresses]
    if not 1 <= len(starts) <= WARP_LANES:
        raise InvalidValue(f"a warp has 1 to {WARP_LANES} active lanes, got {len(starts)} addresses; split them up")
    touched = {byte for start in starts for byte in range(start, start + size)}
    sectors = {byte // SECTOR_BYTES for byte in touched}
    return Transactions(len(sectors), len({byte // LINE_BYTES for byte in touched}), len(touched))


def strided_addresses(*, stride: int, element_bytes: int, lanes: int = WARP_LANES, base: int = 0) -> list[int]:
    """Return the byte addresses when lane i reads element base + i stride.

    Args:
        stride: Elements between neighboring lanes; 0 is a broadcast.
        element_bytes: Bytes of an element.
        lanes: Active lanes, at most 32.
        base: Element that lane 0 reads.

    Raises:
        InvalidValue: A negative stride or base, no lanes, or an element of no bytes.

    >>> strided_addresses(stride=2, element_bytes=4, lanes=4)
    [0, 8, 16, 24]
    """
    size = positive_int("element_bytes", element_bytes)
    stride, base = non_negative_int("stride", stride), non_negative_int("base", base)
    int_at_most("lanes", lanes, WARP_LANES, "a warp has no more")
    return [size * (base + lane * stride) for lane in range(lanes)]


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a tensor without gaps whose last index runs fastest.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    sizes = [positive_int("size", size) for size in shape]
    return tuple(prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


def layout_strides(shape: Sequence[int], layout: str) -> tuple[int, int, int, int]:
    """Return the strides, in elements, of the indices (n, c, h, w) in a layout.

    NCHW: (C H W, H W, W, 1); NHWC: (H W C, 1, W C, C).

    Args:
        shape: (N, C, H, W), whatever the layout.
        layout: "NCHW" or "NHWC".

    Raises:
        InvalidValue: A shape that is not four positive integers, or an unknown layout.

    >>> layout_strides((1, 64, 56, 56), "NHWC")
    (200704, 1, 3584, 64)
    """
    if len(shape) != 4:
        raise InvalidValue(f"shape must be the four sizes (N, C, H, W), got {tuple(shape)}")
    sizes = dict(zip("NCHW", shape, strict=True))
    strides = contiguous_strides([sizes[axis] for axis in one_of("layout", layout, LAYOUTS)])
    by_axis = dict(zip(layout, strides, strict=True))
    return by_axis["N"], by_axis["C"], by_axis["H"], by_axis["W"]


def offset(index: Sequence[int], shape: Sequence[int], layout: str) -> int:
    """Return the position of element (n, c, h, w) from the tensor's start, in elements.

    NCHW: ((n C + c) H + h) W + w; NHWC: ((n H + h) W + w) C + c.

    Args:
        index: (n, c, h, w), counted from 0.
        shape: (N, C, H, W).
        layout: "NCHW" or "NHWC".

    Raises:
        InvalidValue: An index outside the shape, a shape that is not four positive integers, or an unknown layout.

    >>> [offset((0, 1, 2, 0), (1, 3, 3, 3), layout) for layout in LAYOUTS]
    [15, 19]
    """
    strides = layout_strides(shape, layout)
    if len(index) != 4:
        raise InvalidValue(f"index must be the four indices (n, c, h, w), got {tuple(index)}")
    for name, i, size in zip("nchw", index, shape, strict=True):
        if non_negative_int(name, i) >= size:
            raise InvalidValue(f"index {name} must be below {size}, got {i}; the nearest is {size - 1}")
    return sum(i * stride for i, stride in zip(index, strides, strict=True))


def channel_read(*, channels: int, layout: str, element_bytes: int, walk: str) -> Transactions:
    """Count what a warp moves when its lanes read 32 neighbors of an image along one index.

    Args:
        channels: Channels C of the image.
        layout: "NCHW" or "NHWC".
        element_bytes: Bytes of an element.
        walk: "w": lanes read one channel along a row of 32 pixels. "c": lanes read 32 channels of one pixel.

    Raises:
        InvalidValue: A size that is no positive integer, an unknown layout or walk, or fewer than 32 channels along
            "c".

    >>> channel_read(channels=64, layout="NHWC", element_bytes=2, walk="w")
    Transactions(sectors=32, lines=32, bytes_used=64)
    >>> channel_read(channels=64, layout="NHWC", element_bytes=2, walk="c").sectors
    2
    """
    one_of("walk", walk, ("w", "c"))
    if walk == "c" and positive_int("channels", channels) < WARP_LANES:
        raise InvalidValue(f"channels must be at least {WARP_LANES} to fill a warp, got {channels}; use {WARP_LANES}")
    strides = dict(zip("nchw", layout_strides((1, channels, WARP_LANES, WARP_LANES), layout), strict=True))
    return warp_transactions(
        strided_addresses(stride=strides[walk], element_bytes=element_bytes), element_bytes=element_bytes
    )


def line_utilization(
    rows: int, cols: int, *, element_bytes: int, walk: str, lines_kept: int, line_bytes: int = LINE_BYTES
) -> float:
    """Return the share of fetched bytes that a walk over a row-major matrix uses, with few lines kept near.

    The matrix starts on a line. Along the rows each line serves all its elements before the next. Down a column each
    element is in another line (unless a row is shorter than a line), and it is fetched again for the next column
    unless the whole column's lines are kept: least recently used goes first.

    Args:
        rows: Rows of the matrix.
        cols: Columns of the matrix; a row's elements lie side by side.
        element_bytes: Bytes of an element.
        walk: "row": one row after another; "column": one column after another.
        lines_kept: Lines that the cache keeps.
        line_bytes: Bytes of a line.

    Returns:
        bytes of the matrix / bytes fetched.

    Raises:
        InvalidValue: A size that is no positive integer, an unknown walk, or elements that do not divide a line.

    >>> line_utilization(256, 256, element_bytes=4, walk="row", lines_kept=64)
    1.0
    >>> line_utilization(256, 256, element_bytes=4, walk="column", lines_kept=64)
    0.03125
    """
    rows, cols = positive_int("rows", rows), positive_int("cols", cols)
    size = positive_int("element_bytes", element_bytes)
    positive_int("lines_kept", lines_kept)
    if positive_int("line_bytes", line_bytes) % size:
        raise InvalidValue(f"element_bytes must divide a line of {line_bytes} bytes, got {size}")
    order = {
        "row": ((i, j) for i in range(rows) for j in range(cols)),
        "column": ((i, j) for j in range(cols) for i in range(rows)),
    }[one_of("walk", walk, ("row", "column"))]
    memory = LRUMemory(lines_kept * line_bytes)
    for i, j in order:
        memory.read(("matrix", (i * cols + j) * size // line_bytes), line_bytes)
    return rows * cols * size / sum(memory.bytes_read.values())
