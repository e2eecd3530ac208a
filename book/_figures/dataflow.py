"""Figures of the chapter on dataflows; each draws one claim from counts of the package."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from mlsys import viz
from mlsys.dataflow import Accesses, compulsory, matmul, stationary_traffic
from mlsys.dataflow.other_tools import ZigZagRun
from mlsys.dataflow.row_stationary import LEVELS, RowStationary, energy_ratios

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
NAMES = {"ws": "weights stay", "os": "outputs stay", "is": "inputs stay"}
"""Dataflows of a matrix product."""
PARTS = {
    "weights": ("weights read", "BlueLine", 1.0),
    "inputs": ("inputs read", "OrangeLine", 1.0),
    "sum_writes": ("sums written", "GreenLine", 1.0),
    "sum_reads": ("sums read back", "GreenLine", 0.45),
}
"""What crosses to the far memory: its name, color and opacity."""
LEVEL_NAMES = {"dram": "DRAM", "buffer": "buffer", "array": "neighbor", "register_file": "own\nregisters"}


def pinned() -> None:
    """Draw four panels: for each dataflow which numbers of a small convolution stay and which move."""
    _, ax, _, _ = viz.setup_plot(figsize=(WIDTH, 3.7))
    panels = (
        ("weight stationary", {"weights": "one stays"}),
        ("output stationary", {"sums": "one stays"}),
        ("input stationary", {"inputs": "one stays"}),
        ("row stationary", {"weights": "a row stays", "inputs": "a row slides", "sums": "one moves up"}),
    )
    for place, (title, held) in enumerate(panels):
        _panel(ax, 15.5 * (place % 2), 9.6 * (place // 2), title, held)
    ax.set(xlim=(-0.4, 29.4), ylim=(17.6, -2.2), aspect="equal")
    ax.axis("off")


def _panel(ax: Axes, left: float, top: float, title: str, held: Mapping[str, str]) -> None:
    """Draw a filter, an image and its sums, with the squares that stay filled."""
    rows = len(held) == 3
    marked = {
        "weights": {3, 4, 5} if rows else {0},
        "inputs": {10, 11, 12} if rows else {6},
        "sums": {3} if rows else {0},
    }
    ax.text(left + 6.5, top - 0.6, title, ha="center", va="bottom", weight="bold", fontsize=9.5)
    for across, side, name, color in ((0, 3, "weights", "Blue"), (4, 5, "inputs", "Orange"), (10, 3, "sums", "Green")):
        line = viz.COLORS[f"{color}Line"]
        for cell in range(side * side):
            row, col = divmod(cell, side)
            here = name in held and cell in marked[name]
            corner = (left + across + col, top + (5 - side) / 2 + row)
            ax.add_patch(
                Rectangle(corner, 1, 1, facecolor=line if here else viz.COLORS[f"{color}L"], edgecolor="white")
            )
        words = f"{name}\n{held.get(name, 'move' if name != 'sums' else 'come and go')}"
        below = top + 5.2
        ax.text(left + across + side / 2, below, words, ha="center", va="top", fontsize=8.5, color=line)


def traffic(m: int, n: int, k: int, buffer: int) -> None:
    """Draw what each dataflow moves for one buffer size, as stacked bars above the compulsory traffic."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    for place, dataflow in enumerate(NAMES):
        moved = stationary_traffic(m, n, k, dataflow=dataflow, buffer=buffer).accesses
        below = 0.0
        for part, (name, color, alpha) in PARTS.items():
            height = getattr(moved, part) / 1e3
            label = name if place == 0 else None
            ax.bar(place, height, 0.66, bottom=below, color=colors[color], alpha=alpha, label=label)
            below += height
        ax.text(place, below + 5, f"{moved.total:,}", ha="center", fontsize=9)
    least = compulsory(matmul(m, n, k)).total / 1e3
    ax.axhline(least, color=colors["primary"], linestyle="--", linewidth=1.2)
    ax.text(1.5, least + 3, "each\nonce", ha="center", va="bottom", fontsize=8)
    ax.set_xticks(range(len(NAMES)), list(NAMES.values()))
    ax.set(ylabel="thousand numbers moved", ylim=(0, 370), xlim=(-0.5, 2.5))
    ax.grid(visible=False, axis="x")
    ax.legend(loc="upper right", frameon=False, fontsize=8.5)


