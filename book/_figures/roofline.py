"""Figures of the chapter on the roofline; each draws one claim from numbers that it is given."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlsys import ops, viz
from mlsys.errors import UnknownName
from mlsys.hardware import Accelerator
from mlsys.measure.records import Row
from mlsys.ops import Op
from mlsys.roofline import Roofline

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

CHIP_COLORS = ("BlueLine", "GreenLine")
"""Of the two chips that a figure compares, in its order."""


def roof(roofline: Roofline, intensity: np.ndarray, engine: str = "") -> np.ndarray:
    """Height of the roof in TFLOP/s at each intensity."""
    peak = roofline.peaks_per_s[engine or roofline.main]
    return np.minimum(peak, roofline.bandwidth_per_s * intensity) / 1e12


def log_axes(ax: Any, low: float, high: float, bottom: float, top: float) -> None:
    """Logarithmic axes of a roofline with plain numbers at the powers of ten."""
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, top))
    ax.set(xlabel="arithmetic intensity, FLOP per byte", ylabel="rate, TFLOP/s")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.minorticks_off()


def anatomy(acc: Accelerator, op: Op, reached: float = 0.5) -> None:
    """The two roofs of one chip, their corner, and a kernel that reaches a share of what the roof above it allows."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.9))
    roofline = Roofline.of(acc, op.dtype)
    peak, ridge = roofline.peak.m, roofline.ridge().m
    low, high, top = ridge / 60, ridge * 25, 3.2 * peak
    slope, flat = np.geomspace(low, ridge, 2), np.geomspace(ridge, high, 2)
    ax.plot(slope, roof(roofline, slope), color=colors["BlueLine"])
    ax.plot(flat, roof(roofline, flat), color=colors["GreenLine"])
    ax.fill_between(slope, roof(roofline, slope), color=colors["BlueL"], linewidth=0, alpha=0.6)
    ax.fill_between(flat, roof(roofline, flat), color=colors["GreenL"], linewidth=0, alpha=0.6)
    ax.plot(ridge, peak, "o", color=colors["primary"], zorder=4)
    ax.annotate(
        f"ridge point\n{ridge:.0f} FLOP per byte", (ridge, peak), xytext=(-8, 6), textcoords="offset points", ha="right"
    )
    ax.text(high / 1.15, peak * 1.15, f"peak {peak:,.0f} TFLOP/s", color=colors["GreenLine"], ha="right")
    middle = ridge / 11
    ax.annotate(
        "bandwidth × intensity", (middle, roof(roofline, np.array([middle]))[0]), xytext=(-4, 7),
        textcoords="offset points", rotation=45, rotation_mode="anchor", ha="center", color=colors["BlueLine"],
    )  # fmt: skip
    x, ceiling = op.intensity.m, roofline.attainable(op).m
    ax.plot(x, reached * ceiling, "D", color=colors["RedLine"], zorder=4)
    arrow = {"arrowstyle": "->", "color": colors["RedLine"], "linewidth": 1.5, "shrinkA": 6, "shrinkB": 1}
    ax.annotate("", (x, ceiling), xytext=(x, reached * ceiling), arrowprops=arrow)
    ax.annotate(
        f"a kernel at {reached:.0%}\nof its roof: {1 / reached:.0f}× to gain", (x, reached * ceiling), xytext=(9, -4),
        textcoords="offset points", va="top", color=colors["RedLine"],
    )  # fmt: skip
    ax.text(ridge / 1.2, 1.35 * peak / 60, "memory-bound", color=colors["BlueLine"], weight="bold", ha="right")
    ax.text(ridge * 1.2, 1.35 * peak / 60, "compute-bound", color=colors["GreenLine"], weight="bold")
    log_axes(ax, low, high, peak / 60, top)


def two_chips(chips: Sequence[Accelerator], named: Mapping[str, Op], precision: str = "fp16") -> None:
    """The rooflines of two chips, with every operation on both, and what it gains from the first to the second."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.6))
    rooflines = [Roofline.of(acc, precision) for acc in chips]
    xs = np.geomspace(0.12, 12000, 300)
    for roofline, acc, color in zip(rooflines, chips, CHIP_COLORS, strict=True):
        ax.plot(xs, roof(roofline, xs), color=colors[color], zorder=2)
        name = acc.id.split("-")[0].upper()
        ax.text(11000, roofline.peak.m * 1.1, f"{name} {roofline.peak.m:,.0f}", color=colors[color], ha="right")
    for name, op in named.items():
        x = op.intensity.m
        rates = [roofline.attainable(op).m for roofline in rooflines]
        ax.plot([x, x], [0.02, max(rates)], color=colors["primary"], linewidth=0.8, linestyle=":", zorder=1)
        for rate, color in zip(rates, CHIP_COLORS, strict=True):
            ax.plot(x, rate, "o", color=colors[color], zorder=3)
        ax.text(x * 0.93, 0.027, name, rotation=90, ha="right", va="bottom", fontsize=9)
        ax.annotate(
            f"{rates[1] / rates[0]:.1f}×", (x, max(rates)), xytext=(0, 6), textcoords="offset points",
            ha="center" if max(rates) == rooflines[1].peak.m else "right", va="bottom", fontsize=9, weight="bold",
        )  # fmt: skip
    log_axes(ax, 0.12, 12000, 0.02, 4000)


def two_units(acc: Accelerator, named: Mapping[str, Op], precision: str = "fp16") -> None:
    """The tensor and the vector roof of one chip, and operations without a matrix product under the lower one."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.9))
    roofline = Roofline.of(acc, precision)
    xs = np.geomspace(0.06, 1500, 300)
    for engine, color, what in (
        ("tensor", "GreenLine", f"tensor cores, {precision.upper()}"),
        ("vector", "OrangeLine", "vector units, FP32"),
    ):
        peak, ridge = roofline.peaks_per_s[engine] / 1e12, roofline.ridge(engine).m
        ax.plot(xs, roof(roofline, xs, engine), color=colors[color], zorder=2 if engine == "tensor" else 3)
        ax.text(1350, peak * 1.15, f"{what}: {peak:,.4g}", color=colors[color], ha="right", va="bottom")
        ax.plot(ridge, peak, "o", color=colors[color], zorder=4)
        ax.annotate(
            f"{ridge:.3g}", (ridge, peak), xytext=(3, -6), textcoords="offset points", va="top",
            color=colors[color], weight="bold",
        )  # fmt: skip
    for name, op in named.items():
        rate = roofline.attainable(op).m
        ax.plot(op.intensity.m, rate, "o", color=colors["VioletLine"], zorder=5)
        ax.annotate(
            f"{name} {op.intensity.m:.3g}", (op.intensity.m, rate), xytext=(8, -3), textcoords="offset points",
            va="top", color=colors["VioletLine"],
        )  # fmt: skip
    log_axes(ax, 0.06, 1500, 0.08, 1300)


