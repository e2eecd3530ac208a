"""Figures of the chapter on many chips; each draws one claim from numbers of the package or from published times."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from mlsys import Hardware, viz
from mlsys.models import Block
from mlsys.scaling import (
    BlockShare,
    Cluster,
    Schedule,
    StepTime,
    fabric,
    ring_all_reduce_time,
    runs,
    speedup,
    sustained,
    timed,
    train_step,
)
from mlsys.scaling.ring import RingRun
from mlsys.scaling.stack import weight_bytes

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
SELENE = Cluster(sustained(Hardware.Cloud.A100), fabric("nvlink-3"), fabric("infiniband-hdr"))
"""The cluster of the published training runs."""
PARTS = {
    "products": ("BlueLine", ("products",)),
    "element-wise": ("GreenLine", ("elementwise", "optimizer")),
    "computed again": ("OrangeLine", ("repeated",)),
    "sums within a block": ("RedLine", ("tensor",)),
    "pipeline: sends and waiting": ("VioletLine", ("sends", "bubble")),
}
"""What a step consists of in the runs, with colors and the parts of `StepTime`."""


def summed(run: RingRun) -> list[NDArray[np.int64]]:
    """Return after each step how many chips' numbers each chunk of each chip holds, from the transfers of a run."""
    chips = len(run.buffers)
    held = np.ones((chips, chips), dtype=np.int64)
    states = [held.copy()]
    for step, moved in groupby(run.transfers, key=lambda one: one.step):
        before = held.copy()
        for one in moved:
            came = before[one.sender, one.chunk]
            held[one.receiver, one.chunk] = came + before[one.receiver, one.chunk] if step < chips - 1 else came
        states.append(held.copy())
    return states


def ring_steps(run: RingRun) -> None:
    """Draw the chunks of all chips after each step of an all-reduce, with what has just arrived framed."""
    import matplotlib.pyplot as plt

    viz.apply_style()
    states = summed(run)
    chips = len(run.buffers)
    arrived = {(one.step + 1, one.receiver, one.chunk) for one in run.transfers}
    columns = (len(states) + 1) // 2
    fig, axes = plt.subplots(2, columns, figsize=(WIDTH, 3.3), layout="constrained")
    shades = {1: "#f3f4f6", chips: viz.COLORS["GreenL"]}
    for step, ax in enumerate(axes.flat):
        ax.set(xlim=(-0.55, chips - 0.45), ylim=(chips - 0.45, -0.55), xticks=[], yticks=[])
        ax.set_aspect("equal")
        for side in ax.spines.values():
            side.set_visible(False)
        if step >= len(states):
            ax.set_axis_off()
            continue
        for (chip, chunk), count in np.ndenumerate(states[step]):
            new = (step, chip, chunk) in arrived
            fill = shades.get(int(count), viz.COLORS["OrangeL"])
            edge = viz.COLORS["RedLine"] if new else "white"
            box = plt.Rectangle((chunk - 0.44, chip - 0.44), 0.88, 0.88, facecolor=fill, edgecolor=edge, linewidth=1.6)
            ax.add_patch(box)
            ax.text(chunk, chip, str(count), ha="center", va="center", fontsize=9)
        ax.set_title("start" if step == 0 else f"step {step}", fontsize=10)
        if step % columns == 0:
            ax.set_yticks(range(chips), [f"chip {chip}" for chip in range(chips)], fontsize=9)
            ax.tick_params(axis="y", length=0)
    fig.supxlabel("chunks", fontsize=10)


