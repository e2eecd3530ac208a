"""The picture of a roofline: roofs as lines, ops as labelled points."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mlsys import viz
from mlsys.ops import Op

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mlsys.roofline import Roofline


def draw(roofline: "Roofline", ops: Sequence[Op], ax: "Axes | None") -> "Axes":
    """Draw `roofline` with `ops` into `ax`, or into a new figure, and return the axes."""
    if ax is None:
        _, ax, _, _ = viz.setup_plot()
    ridges = [peak / roofline.bandwidth_per_s for peak in roofline.peaks_per_s.values()]
    shown = [*ridges, *(_intensity(op) for op in ops)]
    low, high = min(shown) / 4, max(shown) * 4
    intensity = np.geomspace(low, high, 200)
    roof_name = "peak" if roofline.basis == "data sheet" else "ceiling"
    for unit, peak in roofline.peaks_per_s.items():
        roof = np.minimum(peak, roofline.bandwidth_per_s * intensity) / 1e12
        style = "-" if unit == roofline.main else "--"
        ax.plot(intensity, roof, style, color=viz.COLORS["primary"], zorder=2)
        ax.annotate(
            f"{unit} {roof_name} {peak / 1e12:.3g} TFLOP/s",
            (high, peak / 1e12), xytext=(-2, 4), textcoords="offset points", ha="right", va="bottom", fontsize=9,
        )  # fmt: skip
    for number, op in enumerate(ops):
        rate = op.flop_count / roofline.time(op).m_as("second") / 1e12
        color = viz.CYCLE[number % len(viz.CYCLE)]
        ax.plot(_intensity(op), rate, "o", markersize=8, color=color, zorder=3, label=op.name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(top=2.5 * max(roofline.peaks_per_s.values()) / 1e12)
    ax.set_xlabel("arithmetic intensity (FLOP/byte)")
    ax.set_ylabel("attainable TFLOP/s")
    ax.set_title(f"{roofline.name} ({roofline.basis}, {roofline.bandwidth_per_s / 1e9:,.0f} GB/s)", fontsize=11)
    if ops:
        ax.legend(loc="lower right", fontsize=9)
    return ax


def _intensity(op: Op) -> float:
    return op.flop_count / (op.read_count + op.write_count)
