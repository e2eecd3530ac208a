"""Figures of the chapter on the memory wall; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence

from mlsys import viz
from mlsys.hardware import Accelerator, Hardware
from mlsys.hardware.energy import basis
from mlsys.models import Model, published_size, published_sizes

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

SINCE_2012 = {
    "k20x": "fp32",
    "p100-sxm2": "fp16",
    "v100-sxm2": "fp16",
    "a100-80gb-sxm": "fp16",
    "h100-sxm": "fp16",
    "b200": "fp16",
}
"""Chips by the number format in which their peak is counted; the K20X has none narrower than FP32."""
BANDWIDTHS = "k80 tpu-v2 v100-sxm2 a100-80gb-sxm tpu-v4 h100-sxm mi300x mi325x tpu-v6e b200".split()
"""Chips whose bandwidth is set beside the sizes of models."""
FORMAT_COLORS = {"tf32": "GreenLine", "fp16": "BlueLine", "fp8": "OrangeLine", "fp4": "RedLine"}
BASE = "k80"
BASE_MODEL = "vgg-16"


def short(acc: Accelerator) -> str:
    """The name that people use, such as "H100"."""
    return acc.id.replace("tpu-", "TPU ") if acc.id.startswith("tpu") else acc.id.split("-")[0].upper()


def bandwidth_growth(chip_id: str, since: str = BASE) -> float:
    """Memory bandwidth of a chip as a multiple of an older chip's."""
    return float((Hardware.get(chip_id).memory_bw / Hardware.get(since).memory_bw).m_as(""))


def peak_growth(chip_id: str) -> float:
    """Peak rate of a chip as a multiple of the K20X's, each in its own number format."""
    first, *_ = SINCE_2012
    rate, before = (Hardware.get(chip).peak(SINCE_2012[chip]) for chip in (chip_id, first))
    return float((rate / before).m_as(""))


def model_growth(model_id: str, since: str = BASE_MODEL) -> float:
    """Parameters of a model as a multiple of another's."""
    return float((published_size(model_id).params / published_size(since).params).m_as(""))


def two_times(model: Model, chips: Sequence[Accelerator], precision: str = "fp16") -> None:
    """Time of a network's arithmetic and of its traffic, one pair of bars for each chip."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.62 * len(chips)))
    for place, acc in enumerate(chips):
        moving = (model.bytes / acc.memory_bw).m_as("ms")
        arithmetic = (model.flops / acc.peak(precision)).m_as("ms")
        pair = (("arithmetic", arithmetic, "GreenLine"), ("moving", moving, "BlueLine"))
        for (what, time_ms, color), shift in zip(pair, (-0.19, 0.19), strict=True):
            ax.barh(place + shift, time_ms, height=0.34, color=colors[color])
            text = f" {time_ms:.2f} {what}" if place == 0 else f" {time_ms:.2f}"
            ax.text(time_ms, place + shift, text, va="center", color=colors[color])
    ax.set(yticks=range(len(chips)), yticklabels=[short(acc) for acc in chips], xlabel="least time, ms")
    ax.invert_yaxis()
    ax.margins(x=0.28)
    ax.grid(visible=False, axis="y")


def growth() -> None:
    """Peak rate and memory bandwidth relative to the K20X of 2012, with a mark where the number format narrows."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.9))
    first, *_ = SINCE_2012
    years = [Hardware.get(chip).year for chip in SINCE_2012]
    peaks = [peak_growth(chip) for chip in SINCE_2012]
    bandwidths = [bandwidth_growth(chip, first) for chip in SINCE_2012]
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
    for chip, year, bandwidth in zip(SINCE_2012, years, bandwidths, strict=True):
        name = short(Hardware.get(chip))
        ax.annotate(name, (year, bandwidth), xytext=(3, -7), textcoords="offset points", va="top", fontsize=9)
    ax.set_xticks(range(2012, 2026, 2))
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.set(ylabel="growth since 2012 (K20X = 1)", xlim=(2011.5, 2026), ylim=(0.6, 2600))
    ax.minorticks_off()


def ridges(chips: Sequence[str]) -> None:
    """Balance of each chip in each number format: a row of points per format, joined from chip to chip."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.9))
    accelerators = [Hardware.get(chip) for chip in chips]
    for precision, color in FORMAT_COLORS.items():
        points = [
            (place, acc.ridge_point(precision).m_as("flop/byte"))
            for place, acc in enumerate(accelerators)
            if any(p.precision == precision and p.engine == "tensor" and not p.sparse for p in acc.peaks)
        ]
        ax.semilogy(*zip(*points, strict=True), "o-", base=2, color=colors[color])
        for place, balance in points:
            ax.annotate(
                f"{balance:,.0f}", (place, balance), xytext=(0, 7), textcoords="offset points",
                ha="center", color=colors[color], fontsize=9,
            )  # fmt: skip
        last_place, last = points[-1]
        ax.text(last_place + 0.22, last, precision.upper(), color=colors[color], va="center", weight="bold")
    ax.set_xticks(range(len(chips)), [short(acc) for acc in accelerators])
    ax.set_yticks([64, 128, 256, 512, 1024], ["64", "128", "256", "512", "1,024"])
    ax.set(ylabel="balance, FLOP per byte", xlim=(-0.4, len(chips) - 0.3), ylim=(56, 1700))
    ax.minorticks_off()


def models_against_bandwidth() -> None:
    """Parameters of published models and bandwidth of chips, each relative to its own value of 2014."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.4))
    left, below = {"palm"}, {"resnet-50": "center", "llama-3.1": "right", "llama-4": "left"}
    for model in published_sizes().values():
        year, relative = model.year, model_growth(model.id)
        ax.semilogy(year, relative, "o", color=colors["VioletLine"])
        shift, side, align = (0, 7), "bottom", "center"
        if model.id in below:
            shift, side, align = (0, -7), "top", below[model.id]
        elif model.id in left:
            shift, side, align = (-7, 0), "center", "right"
        ax.annotate(
            model.name, (year, relative), xytext=shift, textcoords="offset points", ha=align, va=side,
            color=colors["VioletLine"], fontsize=9,
        )  # fmt: skip
    points = {chip: (Hardware.get(chip).year, bandwidth_growth(chip)) for chip in BANDWIDTHS}
    ax.semilogy(*zip(*points.values(), strict=True), "s", markersize=5, color=colors["BlueLine"])
    for chip in (BASE, "tpu-v6e", "b200"):
        shift, align = ((0, -8), "center") if chip == BASE else ((7, 0), "left")
        ax.annotate(
            short(Hardware.get(chip)), points[chip], xytext=shift, textcoords="offset points", ha=align,
            va="top" if chip == BASE else "center", color=colors["BlueLine"], fontsize=9,
        )  # fmt: skip
    ax.text(2019, 0.8, "bandwidth of a chip", color=colors["BlueLine"])
    ax.text(2011.9, 2500, "parameters\nof a model", color=colors["VioletLine"], va="center")
    ax.set_yticks([0.1, 1, 10, 100, 1000, 10000], ["0.1", "1", "10", "100", "1,000", "10,000"])
    ax.set(ylabel="growth since 2014 (= 1)", xlim=(2010.8, 2026.4), ylim=(0.06, 16000))
    ax.set_xticks(range(2012, 2026, 2))
    ax.minorticks_off()


def energies(shown: Mapping[str, str], basis_id: str = "horowitz-45nm") -> None:
    """Energies of one basis as bars on a logarithmic axis.

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
    ax.set_xlabel(f"energy of one, pJ ({chosen.node})")
    ax.minorticks_off()
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
