"""Figures of the chapter on systems on a chip; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from mlsys import viz
from mlsys.measure.records import Row
from mlsys.soc import EnergyCurve, Soc, Timeline
from mlsys.soc.dvfs import Pass
from mlsys.soc.phones import PhoneTime
from mlsys.soc.thermal import Sample

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
UNITS = {"CPU": "Orange", "GPU": "Green", "NPU": "Blue", "DSP": "Violet"}
"""The blocks of the phone, each with its color."""
USES = {
    "CPU": "everything,\nabove all\nbranches",
    "GPU": "pixels,\ndrawing,\nmatrices",
    "NPU": "matrices\nin 8 bits",
    "DSP": "sound and\nfilters at\nlow power",
}
"""What each block is for."""


def blocks(soc: Soc) -> None:
    """Draw the chip: its blocks above one memory, each with its fastest rate and its power."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.0))
    ax.axis("off")
    ax.set(xlim=(-0.04, 4.04), ylim=(-0.05, 3.05))
    ax.add_patch(_box(0.0, 0.05, 4.0, 2.9, colors["primary"], "none"))
    for place, unit in enumerate(soc.units):
        line, fill = (colors[f"{UNITS[unit.name]}{part}"] for part in ("Line", "L"))
        ax.add_patch(_box(place + 0.06, 1.35, 0.88, 1.5, line, fill))
        fastest = max(unit.rates.values()) / 1e9
        rate = f"{fastest:,.0f} GOP/s" if fastest < 1000 else f"{fastest / 1000:,.0f} TOP/s"
        ax.text(place + 0.5, 2.69, unit.name, ha="center", va="center", weight="bold")
        ax.text(place + 0.5, 2.25, USES[unit.name], ha="center", va="center", fontsize=8.5)
        ax.text(place + 0.5, 1.65, f"{rate}\n{unit.curve.power_w(1):.1f} W", ha="center", va="center", fontsize=8.5)
        ax.plot([place + 0.5] * 2, [1.1, 1.35], color=colors["primary"])
    ax.plot([0.5, 3.5], [1.1, 1.1], color=colors["primary"])
    ax.plot([2.0] * 2, [0.85, 1.1], color=colors["primary"])
    ax.add_patch(_box(0.06, 0.15, 3.88, 0.7, colors["BrownLine"], colors["BrownL"]))
    rate = f"one memory for all: {soc.memory_bandwidth / 1e9:.0f} GB/s"
    ax.text(2.0, 0.5, rate, ha="center", va="center", weight="bold")


def _box(x: float, y: float, width: float, height: float, line: str, fill: str) -> object:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x + 0.03, y + 0.03), width - 0.06, height - 0.06, boxstyle="round,pad=0.03", ec=line, fc=fill, lw=1.2
    )


