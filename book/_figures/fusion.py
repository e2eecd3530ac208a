"""Figures of the chapter on fusion; each draws one claim from numbers that it is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from mlsys import viz
from mlsys.measure.records import Row
from mlsys.ops.chain import Chain

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
MOST_REGISTERS = 255
"""Registers that a thread can have at most."""
PASSES = {"fused chain": (6, 2), "fused bias + GELU": (4, 2), "fused softmax": (2, 2), "fused layernorm": (2, 2)}
"""Times that the matrix crosses the memory interface in eager PyTorch, if each kernel reads it once, and fused."""
SHORT = {
    "fused chain": "chain",
    "fused bias + GELU": "bias, GELU",
    "fused softmax": "softmax",
    "fused layernorm": "layer norm",
}


@dataclass(frozen=True)
class Gain:
    """What one kernel gains over eager PyTorch.

    Attributes:
        name: the operation and its columns.
        measured: time of eager PyTorch / time of the fused kernel.
        passes: passes of eager PyTorch / passes of the fused kernel.
        rates: bytes per second of the fused kernel / those of eager PyTorch, which is `measured / passes`.
        compiled: time of eager PyTorch / time of what torch.compile makes.
    """

    name: str
    measured: float
    passes: float
    rates: float
    compiled: float


def gain(row: Row) -> Gain:
    """Split the gain of a row of the record into fewer passes and a higher rate."""
    before, after = PASSES[row.name]
    measured = row.peers["eager torch"]
    compiled = measured / row.peers["torch.compile"]
    name = f"{SHORT[row.name]}, {row.shape[1]:,}"
    return Gain(name, measured, before / after, measured / (before / after), compiled)


def traffic(chain: Chain, cuttings: Mapping[str, Sequence[int]]) -> None:
    """Draw which matrices cross between memory and chip, one panel for each way of cutting a chain into kernels."""
    size = max(chain.elements.values())
    names = [name for name in chain.elements if chain.elements[name] == size]
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.15 + 2.1 * len(cuttings)))
    for panel, (way, cuts) in enumerate(cuttings.items()):
        top, first = 3.2 * panel, 0
        kernels = chain.kernels(cuts)
        crossing = {name for kernel in kernels for name in (*kernel.reads, *kernel.writes)}
        ax.add_patch(Rectangle((-0.5, top), len(names), 0.75, facecolor=colors["BlueL"], edgecolor="none"))
        for place, name in enumerate(names):
            if name in crossing:
                ax.add_patch(_box(place - 0.17, top + 0.17, 0.34, 0.41, "white", colors["BlueLine"]))
                ax.text(place, top + 0.38, name, ha="center", va="center", style="italic", color=colors["BlueLine"])
        for kernel in kernels:
            last = first + len(kernel.operations)
            kept = [name for name in names[first + 1 : last] if name not in crossing]
            words = " → ".join(kernel.operations) + (f"\n{' and '.join(kept)} stay in registers" if kept else "")
            ax.add_patch(_box(first + 0.2, top + 1.75, last - first - 0.4, 0.75, colors["GreenL"], colors["GreenLine"]))
            ax.text((first + last) / 2, top + 2.12, words, ha="center", va="center", fontsize=9, linespacing=1.4,
                    color=colors["GreenLine"])  # fmt: skip
            for crossed, reading in ((kernel.reads, True), (kernel.writes, False)):
                for name in (name for name in crossed if name in names):
                    _arrow(ax, names.index(name), first + 0.36 if reading else last - 0.36, top, reading)
            first = last
        count = sum(name in names for kernel in kernels for name in (*kernel.reads, *kernel.writes))
        ax.text(-0.5, top - 0.1, f"{way}: {count} crossings", ha="left", va="bottom", weight="bold")
        ax.text(len(names) - 0.5, top - 0.1, "device memory", ha="right", va="bottom", color=colors["BlueLine"])
    ax.set(xlim=(-0.55, len(names) - 0.45), ylim=(3.2 * len(cuttings) - 0.62, -0.55))
    ax.axis("off")


def _box(x: float, y: float, width: float, height: float, face: str, edge: str) -> FancyBboxPatch:
    return FancyBboxPatch((x + 0.05, y + 0.05), width - 0.1, height - 0.1, boxstyle="round,pad=0.05", facecolor=face,
                          edgecolor=edge, linewidth=1.2)  # fmt: skip


def _arrow(ax: Axes, tensor: float, kernel: float, top: float, reading: bool) -> None:
    color = viz.COLORS["BlueLine" if reading else "OrangeLine"]
    memory, chip = (tensor + (0.06 if reading else -0.06), top + 0.66), (kernel, top + 1.72)
    start, end = (memory, chip) if reading else (chip, memory)
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 0, "shrinkB": 0})


def gains(found: Sequence[Gain]) -> None:
    """Draw each gain as a product on a logarithmic axis, fewer passes and then a higher rate, and torch.compile's."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.95 + 0.38 * len(found)))
    for place, one in enumerate(found):
        if one.passes > 1:
            ax.barh(place, one.passes - 1, 0.58, left=1, color=colors["BlueLine"])
        ax.barh(place, one.measured - one.passes, 0.58, left=one.passes, color=colors["OrangeLine"], alpha=0.85)
        ax.plot(one.compiled, place, "D", color="white", markeredgecolor=colors["primary"], markersize=6, zorder=3)
        ax.text(one.measured * 1.05, place, f"{one.measured:.1f}", va="center", fontsize=9)
    marks = [
        Rectangle((0, 0), 1, 1, color=colors["BlueLine"]),
        Rectangle((0, 0), 1, 1, color=colors["OrangeLine"], alpha=0.85),
        ax.plot([], [], "D", color="white", markeredgecolor=colors["primary"], markersize=6)[0],
    ]
    ax.legend(marks, ["fewer passes", "higher rate", "torch.compile"], loc="upper center", bbox_to_anchor=(0.4, 1.16),
              ncols=3, columnspacing=1.2, handletextpad=0.5)  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks([1, 1.5, 2, 3, 4, 5], ["1", "1.5", "2", "3", "4", "5"])
    ax.minorticks_off()
    ax.set_yticks(range(len(found)), [one.name for one in found])
    ax.set(xlim=(1, 6), xlabel="times as fast as eager PyTorch")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


