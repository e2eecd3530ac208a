"""Figures of the chapter on kernels; each draws one claim from numbers that it is given or takes from the package."""

from collections.abc import Mapping
from dataclasses import dataclass

from _figures.words import amount, from_the_right, said, with_words
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from mlsys import viz
from mlsys.errors import UserError
from mlsys.measure.records import Record, Row

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

LAUNCHED = {
    "fp32, 4096 x 4096 x 4096": "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8",
    "fp32, 512 x 512 x 512": "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8",
    "tf32, 4096 x 4096 x 4096": "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32",
    "fp16, 4096 x 4096 x 4096": "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
    "fp16, 1 x 4096 x 4096": "nvjet_sm90_hsh_128x8_64x12_4x1_v_bz_splitK_NNT",
}
"""Kernels that `a @ b` launched first, for m x n x k, as the profiler named them; the tails of long names are cut."""

LAUNCHED_ON = "NVIDIA H200, torch 2.11.0 with CUDA 13.0, driver 580.159.04, recorded 2026-11-20"
"""Where and when the names of `LAUNCHED` were recorded, by the profiling cell of the chapter with these inputs."""


@dataclass(frozen=True)
class Trip:
    """One offload and its alternative, in milliseconds: copy in, run on the device, copy out; or run on the host."""

    title: str
    copy_in: float
    run: float
    copy_out: float
    on_host: float

    @property
    def total(self) -> float:
        """From the first byte copied to the last byte back."""
        return self.copy_in + self.run + self.copy_out


def chunked(trip: Trip, chunks: int) -> dict[str, list[tuple[float, float]]]:
    """Return start and end of each chunk's copy in, run and copy out, where the three go on at the same time.

    A chunk runs when it has arrived and the one before it is done; its copy out begins when it has run.
    """
    times: dict[str, list[tuple[float, float]]] = {"in": [], "run": [], "out": []}
    for chunk in range(chunks):
        ready = 0.0
        for stage, length in (("in", trip.copy_in), ("run", trip.run), ("out", trip.copy_out)):
            before = times[stage][-1][1] if chunk else 0.0
            start = max(ready, before)
            ready = start + length / chunks
            times[stage].append((start, ready))
    return times


def launched_on() -> str:
    """Return where and when the names of `LAUNCHED` were recorded, in the language of the page."""
    return with_words(LAUNCHED_ON, "with", "driver", "recorded")


