"""Figures of the chapter on the memory wall; each draws one claim from numbers of the package or of the tables here."""

from collections.abc import Mapping, Sequence

from mlsys import viz
from mlsys.energy import basis
from mlsys.hardware import Accelerator, Hardware
from mlsys.models import Model

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

OLDER_CHIPS = {"K20X": (2012, 3.95, 250), "K80": (2014, None, 480), "P100": (2016, 21.2, 732)}
"""Chips that the package does not carry: year, peak in TFLOP/s (K20X FP32, P100 FP16), GB/s of device memory.

Sources: nvidia2013teslak, nvidia2015k80 (the sum of two dies), nvidia2016p100 in references.bib.
"""
CHIP_YEARS = {
    "v100-sxm2": 2017,
    "tpu-v2": 2017,
    "a100-80gb-sxm": 2020,
    "tpu-v4": 2021,
    "h100-sxm": 2022,
    "mi300x": 2023,
    "b200": 2024,
    "mi325x": 2024,
    "tpu-v6e": 2024,
}
"""Chips of the package by the year in which they came out."""
MODEL_SIZES = {
    "AlexNet": (2012, 60e6),
    "VGG-16": (2014, 138e6),
    "ResNet-50": (2015, 25.6e6),
    "BERT-L": (2018, 340e6),
    "GPT-3": (2020, 175e9),
    "PaLM": (2022, 540e9),
    "Llama 3.1": (2024, 405e9),
    "DeepSeek-V3": (2024, 671e9),
    "Llama 4": (2025, 400e9),
}
"""Year and parameters that the authors print; those of mixtures of experts are totals.

Sources: krizhevsky2012imagenet, simonyan2015vgg, he2016resnet, devlin2019bert, brown2020language, chowdhery2023palm,
grattafiori2024llama3, deepseek2024v3, meta2025llama4 in references.bib.
"""
FORMAT_COLORS = {"tf32": "GreenLine", "fp16": "BlueLine", "fp8": "OrangeLine", "fp4": "RedLine"}
BASE = "K80"
BASE_MODEL = "VGG-16"


def short(acc: Accelerator) -> str:
    """The name that people use, such as "H100"."""
    return acc.id.split("-")[0].upper() if not acc.id.startswith("tpu") else acc.id.upper().replace("-V", " v")


def bandwidth_growth(chip_id: str, since: str = BASE) -> float:
    """Memory bandwidth of a chip as a multiple of an older chip's."""
    return Hardware.get(chip_id).memory_bw.m_as("GB/s") / OLDER_CHIPS[since][2]


def model_growth(name: str, since: str = BASE_MODEL) -> float:
    """Parameters of a model as a multiple of another's."""
    return MODEL_SIZES[name][1] / MODEL_SIZES[since][1]


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


def growth(chips: Sequence[str], precision: str = "fp16") -> None:
    """Peak rate and memory bandwidth relative to the K20X of 2012, with a mark where the number format narrows."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.9))
    years = [OLDER_CHIPS["K20X"][0], OLDER_CHIPS["P100"][0], *(CHIP_YEARS[chip] for chip in chips)]
    peaks = [OLDER_CHIPS["K20X"][1], OLDER_CHIPS["P100"][1]]
    peaks += [Hardware.get(chip).peak(precision).m_as("TFLOP/s") for chip in chips]
    bandwidths = [OLDER_CHIPS["K20X"][2], OLDER_CHIPS["P100"][2]]
    bandwidths += [Hardware.get(chip).memory_bw.m_as("GB/s") for chip in chips]
    for values, color, marker, name in (
        (peaks, "GreenLine", "o", "arithmetic"),
        (bandwidths, "BlueLine", "s", "memory bandwidth"),
    ):
        relative = [value / values[0] for value in values]
        ax.semilogy(years, relative, f"{marker}-", color=colors[color])
        ax.text(
            years[-1] + 0.25, relative[-1], f"{relative[-1]:,.0f}×", color=colors[color], va="center", weight="bold"
        )
        ax.text(years[-1], relative[-1] * 1.45, name, color=colors[color], ha="right", va="bottom")
        if values is peaks:
            for index, change in ((1, "FP16"), (2, "tensor cores")):
                ax.annotate(
                    change, (years[index], relative[index]), xytext=(-7, 3), textcoords="offset points", ha="right"
                )
    names = ["K20X", "P100", *(short(Hardware.get(chip)) for chip in chips)]
    for name, year, bandwidth in zip(names, years, bandwidths, strict=True):
        ax.annotate(
            name, (year, bandwidth / bandwidths[0]), xytext=(3, -7), textcoords="offset points", va="top", fontsize=9
        )
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
            if any(p.precision == precision and p.unit == "tensor" and not p.sparse for p in acc.peaks)
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
    left, below = {"PaLM"}, {"ResNet-50", "Llama 3.1", "Llama 4"}
    for name, (year, _) in MODEL_SIZES.items():
        relative = model_growth(name)
        ax.semilogy(year, relative, "o", color=colors["VioletLine"])
        shift, side, align = (0, 7), "bottom", "center"
        if name in below:
            shift, side = (0, -7), "top"
            align = "right" if name == "Llama 3.1" else "center"
        elif name in left:
            shift, side, align = (-7, 0), "center", "right"
        ax.annotate(
            name, (year, relative), xytext=shift, textcoords="offset points", ha=align, va=side,
            color=colors["VioletLine"], fontsize=9,
        )  # fmt: skip
    points = [(OLDER_CHIPS[BASE][0], 1.0), *((CHIP_YEARS[chip], bandwidth_growth(chip)) for chip in CHIP_YEARS)]
    ax.semilogy(*zip(*points, strict=True), "s", markersize=5, color=colors["BlueLine"])
    named = {BASE: points[0], "TPU v6e": (CHIP_YEARS["tpu-v6e"], bandwidth_growth("tpu-v6e"))}
    named["B200"] = (CHIP_YEARS["b200"], bandwidth_growth("b200"))
    for name, point in named.items():
        shift, align = ((0, -8), "center") if name == BASE else ((7, 0), "left")
        ax.annotate(
            name, point, xytext=shift, textcoords="offset points", ha=align,
            va="top" if name == BASE else "center", color=colors["BlueLine"], fontsize=9,
        )  # fmt: skip
    ax.text(2019, 0.8, "bandwidth of a chip", color=colors["BlueLine"])
    ax.text(2011.9, 2500, "parameters\nof a model", color=colors["VioletLine"], va="center")
    ax.set_yticks([0.1, 1, 10, 100, 1000, 10000], ["0.1", "1", "10", "100", "1,000", "10,000"])
    ax.set(ylabel="growth since 2014 (= 1)", xlim=(2011.3, 2026.4), ylim=(0.06, 16000))
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
