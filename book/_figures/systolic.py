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
"""The ground of a label that lies on a line."""

SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True)
class Workload:
    """A network in production on the first TPU.

    Attributes:
        name: as the paper calls it.
        multiply_adds_per_weight: per byte of weights read, for one-byte weights: rows that stream past a tile.
        measured_tops: trillions of operations per second, two for each multiply-add.
    """

    name: str
    multiply_adds_per_weight: int
    measured_tops: float

    def predicted_tops(self, chip: Accelerator) -> float:
        """The lower of two bounds: the peak, and what the weights allow that the memory can deliver."""
        from_memory = 2 * self.multiply_adds_per_weight * float(chip.memory_bw.m_as("TB/s"))
        return min(float(chip.peak("int8").m_as("TOP/s")), from_memory)


TPU_V1 = (
    Workload("MLP0", 200, 12.3),
    Workload("MLP1", 168, 9.7),
    Workload("LSTM0", 64, 3.7),
    Workload("LSTM1", 96, 2.8),
    Workload("CNN0", 2888, 86.0),
    Workload("CNN1", 1750, 14.1),
)
"""Jouppi et al. 2017: Table 1, column "TPU Ops / Weight Byte", and Table 3, row 9."""


def array(n: int = 3) -> None:
    """An output-stationary array with its skewed operands waiting at the edges, and what one element consists of."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 7.2))
    ax.set(xlim=(-5.4, 5.6), ylim=(10.2, -5.7), aspect="equal")
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
    ax.text(-1.6, -2.6, "rows of A enter\nfrom the left, each\none cycle later", ha="right", color=colors["BlueLine"])
    ax.text(-5.2, -4.9, "columns of B enter from above,\neach one cycle later", color=colors["OrangeLine"])
    elements = (
        (-3.9, "one element here", "c + a b\nstays", "a", "a", "b", "b"),
        (1.7, "weights held instead", "w\nstays", "a", "a", "sum", "sum\n+ a w"),
    )
    for x, title, inside, left, right, top, bottom in elements:
        ax.text(x + 0.9, 5.85, title, ha="center", weight="bold", fontsize=10)
        ax.add_patch(Rectangle((x, 7.2), 1.8, 1.8, facecolor=colors["GreenL"], edgecolor=colors["GreenLine"]))
        ax.text(x + 0.9, 8.1, inside, ha="center", va="center", fontsize=10)
        ends = [
            ((x - 0.7, 8.1), (x, 8.1)),
            ((x + 1.8, 8.1), (x + 2.5, 8.1)),
            ((x + 0.9, 6.5), (x + 0.9, 7.2)),
            ((x + 0.9, 9.0), (x + 0.9, 9.7)),
        ]
        for start, end in ends:
            ax.annotate("", xy=end, xytext=start, arrowprops=arrow)
        ax.text(x - 0.9, 8.1, left, ha="right", va="center", fontsize=10)
        ax.text(x + 2.65, 8.1, right, va="center", fontsize=10)
        ax.text(x + 1.1, 6.75, top, va="center", fontsize=10)
        ax.text(x + 1.1, 9.6, bottom, va="center", fontsize=10)


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
