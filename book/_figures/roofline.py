"""Figures of the chapter on the roofline; each draws one claim from numbers that it is given."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlsys import models, ops, viz
from mlsys.errors import UnknownName
from mlsys.hardware import Accelerator
from mlsys.measure.records import Record, Row
from mlsys.ops import Op
from mlsys.roofline import Roofline

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

CHIP_COLORS = ("BlueLine", "GreenLine")
"""Of the two chips that a figure compares, in its order."""


EAGER = "eager torch"
"""What the fusion lab's rows call PyTorch's own kernel."""


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


def growing(queued: Sequence[Row], replayed: Sequence[Row]) -> None:
    """Time of one small operation against its size, queued by the host and replayed by the device alone.

    Args:
        queued: the operation at growing sizes, each call queued by the host.
        replayed: the same sizes, replayed from a graph.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.3))
    for rows, color, text, below in (
        (queued, "OrangeLine", "queued from Python", False),
        (replayed, "BlueLine", "replayed by the GPU alone", True),
    ):
        sizes, times = [row.shape[0] for row in rows], [1e6 * row.median_s for row in rows]
        ax.plot(sizes, times, "o-", color=colors[color], markersize=4.5)
        ax.annotate(
            text, (sizes[0], times[0]), xytext=(0, -9 if below else 7), textcoords="offset points",
            va="top" if below else "bottom", color=colors[color],
        )  # fmt: skip
    ax.text(sizes[1], 17, "overhead: the time stays", color=colors["primary"], weight="bold")
    ax.text(sizes[-1] * 1.6, 70, "bandwidth:\nthe time grows", ha="right", color=colors["primary"], weight="bold")
    ax.set(xscale="log", yscale="log", ylim=(0.5, 130))
    ax.set(xlabel="numbers in the array", ylabel="time of one call, µs")
    ax.set_xticks([1, 1e3, 1e6], ["1", "1,000", "1 million"])
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
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
    xs = np.geomspace(0.6, 30000, 300)
    for roofline, acc, color in zip(rooflines, chips, CHIP_COLORS, strict=True):
        name = acc.id.split("-")[0].upper()
        for engine, style, text in (("tensor", "-", "tensor cores"), ("vector", "--", "vector units")):
            peak = roofline.peaks_per_s[engine] / 1e12
            flat = xs if engine == "tensor" else xs[xs >= roofline.ridge("vector").m]
            ax.plot(flat, roof(roofline, flat, engine), style, color=colors[color], linewidth=2 if style == "-" else 1)
            ax.text(28000, peak / 1.08, f"{name}, {text}", color=colors[color], ha="right", va="top", fontsize=9)
    for name, op in named.items():
        x = op.intensity.m
        rates = [roofline.attainable(op).m for roofline in rooflines]
        ax.plot([x, x], [0.6, max(rates)], color=colors["primary"], linewidth=0.8, linestyle=":", zorder=1)
        for rate, color in zip(rates, CHIP_COLORS, strict=True):
            ax.plot(x, rate, "o", color=colors[color], zorder=3)
        ax.text(x * 1.08, 0.75, name, rotation=90, ha="left", va="bottom", fontsize=9)
        ax.annotate(
            f"{rates[1] / rates[0]:.1f}×", (x, max(rates)), xytext=(0, 6), textcoords="offset points",
            ha="center" if max(rates) == rooflines[1].peak.m else "right", va="bottom", weight="bold",
        )  # fmt: skip
    log_axes(ax, 0.6, 30000, 0.6, 3000)


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
        "fast matmul": lambda: ops.matmul(m=shape[0], n=shape[1], k=shape[2], dtype=dtype),
    }
    if row.name not in made:
        raise UnknownName.of("operation of a measurement", row.name, made)
    return made[row.name]()


def point(row: Row) -> tuple[float, float]:
    """Ideal intensity and measured TFLOP/s of a row."""
    op = op_of(row)
    return op.intensity.m, op.flop_count / row.median_s / 1e12