def op_of(row: Row) -> Op:
    """The operation that a row of the book's measurements timed, from its name, shape and number format.

    Raises:
        UnknownName: if the measurement is not one of those listed here.
    """
    shape, dtype = row.shape, row.dtype
    made = {
        "vector add": lambda: ops.elementwise(elements=shape[0], inputs=2, dtype=dtype),
        "softmax": lambda: ops.softmax(rows=shape[0], cols=shape[1], dtype=dtype),
        "layernorm": lambda: ops.layernorm(rows=shape[0], cols=shape[1], dtype=dtype),
        "embedding": lambda: ops.embedding_bag(bags=shape[0], bag_size=shape[1], dim=shape[2], dtype=dtype),
        "dense layer by batch": lambda: ops.linear(batch=shape[0], d_in=shape[1], d_out=shape[2], dtype=dtype),
        "matmul by dtype": lambda: ops.matmul(m=shape[0], n=shape[1], k=shape[2], dtype=dtype),
    }
    if row.name not in made:
        raise UnknownName.of("operation of a measurement", row.name, made)
    return made[row.name]()


def point(row: Row) -> tuple[float, float]:
    """Ideal intensity and measured TFLOP/s of a row."""
    op = op_of(row)
    return op.intensity.m, op.flop_count / row.median_s / 1e12


def measured(
    acc: Accelerator, roofline: Roofline, layers: Sequence[Row], squares: Sequence[Row], rest: Sequence[Row]
) -> None:
    """Measured kernels under the measured roofs of a device, and the roofs of its data sheet (dashed).

    Args:
        acc: the chip, for its data sheet.
        roofline: the measured roofs.
        layers: one layer at growing batches.
        squares: square products of growing size.
        rest: single kernels; an arrow leads to the fastest other implementation timed beside them.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.7))
    xs = np.geomspace(0.05, 50000, 300)
    precision = layers[0].dtype
    ax.plot(xs, roof(Roofline.of(acc, precision), xs), "--", color=colors["primary"], linewidth=1, zorder=1)
    ax.plot(xs, roof(roofline, xs), color=colors["primary"], zorder=2)
    sheet_peak = acc.peak(precision).m_as("TFLOP/s")
    ax.text(46000, sheet_peak * 1.06, f"data sheet {sheet_peak:,.0f}", ha="right", va="bottom", fontsize=9)
    ax.text(46000, roofline.peak.m / 1.25, f"measured {roofline.peak.m:,.0f}", ha="right", va="top", fontsize=9)
    batches, sides = (f"{sweep[0].shape[0]:,} to {sweep[-1].shape[0]:,}" for sweep in (layers, squares))
    for sweep, color, name in (
        (layers, "BlueLine", f"dense layer, batch {batches}"),
        (squares, "GreenLine", f"square product, {sides}"),
    ):
        points = [point(row) for row in sweep]
        ax.plot(*zip(*points, strict=True), "o-", color=colors[color], markersize=4.5, linewidth=1, label=name)
    marks = (("RedLine", "D"), ("OrangeLine", "s"), ("VioletLine", "^"), ("BrownLine", "v"))
    for row, (color, marker) in zip(rest, marks, strict=False):
        x, y = point(row)
        ax.plot(x, y, marker, color=colors[color], label=row.name, zorder=5)
        best_peer = y / min(row.peers.values(), default=1)
        if best_peer > 1.1 * y:
            arrow = {"arrowstyle": "->", "color": colors[color], "linewidth": 1.4, "shrinkA": 4, "shrinkB": 0}
            ax.annotate("", (x, best_peer), xytext=(x, y), arrowprops=arrow, zorder=5)
    ax.legend(loc="lower right", fontsize=9)
    log_axes(ax, 0.02, 50000, 0.1, 2600)