def rates(link: str, chips: int) -> None:
    """Draw published times of all-reduces, the bytes over the raw rate, and the fabric's three constants."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.1))
    rows = [one for one in timed() if (one.link, one.operation, one.chips) == (link, "all-reduce", chips)]
    sizes = np.array([one.size for one in rows])
    joined = fabric(link)
    grid = np.geomspace(sizes.min(), sizes.max(), 60)
    ax.loglog(grid / 2**20, [1e6 * joined.all_reduce_time(s, chips).m_as("s") for s in grid], color=colors["BlueLine"],
              label="start, steps, and a share of the rate")  # fmt: skip
    ax.loglog(grid / 2**20, [1e6 * joined.ideal.all_reduce_time(s, chips).m_as("s") for s in grid], "--",
              color=colors["OrangeLine"], label="bytes over the raw rate")  # fmt: skip
    ax.loglog(sizes / 2**20, [one.time.m_as("us") for one in rows], "o", color=colors["RedLine"], label="measured")
    ax.set(xlabel="buffer of a chip, MiB", ylabel="time, µs")
    ax.set_xticks([0.25, 1, 4, 16, 64], ["0.25", "1", "4", "16", "64"])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.minorticks_off()
    ax.legend(frameon=False, loc="upper left")
    ax.set_ylim(top=2500)


def speedups(serial: float, compute_s: float, size: float, bandwidth: float) -> None:
    """Draw how many times as much work many chips do as one, if the work is fixed and if it grows with the chips.

    Args:
        serial: share of the fixed work that cannot be shared.
        compute_s: seconds that each chip computes in a step of growing work.
        size: bytes that the chips sum after each step.
        bandwidth: bytes per second of a link, one way.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.3))
    chips = [2**power for power in range(11)]
    ax.loglog(chips, chips, ":", color=colors["primary"], label="as many times as there are chips")
    weak = [speedup(n, compute_s, ring_all_reduce_time(size, n, bandwidth)) for n in chips]
    ax.loglog(chips, weak, "o-", color=colors["BlueLine"], markersize=4, label="work grows with the chips")
    fixed = [1 / (serial + (1 - serial) / n) for n in chips]
    ax.loglog(chips, fixed, "s-", color=colors["RedLine"], markersize=4, label="fixed work, a share of it serial")
    ax.axhline(1 / serial, color=colors["RedLine"], linestyle="--", linewidth=1)
    ax.set(xlabel="chips", ylabel="work in the same time")
    ax.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1,024"])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.minorticks_off()
    ax.legend(frameon=False, loc="upper left")


def data_ratio(tokens: int, link: str, chips: int) -> float:
    """Return the time to sum a block's gradients in 16 bits over that of computing it, on H100s."""
    block = Block(8192, 64, 64, 32768, dropout=False)
    computing = _passes_s(BlockShare(block, 2048, fused_attention=True)) * tokens / 2048
    summing = fabric(link).all_reduce_time(sum(weight_bytes(block)), chips).m_as("s")
    return float(summing / computing)


