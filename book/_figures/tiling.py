"""Figures of the chapter on tiling; each draws one claim from numbers that it is given or takes from the package."""

import numpy as np
from matplotlib.patches import Rectangle

from mlsys import ops, traffic, viz
from mlsys.core.dtypes import bytes_per_element
from mlsys.hardware import Accelerator
from mlsys.measure.records import Row
from mlsys.roofline import Roofline

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""


def blocks() -> None:
    """A, B and C cut into tiles: one tile of C takes a band of A's rows and a band of B's columns, step by step."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 5.2))
    ax.set(xlim=(-1.0, 9.2), ylim=(9.3, -0.9), aspect="equal")
    ax.axis("off")
    row, column, step = 1, 2, 1  # the tile of C that is computed, and how far along k it is
    for name, left, top, band, tile in (
        ("A", 0.0, 4.9, ("BlueL", 0, row, 4, 1), ("BlueLine", step, row)),
        ("B", 4.9, 0.0, ("OrangeL", column, 0, 1, 4), ("OrangeLine", column, step)),
        ("C", 4.9, 4.9, None, ("GreenLine", column, row)),
    ):
        ax.add_patch(Rectangle((left, top), 4, 4, facecolor="white", edgecolor=colors["primary"], linewidth=1.6))
        if band:
            fill, x, y, width, height = band
            ax.add_patch(Rectangle((left + x, top + y), width, height, facecolor=colors[fill], edgecolor="none"))
        fill, x, y = tile
        ax.add_patch(Rectangle((left + x, top + y), 1, 1, facecolor=colors[fill], edgecolor="none"))
        ax.text(left + x + 0.5, top + y + 0.5, name, color="white", ha="center", va="center", weight="bold")
        for line in range(1, 4):
            ax.plot([left + line] * 2, [top, top + 4], color=colors["grid"], linewidth=0.8)
            ax.plot([left, left + 4], [top + line] * 2, color=colors["grid"], linewidth=0.8)
    arrow = {"arrowstyle": "->", "color": colors["primary"], "linewidth": 1.6}
    ax.annotate("", xy=(3.9, 4.9 + row + 0.5), xytext=(2.05, 4.9 + row + 0.5), arrowprops=arrow)
    ax.annotate("", xy=(4.9 + column + 0.5, 3.9), xytext=(4.9 + column + 0.5, 2.05), arrowprops=arrow)
    ax.text(2.0, 4.6, "A: $M \\times K$", ha="center")
    ax.text(6.9, -0.3, "B: $K \\times N$", ha="center")
    ax.text(6.9, 9.25, "C: $M \\times N$", ha="center")
    ax.text(
        2.0, 1.1, "each step brings one\ntile of A and one of B,\nand adds their product\nto the tile of C", ha="center"
    )
    ax.text(-0.15, 4.9 + row + 0.5, "$M_{tile}$", ha="right", va="center")
    ax.text(step + 0.5, 9.25, "$K_{tile}$", ha="center")
    ax.text(4.75, step + 0.5, "$K_{tile}$", ha="right", va="center")
    ax.text(4.9 + column + 0.5, 4.55, "$N_{tile}$", ha="center", va="center")


def time_against_tile(acc: Accelerator, n: int, dtype: str, near_bytes: int, tiles_replayed: list[int]) -> None:
    """Memory time for every tile size, what a near memory really allows, and the two floors."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.0))
    product = ops.matmul(m=n, n=n, k=n, dtype=dtype)
    bandwidth = acc.memory_bw.m_as("byte/ms")
    size = bytes_per_element(dtype)
    tiles = np.geomspace(1, n, 200)
    ax.loglog(tiles, size * (2 * n**3 / tiles + n * n) / bandwidth, color=colors["BlueLine"], zorder=3)
    ax.text(2.2, 90, "memory time\nif the tiles fit", color=colors["BlueLine"])
    replayed = [traffic.tiled_matmul(n, n, n, t, t, t, memory_bytes=near_bytes, dtype=dtype) for t in tiles_replayed]
    times = [moved.total_bytes / bandwidth for moved in replayed]
    ax.plot(tiles_replayed, times, "o-", markersize=4, linewidth=1, color=colors["RedLine"], zorder=4)
    ax.text(300, 1.7, f"replayed in\n{near_bytes / 1024:.0f} KiB", color=colors["RedLine"])
    compute_ms = (product.flops / acc.peak(dtype)).m_as("ms")
    ax.axhline(compute_ms, color=colors["GreenLine"], linestyle="--", linewidth=1.5)
    ax.text(1.1, compute_ms * 1.12, "arithmetic", color=colors["GreenLine"])
    least_ms = product.bytes.m_as("byte") / bandwidth
    ax.axhline(least_ms, color=colors["primary"], linestyle=":", linewidth=1.5)
    ax.text(1.1, least_ms * 1.12, "each matrix moved once", color=colors["primary"])
    balance = acc.ridge_point(dtype).m_as("flop/byte") * size  # where the falling line meets the arithmetic
    ax.plot(balance, compute_ms, "o", color=colors["GreenLine"], zorder=5)
    ax.text(balance * 1.15, compute_ms * 1.12, f"{balance:.0f}", color=colors["GreenLine"], weight="bold")
    ax.set(xlabel="side of a tile, elements", ylabel="time, ms", ylim=(least_ms * 0.7, 250))
    ax.set_xticks([1, 4, 16, 64, 256, 1024, n], ["1", "4", "16", "64", "256", "1,024", f"{n:,}"])
    ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    ax.minorticks_off()


