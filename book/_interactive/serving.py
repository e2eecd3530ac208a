"""Decode by batch: intensity, limit, tokens per second and latency of language models on chips."""

from collections import Counter
from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, models, viz
from mlsys.formatting import fmt
from mlsys.models import LanguageModel
from mlsys.ops import Op
from mlsys.roofline import Roofline

CHIPS = ("t4", "l4", "a100-80gb-sxm", "h100-sxm", "h200", "b200", "mi300x")
PRECISION = "fp16"
MODELS = {
    "gpt2-xl": ("GPT-2 XL", lambda **kind: models.gpt2("xl", dtype=PRECISION, **kind), 1024),
    "llama2-7b": ("Llama 2 7B", lambda **kind: models.llama2_7b(dtype=PRECISION, **kind), 4096),
    "llama2-70b": ("Llama 2 70B", lambda **kind: models.llama2_70b(dtype=PRECISION, **kind), 4096),
}
"""Name, the function that makes a pass, and the longest context."""
MOST = 4096
"""Most sequences that can be entered."""
FIRST = {"chip": "h200", "model": "gpt2-xl", "batch": 16, "context": 512}


def decode_ops(make: Any) -> list[dict[str, Any]]:
    """The kernels of a step, alike ones together: FLOPs are B (f0 + f1 n), bytes b0 + B (b1 + b2 n).

    B is the batch and n the context. The five coefficients follow from three small steps.
    """
    small, longer, wider = (make(batch=b, seq=n, decode=True).ops for b, n in ((1, 1), (1, 2), (2, 1)))
    found: Counter[tuple[Any, ...]] = Counter()
    for one, two, three in zip(small, longer, wider, strict=True):
        f1, b2 = two.flop_count - one.flop_count, _moved(two) - _moved(one)
        each = _moved(three) - _moved(one)
        found[one.engine, one.flop_count - f1, f1, _moved(one) - each, each - b2, b2] += 1
    return [
        dict(zip(("engine", "f0", "f1", "b0", "b1", "b2", "count"), (*key, count), strict=True))
        for key, count in found.items()
    ]


def prefill_ops(make: Any) -> list[dict[str, Any]]:
    """The kernels of reading a prompt, alike ones together: FLOPs are B (f1 n + f2 n^2), bytes b0 + B b1 n."""
    found: Counter[tuple[Any, ...]] = Counter()
    for one, two in zip(make(batch=1, seq=1).ops, make(batch=1, seq=2).ops, strict=True):
        f2 = (two.flop_count - 2 * one.flop_count) // 2
        b1 = _moved(two) - _moved(one)
        found[one.engine, one.flop_count - f2, f2, _moved(one) - b1, b1] += 1
    return [
        dict(zip(("engine", "f1", "f2", "b0", "b1", "count"), (*key, count), strict=True))
        for key, count in found.items()
    ]


def _moved(op: Op) -> float:
    return op.read_count + op.write_count


def content() -> Content:
    """The numbers and the fallback of the figure."""
    chips = []
    for chip in map(Hardware.get, CHIPS):
        roofline = Roofline.of(chip, PRECISION)
        chips.append(
            {
                "id": chip.id,
                "name": chip.name,
                "bandwidth": roofline.bandwidth_per_s,
                "peaks": dict(roofline.peaks_per_s),
                "room": chip.memory_capacity.m_as("byte"),
            }
        )
    listed = []
    for key, (name, make, most) in MODELS.items():
        model: LanguageModel = make(seq=1, decode=True)
        listed.append(
            {
                "id": key,
                "name": name,
                "weights": model.weight_bytes.m_as("byte"),
                "cache": model.kv_cache_bytes(1).m_as("byte"),
                "most": most,
                "decode": decode_ops(make),
                "prefill": prefill_ops(make),
            }
        )
    return Content(
        title="Decode by batch",
        numbers={"chips": chips, "models": listed, "most": MOST, "first": FIRST},
        picture=_picture,
        alt="Tokens per second against the sequences decoded together, both logarithmic, for GPT-2 XL with 512 tokens "
        "on an H200. The curve rises in proportion to the batch at first and bends below a dotted ceiling, bandwidth "
        "over cache. A diamond marks 16 sequences.",
        tables=(_table(),),
    )


def _step_ms(key: str, chip: str, batch: int, context: int) -> float:
    _, make, _ = MODELS[key]
    roofline = Roofline.of(Hardware.get(chip), PRECISION)
    return float(roofline.time(make(batch=batch, seq=context, decode=True).ops).m_as("ms"))


def _table() -> Table:
    rows: list[tuple[str, ...]] = [("chip", "1 sequence, tokens/s", "16", "64", "a step for 64, ms")]
    for chip in CHIPS:
        steps = [_step_ms(FIRST["model"], chip, batch, FIRST["context"]) for batch in (1, 16, 64)]
        rates = (fmt(1e3 * batch / ms, 0) for batch, ms in zip((1, 16, 64), steps, strict=True))
        rows.append((Hardware.get(chip).name, *rates, f"{steps[-1]:.3g}"))
    return Table("GPT-2 XL, 512 tokens of context, FP16, at most", tuple(rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(5.0, 3.4))
    batches = [2**power for power in range(10)]
    chip, model, context = FIRST["chip"], FIRST["model"], FIRST["context"]
    rates = [1e3 * batch / _step_ms(model, chip, batch, context) for batch in batches]
    cache = MODELS[model][1](seq=1, decode=True).kv_cache_bytes(context)
    ceiling = (Hardware.get(chip).memory_bw / cache).m_as("1/s")
    ax.loglog(batches, rates, color=colors["BlueLine"])
    ax.axhline(ceiling, color=colors["RedLine"], linestyle=":", linewidth=1)
    ax.text(1, 1.08 * ceiling, "bandwidth over cache", color=colors["RedLine"], va="bottom")
    ax.plot(FIRST["batch"], rates[batches.index(FIRST["batch"])], "D", color=colors["primary"], zorder=4)
    ax.set(xlabel="sequences decoded together", ylabel="tokens per second, at most", ylim=(rates[0] / 1.5, 2 * ceiling))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.minorticks_off()
    return fig
