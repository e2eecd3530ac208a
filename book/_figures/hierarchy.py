"""Figures of the chapter on the memory hierarchy; each draws one claim, from numbers of the package or of a record."""

from collections.abc import Mapping, Sequence

from matplotlib.patches import FancyBboxPatch

from mlsys import viz
from mlsys.formatting import fmt
from mlsys.measure.records import Row

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
MIB = 2**20
GIB = 2**30
SIZES = {2**10: "1 KiB", 2**15: "32 KiB", 2**20: "1 MiB", 2**25: "32 MiB", 2**30: "1 GiB"}
"""Ticks of an axis of bytes."""


def strip(steps: Sequence[tuple[str, float, float, float]]) -> None:
    """Draw a tensor's way through the memories as boxes, and below each the wait, the transfer and the energy.

    Args:
        steps: name of each memory, from the farthest, with nanoseconds of latency, nanoseconds of transfer and
            microjoules.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.3))
    for place, (name, latency, transfer, energy) in enumerate(steps):
        left, middle = 10 * place, 10 * place + 4
        box = FancyBboxPatch(
            (left, 6.4), 8, 2.2, boxstyle="round,pad=0.1", facecolor=colors["BlueL"], edgecolor=colors["BlueLine"]
        )
        ax.add_patch(box)
        ax.text(middle, 7.5, name, ha="center", va="center", color=colors["BlueLine"], weight="bold", fontsize=9)
        if place:
            ax.annotate("", (left - 0.1, 7.5), (left - 1.8, 7.5), arrowprops={"arrowstyle": "-|>", "lw": 2})
        scale = 8 / (steps[0][1] + steps[0][2])
        ax.barh(4.6, latency * scale, left=left, height=1.1, color=colors["OrangeLine"])
        ax.barh(4.6, max(transfer * scale, 0.12), left=left + latency * scale, height=1.1, color=colors["GreenLine"])
        ax.text(left, 3.4, f"wait {fmt(latency, 0)} ns", color=colors["OrangeLine"], va="center", fontsize=9)
        ax.text(left, 2.2, f"transfer {fmt(transfer, 1)} ns", color=colors["GreenLine"], va="center", fontsize=9)
        ax.text(left, 1.0, f"{fmt(energy, 1)} µJ", va="center", fontsize=9)
    ax.set(xlim=(-0.4, 10 * len(steps) - 1.4), ylim=(0.3, 9))
    ax.axis("off")


def working_sets(rows: Sequence[Row], capacity_bytes: float, sheet_gbs: float) -> None:
    """Draw the rate of repeated copies against their working set, with the size of the cache and the memory's rate."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.4))
    ax.axvline(capacity_bytes, color=colors["OrangeLine"], linestyle="--")
    ax.text(capacity_bytes * 1.1, 0.35, "size of\nthe L2", color=colors["OrangeLine"], va="center")
    ax.axhline(sheet_gbs / 1e3, color=colors["BlueLine"], linestyle="--")
    ax.text(1.05 * MIB, sheet_gbs / 1e3 + 0.12, "device memory,\ndata sheet", color=colors["BlueLine"], va="bottom")
    sizes, rates = [row.shape[0] for row in rows], [(row.achieved or 0) / 1e3 for row in rows]
    ax.plot(sizes, rates, "o-", color=colors["VioletLine"])
    ax.text(5.5 * MIB, 2.4, "measured", color=colors["VioletLine"], weight="bold")
    ax.set(xscale="log", xlabel="working set, source and target together", ylabel="TB/s, read and written", ylim=(0, 7))
    ticks = {1: "1 MiB", 4: "4", 16: "16", 64: "64", 256: "256", 1024: "1 GiB"}
    ax.set_xticks([MIB * tick for tick in ticks], list(ticks.values()))
    ax.minorticks_off()


def chase(rows: Sequence[Row], published: Mapping[str, tuple[float, float]], ends: Mapping[str, float]) -> None:
    """Draw the time of a step of a pointer chase against the bytes that it walks.

    Args:
        rows: "pointer chase", with bytes walked and steps as their shape.
        published: for each level, least and greatest latency in ns that others measured.
        ends: for each cache, its size in bytes as one thread sees it.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    sizes, waits = [row.shape[0] for row in rows], [1e9 * row.median_s / row.shape[1] for row in rows]
    for name, (low, high) in published.items():
        ax.axhspan(low * 0.985, high * 1.015, color=colors["OrangeL"], zorder=0)
        ax.text(sizes[0], high * 1.05, name, color=colors["OrangeLine"], va="bottom", fontsize=9)
    for name, end in ends.items():
        ax.axvline(end, color=colors["primary"], linestyle=":", linewidth=1.2)
        ax.text(end * 0.9, 1300, name, rotation=90, ha="right", va="top", fontsize=9)
    ax.plot(sizes, waits, "o-", color=colors["VioletLine"])
    ax.set(
        xscale="log", yscale="log", xlabel="bytes that the chain walks", ylabel="time of a step, ns", ylim=(11, 1400)
    )
    shown = {size: text for size, text in SIZES.items() if sizes[0] * 0.7 <= size <= sizes[-1] * 1.4}
    ax.set_xticks(list(shown), list(shown.values()))
    ax.set_yticks([20, 50, 100, 200, 500, 1000], ["20", "50", "100", "200", "500", "1,000"])
    ax.minorticks_off()


def in_flight(rows: Sequence[Row], latency_s: float) -> None:
    """Draw the rate of reads against the bytes under way, beside Little's law with the latency of an idle memory.

    Args:
        rows: "bytes in flight", with programs and bytes under way in each as their shape.
        latency_s: seconds of a step of the pointer chase in device memory.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.4))
    flying = [row.shape[0] * row.shape[1] for row in rows]
    rates = [(row.achieved or 0) / 1e3 for row in rows]
    top = max(rates)
    corner = top * 1e12 * latency_s
    ends = [min(flying), corner, max(flying)]
    ax.plot(ends, [min(size / latency_s / 1e12, top) for size in ends], "--", color=colors["OrangeLine"])
    ax.plot(flying, rates, "o", color=colors["VioletLine"])
    ax.text(corner * 0.25, top * 0.5, "Little's law,\nidle latency", color=colors["OrangeLine"], ha="right")
    ax.text(corner * 0.5, top * 0.1, "measured", color=colors["VioletLine"], weight="bold")
    ax.set(xscale="log", yscale="log", xlabel="bytes in flight on the chip", ylabel="TB/s, read")
    ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    ticks = {1e4: "10 kB", 1e5: "100 kB", 1e6: "1 MB", 1e7: "10 MB", 1e8: "100 MB"}
    shown = {tick: text for tick, text in ticks.items() if min(flying) * 0.7 <= tick <= max(flying) * 1.4}
    ax.set_xticks(list(shown), list(shown.values()))
    ax.minorticks_off()