def working_sets(limits: dict[str, float], dtypes: list[str], wanted: float) -> None:
    """Room that three square tiles take, against the memories that could hold them (in KiB); `wanted` is marked."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.4))
    tiles = np.linspace(8, 330, 200)
    powers = np.array([32, 64, 128, 256])
    label_at = {"fp16": 262, "fp32": 186}
    for dtype, color in zip(dtypes, ("BlueLine", "OrangeLine"), strict=True):
        kib_per_square = 3 * bytes_per_element(dtype) / 1024
        ax.plot(tiles, kib_per_square * tiles**2, color=colors[color])
        ax.plot(powers, kib_per_square * powers**2, "o", color=colors[color])
        at = label_at[dtype]
        ax.text(
            at, kib_per_square * at**2, f"{dtype.upper()} ", color=colors[color], ha="right", va="bottom", weight="bold"
        )
    need = 3 * bytes_per_element(dtypes[0]) / 1024 * wanted**2
    ax.plot(wanted, need, "D", color=colors["RedLine"], zorder=4)
    ax.text(wanted - 8, need, f"{wanted:.0f}", color=colors["RedLine"], ha="right", weight="bold")
    above = [*sorted(limits.values())[1:], float("inf")]
    for (name, limit), next_limit in zip(sorted(limits.items(), key=lambda item: item[1]), above, strict=True):
        ax.axhline(limit, color=colors["primary"], linestyle="--", linewidth=1.2)
        crowded = next_limit - limit < 40  # then the label goes under its line
        side, shift = ("top", -5) if crowded else ("bottom", 2)
        ax.text(4, limit + shift, f"{name}: {limit:.0f}", color=colors["primary"], va=side)
    ax.set(xlabel="side of a tile, elements", ylabel="three tiles, KiB", xlim=(0, 330), ylim=(0, 620))
    ax.set_xticks([32, 64, 128, 192, 256, 320])


def predicted_ms(row: Row, acc: Accelerator) -> float:
    """The least time that the chapter's model allows: arithmetic, or the refetched tiles through device memory.

    The tile stands in the row's variant, such as "64x64x32" for m, n and k.
    """
    m, n, k = row.shape
    tile_m, tile_n, _ = (int(side) for side in row.variant.split("x"))
    op = ops.matmul(m=m, n=n, k=k, dtype=row.dtype)
    moved = bytes_per_element(row.dtype) * (m * n * k / tile_n + m * n * k / tile_m + m * n)
    peak = Roofline.of(acc, row.dtype, engine="vector").peak
    return max((op.flops / peak).m_as("ms"), moved / acc.memory_bw.m_as("byte/ms"))


def ladder(rows: list[Row], acc: Accelerator) -> None:
    """Predicted and measured time of each tile size, one pair of bars each, and the vendor's library."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 1.2 + 0.75 * len(rows)))
    longest = max(max(1e3 * row.median_s, predicted_ms(row, acc)) for row in rows)
    for place, row in enumerate(rows):
        times_ms = {"predicted": predicted_ms(row, acc), "measured": 1e3 * row.median_s}
        for (name, time_ms), shift, color in zip(times_ms.items(), (-0.19, 0.19), ("BlueL", "BlueLine"), strict=True):
            ax.barh(place + shift, time_ms, height=0.34, color=colors[color], edgecolor=colors["BlueLine"])
            ax.text(1.03 * longest, place + shift, f"{time_ms:.2f} {name}", va="center", fontsize=10)
    library_ms = sum(1e3 * row.median_s * row.peers["cuBLAS"] for row in rows) / len(rows)
    ax.axvline(library_ms, color=colors["OrangeLine"], linestyle="--", linewidth=1.5, zorder=0.5)
    ax.text(library_ms, -0.62, f" cuBLAS {library_ms:.2f}", color=colors["OrangeLine"], va="center")
    ax.set(yticks=range(len(rows)), yticklabels=[row.variant.replace("x", "×") for row in rows], xlabel="time, ms")
    ax.set(xlim=(0, 1.5 * longest), ylim=(len(rows) - 0.4, -0.85))
    ax.set_xticks([tick for tick in ax.get_xticks() if 0 <= tick <= longest])
    ax.set_axisbelow(True)
    ax.grid(visible=False, axis="y")
