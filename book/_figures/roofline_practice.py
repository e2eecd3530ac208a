"""Figures of the chapter on using the roofline; each draws one claim from numbers that it is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from _figures.roofline import log_axes, roof

from mlsys import viz
from mlsys.measure.records import Record, Row
from mlsys.models import LanguageModel, Model
from mlsys.ops import Op
from mlsys.roofline import Roofline

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

GROUPS = {
    "conv, compute": ("convolutions, compute-bound", "GreenLine", "o"),
    "conv, memory": ("convolutions, memory-bound", "BlueLine", "o"),
    "rest": ("all others", "OrangeLine", "s"),
}
"""Groups of a network's kernels: name in a legend, color and marker."""


def per_clock_ceiling(clock_mhz: float, multiprocessors: int, flop_per_cycle: int) -> float:
    """Return the TFLOP/s of tensor cores that are never idle: multiprocessors x FLOP per cycle x clock."""
    return multiprocessors * flop_per_cycle * clock_mhz * 1e6 / 1e12


def clocks(rows: Sequence[Row], multiprocessors: int, flop_per_cycle: int, sheet: float) -> None:
    """Draw square products: what was reached, and what no idle cycle at the clock of that run would have reached.

    Args:
        rows: products of growing side, with the clocks that were read.
        multiprocessors: of the chip.
        flop_per_cycle: of the tensor cores of one multiprocessor.
        sheet: the data sheet's peak in TFLOP/s.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    for place, row in enumerate(rows):
        assert row.achieved is not None
        assert row.sm_clock_mhz is not None
        most = per_clock_ceiling(row.sm_clock_mhz, multiprocessors, flop_per_cycle)
        ax.bar(place, most, 0.62, color=colors["BlueL"], label=None if place else "every cycle used")
        ax.bar(place, row.achieved, 0.62, color=colors["BlueLine"], label=None if place else "measured")
        ax.text(place, most - 14, f"{row.sm_clock_mhz / 1e3:.2f} GHz", ha="center", va="top", fontsize=8.5)
        ax.text(place, row.achieved - 25, f"{row.achieved:.0f}", ha="center", va="top", color="white", weight="bold")
    ax.axhline(sheet, color=colors["primary"], linestyle="--", linewidth=1)
    ax.text(len(rows) - 0.6, sheet + 12, f"data sheet {sheet:.0f}", ha="right", va="bottom", fontsize=9)
    ax.set_xticks(range(len(rows)), [f"{row.shape[0]:,}" for row in rows])
    ax.set(xlabel="side of the matrices", ylabel="TFLOP/s", ylim=(0, 1300))
    ax.grid(axis="x", visible=False)
    ax.legend(loc="upper left", ncols=2, fontsize=9)


def group(op: Op, roofline: Roofline) -> str:
    """Return the key of `GROUPS` for a kernel of an image network, by its kind and the roof above it."""
    if op.kind != "conv2d":
        return "rest"
    return f"conv, {roofline.bound(op)}"


@dataclass
class Share:
    """What a group of kernels does: how many there are, and their sums.

    Attributes:
        kernels: how many.
        flops: FLOPs of all of them.
        moved: bytes of all of them.
        least_us: microseconds that they take at least, one after the other.
    """

    kernels: int = 0
    flops: int = 0
    moved: float = 0.0
    least_us: float = 0.0


def shares(ops: Sequence[Op], roofline: Roofline) -> dict[str, Share]:
    """Add up the kernels of an image network by `group`."""
    found = {key: Share() for key in GROUPS}
    for op in ops:
        one = found[group(op, roofline)]
        one.kernels += 1
        one.flops += op.flop_count
        one.moved += op.read_count + op.write_count
        one.least_us += roofline.time(op).m_as("us")
    return found


def network(roofline: Roofline, ops: Sequence[Op]) -> None:
    """Draw every kernel of an image network at its roof; the area of a mark is the least time of the kernel."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.4))
    low, high = 0.05, 3000
    xs = np.geomspace(low, high, 300)
    ax.plot(xs, roof(roofline, xs), color=colors["primary"], zorder=1)
    beyond = xs[xs >= roofline.ridge("vector").m]
    ax.plot(beyond, roof(roofline, beyond, "vector"), color=colors["primary"], linewidth=1, linestyle="--", zorder=1)
    ax.text(high / 1.15, roofline.peaks_per_s["vector"] / 1e12 * 1.12, "vector units", ha="right", fontsize=9)
    ax.text(high / 1.15, roofline.peak.m * 1.7, "tensor cores", ha="right", fontsize=9)
    for key, (name, color, marker) in GROUPS.items():
        chosen = [op for op in ops if group(op, roofline) == key]
        areas = [6 * roofline.time(op).m_as("us") for op in chosen]
        x, y = [op.intensity.m for op in chosen], [roofline.attainable(op).m for op in chosen]
        total = roofline.time(chosen).m_as("us")
        label = f"{name}: {len(chosen)} kernels, {total:.0f} µs"
        ax.scatter(x, y, areas, color=colors[color], marker=marker, alpha=0.55, linewidths=0, zorder=3)
        ax.scatter([], [], 40, color=colors[color], marker=marker, label=label)
    ridge, peak = roofline.ridge().m, roofline.peak.m
    ax.plot([ridge, ridge], [0.2, peak], color=colors["primary"], linewidth=0.8, linestyle=":")
    ax.text(ridge * 1.1, 0.3, f"ridge {ridge:.0f}", rotation=90, fontsize=9)
    ax.legend(loc="upper left", fontsize=9)
    log_axes(ax, low, high, 0.2, 40000)


