"""Figures of the chapter on tiling; each draws one claim from numbers that it is given or takes from the package."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.patches import Rectangle

from mlsys import ops, traffic, viz
from mlsys.core.dtypes import bytes_per_element
from mlsys.hardware import Accelerator
from mlsys.measure.records import Row
from mlsys.roofline import Roofline
from mlsys.units import Quantity

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


def time_against_tile(acc: Accelerator, n: int, dtype: str, near_bytes: int, tiles_replayed: Sequence[int]) -> None:
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


def working_sets(limits: Mapping[str, float], dtypes: Sequence[str], wanted: float) -> None:
    """Room of three square tiles, and of FP32 sums alone, against memories (in KiB); the side `wanted` is marked."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.4))
    tiles = np.linspace(8, 330, 200)
    powers = np.array([32, 64, 128, 256])
    label_at = {"fp16": 279, "fp32": 194}
    for dtype, color in zip(dtypes, ("BlueLine", "OrangeLine"), strict=True):
        kib_per_square = 3 * bytes_per_element(dtype) / 1024
        ax.plot(tiles, kib_per_square * tiles**2, color=colors[color])
        ax.plot(powers, kib_per_square * powers**2, "o", color=colors[color])
        at = label_at[dtype]
        label = f"three tiles,\n{dtype.upper()} "
        ax.text(at, kib_per_square * at**2, label, color=colors[color], ha="right", va="bottom", weight="bold")
    sums_per_square = bytes_per_element("fp32") / 1024
    ax.plot(tiles, sums_per_square * tiles**2, color=colors["GreenLine"])
    ax.text(326, 172, "sums alone,\nFP32", color=colors["GreenLine"], ha="right", va="bottom", weight="bold")
    for per_square in (3 * bytes_per_element(dtypes[0]) / 1024, sums_per_square):
        ax.plot(wanted, per_square * wanted**2, "D", color=colors["RedLine"], zorder=4)
    need = 3 * bytes_per_element(dtypes[0]) / 1024 * wanted**2
    ax.text(wanted - 8, need, f"{wanted:.0f}", color=colors["RedLine"], ha="right", weight="bold")
    above = [*sorted(limits.values())[1:], float("inf")]
    for (name, limit), next_limit in zip(sorted(limits.items(), key=lambda item: item[1]), above, strict=True):
        ax.axhline(limit, color=colors["primary"], linestyle="--", linewidth=1.2)
        crowded = next_limit - limit < 40  # then the label goes under its line
        side, shift = ("top", -5) if crowded else ("bottom", 2)
        ax.text(4, limit + shift, f"{name}: {limit:.0f}", color=colors["primary"], va=side)
    ax.set(xlabel="side of a tile, elements", ylabel="room, KiB", xlim=(0, 330), ylim=(0, 620))
    ax.set_xticks([32, 64, 128, 192, 256, 320])


@dataclass(frozen=True)
class Nested:
    """One tile among tiles in tiles.

    Attributes:
        name: what the tile is called.
        rows: its rows.
        columns: its columns.
        cuts: into how many rows and columns of smaller tiles it is cut.
        source: the memory that its operands come from.
        rate: how fast that memory delivers.
        needed: the side that a square tile fed from there needs, so that arithmetic sets the pace.
    """

    name: str
    rows: int
    columns: int
    cuts: tuple[int, int]
    source: str
    rate: Quantity
    needed: float


