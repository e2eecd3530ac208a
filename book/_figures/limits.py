"""Figures of the chapter on the limits of a speedup; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence

import numpy as np
from _figures.words import said
from matplotlib.colors import ListedColormap
from matplotlib.ticker import FixedLocator, NullLocator

from mlsys import viz
from mlsys.formulas import amdahl_grid
from mlsys.measure.records import Row

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
PARTS = {"copies in": "BlueLine", "product": "GreenLine", "copy back": "OrangeLine"}
"""Parts of a step, in their order, with their colors."""
SHARES = (0.8, 0.999)
LEVELS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Speedups of the whole job that get a line."""


def steps(ways: Mapping[str, Mapping[str, float]]) -> None:
    """Draw the same step done in several ways, as bars of its parts one after the other.

    Args:
        ways: for each way, the milliseconds of each of `PARTS`.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 1.0 + 0.52 * len(ways)))
    for place, parts in enumerate(ways.values()):
        start = 0.0
        for part, color in PARTS.items():
            ax.barh(
                place, parts[part], left=start, height=0.62, color=colors[color], label=None if place else said(part)
            )
            start += parts[part]
        ax.text(start, place, f" {start:.1f}", va="center")
    ax.set(yticks=range(len(ways)), yticklabels=[said(way) for way in ways], xlabel=said("time of a step, ms"))
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower right", frameon=False)


def heatmap() -> None:
    """Draw Amdahl's speedup over the speedup S of a part and the part's share p of the time."""
    fig, ax, colors, plt = viz.setup_plot(figsize=(WIDTH, 3.6))
    speedups = np.geomspace(1, 1000, 121)
    # The lines end at p = 0.999; distances on the axis are those of log(1 - p).
    serial = np.geomspace(1 - SHARES[0], 1 - SHARES[1], 121)
    grid = np.array(amdahl_grid([float(1 - x) for x in serial], [float(x) for x in speedups]))
    pale = ListedColormap(plt.get_cmap("YlGnBu")(np.linspace(0, 0.55, 128)))  # the numbers on the lines stay legible
    shown = ax.pcolormesh(speedups, serial, np.log10(grid), cmap=pale, shading="gouraud", rasterized=True)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel=said("speedup S of the accelerated part"),
        ylabel=said("its share p of the time"),
    )
    ax.invert_yaxis()
    lines = ax.contour(speedups, serial, grid, levels=LEVELS[1:], colors=colors["primary"], linewidths=0.9)
    ax.clabel(lines, fmt=lambda level: f"{level:g}x", fontsize=9)  # the room for a label depends on the axes
    ticks = (0.8, 0.9, 0.95, 0.99, 0.999)
    ax.yaxis.set_major_locator(FixedLocator([1 - p for p in ticks]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels([f"{p:g}" for p in ticks])
    ax.grid(visible=False)
    bar = fig.colorbar(shown, ax=ax, label=said("speedup of the whole job"))
    bar.set_ticks([0, 1, 2], labels=["1", "10", "100"])


def predicted_and_measured(rows: Sequence[Row], predicted_s: Sequence[float]) -> None:
    """Draw the measured time of vector additions beside three terms added up."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.9))
    sizes = [row.shape[0] for row in rows]
    ax.loglog(sizes, [1e6 * s for s in predicted_s], "--", color=colors["BlueLine"], label="D / BW + L")
    ax.loglog(sizes, [1e6 * row.median_s for row in rows], "o", color=colors["RedLine"], label=said("measured"))
    ax.set(xlabel=said("numbers in each vector"), ylabel=said("time, µs"))
    ax.legend(frameon=False)