@dataclass(frozen=True)
class Pass:
    """A whole pass through a model on a roofline: all FLOPs over all bytes, and over the sum of its least times."""

    intensity: float
    rate: float

    @classmethod
    def of(cls, ops: Sequence[Op], roofline: Roofline) -> "Pass":
        """Add up the ops of a pass."""
        flops, moved = sum(op.flop_count for op in ops), sum(op.read_count + op.write_count for op in ops)
        return cls(flops / moved, flops / roofline.time(ops).m_as("s") / 1e12)


def passes(roofline: Roofline, series: Mapping[str, Mapping[str, Sequence[Op]]]) -> None:
    """Draw whole passes below a roofline, each series a line of marks.

    Args:
        roofline: the roofs.
        series: for each line of the legend, the ops of its passes, by the text at their marks.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.4))
    low, high = 0.5, 2000
    xs = np.geomspace(low, high, 300)
    ax.plot(xs, roof(roofline, xs), color=colors["primary"], zorder=1)
    styles = (("BlueLine", "o", (7, -9)), ("VioletLine", "D", (0, -16)), ("OrangeLine", "s", (8, -8)))
    for (name, found), (color, marker, offset) in zip(series.items(), styles, strict=True):
        points = {text: Pass.of(ops, roofline) for text, ops in found.items()}
        x, y = [one.intensity for one in points.values()], [one.rate for one in points.values()]
        ax.plot(x, y, f"{marker}-", color=colors[color], markersize=5, linewidth=1, label=name, zorder=3)
        for text, one in points.items():
            ax.annotate(
                text, (one.intensity, one.rate), xytext=offset, textcoords="offset points", fontsize=9,
                color=colors[color], va="center", ha="left" if offset[0] else "center",
            )  # fmt: skip
    ridge = roofline.ridge().m
    ax.plot([ridge, ridge], [2, roofline.peak.m], color=colors["primary"], linewidth=0.8, linestyle=":")
    ax.text(ridge * 1.08, 2.6, f"ridge {ridge:.0f}", rotation=90, fontsize=9, va="bottom")
    ax.legend(loc="upper left", fontsize=9)
    log_axes(ax, low, high, 2, 8000)


def batches(width: int, ridges: Mapping[str, float], crossings: Mapping[str, float]) -> None:
    """Draw the intensity of a dense layer in a two-byte format against its batch, exactly and as the rule of thumb.

    Args:
        width: inputs and outputs of the layer.
        ridges: ridge points by chip, in FLOP per byte.
        crossings: batch at which the layer reaches each of them.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.7))
    rows = np.geomspace(1, 4096, 300)
    ax.plot(rows, rows, "--", color=colors["primary"], linewidth=1, label="rule of thumb: the batch")
    ax.plot(rows, rows / (1 + 2 * rows / width), color=colors["BlueLine"], label=f"exact, width {width:,}")
    ax.axhline(width / 2, color=colors["BlueLine"], linewidth=0.8, linestyle=":")
    ax.text(1.1, width / 2 * 1.08, f"limit {width / 2:,.0f}", fontsize=9, color=colors["BlueLine"], va="bottom")
    for (chip, ridge), color, above in zip(ridges.items(), ("GreenLine", "OrangeLine"), (False, True), strict=True):
        ax.axhline(ridge, color=colors[color], linewidth=1)
        ax.text(1.1, ridge * (1.1 if above else 0.9), f"ridge of the {chip}: {ridge:.0f}", fontsize=9,
                color=colors[color], va="bottom" if above else "top")  # fmt: skip
        ax.plot(crossings[chip], ridge, "o", color=colors[color], zorder=4)
        ax.annotate(
            f"{np.ceil(crossings[chip]):.0f} rows", (crossings[chip], ridge), xytext=(8, -6),
            textcoords="offset points", color=colors[color], weight="bold", va="top",
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlim=(1, 4096), ylim=(1, 4500), xlabel="batch, rows", ylabel="FLOP per byte")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.minorticks_off()
    ax.legend(loc="lower right", fontsize=9)