def nested(levels: Sequence[Nested]) -> None:
    """Draw tiles within tiles, from the outermost in: where each is fed from, and the side that it would need."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 1.05 * len(levels) + 0.25))
    ax.set(xlim=(0, 10), ylim=(2.1 * len(levels) + 0.35, -0.15), aspect="equal")
    ax.axis("off")
    lines, fills = ("BlueLine", "GreenLine", "OrangeLine"), ("BlueL", "GreenL", "OrangeL")
    for place, tile in enumerate(levels):
        line, fill = colors[lines[place % 3]], colors[fills[place % 3]]
        inner = colors[lines[(place + 1) % 3]] if place + 1 < len(levels) else "white"
        left, top = 0.3 + 0.75 * place, 2.1 * place + 0.15
        width, height = (
            1.6 * tile.columns / max(tile.rows, tile.columns),
            1.6 * tile.rows / max(tile.rows, tile.columns),
        )
        down, across = tile.cuts
        ax.add_patch(Rectangle((left, top), width, height, facecolor=fill, edgecolor="none"))
        corner = (left + width * (across - 1) / across, top + height * (down - 1) / down)
        if place + 1 < len(levels):
            ax.add_patch(Rectangle(corner, width / across, height / down, facecolor=inner, edgecolor="none"))
        for cut in range(1, across):
            ax.plot([left + width * cut / across] * 2, [top, top + height], color="white", linewidth=0.8)
        for cut in range(1, down):
            ax.plot([left, left + width], [top + height * cut / down] * 2, color="white", linewidth=0.8)
        ax.add_patch(Rectangle((left, top), width, height, facecolor="none", edgecolor=line, linewidth=1.6, zorder=3))
        if place + 1 < len(levels):  # the marked inner tile is the next one
            for x in (corner[0], left + width):
                to = 0.3 + 0.75 * (place + 1) + (1.6 if x > corner[0] else 0.0)
                ax.plot([x, to], [top + height, top + 2.1], color=colors["primary"], linewidth=0.8, linestyle=":")
        x = 4.05
        ax.text(x, top + 0.28, f"{tile.name}: {tile.rows:,} × {tile.columns:,}", color=line, weight="bold", va="center")
        rate = f"{tile.rate.m_as('TB/s'):.3g}"
        ax.text(x, top + 0.83, f"fed from {tile.source}, {rate} TB/s", va="center")
        ax.text(x, top + 1.35, f"a side of about {tile.needed:.0f} would do", va="center")


def tile_of(variant: str) -> tuple[int, int]:
    """Return rows and columns of the tile of C that a row's variant names, such as "64x64x32" for m, n and k."""
    rows, columns, _ = (int(side) for side in variant.split("x"))
    return rows, columns


def square_side(variant: str) -> float:
    """Return the side of the square tile that reads as much as this one: 2 / T = 1 / rows + 1 / columns."""
    rows, columns = tile_of(variant)
    return 2 / (1 / rows + 1 / columns)


def fetched_bytes(row: Row) -> float:
    """Return the bytes of A and B that the tiles of a row fetch, each once per tile."""
    m, n, k = row.shape
    rows, columns = tile_of(row.variant)
    return bytes_per_element(row.dtype) * m * n * k * (1 / rows + 1 / columns)


def arithmetic_ms(row: Row, acc: Accelerator) -> float:
    """Return the time of a row's arithmetic at the data sheet's peak of tensor cores, or of vector units in float32."""
    m, n, k = row.shape
    engine = "vector" if row.dtype == "fp32" else "tensor"
    return float(2 * m * n * k / Roofline.of(acc, row.dtype, engine=engine).peak.m_as("flop/ms"))


def predicted_ms(row: Row, acc: Accelerator, rate: Quantity) -> float:
    """Return the least time of a row's product: of its arithmetic, or of fetching its tiles and storing C at a rate."""
    m, n, _ = row.shape
    moved = fetched_bytes(row) + bytes_per_element(row.dtype) * m * n
    return max(arithmetic_ms(row, acc), moved / rate.m_as("byte/ms"))


