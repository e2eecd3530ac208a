"""Figures of the chapter on specialized chips; each draws one claim, from numbers of the package or of a record."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from mlsys import growth, viz
from mlsys.errors import InvalidValue
from mlsys.hardware import Hardware
from mlsys.hardware.chips import GPUS_SINCE_2012
from mlsys.hardware.energy import basis
from mlsys.measure.records import Row

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

SHAPES = {"one lane": 1, "a warp": 32, "4 × 4 × 4": 4**3, "16 × 8 × 16": 16 * 8 * 16, "64 × 256 × 16": 64 * 256 * 16}
"""Multiply-adds of one instruction, or of one step of a matrix unit, by what does them."""
NODES = (45, 32, 22, 16, 11, 8)
"""Processes in nanometers, each with transistors of half the area of those of the one before."""
PROJECTED = {22: 0.79, 8: 0.5}
"""Share of a chip that can be powered, by process: the projection of Esmaeilzadeh et al. (2011); the last is "less"."""


def chip_peaks() -> tuple[list[int], list[float]]:
    """Return the years of the GPUs and their dense peaks in FLOP/s."""
    chips = [Hardware.get(chip) for chip in GPUS_SINCE_2012]
    return [chip.year for chip in chips], [
        chip.peak(form).m_as("FLOP/s") for chip, form in zip(chips, GPUS_SINCE_2012.values(), strict=True)
    ]


def cpu_peaks(cores: int = 56, clock_hz: float = 2e9) -> dict[str, float]:
    """Return the peaks in FLOP/s of a server CPU of Intel with two vector units and a matrix unit per core.

    Per core and cycle: two units of 16 FP32 lanes that multiply and add, and 1,024 BF16 operations in tiles.
    """
    return {"fp32": cores * clock_hz * 2 * 16 * 2, "bf16": cores * clock_hz * 1024}


def overhead(multiply_adds: int, basis_id: str = "horowitz-45nm") -> float:
    """Return the share of an instruction's energy that is not arithmetic, for FP16 multiply-adds."""
    chosen = basis(basis_id)
    carried, useful = chosen.operation("instruction"), multiply_adds * chosen.mac("fp16")
    return carried.m_as("pJ") / (carried + useful).m_as("pJ")


def lit(generations: int, voltage_shrinks: bool = False) -> float:
    """Return the share of a chip that its old power budget can switch after some generations, at an unchanged clock.

    Each generation halves the area of a transistor and lowers its capacitance by the square root of two. If the voltage
    shrinks alike, the energy of a switch falls by the cube of that root.
    """
    root = 2**0.5
    energy = root ** -(3 if voltage_shrinks else 1)
    return min(1.0, (1 / (2 * energy)) ** generations)


def instruction_energy() -> None:
    """Draw the share of energy that an instruction spends on everything but arithmetic."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.6))
    shares = [100 * overhead(count) for count in SHAPES.values()]
    ax.barh(range(len(shares)), shares, height=0.6, color=colors["OrangeLine"])
    ax.barh(range(len(shares)), [100 - s for s in shares], left=shares, height=0.6, color=colors["GreenLine"])
    ax.text(3, 0, "fetch, decode, registers", va="center", color="white", weight="bold", fontsize=9)
    ax.text(97, len(shares) - 1, "arithmetic", va="center", ha="right", color="white", weight="bold", fontsize=9)
    names = [f"{name}: {count:,}" for name, count in SHAPES.items()]
    ax.set(yticks=range(len(shares)), yticklabels=names, xlim=(0, 100), xlabel="share of the energy, %")
    ax.set_ylabel("multiply-adds")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


def dark() -> None:
    """Draw the share of a chip that the old power budget can switch, over generations of transistors."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.0))
    places = range(len(NODES))
    for shrinks, color, name in ((True, "GreenLine", "voltage shrinks too"), (False, "RedLine", "voltage stays")):
        shares = [100 * lit(place, shrinks) for place in places]
        ax.plot(places, shares, "o-", color=colors[color])
        x, y = (places[-1], shares[-1] + 4) if shrinks else (2.9, shares[2] - 32)
        ax.text(x, y, name, color=colors[color], ha="right", weight="bold")
    for node, share in PROJECTED.items():
        place, least = NODES.index(node), node == NODES[-1]
        ax.plot(place, 100 * share, "D", color=colors["BlueLine"])
        note = "less than half" if least else "study of 2011"
        ax.annotate(
            note,
            (place, 100 * share),
            xytext=(0, 7),
            textcoords="offset points",
            ha="right" if least else "center",
            color=colors["BlueLine"],
            fontsize=9,
        )
    ax.set_xticks(list(places), [str(node) for node in NODES])
    ax.set(xlabel="process, nm", ylabel="share that can be on, %", ylim=(0, 113))


