"""Figures of the chapter on the memory wall; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Rectangle

from mlsys import viz
from mlsys.hardware import Accelerator, Hardware
from mlsys.hardware.chips import GPUS_SINCE_2012
from mlsys.hardware.energy import basis
from mlsys.measure.records import Row
from mlsys.models import Model, published_size, published_sizes
from mlsys.units import Quantity, ureg

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

BANDWIDTHS = {
    "k20x": "below",
    "p100-sxm2": "below",
    "tpu-v2": "right",
    "v100-sxm2": "above",
    "a100-80gb-sxm": "above",
    "tpu-v4": "below",
    "h100-sxm": "below",
    "mi300x": "left",
    "mi325x": "right",
    "tpu-v6e": "below",
    "b200": "above",
}
"""Chips whose bandwidth is drawn with the sizes of models, and the side of the point on which the name is written."""
SIDE_OF_MODEL = {"resnet-50": "below", "palm": "left", "llama-3.1": "below", "llama-4": "right"}
"""Models whose name is not written above their point."""
BASE = "k20x"
"""The accelerator of 2012 with one chip on its board."""
BASE_MODEL = "alexnet"


def short(acc: Accelerator) -> str:
    """Return the name that people use, such as "H100"."""
    return acc.id.replace("tpu-", "TPU ") if acc.id.startswith("tpu") else acc.id.split("-")[0].upper()


def bandwidth_growth(chip_id: str, since: str = BASE) -> float:
    """Return the memory bandwidth of a chip as a multiple of an older chip's."""
    return float((Hardware.get(chip_id).memory_bw / Hardware.get(since).memory_bw).m_as(""))


def peak_growth(chip_id: str) -> float:
    """Return the peak rate of a chip as a multiple of the K20X's, each in its own number format."""
    first, *_ = GPUS_SINCE_2012
    rate, before = (Hardware.get(chip).peak(GPUS_SINCE_2012[chip]) for chip in (chip_id, first))
    return float((rate / before).m_as(""))


def model_growth(model_id: str, since: str = BASE_MODEL) -> float:
    """Return the parameters of a model as a multiple of another's."""
    return float((published_size(model_id).params / published_size(since).params).m_as(""))


def two_times(model: Model, chips: Sequence[Accelerator], precision: str = "fp16") -> None:
    """Draw the time of a network's arithmetic and of its traffic, one pair of bars for each chip."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.62 * len(chips)))
    for place, acc in enumerate(chips):
        moving = (model.bytes / acc.memory_bw).m_as("ms")
        arithmetic = (model.flops / acc.peak(precision)).m_as("ms")
        pair = (("arithmetic", arithmetic, "GreenLine"), ("data movement", moving, "BlueLine"))
        for (what, time_ms, color), shift in zip(pair, (-0.19, 0.19), strict=True):
            ax.barh(place + shift, time_ms, height=0.34, color=colors[color])
            text = f" {time_ms:.2f} {what}" if place == 0 else f" {time_ms:.2f}"
            ax.text(time_ms, place + shift, text, va="center", color=colors[color])
    ax.set(yticks=range(len(chips)), yticklabels=[short(acc) for acc in chips], xlabel="minimum time, ms")
    ax.invert_yaxis()
    ax.margins(x=0.4)
    ax.grid(visible=False, axis="y")


def passes(kernels: Mapping[str, Mapping[str, str]]) -> None:
    """Draw which matrices cross between memory and chip, one column of boxes and arrows for each way of working.

    Args:
        kernels: for each way, the kernels in their order, and for each kernel the crossings, such as "read, write".
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.7))
    place = 0.0
    for way, steps in kernels.items():
        first, count = place, 0
        for name, crossings in steps.items():
            width = 1.0 if len(steps) > 1 else 1.9
            ax.add_patch(Rectangle((place, 0), width, 0.62, facecolor=colors["GreenL"], edgecolor=colors["GreenLine"]))
            ax.text(place + width / 2, 0.31, name, ha="center", va="center", color=colors["GreenLine"], fontsize=9)
            arrows = crossings.split(", ")
            count += len(arrows)
            for index, crossing in enumerate(arrows, 1):
                x = place + width * index / (len(arrows) + 1)
                low, high = (x, 0.66), (x, 1.56)
                start, end = (high, low) if crossing == "read" else (low, high)
                color = colors["BlueLine" if crossing == "read" else "OrangeLine"]
                ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2})
                ax.text(x - 0.05, 1.11, crossing, rotation=90, ha="right", va="center", color=color, fontsize=9)
            place += width + 0.12
        middle = (first + place - 0.12) / 2
        ax.text(middle, -0.14, f"{way}:\n{count} crossings", ha="center", va="top", weight="bold")
        place += 0.45
    right = place - 0.57
    ax.add_patch(Rectangle((0, 1.6), right, 0.42, facecolor=colors["BlueL"], edgecolor=colors["BlueLine"]))
    ax.text(right / 2, 1.81, "device memory", ha="center", va="center", color=colors["BlueLine"])
    ax.set(xlim=(-0.05, right + 0.05), ylim=(-0.75, 2.06))
    ax.axis("off")


