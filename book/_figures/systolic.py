"""Figures of the chapter on systolic arrays; each draws one claim from numbers that the package computes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from mlsys import viz
from mlsys.hardware import Accelerator
from mlsys.systolic import Frame, fringe_efficiency, stream_efficiency

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
"""Background of a label that is drawn over a line."""

SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Counters:
    """Hardware counters of the first TPU's array; `active`, `stall`, `shift` and `other` add up to 100% of the cycles.

    Attributes:
        active: cycles in which the array multiplies, %.
        useful: share of the peak that these cycles turn into useful multiply-adds, %.
        stall: cycles spent waiting for weights from memory, %.
        shift: cycles spent shifting weights into the array, %.
        other: cycles without work for the array, %.
    """

    active: float
    useful: float
    stall: float
    shift: float
    other: float

    @property
    def padding(self) -> float:
        """Share of the multipliers that hold no weight of the network while the array is active."""
        return 1 - self.useful / self.active


@dataclass(frozen=True)
class Workload:
    """A network in production on the first TPU.

    Attributes:
        name: as the paper calls it.
        multiply_adds_per_weight: per byte of weights read, for one-byte weights: rows that stream past a tile.
        measured_tops: trillions of operations per second, two for each multiply-add.
        counters: from other rows of the paper than `measured_tops`, with which they disagree for three networks.
    """

    name: str
    multiply_adds_per_weight: int
    measured_tops: float
    counters: Counters

    def predicted_tops(self, chip: Accelerator) -> float:
        """The lower of two bounds: the peak, and what the weights allow that the memory can deliver."""
        from_memory = 2 * self.multiply_adds_per_weight * float(chip.memory_bw.m_as("TB/s"))
        return min(float(chip.peak("int8").m_as("TOP/s")), from_memory)


TPU_V1 = (
    Workload("MLP0", 200, 12.3, Counters(12.7, 12.5, 53.9, 15.9, 17.5)),
    Workload("MLP1", 168, 9.7, Counters(10.6, 9.4, 44.2, 13.4, 31.9)),
    Workload("LSTM0", 64, 3.7, Counters(8.2, 8.2, 58.1, 15.8, 17.9)),
    Workload("LSTM1", 96, 2.8, Counters(10.5, 6.3, 62.1, 17.1, 10.3)),
    Workload("CNN0", 2888, 86.0, Counters(78.2, 78.2, 0.0, 0.0, 21.8)),
    Workload("CNN1", 1750, 14.1, Counters(46.2, 22.5, 28.1, 7.0, 18.7)),
)
"""Jouppi et al. 2017: Table 1, column "TPU Ops / Weight Byte", and Table 3, rows 9, 1, 2, 4, 5 and 6."""


def array(n: int = 3) -> None:
    """The four parts of an output-stationary array: control, two skewed streams, the grid, the collecting memory."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 5.6))
    ax.set(xlim=(-5.6, 5.6), ylim=(7.6, -5.7), aspect="equal")
    ax.axis("off")
    step = 1.75
    arrow = {"arrowstyle": "->", "color": colors["primary"], "linewidth": 1.3}
    for i in range(n):
        for j in range(n):
            x, y = step * j, step * i
            _cell(ax, x, y, 1.15, "GreenL", "GreenLine", f"c{i}{j}".translate(SUBSCRIPT))
            ax.annotate("", xy=(x, y + 0.57), xytext=(x - 0.6, y + 0.57), arrowprops=arrow)
            ax.annotate("", xy=(x + 0.57, y), xytext=(x + 0.57, y - 0.6), arrowprops=arrow)
    for line in range(n):
        for k in range(n):
            away = -1.55 - 0.95 * (k + line)  # the later an operand enters, the farther it still is
            _cell(ax, away, step * line + 0.15, 0.82, "BlueL", "BlueLine", f"a{line}{k}".translate(SUBSCRIPT))
            _cell(ax, step * line + 0.15, away, 0.82, "OrangeL", "OrangeLine", f"b{k}{line}".translate(SUBSCRIPT))
        x = step * line + 0.57
        leave = arrow | {"color": colors["VioletLine"]}
        ax.annotate("", xy=(x, 5.95), xytext=(x, step * (n - 1) + 1.15), arrowprops=leave)
    ax.add_patch(Rectangle((-0.1, 5.95), 4.85, 1.2, facecolor=colors["VioletL"], edgecolor=colors["VioletLine"]))
    ax.text(2.3, 6.55, "collects the sums", ha="center", va="center", color=colors["VioletLine"], weight="bold")
    ax.add_patch(Rectangle((-5.4, -3.4), 3.6, 1.9, facecolor=colors["BrownL"], edgecolor=colors["BrownLine"]))
    ax.text(-3.6, -2.45, "control:\ncounts cycles", ha="center", va="center", color=colors["BrownLine"], weight="bold")
    starts = {"arrowstyle": "->", "color": colors["BrownLine"], "linewidth": 1.3, "linestyle": "--"}
    ax.annotate("", xy=(-0.1, -2.45), xytext=(-1.8, -2.45), arrowprops=starts)
    ax.annotate("", xy=(-3.0, 0.1), xytext=(-3.0, -1.5), arrowprops=starts)
    ax.text(-5.4, 6.1, "stream of A,\nfrom the left", va="center", color=colors["BlueLine"], weight="bold")
    ax.text(-1.2, -5.3, "stream of B, from above", ha="right", va="center", color=colors["OrangeLine"], weight="bold")
    ax.text(5.15, 2.3, "grid", ha="center", va="center", color=colors["GreenLine"], weight="bold")