def registers(by_steps: Mapping[int, Mapping[str, int]], by_numbers: Mapping[int, Mapping[str, int]]) -> None:
    """Draw the registers of a thread against element-wise steps, and against the numbers of a row that it holds."""
    fig, left, colors, plt = viz.setup_plot(figsize=(WIDTH, 3.0))
    left.set_subplotspec(plt.GridSpec(1, 2, figure=fig)[0])
    right = fig.add_subplot(1, 2, 2, sharey=left)
    for ax, found, color in ((left, by_steps, "GreenLine"), (right, by_numbers, "VioletLine")):
        ax.plot(list(found), [one["registers"] for one in found.values()], "o-", color=colors[color], markersize=5)
        ax.axhline(MOST_REGISTERS, color=colors["primary"], linestyle="--", linewidth=1.2)
        ax.set_xscale("log", base=2)
        ax.set_xticks(list(found), [str(number) for number in found])
        ax.minorticks_off()
    for numbers, one in by_numbers.items():
        if one["stored"]:
            right.plot(numbers, one["registers"], "o", color=colors["RedLine"], markersize=8)
            right.text(numbers, one["registers"] - 45, "spills", color=colors["RedLine"], ha="right", va="top",
                       weight="bold")  # fmt: skip
    left.text(1, MOST_REGISTERS - 7, "most that a thread can have", va="top", fontsize=8.5)
    left.set(xlabel="element-wise steps", ylabel="registers of a thread", ylim=(0, 275))
    right.set(xlabel="numbers of a row per thread")
    right.tick_params(labelleft=False)


def placements(times_us: Mapping[str, float], product_us: float) -> None:
    """Draw what an activation adds to a product in different places, beside the time of the product."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.42 * len(times_us)))
    for place, time_us in enumerate(times_us.values()):
        ax.barh(place, time_us, 0.56, color=colors["RedLine" if time_us > product_us else "BlueLine"])
        ax.text(time_us + 12, place, f"{time_us:.0f}", va="center")
    ax.axvline(product_us, color=colors["primary"], linestyle="--", linewidth=1.2)
    ax.text(product_us - 10, -0.25, "the product\nitself", ha="right", va="center", fontsize=9)
    ax.set_yticks(range(len(times_us)), list(times_us))
    ax.set(xlabel="minimum time, µs", xlim=(0, 1.12 * max(times_us.values())))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


def played(found: Mapping[str, tuple[float, float]]) -> None:
    """Draw what chains move with a kernel for each operation and with one kernel, in passes over the matrix."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.62 * len(found)))
    for place, counts in enumerate(found.values()):
        for shift, (count, color, words) in enumerate(
            zip(counts, ("BlueLine", "GreenLine"), ("a kernel for each operation", "one kernel"), strict=True)
        ):
            y = place + 0.36 * (shift - 0.5)
            ax.barh(y, count, 0.33, color=colors[color], label=words if place == 0 else None)
            ax.text(count + 0.1, y, f"{count:.1f}", va="center", fontsize=9)
    ax.set_yticks(range(len(found)), [fill(name, 26) for name in found])
    ax.set(xlabel="passes over the matrix", xlim=(0, 1.18 * max(max(counts) for counts in found.values())))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=9, columnspacing=1.2, handletextpad=0.5)