def call_stack() -> None:
    """Draw one line at the top, many kernels below it, and at each arrow the decision that is made there."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 6.0))
    ax.set(xlim=(0, 10), ylim=(0.3, 12.5))
    ax.axis("off")
    levels = [
        (11.4, "your line:  c = a @ b", "GreenL", "GreenLine"),
        (8.9, "framework:  operator matmul", "BlueL", "BlueLine"),
        (6.4, "backend for this device", "BlueL", "BlueLine"),
    ]
    decisions = [
        (11.4, "which operator? do the shapes fit?\nis a gradient needed?"),
        (8.9, "where are the tensors?\nwhich number format?"),
        (6.4, "which shape and layout?\nhow much scratch memory?"),
        (3.9, "put into a queue: the host goes on,\nthe device starts when it is free"),
    ]
    for y, text, fill, edge in levels:
        _box(ax, 1.4, y, 7.2, said(text), colors[fill], colors[edge])
    for y, text in decisions:
        x = 2.1 if y != 3.9 else 3.4
        ax.annotate("", xy=(x, y - 1.6), xytext=(x, y - 0.05), arrowprops={"arrowstyle": "->", "linewidth": 1.6})
        side = "right" if from_the_right() else "left"
        ax.text(x + 0.3, y - 0.82, said(text), va="center", ma=side, fontsize=10, color=colors["primary"])
    kernels = ["FP32,\nlarge tiles", "FP16, on\ntensor cores", "one row,\nsplit sum"]
    for place, text in enumerate([*(said(kernel) for kernel in kernels), "..."]):
        fill, ink = ("OrangeLine", "white") if place == 1 else ("OrangeL", colors["primary"])
        _box(ax, 0.1 + 2.5 * place, 3.75, 2.3, text, colors[fill], colors["OrangeLine"], ink)
    library = said("kernels of the library")
    ax.text(9.9, 4.98, library, ha="right", fontsize=10, color=colors["OrangeLine"])
    for block in range(8):
        text = said("block")
        _box(ax, 0.1 + 1.23 * block, 1.2, 1.05, text, colors["VioletL"], colors["VioletLine"])
    below = said("blocks of threads on the device's cores compute the result")
    ax.text(5.0, 0.6, below, ha="center", fontsize=10)


def _box(ax: Axes, x: float, y: float, width: float, text: str, fill: str, edge: str, ink: str = "black") -> None:
    height = 0.95
    shape = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.15", facecolor=fill)
    shape.set_edgecolor(edge)
    ax.add_patch(shape)
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=10, color=ink, linespacing=0.95)


def timelines(trips: list[Trip]) -> None:
    """Draw when the host, the link and the device are busy in an offload, and how long the host alone needs."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    colors = viz.COLORS
    _, axes = plt.subplots(len(trips), 1, figsize=(WIDTH, 2.2 * len(trips)), sharex=True, layout="constrained")
    longest = max(trip.total for trip in trips)
    for ax, trip in zip(axes, trips, strict=True):
        out_start = trip.copy_in + trip.run
        bars = [
            (2, 0, trip.copy_in, "OrangeLine", said("copy in")),
            (1, trip.copy_in, trip.run, "GreenLine", ""),
            (2, out_start, trip.copy_out, "OrangeLine", said("copy out")),
            (0, 0, min(trip.on_host, 1.13 * longest), "BlueLine", ""),
        ]
        for lane, start, length, color, text in bars:
            ax.barh(lane, length, left=start, height=0.6, color=colors[color])
            ax.text(start + length / 2, lane, text, ha="center", va="center", color="white", fontsize=9)
        for queued in range(3):  # three calls that return at once
            ax.barh(3, 0.05, left=0.09 * queued, height=0.6, color=colors["primary"])
        ax.text(0.35, 3, said("queues three jobs, is free again"), va="center", fontsize=9)
        ax.plot([trip.copy_in] * 2, [1.35, 1.7], color=colors["GreenLine"], linewidth=1)
        run = f"{said('kernel')}, {amount(f'{trip.run:.2f}', 'ms')}"
        ax.text(out_start + 0.1, 1, run, va="center", fontsize=9, color=colors["GreenLine"])
        if trip.on_host > longest:
            end = f"{said('goes on to')} {amount(f'{trip.on_host:.0f}', 'ms')}"
            ax.text(0.15, 0, end, va="center", color="white", fontsize=9)
            ax.annotate("", xy=(1.18 * longest, 0), xytext=(1.1 * longest, 0), arrowprops={"arrowstyle": "->"})
        else:
            ax.text(
                trip.on_host + 0.1,
                0,
                amount(f"{trip.on_host:.1f}", "ms"),
                va="center",
                fontsize=9,
                color=colors["BlueLine"],
            )
        lanes = [said(lane) for lane in ("CPU alone", "device", "link", "host")]
        ax.set(yticks=range(4), yticklabels=lanes, xlim=(0, 1.2 * longest))
        ax.set_title(said(trip.title), fontsize=10, loc="left")
        ax.grid(visible=False, axis="y")
    axes[-1].set_xlabel(said("time, ms"))


def duplex(trip: Trip, chunks: int) -> None:
    """Draw an offload whose steps follow each other above one in chunks, which uses both directions of the link.

    The pale end of the host's bar is the read of what it overwrites, a fourth array beside the three of an addition.
    """
    viz.apply_style()
    import matplotlib.pyplot as plt

    colors = viz.COLORS
    _, axes = plt.subplots(2, 1, figsize=(WIDTH, 4.2), sharex=True, layout="constrained")
    titles = (said("one step after the other"), said("in chunks, both directions at once"))
    lanes = [said(lane) for lane in ("CPU alone", "link, out", "device", "link, in")]
    for ax, pieces, title in zip(axes, (1, chunks), titles, strict=True):
        times = chunked(trip, pieces)
        for lane, stage, color in ((3, "in", "OrangeLine"), (2, "run", "GreenLine"), (1, "out", "BrownLine")):
            for number, (start, end) in enumerate(times[stage], 1):
                edge = colors[color] if stage == "run" else "white"  # a white edge would hide so short a run
                ax.barh(lane, end - start, left=start, height=0.6, color=colors[color], edgecolor=edge, linewidth=0.7)
                if pieces > 1 and stage != "run":
                    ax.text((start + end) / 2, lane, str(number), ha="center", va="center", color="white", fontsize=8)
        total = times["out"][-1][1]
        ax.axvline(total, color=colors["primary"], linewidth=1, linestyle=":")
        ax.text(total + 0.1, 2, amount(f"{total:.1f}", "ms"), va="center", fontsize=9)
        ax.barh(0, trip.on_host, height=0.6, color=colors["BlueLine"])
        ax.barh(0, trip.on_host / 3, left=trip.on_host, height=0.6, color=colors["BlueL"], edgecolor=colors["BlueLine"])
        times_ms = " – ".join(f"{time:.1f}" for time in (trip.on_host, 4 / 3 * trip.on_host))
        ax.text(4 / 3 * trip.on_host + 0.1, 0, amount(times_ms, "ms"), va="center", fontsize=9)
        ax.set(yticks=range(4), yticklabels=lanes, xlim=(0, 1.15 * trip.total))
        ax.set_title(title, fontsize=10, loc="left")
        ax.grid(visible=False, axis="y")
    axes[-1].set_xlabel(said("time, ms"))


