"""Figures of the chapter on tensor layouts; each draws one claim from numbers of the package or of a record."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.patches import FancyArrowPatch, Rectangle

from mlsys import viz
from mlsys.measure.records import Row
from mlsys.traffic.banks import bank_of, bank_passes
from mlsys.traffic.coalescing import LAYOUTS, offset, strided_addresses, warp_transactions

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
IMAGE = (1, 3, 3, 3)
"""One image with three channels of 3 x 3 pixels."""
CHANNELS = {"R": ("RedL", "RedLine"), "G": ("GreenL", "GreenLine"), "B": ("BlueL", "BlueLine")}
FP32_BYTES = 4
SIDE = 32
"""Rows and columns of the tile of words."""
CORNER = 6
"""Rows and columns of the tile whose banks are written as numbers."""


def strips(marked: tuple[int, int, int, int]) -> None:
    """Draw a small color image as it is stored in each layout, with one element marked."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.2))
    n, c, h, w = IMAGE
    for place, layout in enumerate(LAYOUTS):
        top = 2.0 * place
        for channel, (fill, line) in enumerate(CHANNELS.values()):
            for pixel in range(h * w):
                index = (0, channel, pixel // w, pixel % w)
                left = offset(index, IMAGE, layout)
                ax.add_patch(Rectangle((left, top), 1, 1, facecolor=colors[fill], edgecolor="white"))
                ax.text(left + 0.5, top + 0.52, str(pixel), ha="center", va="center", color=colors[line], fontsize=9)
        at = offset(marked, IMAGE, layout)
        ax.add_patch(Rectangle((at, top), 1, 1, fill=False, edgecolor=colors["primary"], linewidth=2.2))
        ax.text(at + 0.5, top + 1.12, f"offset {at}", ha="center", va="top", fontsize=9)
        ax.text(0, top - 0.12, layout, va="bottom", weight="bold")
    for place, (name, (_, line)) in enumerate(CHANNELS.items()):
        ax.text(19 + 3 * place, -0.12, f"■ {name}", color=colors[line], va="bottom")
    ax.set(xlim=(-0.1, n * c * h * w + 0.1), ylim=(3.75, -0.75))
    ax.axis("off")


def sweep(rows: Sequence[Row], pieces: Mapping[int, Callable[[int], float]]) -> None:
    """Draw measured times of strided reads beside the time in which whole pieces of memory could move.

    Args:
        rows: the record's rows, of equally many elements.
        pieces: for each size of a piece, in bytes, what gives the bytes that move at a stride.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.3))
    strides = [row.shape[1] for row in rows]
    rate = rows[0].ceiling
    looks = (("--", "BlueLine"), (":", "OrangeLine"))
    for (size, moved), (style, color) in zip(pieces.items(), looks, strict=True):
        times = [moved(stride) / (1e9 * rate) * 1e6 for stride in strides]
        ax.plot(strides, times, style, color=colors[color], label=f"whole pieces of {size} bytes")
    ax.plot(strides, [1e6 * row.median_s for row in rows], "o", color=colors["RedLine"], label="measured")
    ax.set(xscale="log", yscale="log", xlabel="stride, in numbers of 4 bytes", ylabel="time, µs")
    ax.set_xticks(strides, [str(stride) for stride in strides])
    ax.set_yticks([50, 100, 200, 500, 1000], ["50", "100", "200", "500", "1,000"])
    ax.minorticks_off()
    ax.set_ylim(45, 1900)
    ax.legend(loc="upper left", frameon=False)


def strided_sectors(stride: int) -> int:
    """Count the sectors of a warp that reads FP32 numbers at a stride."""
    addresses = strided_addresses(stride=stride, element_bytes=FP32_BYTES)
    return warp_transactions(addresses, element_bytes=FP32_BYTES).sectors


def transposes(side: int) -> None:
    """Draw a transpose of side x side FP32 numbers without and with a tile; arrows are what one warp moves."""
    counts = {name: strided_sectors(stride) for name, stride in (("row", 1), ("column", side))}
    across, down = (f"{name}: {count} sectors" for name, count in counts.items())
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.5))

    def matrix(left: float, top: float, name: str, fill: str) -> None:
        ax.add_patch(Rectangle((left, top), 2, 2, facecolor=colors[fill], edgecolor=colors["primary"]))
        ax.text(left + 1, top - 0.12, name, ha="center", va="bottom", fontsize=9)

    def strip(left: float, top: float, row: bool, color: str) -> None:
        for lane in range(8):
            x, y = (left + 0.25 * lane, top) if row else (left, top + 0.25 * lane)
            ax.add_patch(Rectangle((x, y), 0.25, 0.25, facecolor=colors[color], edgecolor="white", linewidth=0.6))

    def arrow(start: tuple[float, float], end: tuple[float, float]) -> None:
        style = {"arrowstyle": "-|>", "mutation_scale": 12, "color": colors["primary"], "linewidth": 1.4}
        ax.add_patch(FancyArrowPatch(start, end, **style))

    matrix(0, 0, "source", "BlueL")
    strip(0, 0.75, True, "BlueLine")
    matrix(6, 0, "target", "OrangeL")
    strip(6.75, 0, False, "RedLine")
    arrow((2.1, 0.9), (6.65, 0.9))
    ax.text(4.3, 0.8, "directly", ha="center", va="bottom", weight="bold")
    ax.text(4.3, 1.05, f"{across}\n{down}", ha="center", va="top", fontsize=9)
    matrix(0, 3.4, "source", "BlueL")
    strip(0, 4.15, True, "BlueLine")
    matrix(3, 3.4, "tile in shared memory", "GreenL")
    strip(3, 4.15, True, "BlueLine")
    strip(4.5, 3.4, False, "OrangeLine")
    matrix(6, 3.4, "target", "OrangeL")
    strip(6, 4.9, True, "OrangeLine")
    arrow((2.1, 4.28), (2.95, 4.28))
    arrow((4.85, 5.02), (5.95, 5.02))
    ax.text(1, 5.5, across, ha="center", va="top", fontsize=9)
    ax.text(4, 5.5, "row in,\ncolumn out", ha="center", va="top", fontsize=9)
    ax.text(7, 5.5, across, ha="center", va="top", fontsize=9)
    ax.set(xlim=(-0.1, 8.1), ylim=(6.35, -0.6), aspect="equal")
    ax.axis("off")


def tiles(places: Mapping[str, Callable[[int, int], int]], column: int = 2) -> None:
    """Draw the bank of every word of a tile of 32 x 32 words, one panel for each way to store it.

    Args:
        places: by name, what gives the place of row and column in shared memory, in words.
        column: the column that is framed.
    """
    viz.apply_style()
    import matplotlib.pyplot as plt

    fig, panels = plt.subplots(2, len(places), figsize=(WIDTH, 4.3), layout="constrained")
    for (corner, whole), (name, place) in zip(panels.T, places.items(), strict=True):
        banks = np.array([[bank_of(FP32_BYTES * place(row, col)) for col in range(SIDE)] for row in range(SIDE)])
        needed = bank_passes([FP32_BYTES * place(row, column) for row in range(SIDE)], element_bytes=FP32_BYTES)
        for (row, col), bank in np.ndenumerate(banks[:CORNER, :CORNER]):
            fill = viz.COLORS["OrangeL"] if col == column else "white"
            corner.add_patch(Rectangle((col, row), 1, 1, facecolor=fill, edgecolor=viz.COLORS["grid"]))
            corner.text(col + 0.5, row + 0.52, str(bank), ha="center", va="center", fontsize=9)
        corner.set(xlim=(0, CORNER), ylim=(CORNER, 0), aspect="equal", xticks=[], yticks=[])
        corner.set_title(f"{name}\n{needed} pass{'es' if needed > 1 else ''}", fontsize=10)
        shown = whole.imshow(banks, cmap="viridis", interpolation="nearest", rasterized=True)
        frame = (column - 0.5, -0.5)
        whole.add_patch(Rectangle(frame, 1, SIDE, fill=False, edgecolor=viz.COLORS["OrangeLine"], linewidth=1.6))
        whole.set(xticks=[0, 16, 31], yticks=[0, 16, 31])
        for ax in (corner, whole):
            ax.grid(visible=False)
    panels[0, 0].set_ylabel("the first six rows")
    panels[1, 0].set_ylabel("all rows")
    bar = fig.colorbar(shown, ax=panels[1].tolist(), label="bank", location="bottom", aspect=34)
    bar.set_ticks([0, 8, 16, 24, 31])
