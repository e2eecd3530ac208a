"""Figures of the chapter on attention; each draws one claim from numbers that it is given."""

from collections.abc import Sequence

from matplotlib.patches import Rectangle

from mlsys import viz

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

LADDER_NEEDS = {"causal skipping": (128, 165, 49_152), "pipelined": (256, 184, 98_304)}
"""What a program of two rungs of the ladder needs: threads, registers of each, and bytes of shared memory.

They are Triton 3.7.1's for an H100.
"""


def memory(tokens: Sequence[int], scores: Sequence[float], rows: Sequence[float], capacity: float) -> None:
    """Draw the extra bytes of a layer against its tokens: all scores, and one number for each row of them.

    Args:
        tokens: lengths of the sequence.
        scores: bytes of the scores at each length.
        rows: bytes of one number per row and head at each length.
        capacity: bytes of the device memory.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.5))
    ax.plot(tokens, scores, "s-", color=colors["OrangeLine"], markersize=4)
    ax.plot(tokens, rows, "o-", color=colors["BlueLine"], markersize=4)
    ax.axhline(capacity, color=colors["primary"], linestyle=":", linewidth=1.5)
    ax.text(tokens[0], capacity * 1.4, "memory of an H100", va="bottom", fontsize=9)
    ax.text(tokens[3], scores[3] * 3.5, "all scores", color=colors["OrangeLine"], ha="right", fontsize=10)
    ax.text(tokens[3], rows[3] * 3, "one number per row", color=colors["BlueLine"], ha="right", fontsize=10)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(tokens[::2], [f"{n:,}" for n in tokens[::2]])
    ax.set_yticks([10.0**k for k in (5, 6, 7, 8, 9, 10, 11)],
                  ["100 kB", "1 MB", "10 MB", "100 MB", "1 GB", "10 GB", "100 GB"])  # fmt: skip
    ax.set(xlabel="tokens", ylabel="extra memory", ylim=(4e4, 6e12))
    ax.minorticks_off()


def causal(blocks: int) -> None:
    """Draw the blocks of a score matrix: full ones, those cut by the causal mask, and those that are skipped."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    for row in range(blocks):
        for column in range(blocks):
            cut, full = column == row, column < row
            fill = colors["OrangeL"] if cut else colors["BlueL"] if full else "white"
            edge = colors["OrangeLine"] if cut else colors["BlueLine"] if full else colors["grid"]
            ax.add_patch(Rectangle((column + 0.05, row + 0.05), 0.9, 0.9, facecolor=fill, edgecolor=edge))
    for place, (name, line) in enumerate((("computed", "BlueLine"), ("masked", "OrangeLine"), ("skipped", "primary"))):
        mark = "□" if name == "skipped" else "■"
        ax.text(blocks + 0.4, 2.5 + 1.2 * place, f"{mark} {name}", color=colors[line], fontsize=10)
    ax.text(blocks / 2, -0.25, "blocks of keys", ha="center", fontsize=10)
    ax.text(-0.25, blocks / 2, "blocks of queries", ha="right", va="center", rotation=90, fontsize=10)
    ax.set(xlim=(-0.9, blocks + 3.6), ylim=(blocks + 0.1, -0.9), aspect="equal")
    ax.axis("off")


def decode(batches: Sequence[int], weights_ms: float, caches_ms: Sequence[float], rates: Sequence[float]) -> None:
    """Draw the least time of a decoding step against the batch, in weights and caches, with tokens per second.

    Args:
        batches: sequences that are decoded together.
        weights_ms: time to read all weights.
        caches_ms: time to read the caches, for each batch.
        rates: tokens per second over all sequences, for each batch.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.3))
    places = range(len(batches))
    ax.bar(places, [weights_ms] * len(batches), 0.6, color=colors["BlueLine"], label="weights")
    ax.bar(places, caches_ms, 0.6, bottom=weights_ms, color=colors["OrangeLine"], label="KV caches")
    for place, cache_ms, rate in zip(places, caches_ms, rates, strict=True):
        ax.text(place, weights_ms + cache_ms + 0.4, f"{rate:,.0f}/s", ha="center", va="bottom", fontsize=9)
    ax.set_xticks(list(places), [str(batch) for batch in batches])
    ax.set_yticks([0, 5, 10, 15, 20])  # a line at 25 would cross the last number
    ax.set(xlabel="sequences in the batch", ylabel="time of a step, ms", ylim=(0, 1.12 * (weights_ms + caches_ms[-1])))
    ax.grid(visible=False, axis="x")
    ax.legend(loc="upper left")