def tensor_ratio(width: int, link: str, chips: int) -> float:
    """Return the time of the sums within a block over that of computing a chip's part of it, on H100s."""
    block = Block(width, width // 128, width // 128, 4 * width, dropout=False)
    share = BlockShare(block, 2048, 4, tensor_parallel=chips, fused_attention=True)
    exchanged = sum(share.exchange_time(fabric(link), phase).m_as("s") for phase in ("forward", "backward"))
    return float(exchanged / _passes_s(share))


def hiding() -> None:
    """Draw exchange over computing, for data parallelism against tokens and for tensor parallelism against width."""
    import matplotlib.pyplot as plt

    viz.apply_style()
    _, axes = plt.subplots(2, 1, figsize=(WIDTH, 4.9), layout="constrained")
    links = {"nvlink-4": ("NVLink 4", "BlueLine"), "infiniband-ndr": ("InfiniBand NDR", "OrangeLine")}
    tokens = [2**power for power in range(9, 17)]
    widths = [1024, 2048, 4096, 8192, 16384]
    for link, (name, tone) in links.items():
        color = viz.COLORS[tone]
        axes[0].loglog(tokens, [data_ratio(t, link, 8) for t in tokens], "o-", color=color, markersize=4, label=name)
        axes[1].loglog(widths, [tensor_ratio(w, link, 8) for w in widths], "o-", color=color, markersize=4, label=name)
    for ax, places, title, name in (
        (axes[0], tokens[::2], "data parallel", "tokens of each chip in a step"),
        (axes[1], widths, "tensor parallel", "width of the block"),
    ):
        ax.axhline(1, color=viz.COLORS["primary"], linestyle=":", linewidth=1.2)
        ax.set_xticks(places, [f"{place:,}" for place in places])
        ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
        ax.minorticks_off()
        ax.set(ylim=(0.008, 60), xlabel=name, ylabel="exchange / computing")
        ax.set_title(title, fontsize=10, loc="left")
    axes[0].legend(frameon=False, loc="upper right")


def schedules(shown: Mapping[str, Schedule]) -> None:
    """Draw which stage works on which microbatch when, one schedule above the other on one axis of time."""
    import matplotlib.pyplot as plt

    viz.apply_style()
    _, axes = plt.subplots(len(shown), 1, figsize=(WIDTH, 1.65 * len(shown)), sharex=True, layout="constrained")
    longest = max(one.total for one in shown.values())
    for ax, (title, step) in zip(axes, shown.items(), strict=True):
        for one in step.passes:
            tone = ("Blue" if one.forward else "Green") if one.group == 0 else ("Violet" if one.forward else "Orange")
            ax.barh(one.stage, one.end - one.start, 0.86, one.start, color=viz.COLORS[f"{tone}L"],
                    edgecolor=viz.COLORS[f"{tone}Line"], linewidth=0.7)  # fmt: skip
            if one.end - one.start >= 0.9:
                middle = (one.start + one.end) / 2
                ax.text(middle, one.stage, str(one.microbatch + 1), ha="center", va="center", fontsize=8)
        ax.axvline(step.total, color=viz.COLORS["RedLine"], linewidth=1.4)
        ax.set_title(f"{title}: each stage waits {100 * step.waiting(0):.0f}%", fontsize=10, loc="left")
        ax.set(ylim=(step.stages - 0.5, -0.5), xlim=(0, 1.01 * longest))
        ax.set_yticks(range(step.stages), [str(stage) for stage in range(step.stages)])
        ax.set_ylabel("stage")
        ax.grid(visible=False, axis="y")
    axes[-1].set_xlabel("time, forward passes of a stage")


def predicted() -> dict[tuple[str, str], StepTime]:
    """Return the predicted step of each published run, by its name and what is computed again."""
    return {(run.name, how): train_step(run.decoder, run.plan(how), SELENE) for run in runs() for how in run.measured}


def published() -> None:
    """Draw where the predicted time of each published run goes, as a share of the measured time."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.3))
    steps = predicted()
    labels = []
    for place, ((name, how), step) in enumerate(steps.items()):
        [run] = [run for run in runs() if run.name == name]
        measured = run.measured[how].m_as("s")
        start = 0.0
        for part, (tone, names) in PARTS.items():
            size = 100 * sum(step.parts[one].m_as("s") for one in names) / measured
            ax.barh(place, size, 0.68, start, color=colors[tone], label=None if place else part)
            start += size
        ax.text(122, place, f"{measured:.2f} s", va="center", ha="right", fontsize=9)
        labels.append(f"{name}\n{how}")
    ax.axvline(100, color=colors["primary"], linestyle="--", linewidth=1.2)
    ax.set(yticks=range(len(labels)), xlim=(0, 123), xlabel="predicted, % of the measured time at the right")
    ax.set_yticklabels(labels, fontsize=8.5)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower center", bbox_to_anchor=(0.36, 1.0), ncols=2, frameon=False, fontsize=9)


def _passes_s(share: BlockShare) -> float:
    chip = sustained(Hardware.Cloud.H100, "bf16")
    return float(chip.time((*share.forward, *share.backward)).m_as("s"))


def table_of(steps: Sequence[tuple[str, StepTime]]) -> str:
    """Return the largest parts of several steps in seconds, a line for each, and the rest, as a cell prints them."""
    names = ("products", "tensor", "bubble", "gradients")
    lines = [f"{'':22}" + "".join(f"{name:>10}" for name in (*names, "rest", "total"))]
    for label, step in steps:
        shown = [step.parts[name].m_as("s") for name in names]
        total = step.total.m_as("s")
        lines.append(f"{label:22}" + "".join(f"{value:10.1f}" for value in (*shown, total - sum(shown), total)))
    return "\n".join(lines)