def tile_times(rows: Sequence[Row], acc: Accelerator, rates: Mapping[str, Quantity], library_ms: float) -> None:
    """Draw measured time against the side of the tile, beside what memories of some rates allow and a library takes."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.2))
    sides = np.array([square_side(row.variant) for row in rows])
    for (name, rate), color in zip(rates.items(), ("BlueLine", "GreenLine"), strict=True):
        times = [predicted_ms(row, acc, rate) for row in rows]
        ax.loglog(sides, times, "-", color=colors[color], linewidth=1.5, label=f"predicted: {name}")
    measured = [1e3 * row.median_s for row in rows]
    ax.plot(sides, measured, "o-", color=colors["RedLine"], zorder=4, linewidth=1.2, label="measured")
    for row, side, time_ms in zip(rows, sides, measured, strict=True):
        if round(side) != side:  # the others are on the axis
            label = " × ".join(str(part) for part in tile_of(row.variant))
            ax.annotate(
                label, (side, time_ms), xytext=(-24, 19), textcoords="offset points", ha="center", fontsize=9,
                color=colors["RedLine"],
                arrowprops={"arrowstyle": "-", "color": colors["RedLine"], "linewidth": 0.8, "shrinkB": 4},
            )  # fmt: skip
    floor = arithmetic_ms(rows[0], acc)
    ax.axhline(floor, color=colors["primary"], linestyle=":", linewidth=1.5)
    ax.text(sides[0], floor * 0.97, "arithmetic at the peak", va="top", fontsize=9.5)
    ax.axhline(library_ms, color=colors["OrangeLine"], linestyle="--", linewidth=1.5)
    ax.text(sides[0], library_ms * 1.03, "cuBLAS", color=colors["OrangeLine"], va="bottom", fontsize=9.5)
    ax.legend(loc="upper right", fontsize=9)
    ax.set(
        xlabel="side of the square tile that fetches as much, elements", ylabel="time, ms", ylim=(floor * 0.75, None)
    )
    ax.set_xlim(sides[0] * 0.75, sides[-1] * 1.4)
    shown = [side for side in sides if round(side) == side]
    ax.set_xticks(shown, [f"{side:.0f}" for side in shown])
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if floor * 0.7 < tick < 2 * max(measured)]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def rungs(rows: Sequence[Row], peer: str = "cuBLAS", axis: str = "share of cuBLAS's speed, %") -> None:
    """Draw how far each rung of a ladder gets: its share of the speed of a library, on a logarithmic axis.

    Args:
        rows: a row of the record for each rung.
        peer: the library, as the rows name it.
        axis: what the axis says.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.8 + 0.36 * len(rows)))
    shares = [100 * row.peers[peer] for row in rows]
    least = min(shares) / 2
    for place, share in enumerate(shares):
        ax.barh(place, share - least, left=least, height=0.66, color=colors["BlueL"], edgecolor=colors["BlueLine"])
        shown = f"{share:.2f}%" if share < 1 else f"{share:.1f}%" if share < 10 else f"{share:.0f}%"
        ax.text(max(*shares, 100) * 1.25, place, shown, va="center", fontsize=10)
    ax.axvline(100, color=colors["OrangeLine"], linestyle="--", linewidth=1.5)
    ax.set_xscale("log")
    ax.set(xlim=(least, 100 * 6), ylim=(len(rows) - 0.4, -0.6), xlabel=axis)
    ax.set_yticks(range(len(rows)), [f"{place + 1}  {row.variant}" for place, row in enumerate(rows)])
    ax.tick_params(axis="y", length=0)
    ticks = [tick for tick in (0.1, 1, 10, 100) if tick > least]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.grid(visible=False, axis="y")


PROFILES = Path(__file__).parents[2] / "labs/tiling/ladder/profiles"
"""What `scripts/profile_ladder.py` has written."""

UTILIZATIONS = {
    "issue\nslots": "issue slots used",
    "tensor\ncores": "tensor pipe active",
    "L1 and\nshared": "L1 throughput",
    "L2": "L2 throughput",
    "device\nmemory": "device memory throughput",
}
"""The busy shares that a profile's figure shows, and the quantities of the exports that they are."""


def profiles(folder: Path = PROFILES) -> dict[str, dict[str, float]]:
    """Read the exports of the profiler: for each rung or tile, its quantities by name."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        if path.stem != "raw":
            with path.open(encoding="utf-8", newline="") as file:
                found[path.stem] = {line["quantity"]: float(line["value"]) for line in csv.DictReader(file)}
    return found


def busy(found: Mapping[str, Mapping[str, float]]) -> None:
    """Draw how busy each unit is on each rung, one panel per unit, in percent of what it can sustain."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    fig, panels = plt.subplots(
        1, len(UTILIZATIONS), sharey=True, figsize=(WIDTH, 0.9 + 0.34 * len(found)), layout="constrained"
    )
    colors = viz.COLORS
    tones = ("BrownLine", "GreenLine", "OrangeLine", "BlueLine", "VioletLine")
    for ax, (unit, quantity), tone in zip(panels, UTILIZATIONS.items(), tones, strict=True):
        for place, rung in enumerate(found.values()):
            share = rung.get(quantity)
            if share is None:
                ax.text(3, place, "?", va="center", fontsize=9)
                continue
            ax.barh(place, share, height=0.66, color=colors[tone.replace("Line", "L")], edgecolor=colors[tone])
            ax.text(share + 5, place, f"{share:.0f}", va="center", fontsize=9)
        ax.set_title(unit, fontsize=9, color=colors[tone])
        ax.set(xlim=(0, 155), ylim=(len(found) - 0.4, -0.6))
        ax.set_xticks([0, 100], ["0", "100"])
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
    names = [f"{int(rung[:2])}  {rung[3:].replace('_', ' ')}" if rung[0].isdigit() else "cuBLAS" for rung in found]
    panels[0].set_yticks(range(len(found)), names)
    fig.supxlabel("busy, % of what the unit can sustain", fontsize=10)