def demand() -> None:
    """Draw the arithmetic of training runs and the peak of a GPU, relative to 2012, with the fitted trends."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    runs = growth.training_runs().values()
    series = {
        "VioletLine": ([run.year for run in runs], [run.flops.m for run in runs], "o"),
        "GreenLine": (*chip_peaks(), "s"),
    }
    for color, (years, values, marker) in series.items():
        relative = np.array(values) / values[0]
        ax.semilogy(years, relative, marker, color=colors[color])
        rate = growth.fit_growth(years, values)
        middle = np.exp(np.mean(np.log(relative)))
        ends = np.array([2012, 2025])
        ax.semilogy(ends, middle * rate ** (ends - np.mean(years)), "--", linewidth=1.2, color=colors[color])
    ax.text(2012.3, 2e5, "arithmetic of\na training run", color=colors["VioletLine"], weight="bold")
    ax.text(2019.8, 4, "peak of a GPU", color=colors["GreenLine"], weight="bold")
    for run in runs:
        if run.year > 2012:
            at = (run.year, run.flops.m / series["VioletLine"][1][0])
            left = run.year in (2019, 2020, 2024)
            ax.annotate(
                run.name,
                at,
                xytext=(-8, 4) if left else (5, -9),
                textcoords="offset points",
                ha="right" if left else "left",
                color=colors["VioletLine"],
                fontsize=9,
            )
    ax.set_yticks([1, 1e2, 1e4, 1e6, 1e8], ["1", "100", "10,000", "a million", "100 million"])
    ax.set(xlim=(2011.5, 2026.5), ylim=(0.3, 1e9), ylabel="growth since 2012 (= 1)")
    ax.set_xticks(range(2012, 2026, 4))
    ax.minorticks_off()


def s_curves() -> None:
    """Draw two schematic S-curves and the curve that the better of them makes."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.7))
    years = np.arange(1980, 2041)
    for curve, color, name, at in (
        (growth.GENERAL_PURPOSE, "BrownLine", "general-purpose", (1982, 140)),
        (growth.DOMAIN_SPECIFIC, "BlueLine", "domain-specific", (2016, 8000)),
    ):
        ax.semilogy(years, [curve.at(float(year)) for year in years], color=colors[color])
        ax.text(*at, name, color=colors[color], weight="bold", ha="left" if at[0] < 2000 else "right")
    ax.set(ylabel="performance, no unit", ylim=(0.3, 3e4), xlim=(1980, 2040))
    ax.minorticks_off()


def anatomy() -> None:
    """Draw an accelerator and its host as boxes."""
    fig, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.5))
    ax.set(xlim=(0, 10), ylim=(9.6, 0))
    ax.axis("off")
    _box(ax, (0.1, 0.2, 9.8, 6.2), "", "white", "primary")
    ax.text(0.4, 0.6, "the accelerator", va="center", fontsize=9)
    for column in range(3):
        left = 0.5 + 3.1 * column
        _box(ax, (left, 0.95, 2.8, 3.3), "", "white", "BlueLine")
        _box(ax, (left + 0.15, 1.1, 2.5, 0.95), "matrix unit", "GreenL", "GreenLine")
        _box(ax, (left + 0.15, 2.15, 1.2, 0.95), "vector\nunit", "GreenL", "GreenLine")
        _box(ax, (left + 1.45, 2.15, 1.2, 0.95), "special\nfunct.", "GreenL", "GreenLine")
        _box(ax, (left + 0.15, 3.2, 2.5, 0.9), "scratchpad or L1", "BlueL", "BlueLine")
        _arrow(ax, left + 1.4, 4.25, 4.85)
    _box(ax, (0.5, 4.85, 9.0, 0.65), "shared on-chip memory (L2)", "VioletL", "VioletLine")
    _box(ax, (0.5, 5.6, 5.2, 0.65), "memory interface", "white", "primary")
    _box(ax, (6.0, 5.6, 3.5, 0.65), "link", "white", "primary")
    _arrow(ax, 3.1, 6.25, 7.4)
    _arrow(ax, 7.75, 6.25, 7.4)
    _box(ax, (0.5, 7.4, 5.2, 0.8), "device memory: HBM", "OrangeL", "OrangeLine")
    _box(ax, (6.0, 7.4, 3.5, 0.8), "host: a CPU", "BrownL", "BrownLine")
    _arrow(ax, 7.75, 8.2, 8.65)
    _box(ax, (6.0, 8.65, 3.5, 0.8), "host's DRAM", "BrownL", "BrownLine")
    ax.text(8.0, 6.9, "PCIe or NVLink", color=colors["primary"], va="center", fontsize=8)
    ax.text(0.5, 8.65, "regular arithmetic above,\ncontrol flow on the right", color=colors["primary"], va="top")
    fig.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02)


def units(rows: Sequence[Row], names: Mapping[str, str]) -> None:
    """Draw the rate that chains of multiply-adds reach, beside the data sheet's peak.

    Args:
        rows: rows of `independent roofs` that work in registers alone.
        names: what each is called, by its number format.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.7))
    chip = Hardware.get("h200")
    for place, row in enumerate(rows):
        engine = "vector" if row.variant.startswith("fma") else "tensor"
        peak = chip.peak(row.dtype, engine=engine).m_as("TFLOP/s")
        assert row.achieved is not None
        ax.barh(place, peak, height=0.72, facecolor="white", edgecolor=colors["primary"], linestyle="--")
        ax.barh(place, row.achieved, height=0.5, color=colors["OrangeLine" if engine == "vector" else "GreenLine"])
        ax.text(peak + 25, place, f"{100 * row.achieved / peak:.0f}%", va="center")
    ax.set_yticks(range(len(rows)), [names[row.dtype] for row in rows])
    ax.set(xlabel="TFLOP/s; dashed: the data sheet's peak", xlim=(0, 2250))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


def energy_per_operation(row: Row) -> float:
    """Return the energy of an operation in picojoules: the power of the whole board over the rate.

    Raises:
        InvalidValue: if the record holds no power or no rate for the row.
    """
    if row.power_w is None or row.achieved is None:
        raise InvalidValue(f"the row {row.variant!r} has no power: measure it again with `mlsys bench`")
    return row.power_w / row.achieved  # W over TFLOP/s is pJ


def _box(ax: Axes, place: tuple[float, float, float, float], text: str, fill: str, edge: str) -> None:
    x, y, width, height = place
    box = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.12", linewidth=1.3)
    box.set(facecolor=viz.COLORS.get(fill, fill), edgecolor=viz.COLORS[edge])
    ax.add_patch(box)
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9)


def _arrow(ax: Axes, x: float, start: float, end: float) -> None:
    ax.annotate("", xy=(x, end), xytext=(x, start), arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0})