def measured(
    acc: Accelerator,
    roofline: Roofline,
    layers: Sequence[Row],
    squares: Sequence[Row],
    rest: Mapping[str, Sequence[Row]],
    best: Row,
) -> None:
    """Measured kernels under the measured roofs of a device, and the roofs of its data sheet (dashed).

    Args:
        acc: the chip, for its data sheet.
        roofline: the measured roofs, from kernels that are not among the points.
        layers: one layer at growing batches.
        squares: square products of growing size.
        rest: rows of other kernels, by the name that the legend shows.
        best: the fastest matrix product of a half-precision format.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.9))
    low, high = 0.05, 30000
    xs = np.geomspace(low, high, 300)
    precision = layers[0].dtype
    ax.plot(xs, roof(Roofline.of(acc, precision), xs), "--", color=colors["primary"], linewidth=1, zorder=1)
    ax.plot(xs, roof(roofline, xs), color=colors["primary"], zorder=2)
    beyond, vector = xs[xs >= roofline.ridge("vector").m], roofline.peaks_per_s["vector"] / 1e12
    ax.plot(beyond, roof(roofline, beyond, "vector"), color=colors["primary"], linewidth=1, zorder=2)
    ax.text(high / 1.1, vector / 1.1, f"vector units {vector:,.0f}", ha="right", va="top", fontsize=9)
    sheet_peak, x = acc.peak(precision).m_as("TFLOP/s"), 6
    ax.text(high / 1.1, sheet_peak * 1.08, f"data sheet {sheet_peak:,.0f}", ha="right", va="bottom", fontsize=9)
    ax.annotate(
        f"measured roof\n{roofline.bandwidth.m:,.0f} GB/s\n{roofline.peak.m:,.0f} TFLOP/s",
        (x, roof(roofline, np.array([x]))[0]), xytext=(0.08, 90), fontsize=9,
        arrowprops={"arrowstyle": "-", "color": colors["primary"], "linewidth": 0.8},
    )  # fmt: skip
    batches, sides = (f"{sweep[0].shape[0]:,} to {sweep[-1].shape[0]:,}" for sweep in (layers, squares))
    for sweep, color, name in (
        (layers, "BlueLine", f"dense layer, batch {batches}"),
        (squares, "GreenLine", f"square product, {sides}"),
    ):
        points = [point(row) for row in sweep]
        ax.plot(*zip(*points, strict=True), "o-", color=colors[color], markersize=4.5, linewidth=1, label=name)
    best_x, best_rate = point(best)
    ax.plot(
        best_x, best_rate, "*", color=colors["RedLine"], markersize=10, label=f"the course's product, {best_rate:.0f}"
    )
    marks = (("RedLine", "D"), ("OrangeLine", "s"), ("VioletLine", "^"), ("BrownLine", "v"))
    for (name, rows), (color, marker) in zip(rest.items(), marks, strict=False):
        points = [point(row) for row in rows]
        ax.plot(*zip(*points, strict=True), marker, color=colors[color], markersize=5, label=name, zorder=5)
    ax.legend(loc="lower right", fontsize=8.5)
    log_axes(ax, low, high, 0.1, 2600)


def rows_shares(raced: Sequence[Row], bandwidth: float) -> list[tuple[str, float, float, float]]:
    """Of each row-wise operation: name, and the shares of a bandwidth of PyTorch, the best other kernel and the lab's.

    All are from one row, in which the kernels ran in turn: a rate is that of the lab's kernel over the ratio of times.

    Args:
        raced: rows of the fusion lab's kernels, with the others as peers.
        bandwidth: that of the roof, in GB/s.
    """
    found = []
    for row in raced:
        name = {"fused layernorm": "LayerNorm", "fused softmax": "softmax"}[row.name]
        share = (row.achieved or 0) / bandwidth
        others = [share / ratio for peer, ratio in row.peers.items() if peer != EAGER]
        found.append((f"{name}, {row.shape[1]:,}", share / row.peers[EAGER], max(others), share))
    return found


def closing(shares: Sequence[tuple[str, float, float, float]]) -> None:
    """How near to the slanted roof three kernels for each row-wise operation come."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.5))
    places = range(len(shares))[::-1]
    marks = (("PyTorch", "OrangeLine", "o"), ("best of torch.compile and Liger", "BlueLine", "s"))
    marks += (("kernel of the fusion lab", "GreenLine", "D"),)
    for place, (_, *three) in zip(places, shares, strict=True):
        ax.plot([100 * min(three), 100 * max(three)], [place, place], color=colors["grid"], linewidth=3, zorder=1)
    for number, (name, color, marker) in enumerate(marks):
        ax.plot(
            [100 * entry[1 + number] for entry in shares], places, marker, color=colors[color], markersize=6, label=name
        )
    ax.axvline(100, color=colors["primary"])
    ax.set(xlim=(0, 106), ylim=(-0.6, len(shares) + 1.3), xlabel="bytes per second, percent of the slanted roof")
    ax.set_yticks(list(places), [entry[0] for entry in shares])
    ax.grid(axis="y", visible=False)
    ax.legend(loc="upper left", fontsize=9)


