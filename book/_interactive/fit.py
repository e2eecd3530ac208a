"""The calculator of memory: weights, optimizer, results and KV cache of a model, against a chip's memory."""

from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, models, viz
from mlsys.formatting import fmt
from mlsys.models import LanguageModel
from mlsys.models.training import RECOMPUTE

CHIPS = ("t4", "l4", "a100-80gb-sxm", "h100-sxm", "h200", "b200", "mi300x")
LANGUAGE = {
    "gpt2-small": lambda **work: models.gpt2("small", **work),
    "gpt2-xl": lambda **work: models.gpt2("xl", **work),
    "llama2-7b": models.llama2_7b,
    "llama2-13b": models.llama2_13b,
    "llama2-70b": models.llama2_70b,
}
OTHER = {
    "resnet50": ("ResNet-50", "images", models.resnet50),
    "mobilenet_v2": ("MobileNetV2", "images", models.mobilenet_v2),
    "dlrm": ("DLRM", "samples", models.dlrm),
}
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


@dataclass(frozen=True)
class Need:
    """What a model needs, in bytes, for every batch and context.

    Attributes:
        name: the model.
        unit: what a batch is counted in.
        params: its parameters.
        tokens: longest context, None if the model has no tokens.
        weight_size: bytes of a weight when it answers.
        cache: bytes of the KV cache for a token.
        results: for each job, bytes for a token and for the square of the tokens; without tokens, for a sample.
    """

    name: str
    unit: str
    params: int
    tokens: int | None
    weight_size: int
    cache: float
    results: dict[str, tuple[float, float]]

    def bytes(self, job: str, batch: int, tokens: int) -> tuple[float, float, float, float]:
        """Return the bytes of each of `PARTS`."""
        serve, length = job == "serve", tokens if self.tokens else 1
        size = self.weight_size if serve else models.ADAM_BYTES["weights"]
        rest = 0 if serve else sum(models.ADAM_BYTES.values()) - size
        linear, square = self.results[job]
        results = batch * (linear if serve else linear * length + square * length**2)
        return size * self.params, rest * self.params, results, batch * length * self.cache if serve else 0


def needs() -> dict[str, Need]:
    """Return what each model needs; slopes are differences of what the package counts."""
    found = {}
    for key, make in LANGUAGE.items():
        model: LanguageModel = make(seq=1, decode=True)
        results = {"serve": (model.peak_activation_bytes.m_as("byte"), 0.0)}
        for recompute in RECOMPUTE:
            one, two = (model.kept_bytes(tokens, recompute=recompute).m_as("byte") for tokens in (1, 2))
            square = (two - 2 * one) / 2
            results[recompute] = (one - square, square)
        longest = 1024 if key.startswith("gpt2") else 4096
        cache = model.kv_bytes_per_token.m_as("byte/token")
        name = model.name.partition(",")[0]
        found[key] = Need(name, "sequences", model.params.m_as("param"), longest, 2, cache, results)
    for key, (name, unit, build) in OTHER.items():
        one, two = (build(batch=batch, dtype="fp16") for batch in (1, 2))
        peak = two.peak_activation_bytes.m_as("byte") - one.peak_activation_bytes.m_as("byte")
        kept = models.kept_bytes(two.ops).m_as("byte") - models.kept_bytes(one.ops).m_as("byte")
        found[key] = Need(name, unit, one.params.m_as("param"), None, 2, 0, {"serve": (peak, 0), "none": (kept, 0)})
    return found


def content() -> Content:
    """The numbers and the fallback of the calculator."""
    chips: list[dict[str, Any]] = [
        {"id": chip.id, "name": chip.name, "bytes": chip.memory_capacity.m_as("byte")}
        for chip in map(Hardware.get, CHIPS)
    ]
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


def _table(found: dict[str, Need]) -> Table:
    head = ("model, batch and tokens", *JOBS.values())
    rows = []
    for need in found.values():
        batch, tokens = (1, min(2048, need.tokens)) if need.tokens else (32, 0)
        cells = [
            f"{sum(need.bytes(job, batch, tokens)) / 1e9:.3g} GB"
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