def _cell(ax: Axes, x: float, y: float, size: float, fill: str, edge: str, text: str) -> None:
    ax.add_patch(Rectangle((x, y), size, size, facecolor=viz.COLORS[fill], edgecolor=viz.COLORS[edge], linewidth=1.3))
    ax.text(x + size / 2, y + size / 2, text, ha="center", va="center", fontsize=10)


def cycle_by_cycle(steps: Sequence[Frame]) -> None:
    """The elements of a small output-stationary array at the end of each cycle: operands, product, sum."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    colors = viz.COLORS
    rows, cols = steps[0].held.shape
    _, axes = plt.subplots(2, 2, figsize=(WIDTH, 5.2), layout="constrained")
    for ax, frame in zip(axes.flat, steps, strict=True):
        ax.set(xlim=(-0.1, cols + 0.1), ylim=(rows + 0.1, -0.1), aspect="equal")
        ax.axis("off")
        ax.set_title(f"cycle {frame.cycle + 1}", fontsize=10)
        for (i, j), working in np.ndenumerate(frame.active):
            fill = colors["GreenL"] if working else "white"
            ax.add_patch(Rectangle((j + 0.04, i + 0.04), 0.92, 0.92, facecolor=fill, edgecolor=colors["primary"]))
            ax.text(
                j + 0.5, i + 0.68, f"sum {frame.held[i, j]:g}", ha="center", va="center", weight="bold", fontsize=10
            )
            if working:
                product = f"{frame.right[i, j]:g} × {frame.down[i, j]:g}"
                ax.text(j + 0.5, i + 0.32, f"+ {product}", ha="center", va="center", fontsize=10)


def weights_stay(steps: Sequence[Frame]) -> None:
    """The elements of a small weight-stationary array per cycle: weights move in, inputs pass right, sums move down."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    colors = viz.COLORS
    rows, cols = steps[0].held.shape
    _, axes = plt.subplots((len(steps) + 1) // 2, 2, figsize=(WIDTH, 7.6), layout="constrained")
    for ax, frame in zip(axes.flat, steps, strict=True):
        loading = frame.phase == "load"
        ax.set(xlim=(-0.62, cols + 0.05), ylim=(rows + 0.5, -0.25), aspect="equal")
        ax.axis("off")
        ax.set_title(f"cycle {frame.cycle + 1}: " + ("weights move in" if loading else "inputs pass"), fontsize=10)
        for (i, j), working in np.ndenumerate(frame.active):
            inside = loading and i <= frame.cycle
            fill = colors["BrownL"] if inside else colors["GreenL"] if working else "white"
            ax.add_patch(Rectangle((j + 0.05, i + 0.05), 0.9, 0.75, facecolor=fill, edgecolor=colors["primary"]))
            if loading:
                if inside:
                    _say(ax, j + 0.5, i + 0.42, f"{frame.down[i, j]:g}", "BrownLine", weight="bold")
                    _arrow(ax, (j + 0.5, i - 0.2), (j + 0.5, i + 0.05), "BrownLine")
                continue
            _say(ax, j + 0.5, i + 0.25, f"weight {frame.held[i, j]:g}", "BrownLine", weight="bold")
            if working:
                above = frame.down[i, j] - frame.product[i, j]
                start = f"{above:g} + " if i else ""
                _say(ax, j + 0.5, i + 0.58, f"{start}{frame.right[i, j]:g} × {frame.held[i, j]:g}", "primary")
                _arrow(ax, (j + 0.5, i + 0.8), (j + 0.5, i + 1.05), "VioletLine")
                if i == rows - 1:
                    _say(ax, j + 0.5, rows + 0.3, f"{frame.down[i, j]:g} leaves", "VioletLine", weight="bold")
                if j == 0:
                    _arrow(ax, (-0.24, i + 0.42), (0.05, i + 0.42), "BlueLine")
                    _say(ax, -0.4, i + 0.42, f"{frame.right[i, j]:g}", "BlueLine", weight="bold")
                else:
                    _arrow(ax, (j - 0.05, i + 0.42), (j + 0.05, i + 0.42), "BlueLine")


def _say(ax: Axes, x: float, y: float, text: str, color: str, weight: str = "normal") -> None:
    ax.text(x, y, text, ha="center", va="center", color=viz.COLORS[color], weight=weight, fontsize=10)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
    arrow = {"arrowstyle": "->", "color": viz.COLORS[color], "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=arrow)


def graph_and_silicon(side: int, grid: int) -> None:
    """The product of a model's program above, and one of the many steps that the array does for it below."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 6.2))
    ax.set(xlim=(-0.3, 10.3), ylim=(12.4, -0.2), aspect="equal")
    ax.axis("off")
    pieces = f"{side // grid}"
    ax.text(0, 0.3, "The program sees one product", weight="bold", va="center")
    for x, name, sign in ((0.4, "A", "×"), (3.9, "B", "="), (7.4, "C", "")):
        ax.add_patch(Rectangle((x, 0.9), 2.4, 2.4, facecolor="white", edgecolor=colors["primary"], linewidth=1.3))
        _say(ax, x + 1.2, 1.85, name, "primary", weight="bold")
        _say(ax, x + 1.2, 2.5, f"{side:,} × {side:,}", "primary")
        _say(ax, x + 2.95, 2.1, sign, "primary", weight="bold")
    ax.text(0, 4.3, f"The silicon sees {(side // grid) ** 2:,} folds; one of them:", weight="bold", va="center")
    cells, unit = 8, 0.3
    for x, name, (first, last), fill, edge in (
        (0.4, "A", ((2, 0), (3, cells)), "BlueL", "BlueLine"),
        (3.9, "B", ((5, 2), (6, 3)), "BrownL", "BrownLine"),
        (7.4, "C", ((5, 0), (6, cells)), "VioletL", "VioletLine"),
    ):
        for line in range(cells + 1):
            ax.plot([x, x + cells * unit], [5.4 + line * unit] * 2, color=colors["grid"], linewidth=0.8)
            ax.plot([x + line * unit] * 2, [5.4, 5.4 + cells * unit], color=colors["grid"], linewidth=0.8)
        ax.add_patch(
            Rectangle(
                (x + first[0] * unit, 5.4 + first[1] * unit),
                (last[0] - first[0]) * unit,
                (last[1] - first[1]) * unit,
                facecolor=colors[fill],
                edgecolor=colors[edge],
                linewidth=1.5,
            )
        )
        ax.text(x, 5.08, name, weight="bold", va="center")
    _say(ax, 1.6, 8.2, "a strip, read", "BlueLine")
    _say(ax, 5.1, 8.2, "one tile, held", "BrownLine")
    _say(ax, 8.6, 8.2, "a strip of sums", "VioletLine")
    ax.add_patch(
        Rectangle((3.9, 9.6), 2.4, 2.4, facecolor=colors["GreenL"], edgecolor=colors["GreenLine"], linewidth=1.5)
    )
    _say(ax, 5.1, 10.55, "array", "GreenLine", weight="bold")
    _say(ax, 5.1, 11.15, f"{grid} × {grid}", "GreenLine")
    _arrow(ax, (5.1, 8.5), (5.1, 9.6), "BrownLine")
    _arrow(ax, (1.6, 8.5), (3.9, 10.8), "BlueLine")
    _arrow(ax, (6.3, 10.8), (8.6, 8.5), "VioletLine")
    ax.text(0, 11.9, f"{pieces} × {pieces} tiles\nof B, one after\nthe other", va="bottom", fontsize=9)


def busy_share(sizes: Sequence[int], marked: int, batch: int) -> None:
    """Share of busy slots against the batch that streams past loaded weights, for arrays of several sizes."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    batches = np.unique(np.geomspace(1, 8192, 120).astype(int))
    names = ("GreenLine", "BlueLine", "VioletLine")
    for size, name in zip(sizes, names, strict=True):
        shares = [100 * stream_efficiency(int(rows), rows=size, cols=size) for rows in batches]
        ax.plot(batches, shares, color=colors[name], label=f"{size} × {size}")
    ax.legend(loc="lower right", title="array", fontsize=10)
    share = 100 * stream_efficiency(batch, rows=marked, cols=marked)
    ax.plot(batch, share, "o", color=colors["RedLine"], zorder=4)
    ax.annotate(
        f"batch {batch}: {share:.1f}%",
        (batch, share),
        xytext=(1.2, 22),
        color=colors["RedLine"],
        arrowprops={"arrowstyle": "-", "color": colors["RedLine"]},
    )
    ax.set(xscale="log", xlabel="rows that stream past (batch)", ylabel="busy slots, %", ylim=(0, 100))
    ax.set_xticks([1, 8, 128, 1024, 8192], ["1", "8", "128", "1,024", "8,192"])
    ax.minorticks_off()


def sawtooth(size: int, marked: Sequence[int]) -> None:
    """Share of an array that a matrix fills against its width, with one or both of its sides of that width."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    widths = np.arange(1, 4 * size + 1)
    one = np.array([100 * fringe_efficiency(int(width), size) for width in widths])
    ax.plot(widths, one, color=colors["BlueLine"])
    ax.plot(widths, one**2 / 100, color=colors["OrangeLine"], linewidth=1.2)
    ax.text(1.62 * size, 84, "one side", color=colors["BlueLine"], ha="right", weight="bold", fontsize=9)
    ax.text(2.04 * size, 40, "both sides", color=colors["OrangeLine"], ha="left", weight="bold", fontsize=9)
    for width in marked:
        share = 100 * fringe_efficiency(width, size)
        ax.plot(width, share, "o", color=colors["RedLine"], zorder=4)
        ax.text(
            width + 8, share - 1, f"{width}: {share:.0f}%", color=colors["RedLine"], va="top", fontsize=9, bbox=WHITE
        )
    ax.set(xlabel="width of the matrix", ylabel="share that is used, %", ylim=(0, 104), xlim=(0, 4 * size + 4))
    ax.set_xticks([size * i for i in range(5)])


def predicted_and_measured(workloads: Sequence[Workload], chip: Accelerator) -> None:
    """Predicted and measured rate of each network, one pair of bars each, against the peak."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 1.0 + 0.66 * len(workloads)))
    peak = chip.peak("int8").m_as("TOP/s")
    for place, workload in enumerate(workloads):
        rates = {"predicted": workload.predicted_tops(chip), "measured": workload.measured_tops}
        for (name, rate), shift, fill in zip(rates.items(), (-0.2, 0.2), ("BlueL", "BlueLine"), strict=True):
            ax.barh(place + shift, rate, height=0.36, color=colors[fill], edgecolor=colors["BlueLine"])
            ax.text(rate + 1.5, place + shift, f"{rate:.1f} {name}", va="center", fontsize=10, bbox=WHITE, zorder=1)
    ax.axvline(peak, color=colors["OrangeLine"], linestyle="--", linewidth=1.3, zorder=0.5)
    ax.text(peak - 1, -0.72, f"peak {peak:.0f}", color=colors["OrangeLine"], ha="right", va="center", fontsize=10)
    ax.set(yticks=range(len(workloads)), yticklabels=[workload.name for workload in workloads], xlabel="TOP/s")
    ax.set(xlim=(0, 1.4 * peak), ylim=(len(workloads) - 0.4, -1.0), xticks=[0, 20, 40, 60, 80])
    ax.grid(visible=False, axis="y")