def bounds_us(roofline: Roofline, op: Op) -> tuple[float, float]:
    """The longer and the sum of the two times of an operation, in microseconds: its lower and its upper bound."""
    peak = roofline.peaks_per_s.get(op.engine, roofline.peaks_per_s[roofline.main])
    arithmetic = 1e6 * op.flop_count / peak
    moving = (op.bytes / roofline.bandwidth).m_as("us")
    return max(arithmetic, moving), arithmetic + moving


def between_bounds(roofline: Roofline, layers: Sequence[Row], start_us: float) -> None:
    """Measured time of a layer against its batch, with its two bounds.

    Args:
        roofline: the measured roofs.
        layers: one layer at growing batches.
        start_us: the startup time: microseconds of a kernel that does next to nothing.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.5))
    batches = [row.shape[0] for row in layers]
    lower, both = zip(*(bounds_us(roofline, op_of(row)) for row in layers), strict=True)
    upper = [time + start_us for time in both]
    ax.fill_between(batches, lower, upper, color=colors["BlueL"], linewidth=0)
    ax.plot(batches, upper, color=colors["BlueLine"], linewidth=1, label="upper bound: both times and the startup time")
    ax.plot(batches, lower, color=colors["BlueLine"], label="lower bound: the longer of both times")
    ax.plot(batches, [1e6 * row.median_s for row in layers], "o-", color=colors["RedLine"], label="measured")
    ax.set(xscale="log", ylim=(0, 14), xlabel="batch", ylabel="time, µs")
    ax.set_xticks(batches, [str(batch) for batch in batches])
    ax.minorticks_off()
    ax.legend(loc="upper left", fontsize=9)


def network_bounds_us(roofline: Roofline, batch: int, start_us: float) -> tuple[float, float]:
    """Least and greatest time of ResNet-50 in microseconds, if each kernel keeps to its two bounds.

    Normalizations are folded into the convolutions, as in the suite's measurement; each other layer is a kernel.

    Args:
        roofline: the roofs.
        batch: images.
        start_us: the startup time of a kernel.
    """
    kernels = [op for op in models.resnet50(batch=batch).ops if op.kind != "batchnorm"]
    lower, both = zip(*(bounds_us(roofline, op) for op in kernels), strict=True)
    return sum(lower), sum(both) + len(kernels) * start_us


def network_row(record: Record, batch: int) -> Row:
    """ResNet-50 as measured, replayed from a graph."""
    [row] = [row for row in record.named("ResNet-50", "graph") if row.shape[0] == batch]
    return row


def conditions(row: Row) -> str:
    """What the record holds of clock and power while a row was timed, as the end of a sentence."""
    if row.sm_clock_mhz is None or row.power_w is None:
        return "the record covers one card and contains neither clock nor power"
    ran = f"the chain ran at {row.sm_clock_mhz / 1e3:.2f} GHz and drew {row.power_w:.0f} W"
    return f"in the record, which covers one card, {ran}"


PROFILES = Path(__file__).parents[2] / "labs/tiling/ladder/profiles"
"""What `scripts/profile_ladder.py` has written."""


def profile(job: str) -> dict[str, float]:
    """What the profiler counted for a kernel of the tiling lab's ladder: values by quantity.

    Args:
        job: the name of the export without its ending, such as "03_tiled".
    """
    with (PROFILES / f"{job}.csv").open(encoding="utf-8", newline="") as file:
        return {line["quantity"]: float(line["value"]) for line in csv.DictReader(file)}
