"""Figures of the chapter on what models ask of memory; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence

from mlsys import viz
from mlsys.measure.records import Row
from mlsys.models import stack_kept_bytes
from mlsys.scaling import run_of

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
PARTS = {
    "weights": "BlueLine",
    "gradients and optimizer": "OrangeLine",
    "activations": "GreenLine",
    "KV cache": "VioletLine",
}
"""What needs memory, with colors."""
RUNS = {"22B": "megatron-22b", "175B": "gpt3-175b", "530B": "turing-530b", "1T": "megatron-1t"}
"""Four published training runs by their size, in `mlsys.scaling.published`."""
WAYS = {
    "every result": {"recompute": "none"},
    "shared between the devices": {"recompute": "none", "sequence_parallel": True},
    "and attention computed again": {"recompute": "selective", "sequence_parallel": True},
}


def kept_gb(run: str, way: str) -> float:
    """Return the gigabytes that the first device of a run keeps for the backward pass."""
    found = run_of(RUNS[run])
    decoder = found.decoder
    one = decoder.block.kept_bytes(decoder.tokens, found.microbatch, tensor_parallel=found.tensor, **WAYS[way])
    pipeline = {"pipeline_parallel": found.pipeline, "interleaving": found.interleaving}
    return float(stack_kept_bytes(one, decoder.layers, **pipeline).m_as("GB"))


def shares(jobs: Mapping[str, Sequence[float]]) -> None:
    """Draw what part of its memory each job uses for what, with the total beside the bar.

    Args:
        jobs: for each job, the bytes of each of `PARTS`.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.42 * len(jobs)))
    for place, sizes in enumerate(jobs.values()):
        total, start = sum(sizes), 0.0
        for (part, tone), size in zip(PARTS.items(), sizes, strict=True):
            ax.barh(
                place, 100 * size / total, left=start, height=0.64, color=colors[tone], label=None if place else part
            )
            start += 100 * size / total
        ax.text(101, place, f"{total / 1e9:.3g} GB" if total < 1e12 else f"{total / 1e12:.2f} TB", va="center")
    ax.set(yticks=range(len(jobs)), yticklabels=list(jobs), xlim=(0, 118), xticks=range(0, 101, 25), xlabel="share, %")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2, frameon=False)


def published(room_gb: float) -> None:
    """Draw what a device keeps in each of `RUNS`, in three ways, beside the memory of one chip."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.9))
    for place, (way, tone) in enumerate(zip(WAYS, ("OrangeLine", "BlueLine", "GreenLine"), strict=True)):
        heights = [kept_gb(run, way) for run in RUNS]
        ax.bar([at + 0.27 * (place - 1) for at in range(len(RUNS))], heights, width=0.25, color=colors[tone], label=way)
    ax.axhline(room_gb, color=colors["primary"], linestyle="--", linewidth=1.2)
    ax.text(-0.45, room_gb + 4, "all memory of an A100", color=colors["primary"])
    ax.set(xticks=range(len(RUNS)), xticklabels=list(RUNS), ylabel="kept by a device, GB", xlabel="parameters")
    ax.grid(visible=False, axis="x")
    ax.legend(loc="upper left", frameon=False, bbox_to_anchor=(0, 1.0))
    ax.set_ylim(0, 1.35 * max(kept_gb(run, "every result") for run in RUNS))


def batches(rows: Sequence[Row], bytes_us: Sequence[float], flops_us: Sequence[float]) -> None:
    """Draw the time of a dense layer over the batch, beside the times that its bytes and its FLOPs need at least.

    Args:
        rows: measured rows of "dense layer by batch".
        bytes_us: microseconds in which the chip moves the bytes, for each row.
        flops_us: microseconds in which the chip does the arithmetic, for each row.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.7))
    batch = [row.shape[0] for row in rows]
    ax.loglog(batch, [1e6 * row.median_s for row in rows], "o-", color=colors["RedLine"], label="measured")
    ax.loglog(batch, bytes_us, color=colors["BlueLine"], label="bytes, at the bandwidth")
    ax.loglog(batch, flops_us, color=colors["OrangeLine"], label="arithmetic, at the peak")
    ax.set(xlabel="batch", ylabel="time, µs", ylim=(0.005, 40))
    ax.set_xticks(batch, [str(one) for one in batch])
    ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    ax.minorticks_off()
    ax.legend(loc="lower right", frameon=False)