def by_buffer(m: int, n: int, k: int, marked: int) -> None:
    """Draw the traffic of each dataflow against the size of the near memory."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    sizes = [2**power for power in range(7, 18)]
    for (dataflow, name), color in zip(NAMES.items(), ("BlueLine", "GreenLine", "OrangeLine"), strict=True):
        totals = [stationary_traffic(m, n, k, dataflow=dataflow, buffer=size).accesses.total / 1e3 for size in sizes]
        ax.plot(sizes, totals, "o-", color=colors[color], markersize=3.5, label=name)
    least = compulsory(matmul(m, n, k)).total / 1e3
    ax.axhline(least, color=colors["primary"], linestyle="--", linewidth=1.2, label="each number once")
    ax.axvline(marked, color=colors["primary"], linestyle=":", linewidth=1.2)
    ax.set(xscale="log", yscale="log", xlabel="numbers that fit near", ylabel="thousand numbers moved")
    ax.set_xticks([128, 1024, 4096, 16384, 131072], ["128", "1,024", "4,096", "16,384", "131,072"])
    ax.set_yticks([200, 500, 1000, 2000], ["200", "500", "1,000", "2,000"])
    ax.minorticks_off()
    ax.legend(loc="upper right", frameon=False, fontsize=8.5)


def levels(layer: RowStationary) -> None:
    """Draw where a row-stationary layer's accesses are served, and what they cost, as shares of the whole."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.9))
    ratios = energy_ratios()
    served = {level: sum(counts[level] for counts in layer.counts.values()) for level in LEVELS}
    spent = {level: served[level] * ratios[level].value.m for level in LEVELS}
    for shift, (values, name, color) in enumerate(
        ((served, "of the accesses", "BlueLine"), (spent, "of the energy", "RedLine"))
    ):
        shares = [100 * values[level] / sum(values.values()) for level in LEVELS]
        places = [place + 0.38 * (shift - 0.5) for place in range(len(LEVELS))]
        ax.bar(places, shares, 0.36, color=colors[color], label=name)
        for place, share in zip(places, shares, strict=True):
            ax.text(place, share + 1.5, f"{share:.0f}" if share >= 1 else f"{share:.1f}", ha="center", fontsize=8.5)
    ax.set_xticks(range(len(LEVELS)), list(LEVEL_NAMES.values()))
    ax.set(ylabel="percent", ylim=(0, 112))
    ax.grid(visible=False, axis="x")
    ax.legend(loc="upper left", frameon=False)


def played(counts: Mapping[str, tuple[int, int, int]]) -> None:
    """Draw what each dataflow has moved at the end of the small convolution, one group of bars for each dataflow."""
    _, ax, _, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    _grouped(ax, counts)


def _grouped(ax: Axes, counts: Mapping[str, tuple[int, int, int]]) -> None:
    looks = (("weights", "BlueLine"), ("inputs", "OrangeLine"), ("sums", "GreenLine"))
    for shift, (name, color) in enumerate(looks):
        places = [place + 0.27 * (shift - 1) for place in range(len(counts))]
        heights = [moved[shift] for moved in counts.values()]
        ax.bar(places, heights, 0.25, color=viz.COLORS[color], label=name)
        for place, height in zip(places, heights, strict=True):
            ax.text(place, height + 2, str(height), ha="center", fontsize=8.5)
    ax.set_xticks(range(len(counts)), [name.replace(" ", "\n") for name in counts])
    ax.set(ylabel="accesses to the far memory", ylim=(0, 190))
    ax.grid(visible=False, axis="x")
    ax.legend(loc="upper right", ncols=3, frameon=False)


def beside(runs: Mapping[str, ZigZagRun]) -> str:
    """Return our counts beside ZigZag's, two lines for each run and one for the difference, as a cell prints them."""
    head = ("weights", "inputs", "sums out", "sums in", "cycles", "nJ")
    lines = [f"{'':20}" + "".join(f"{name:>9}" for name in head)]
    for label, run in runs.items():
        here = (*_moved(run.counted()), run.counted_cycles(), run.counted_pj() / 1e3)
        there = (*_moved(run.accesses), run.cycles, run.energy_pj / 1e3)
        more = tuple(b - a for a, b in zip(here, there, strict=True))
        for name, row in ((f"{label:13} here", here), (f"{'':13} ZigZag", there), (f"{'':13} more", more)):
            lines.append(f"{name:20}" + "".join(f"{value:9,}" for value in row[:-1]) + f"{row[-1]:9,.1f}")
    return "\n".join(lines)


def _moved(accesses: Accesses) -> tuple[int, int, int, int]:
    return accesses.weights, accesses.inputs, accesses.sum_writes, accesses.sum_reads