def latency_and_throughput(times_s: Mapping[int, float]) -> None:
    """Draw the time of one launch over its count of inputs, and below it the answers per second."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    sizes = list(times_s)
    _, (waits, rates) = plt.subplots(2, 1, figsize=(WIDTH, 4.4), sharex=True, layout="constrained")
    waits.plot(sizes, [1e6 * time_s for time_s in times_s.values()], "o-", color=viz.COLORS["OrangeLine"])
    waits.set(ylim=(0, 1.2e6 * max(times_s.values())), yticks=range(0, 12, 2))
    waits.set_title(said("latency: µs until the answer is there"), fontsize=10, loc="left")
    rates.plot(sizes, [size / time_s / 1e6 for size, time_s in times_s.items()], "o-", color=viz.COLORS["BlueLine"])
    rates.set_title(said("throughput: million answers per second"), fontsize=10, loc="left")
    rates.set(ylim=(0, None))
    rates.set_xscale("log", base=2)
    rates.set_xticks(sizes, [str(size) for size in sizes])
    rates.minorticks_off()
    rates.set_xlabel(said("inputs in one launch"))


def overhead(times_s: Mapping[str, Mapping[int, float]]) -> None:
    """Draw the time per kernel over its count of numbers, launched "back to back" and replayed from a "graph"."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    styles = {
        "back to back": ("launches queued one by one", "BlueLine", 1.45),
        "graph": ("replayed as a graph", "OrangeLine", 1.45),
    }
    for way, (text, color, lift) in styles.items():
        sizes, times = list(times_s[way]), [1e6 * time_s for time_s in times_s[way].values()]
        ax.plot(sizes, times, "o-", color=colors[color])
        ax.text(sizes[0], lift * times[0], said(text), color=colors[color], va="bottom", fontsize=10)
    ax.set(xscale="log", yscale="log", ylim=(0.5, 100))
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.set_xlabel(said("numbers per kernel"))
    ax.set_ylabel(said("time per kernel, µs"))
    ax.minorticks_off()


def recorded(record: Record, name: str, variant: str, size: int) -> Row:
    """Return the row of one measurement, such as "host link" with "pinned to device" and a size in bytes.

    Raises:
        UserError: if the record has no such row; it lists those of this name.
    """
    rows = record.named(name)
    for row in rows:
        if row.variant == variant and row.shape == (size,):
            return row
    known = ", ".join(f"{row.variant} {row.shape}" for row in rows)
    raise UserError(f"the record of {record.device} has no {name!r}, {variant}, ({size},); it has {known}")


def predicted_and_measured(cases: Mapping[str, tuple[float, float]]) -> None:
    """Draw predicted and measured time in milliseconds of each case, as two points on a logarithmic axis."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 1.1 + 0.75 * len(cases)))
    times = [time_ms for pair in cases.values() for time_ms in pair]
    words = [said(word) for word in ("predicted", "measured")]
    for place, (predicted, measured) in enumerate(cases.values()):
        ax.plot([predicted, measured], [place] * 2, color=colors["BlueLine"], linewidth=1.2)
        ax.plot(predicted, place, "o", markersize=9, markerfacecolor="white", color=colors["BlueLine"])
        ax.plot(measured, place, "o", markersize=9, color=colors["BlueLine"])
        ax.text(predicted, place - 0.2, f"{predicted:.2g} {words[0]}", ha="center", fontsize=9)
        ax.text(measured, place + 0.36, f"{measured:.2g} {words[1]}", ha="center", fontsize=9, color=colors["BlueLine"])
    ax.set(xscale="log", xlim=(0.1 * min(times), 6 * max(times)), ylim=(len(cases) - 0.4, -0.6))
    ax.set_xlabel(said("time, ms"))
    ax.set_yticks(range(len(cases)), [said(case) for case in cases])
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    ax.grid(visible=False, axis="y")
