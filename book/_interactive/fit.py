"""The calculator of memory: weights, optimizer, results and KV cache of a model, against a chip's memory."""

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, models, viz
from mlsys.formatting import fmt

if TYPE_CHECKING:
    from _figures.job_memory import Need

CHIPS = ("t4", "l4", "a100-80gb-sxm", "h100-sxm", "h200", "b200", "mi300x")
JOBS = {
    "serve": "Answer: one step, with KV cache",
    "none": "Train with Adam, keep every result",
    "selective": "Train with Adam, compute attention again",
    "full": "Train with Adam, compute every block again",
}
PARTS = ("weights", "gradients and optimizer", "activations", "KV cache")
MOST = 1_000_000
"""Largest batch that can be entered, in sequences, images or samples."""
FIRST = {"chip": "h100-sxm", "model": "llama2-7b", "job": "serve", "batch": 16, "tokens": 2048}


def content() -> Content:
    """The numbers and the fallback of the calculator."""
    chips: list[dict[str, Any]] = [
        {"id": chip.id, "name": chip.name, "bytes": chip.memory_capacity.m_as("byte")}
        for chip in map(Hardware.get, CHIPS)
    ]
    from _figures.job_memory import needs

    found = needs()
    listed = [{"id": key, **vars(need)} for key, need in found.items()]
    rest = sum(models.ADAM_BYTES.values()) - models.ADAM_BYTES["weights"]
    jobs = [{"id": key, "name": name} for key, name in JOBS.items()]
    first = found[FIRST["model"]]
    total = sum(first.bytes(FIRST["job"], FIRST["batch"], FIRST["tokens"])) / 1e9
    return Content(
        title="Will it fit?",
        numbers={"chips": chips, "models": listed, "jobs": jobs, "adam": rest, "most": MOST, "first": FIRST},
        picture=_picture,
        alt=f"One horizontal bar for {first.name} that answers {FIRST['batch']} users with {FIRST['tokens']:,} tokens "
        f"each: nearly half of it is the weights, the rest the KV cache. It ends at {fmt(total, 0)} GB, before the "
        "line at 80 GB, the memory of an H100.",
        tables=(_table(found),),
    )


def _table(found: "dict[str, Need]") -> Table:
    head = ("model, batch and tokens", *JOBS.values())
    rows = []
    for need in found.values():
        batch, tokens = (1, min(2048, need.tokens)) if need.tokens else (32, 0)
        cells = [
            f"{_gigabytes(sum(need.bytes(job, batch, tokens)))} GB"
            if job in need.results
            else "as with every result kept"
            for job in JOBS
        ]
        each = f"{batch} × {tokens:,} tokens" if need.tokens else f"{batch} {need.unit}"
        rows.append((f"{need.name}, {each}", *cells))
    return Table("Memory that a job needs, in a 16-bit format", (head, *rows))


def _gigabytes(size: float) -> str:
    return fmt(size / 1e9, 0 if size > 1e11 else 2)


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 1.7))
    from _figures.job_memory import needs

    need, start = needs()[FIRST["model"]], 0.0
    tones = ("BlueLine", "OrangeLine", "GreenLine", "VioletLine")
    parts = need.bytes(FIRST["job"], FIRST["batch"], FIRST["tokens"])
    for part, tone, size in zip(PARTS, tones, parts, strict=True):
        ax.barh(0, size / 1e9, left=start, height=0.6, color=colors[tone], label=part if size > 1e8 else None)
        start += size / 1e9
    room = Hardware.get(FIRST["chip"]).memory_capacity.m_as("GB")
    ax.axvline(room, color=colors["primary"], linestyle="--")
    ax.text(room - 1, 0, "memory of\nthe chip", ha="right", va="center")
    ax.set(yticks=[], xlabel="GB", xlim=(0, 1.05 * room))
    ax.grid(visible=False, axis="y")
    ax.legend(loc="upper left", bbox_to_anchor=(0, 1.35), ncols=2, frameon=False)
    return fig
