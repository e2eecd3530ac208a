"""Figures of the chapter on energy and carbon; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence

import numpy as np

from mlsys import viz
from mlsys.measure.records import Row

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
NAMES = {"united-states": "United States", "world": "the world"}
"""Countries whose names are not their keys with a capital."""


def country(key: str) -> str:
    """Return the name of a grid for people."""
    return NAMES.get(key, key.capitalize())


def by_grid(tonnes: Mapping[str, float], year: int) -> None:
    """Draw the tonnes that the same energy emits on each grid, the cleanest first.

    Args:
        tonnes: for each grid, tonnes of CO2.
        year: of the intensities.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.25 * len(tonnes)))
    for place, (name, mass) in enumerate(sorted(tonnes.items(), key=lambda item: item[1])):
        ax.barh(place, mass, height=0.66, color=colors["OrangeLine" if name == "world" else "BlueLine"])
        ax.text(mass + 8, place, f"{mass:.0f}", va="center", fontsize=9)
    names = [country(name) for name in sorted(tonnes, key=lambda name: tonnes[name])]
    ax.set(yticks=range(len(names)), yticklabels=names, xlabel=f"tonnes of CO₂ a year, grids of {year}")
    ax.set_xlim(0, 1.12 * max(tonnes.values()))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


def factors(ends: Mapping[str, tuple[float, float]]) -> None:
    """Draw by which factor each uncertain number moves the answer, from its lower to its upper end.

    Args:
        ends: for each number, its lower and upper end relative to the value in the middle of the answer.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.42 * len(ends)))
    for place, (low, high) in enumerate(ends.values()):
        ax.barh(place, high - low, left=low, height=0.5, color=colors["OrangeLine"])
        ax.text(1.06 * high, place, f"{high / low:.2g} times", va="center", fontsize=9)
    ax.axvline(1, color=colors["primary"], linewidth=1.2)
    ax.set(
        xscale="log", yticks=range(len(ends)), yticklabels=list(ends), xlabel="answer, relative to the geometric middle"
    )
    ax.set_xlim(0.08, 40)
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


def line_of(rows: Sequence[Row]) -> tuple[float, float]:
    """Fit power = base + each x rate to measured rows, by least squares.

    Returns:
        Watts at rate 0, and joules per unit of work: nJ per byte for rates in GB/s.
    """
    each, base = np.polyfit([row.achieved for row in rows], [row.power_w for row in rows], 1)
    return float(base), float(each)


def per_byte(rows: Sequence[Row]) -> None:
    """Draw the power and the energy per byte of reads over their rate, measured and as a line of the power says."""
    fig, _, colors, plt = viz.setup_plot(figsize=(WIDTH, 4.6))
    plt.close(fig)
    fig, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(WIDTH, 4.6), layout="constrained")
    base, each = line_of(rows)
    rates = np.geomspace(8, 5000, 200)
    measured = [(row.achieved, row.power_w) for row in rows if row.achieved and row.power_w]
    above.plot(rates, base + each * rates, color=colors["BlueLine"], label="base + a part that follows the rate")
    above.plot(*zip(*measured, strict=True), "o", color=colors["RedLine"], label="measured")
    above.axhspan(0, base, color=colors["BlueL"], zorder=0)
    above.text(9, base / 2, "base", va="center", color=colors["BlueLine"])
    above.set(ylabel="power, W", ylim=(0, 620))
    above.legend(loc="upper left")
    below.loglog(rates, base / rates + each, color=colors["BlueLine"])
    below.loglog(
        [rate for rate, _ in measured], [power / rate for rate, power in measured], "o", color=colors["RedLine"]
    )
    below.axhline(each, color=colors["primary"], linestyle="--", linewidth=1.2)
    below.text(9, 0.75 * each, "the byte itself", va="top")
    below.set(xscale="log", xlabel="read rate, GB/s", ylabel="energy, nJ per byte", ylim=(0.03, 30))
    below.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
    below.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