def bigger(rows: Sequence[Row], bytes_per_element: int, bandwidth: Quantity) -> None:
    """Draw the time of one operation against its size, beside the minimum time of its traffic."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.3))
    sizes = [row.shape[0] for row in rows]
    ax.loglog(sizes, [row.median_s * 1e6 for row in rows], "o-", color=colors["VioletLine"])
    ends = (2.0**16, sizes[-1] * 2)
    moving = [(n * bytes_per_element * ureg.byte / bandwidth).m_as("us") for n in ends]
    ax.loglog(ends, moving, "--", color=colors["BlueLine"])
    ax.text(1.5, rows[0].median_s * 1e6 * 1.35, "measured", color=colors["VioletLine"], weight="bold")
    ax.text(3e5, 0.16, "data movement,\nminimum time", color=colors["BlueLine"], weight="bold")
    ax.set_xticks([1, 1e2, 1e4, 1e6], ["1", "100", "10,000", "1 million"])
    ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    ax.set(xlabel="numbers in the vector", ylabel="time, µs", xlim=(0.7, 1e8), ylim=(0.09, 150))
    ax.minorticks_off()


def growth() -> None:
    """Draw peak rate and memory bandwidth relative to the K20X of 2012, with a mark where the number format narrows."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.9))
    first, *_ = GPUS_SINCE_2012
    years = [Hardware.get(chip).year for chip in GPUS_SINCE_2012]
    peaks = [peak_growth(chip) for chip in GPUS_SINCE_2012]
    bandwidths = [bandwidth_growth(chip, first) for chip in GPUS_SINCE_2012]
    for relative, color, marker, name in (
        (peaks, "GreenLine", "o", "arithmetic"),
        (bandwidths, "BlueLine", "s", "memory bandwidth"),
    ):
        ax.semilogy(years, relative, f"{marker}-", color=colors[color])
        ax.text(
            years[-1] + 0.25, relative[-1], f"{relative[-1]:,.0f}×", color=colors[color], va="center", weight="bold"
        )
        ax.text(years[-1], relative[-1] * 1.45, name, color=colors[color], ha="right", va="bottom")
        if relative is peaks:
            for index, change in ((1, "FP16"), (2, "tensor cores")):
                ax.annotate(
                    change, (years[index], relative[index]), xytext=(-7, 3), textcoords="offset points", ha="right"
                )
    for chip, year, bandwidth in zip(GPUS_SINCE_2012, years, bandwidths, strict=True):
        name = short(Hardware.get(chip))
        place = {"xytext": (0, -7), "ha": "center"} if chip == "p100-sxm2" else {"xytext": (3, -7)}  # V100 comes next
        ax.annotate(name, (year, bandwidth), textcoords="offset points", va="top", fontsize=9, **place)
    ax.set_xticks(range(2012, 2026, 2))
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.set(ylabel="growth since 2012 (K20X = 1)", xlim=(2011.5, 2026), ylim=(0.6, 2600))
    ax.minorticks_off()


def models_against_bandwidth() -> None:
    """Draw parameters of published models and bandwidth of chips, each relative to its own value of 2012."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.6))
    for model in published_sizes().values():
        place = (model.year, model_growth(model.id))
        ax.semilogy(*place, "o", color=colors["VioletLine"])
        label(ax, model.name, place, SIDE_OF_MODEL.get(model.id, "above"), colors["VioletLine"])
    for chip, side in BANDWIDTHS.items():
        place = (Hardware.get(chip).year, bandwidth_growth(chip))
        ax.semilogy(*place, "s", markersize=5, color=colors["BlueLine"])
        label(ax, short(Hardware.get(chip)), place, side, colors["BlueLine"])
    ax.text(2012, 90, "bandwidth\nof a chip", color=colors["BlueLine"], va="center", weight="bold")
    ax.text(2012, 2500, "parameters\nof a model", color=colors["VioletLine"], va="center", weight="bold")
    ax.set_yticks([0.1, 1, 10, 100, 1000, 10000], ["0.1", "1", "10", "100", "1,000", "10,000"])
    ax.set(ylabel="growth since 2012 (= 1)", xlim=(2010.9, 2026.9), ylim=(0.2, 30000))
    ax.set_xticks(range(2012, 2026, 2))
    ax.minorticks_off()


def label(ax: Any, text: str, place: tuple[float, float], side: str, color: str) -> None:
    """Write the name of a point above, below, left or right of it."""
    shift, align, base = {
        "above": ((0, 6), "center", "bottom"),
        "below": ((0, -6), "center", "top"),
        "left": ((-6, 0), "right", "center"),
        "right": ((6, 0), "left", "center"),
    }[side]
    ax.annotate(text, place, xytext=shift, textcoords="offset points", ha=align, va=base, color=color, fontsize=9)


def energies(shown: Mapping[str, str], basis_id: str = "horowitz-45nm") -> None:
    """Draw energies of one basis as bars on a logarithmic axis.

    `shown` maps the label of a bar to an operation of the basis, or to "sram" or "dram" for a 32-bit access.
    """
    chosen = basis(basis_id)
    values = [
        (chosen.access(what, bits=32) if what in chosen.accesses else chosen.operation(what)).m_as("pJ")
        for what in shown.values()
    ]
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.42 * len(values)))
    fills = [colors["BlueLine" if what in chosen.accesses else "GreenLine"] for what in shown.values()]
    ax.barh(range(len(values)), values, height=0.62, color=fills)
    for place, (value, color) in enumerate(zip(values, fills, strict=True)):
        ax.text(value * 1.15, place, f"{value:g}", va="center", color=color, weight="bold")
    ax.set_xscale("log")
    ax.set(yticks=range(len(values)), yticklabels=list(shown), xlim=(0.01, 4000))
    ax.set_xticks([0.01, 0.1, 1, 10, 100, 1000], ["0.01", "0.1", "1", "10", "100", "1,000"])
    ax.set_xlabel(f"energy of one operation or access, pJ ({chosen.node})")
    ax.minorticks_off()
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