def phones(rows: Sequence[PhoneTime]) -> None:
    """Draw the time of each network on the GPU and through NNAPI, relative to the CPU of the same phone."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.3))
    names = []
    for place, row in enumerate(rows):
        names.append(f"{row.model}{', int8' if row.format == 'int8' else ''}, {row.phone}")
        ax.barh(
            place - 0.2,
            row.nnapi_ms / row.cpu_ms,
            0.36,
            color=colors["BlueLine"],
            label=None if place else "through NNAPI",
        )
        if row.gpu_ms:
            ax.barh(
                place + 0.2, row.gpu_ms / row.cpu_ms, 0.36, color=colors["GreenLine"], label=None if place else "GPU"
            )
    ax.axvline(1, color=colors["primary"], linestyle="--")
    ax.text(1.03, 9.6, "as on the CPU", va="center", fontsize=9)
    ax.set_yticks(range(len(rows)), names, fontsize=9)
    ax.set(xlabel="time relative to the CPU", xlim=(0, 3.2))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower right", frameon=False)


def timelines(frames: Mapping[str, Timeline], soc: Soc, deadline_s: float) -> None:
    """Draw one image's stages on the blocks for several plans, one above the other, up to the deadline."""
    _, axes, colors, plt = viz.setup_plot(figsize=(WIDTH, 0.4 + 1.75 * len(frames)))
    fig = axes.figure
    axes.remove()
    stacked = fig.subplots(len(frames), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (name, frame) in zip(stacked, frames.items(), strict=True):
        _lanes(ax, frame, soc)
        ax.axvline(1e3 * deadline_s, color=colors["RedLine"], linestyle="--", linewidth=1.2)
        ax.set_title(name, loc="left", fontsize=10)
    stacked[-1].set(xlabel="ms since the image came", xlim=(0, 1.02e3 * deadline_s))
    stacked[0].text(1e3 * deadline_s - 0.3, 3.3, "next image", ha="right", color=colors["RedLine"], fontsize=9)
    plt.sca(stacked[0])


def _lanes(ax: Axes, frame: Timeline, soc: Soc) -> None:
    names = [unit.name for unit in soc.units]
    for row, name in enumerate(names):
        short: list[str] = []
        bars = [bar for bar in frame.bars if bar.unit == name]
        for bar, after in zip(bars, [*bars[1:], None], strict=True):
            left, width = 1e3 * bar.start_s, 1e3 * bar.took_s
            line, fill = (viz.COLORS[f"{UNITS[name]}{part}"] for part in ("Line", "L"))
            ax.barh(row, width, 0.7, left, color=fill, edgecolor=line)
            if width > 4:
                ax.text(left + width / 2, row, bar.stage, ha="center", va="center", fontsize=9)
                continue
            short.append(bar.stage)
            if after is None or 1e3 * after.start_s > left + width + 8:
                ax.text(left + width + 0.35, row, ", ".join(short), ha="left", va="center", fontsize=9)
                short = []
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")


def reads(rows: Sequence[Row], idle_w: float) -> None:
    """Draw the energy of a gigabyte against the rate at which it is read, beside what two numbers predict."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    rates = [row.achieved or 0.0 for row in rows]
    each = moving_j_per_gb(rows[-1], idle_w)
    ax.plot(rates, [idle_w / rate + each for rate in rates], color=colors["BlueLine"], label="static power + moving")
    ax.plot(rates, [each] * len(rates), "--", color=colors["OrangeLine"], label="moving alone")
    ax.plot(
        rates,
        [(row.power_w or 0.0) / rate for row, rate in zip(rows, rates, strict=True)],
        "o",
        color=colors["primary"],
        label="measured",
    )
    ax.set(xscale="log", yscale="log", xlabel="GB/s", ylabel="J for a GB", ylim=(0.05, 20))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.legend(loc="upper right", frameon=False)


def moving_j_per_gb(fastest: Row, idle_w: float) -> float:
    """Return the joules that a gigabyte costs besides the power that flows anyway, from the fastest row."""
    return ((fastest.power_w or 0.0) - idle_w) / (fastest.achieved or 1.0)


def energy_curve(curve: EnergyCurve, busy_s: float) -> None:
    """Draw the energy of a piece of work against the clock, split into switching and static power."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    low = curve.points.clocks[0]
    clocks = [low + (1 - low) * k / 200 for k in range(201)]
    switching = [1e3 * busy_s * curve.dynamic_w * curve.points.energy_scale(clock) for clock in clocks]
    static = [1e3 * busy_s * curve.static_w / clock for clock in clocks]
    ax.stackplot(clocks, switching, static, colors=[colors["BlueL"], colors["OrangeL"]])
    ax.plot(clocks, [a + b for a, b in zip(switching, static, strict=True)], color=colors["primary"])
    points = curve.points.clocks
    ax.plot(points, [1e3 * curve.energy_j(busy_s, clock) for clock in points], "o", color=colors["primary"], ms=4)
    best = curve.best_clock(busy_s)
    ax.plot([best], [1e3 * curve.energy_j(busy_s, best)], "o", color=colors["RedLine"], ms=8)
    ax.text(best, 1e3 * curve.energy_j(busy_s, best) + 2.5, "least energy", ha="center", color=colors["RedLine"])
    ax.text(0.98, 0.12 * max(switching), "switching: grows with the voltage", color=colors["BlueLine"], ha="right")
    ax.text(0.225, 1.2 * switching[0], "static: flows\nfor longer", color=colors["OrangeLine"], va="bottom")
    ax.set(xlabel="clock, as a share of the top", ylabel="mJ", xlim=(low - 0.01, 1.015), ylim=(0, None))


def savings(two_clocks: Pass, published: Mapping[str, tuple[float, float]]) -> None:
    """Draw the energy that clocks by kernel and by pass save against the slowdown that is allowed.

    Args:
        two_clocks: the pass.
        published: for "by kernel" and "by pass", slowdown and saving that were published, in percent.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.3))
    allowed = [0.2 * step for step in range(26)]
    ways = {"by kernel": two_clocks.by_kernel, "by pass": two_clocks.by_pass}
    for (name, way), tone in zip(ways.items(), ("BlueLine", "OrangeLine"), strict=True):
        ax.plot(allowed, [100 * way(limit / 100).saved for limit in allowed], color=colors[tone])
        ax.text(5.08, 100 * way(0.05).saved, name, color=colors[tone], va="center")
        ax.plot(*published[name], "D", color=colors[tone], ms=7)
    ax.annotate("published", published["by kernel"], (9, 0), textcoords="offset points", va="center")
    ax.annotate("published", published["by pass"], (9, 4), textcoords="offset points", va="center")
    ax.set(xlabel="slowdown allowed, %", ylabel="energy saved, %", xlim=(-0.1, 6.2), ylim=(-0.5, 18), xticks=range(6))


def heat(runs: Mapping[str, Sequence[Sample]], limit_c: float) -> None:
    """Draw temperature and clock over time for two governors, one above the other."""
    _, axes, colors, plt = viz.setup_plot(figsize=(WIDTH, 4.2))
    fig = axes.figure
    axes.remove()
    top, *below = fig.subplots(1 + len(runs), 1, sharex=True)
    for ax, (name, samples), tone in zip(below, runs.items(), ("BlueLine", "OrangeLine"), strict=True):
        minutes = [sample.time_s / 60 for sample in samples]
        top.plot(minutes, [sample.temperature_c for sample in samples], color=colors[tone], linewidth=1.4)
        ax.plot(minutes, [100 * sample.clock for sample in samples], color=colors[tone], linewidth=1.2)
        ax.set(ylabel="clock, %", ylim=(0, 130), xlim=(0, minutes[-1]))
        ax.text(0.985 * minutes[-1], 127, name, ha="right", va="top", color=colors[tone], fontsize=9)
    top.axhline(limit_c, color=colors["primary"], linestyle="--", linewidth=1)
    top.text(0.985 * minutes[-1], limit_c + 0.6, "limit", ha="right", va="bottom", fontsize=9)
    top.set(ylabel="case, °C", ylim=(24, limit_c + 5))
    below[-1].set(xlabel="minutes")
    plt.sca(top)