def serving(
    batch: Sequence[int],
    rates: Sequence[float],
    steps_ms: Sequence[float],
    half: float,
    most: float,
    measured_ms: Mapping[int, float],
) -> None:
    """Draw tokens per second and time of a step against the sequences that are decoded together.

    Args:
        batch: sequences.
        rates: tokens per second over all sequences, at most.
        steps_ms: milliseconds of a step, at least: what each sequence waits for its next token.
        half: sequences at which the caches have as many bytes as the weights.
        most: tokens per second that no batch exceeds.
        measured_ms: milliseconds that a step took, by the number of sequences.
    """
    viz.apply_style()
    import matplotlib.pyplot as plt

    colors = viz.COLORS
    _, (top, low) = plt.subplots(2, 1, figsize=(WIDTH, 5.0), layout="constrained", sharex=True)
    top.plot(batch, rates, "o-", color=colors["BlueLine"], markersize=4.5)
    top.plot(batch, [rates[0] * b / batch[0] for b in batch], "--", color=colors["primary"], linewidth=1)
    top.axhline(most, color=colors["RedLine"], linewidth=1, linestyle=":")
    top.text(batch[-1], most * 1.08, f"ceiling {most:,.0f}", color=colors["RedLine"], va="bottom", ha="right")
    top.text(5, rates[0] * 7.5, "in proportion\nto the batch", ha="right", fontsize=9)
    low.plot(batch, steps_ms, "o-", color=colors["OrangeLine"], markersize=4.5)
    cross = {"color": colors["primary"], "markersize": 7, "markeredgewidth": 1.6, "linestyle": "none"}
    made = [1e3 * users / took for users, took in measured_ms.items()]
    top.plot(list(measured_ms), made, "x", **cross)
    low.plot(list(measured_ms), list(measured_ms.values()), "x", label="measured", **cross)
    for ax in (top, low):
        ax.axvline(half, color=colors["primary"], linewidth=0.8, linestyle=":")
        ax.set(xscale="log", yscale="log")
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        ax.minorticks_off()
    low.text(half * 0.93, 15, "caches as large\nas the weights", ha="right", fontsize=9, va="center")
    top.set(ylabel="tokens per second", ylim=(min(made) / 1.6, 2.6 * most))
    low.set(ylabel="step, ms", xlabel="sequences decoded together", ylim=(0.5, 30))
    low.legend(loc="upper left", fontsize=9)
    low.set_xticks(batch, [f"{b:,}" for b in batch])


def parts(steps: Mapping[str, tuple[float, float, float, float]], measured_us: Mapping[str, Sequence[float]]) -> None:
    """Draw what a step of decode must take: for its bytes, for its arithmetic, and for its launches in two ways.

    Args:
        steps: for each model, microseconds of bytes, arithmetic, launches from a graph, launches from Python.
        measured_us: for some of the models, microseconds that a step took, from a graph and from Python.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 1.05 * len(steps)))
    names = ("bytes", "arithmetic", "launches, from a graph", "launches, from Python")
    tones = ("BlueLine", "GreenLine", "VioletLine", "OrangeLine")
    places = {name: -place for place, name in enumerate(steps)}
    for number, (name, tone) in enumerate(zip(names, tones, strict=True)):
        offset = 0.3 - 0.2 * number
        widths = [times[number] for times in steps.values()]
        at = [place + offset for place in places.values()]
        ax.barh(at, widths, 0.18, color=colors[tone], label=name)
        for y, width in zip(at, widths, strict=True):
            ax.text(width * 1.1, y, f"{width:,.0f}" if width > 1 else f"{width:.1f}", va="center", fontsize=8.5)
    times = [time for pair in measured_us.values() for time in pair]
    rows = [places[name] + offset for name in measured_us for offset in (-0.1, -0.3)]
    ax.plot(times, rows, "D", color=colors["primary"], markersize=4.5, label="measured")
    ax.set_yticks(list(places.values()), list(places))
    ax.set(xscale="log", xlabel="microseconds", xlim=(0.1, 50000), ylim=(0.5 - len(steps), 1.4))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.minorticks_off()
    ax.grid(axis="y", visible=False)
    ax.legend(loc="upper left", ncols=2, fontsize=9)


def measured(record: Record, name: str, variant: str, batch: int) -> Row:
    """Return the row of the record with this name, variant and batch."""
    [row] = [row for row in record.named(name, variant) if row.shape[0] == batch]
    return row


def step_parts(
    model: LanguageModel | Model, roofline: Roofline, graph_us: float, queued_us: float
) -> tuple[float, ...]:
    """Return microseconds of a pass: all bytes, all arithmetic, and all launches from a graph and from Python."""
    flops, moved = {"tensor": 0, "vector": 0}, 0.0
    for op in model.ops:
        flops[op.engine] += op.flop_count
        moved += op.read_count + op.write_count
    arithmetic = sum(1e6 * count / roofline.peaks_per_s[engine] for engine, count in flops.items())
    kernels = len(model.ops)
    return 1e6 * moved / roofline.bandwidth_per_s, arithmetic, graph_us * kernels, queued_us * kernels
