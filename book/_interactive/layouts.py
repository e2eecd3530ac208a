"""The coalescing player: 32 lanes of a warp read one element each, and every sector that they touch moves whole."""

import random
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from _interactive.content import Content, Table
from mlsys import viz
from mlsys.traffic.coalescing import (
    LINE_BYTES,
    SECTOR_BYTES,
    WARP_LANES,
    Transactions,
    layout_strides,
    strided_addresses,
    warp_transactions,
)

SHAPE = (1, 64, 56, 56)
"""Images of the examples: 64 channels of 56 x 56 pixels."""
ROW_ELEMENTS = 8
"""Elements that the gather of rows reads from each row of a table."""
TABLE_ROWS = 512
WIDTHS = (1, 2, 4, 8, 16)
"""Bytes that one lane reads."""
LARGEST_STRIDE = 4096
LARGEST_START = 31

_STRIDES = {layout: dict(zip("nchw", layout_strides(SHAPE, layout), strict=True)) for layout in ("NCHW", "NHWC")}


def _gathered(rows: int, elements: int) -> list[int]:
    """Elements of `rows` different rows of a table, in a fixed random order; each row has 8 elements."""
    chosen = random.Random(7).sample(range(TABLE_ROWS), rows)
    return [row * ROW_ELEMENTS + place for row in chosen for place in range(elements)]


PATTERNS: dict[str, dict[str, Any]] = {
    "nchw-w": {"label": "NCHW: 32 pixels of one channel", "stride": _STRIDES["NCHW"]["w"], "width": 2},
    "nhwc-w": {"label": "NHWC: 32 pixels of one channel", "stride": _STRIDES["NHWC"]["w"], "width": 2},
    "nhwc-c": {"label": "NHWC: 32 channels of one pixel", "stride": _STRIDES["NHWC"]["c"], "width": 2},
    "nchw-c": {"label": "NCHW: 32 channels of one pixel", "stride": _STRIDES["NCHW"]["c"], "width": 2},
    "rows": {"label": "Gather: 4 rows of 8 elements", "elements": _gathered(4, 8), "width": 4},
    "gather": {"label": "Gather: 1 element of 32 rows", "elements": _gathered(32, 1), "width": 4},
}
"""What a warp may read: elements at a stride, or a list of them; and the bytes of an element."""

FIRST = {"stride": 2, "width": 4, "start": 0}
SWEEP = (0, 1, 2, 4, 8, 16, 32)


def transactions(pattern: str, *, width: int, start: int = 0) -> Transactions:
    """Count what a pattern moves when each lane reads `width` bytes."""
    chosen = PATTERNS[pattern]
    if "elements" in chosen:
        return warp_transactions([width * (start + i) for i in chosen["elements"]], element_bytes=width)
    return strided(chosen["stride"], width=width, start=start)


def strided(stride: int, *, width: int, start: int = 0) -> Transactions:
    """Count what a stride moves when each lane reads `width` bytes."""
    return warp_transactions(strided_addresses(stride=stride, element_bytes=width, base=start), element_bytes=width)


def content() -> Content:
    """The numbers and the fallback of the coalescing player."""
    first = strided(FIRST["stride"], width=FIRST["width"])
    return Content(
        title="Coalescing player",
        numbers={
            "patterns": PATTERNS,
            "widths": WIDTHS,
            "first": FIRST,
            "largest": {"stride": LARGEST_STRIDE, "start": LARGEST_START},
            "sizes": {"lanes": WARP_LANES, "sector": SECTOR_BYTES, "line": LINE_BYTES},
        },
        picture=_picture,
        alt=f"Memory drawn as rows of 128 bytes, each cut into four sectors. 32 lanes read every second number of 4 "
        f"bytes, so {first.sectors} sectors in {first.lines} rows are filled with a pale color, and in each of them "
        f"every second number is dark: {first.bytes_moved} bytes move and {first.bytes_used} are used.",
        tables=(_stride_table(), _pattern_table()),
    )


def _stride_table() -> Table:
    head = ("stride, in elements", *(f"{width} byte{'s' * (width > 1)} per lane" for width in WIDTHS))
    rows = [(str(stride), *(str(strided(stride, width=width).sectors) for width in WIDTHS)) for stride in SWEEP]
    return Table("Sectors of 32 bytes that a warp's read touches", (head, *rows))


def _pattern_table() -> Table:
    rows = [("what the warp reads", "sectors", "bytes moved", "bytes used")]
    for name, pattern in PATTERNS.items():
        found = transactions(name, width=pattern["width"])
        rows.append((pattern["label"], str(found.sectors), str(found.bytes_moved), str(found.bytes_used)))
    return Table("The patterns of the list", tuple(rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(5.0, 1.5))
    starts = strided_addresses(stride=FIRST["stride"], element_bytes=FIRST["width"])
    touched = {start // SECTOR_BYTES for start in starts}
    lines = max(touched) * SECTOR_BYTES // LINE_BYTES + 1
    for sector in range(lines * LINE_BYTES // SECTOR_BYTES):
        line, left = divmod(sector * SECTOR_BYTES, LINE_BYTES)
        fill = colors["BlueL"] if sector in touched else "white"
        ax.add_patch(Rectangle((left, line), SECTOR_BYTES - 1, 0.8, facecolor=fill, edgecolor=colors["BlueLine"]))
    for start in starts:
        line, left = divmod(start, LINE_BYTES)
        ax.add_patch(Rectangle((left + 0.3, line + 0.12), FIRST["width"] - 0.8, 0.56, facecolor=colors["BlueLine"]))
    for line in range(lines):
        ax.text(-2, line + 0.4, str(line * LINE_BYTES), ha="right", va="center")
    ax.text(-2, -0.35, "byte", ha="right", va="center")
    ax.set(xlim=(-12, LINE_BYTES + 1), ylim=(lines, -0.7))
    ax.axis("off")
    return fig
