"""The form of the feasibility check: model, chip, formats, users and a deadline against three gates."""

from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, viz
from mlsys.core.dtypes import bytes_per_element
from mlsys.feasibility import Feasibility, decode_feasibility

CHIPS = ("t4", "l4", "a100-80gb-sxm", "h100-sxm", "h200", "b200", "mi300x")
LIMITS = {"chips": (1, 64), "batch": (1, 10_000), "deadline": (0.1, 10_000), "share": (1, 100)}
"""What may be entered: chips, users at a time, milliseconds for a token, and percent of a rate."""
FIRST = {
    "chip": "h100-sxm", "chips": 1, "model": "llama2-70b", "dtype": "fp16", "batch": 4, "tokens": 2048, "deadline": 50,
    "bandwidth": 85, "compute": 50,
}  # fmt: skip


def verdict(**changed: Any) -> Feasibility:
    """Return the package's verdict on the first deployment of the form, with some of its fields changed."""
    from _figures.job_memory import LANGUAGE

    one = FIRST | changed
    return decode_feasibility(
        LANGUAGE[one["model"]],
        Hardware.get(one["chip"]),
        one["deadline"] / 1e3,
        batch=one["batch"],
        context=one["tokens"],
        dtype=one["dtype"],
        chips=one["chips"],
        bandwidth_share=one["bandwidth"] / 100,
        utilization=one["compute"] / 100,
    )


def content() -> Content:
    """The numbers and the fallback of the form."""
    from _figures.decoding import FORMATS, NAMES, steps

    chips = [
        {
            "id": chip.id,
            "name": chip.name,
            "bytes": chip.memory_capacity.m_as("B"),
            "bandwidth": chip.memory_bw.m_as("B/s"),
            "peak": chip.peak("fp16").m_as("FLOP/s"),
        }
        for chip in map(Hardware.get, CHIPS)
    ]
    listed = [{"id": key, **vars(step)} for key, step in steps().items()]
    formats = [{"id": key, "name": NAMES[key], "bytes": bytes_per_element(key)} for key in FORMATS]
    first = verdict()
    return Content(
        title="Will it run?",
        numbers={"chips": chips, "models": listed, "formats": formats, "limits": LIMITS, "first": FIRST},
        picture=_picture,
        alt="Three bars of need over limit on a logarithmic axis, for Llama 2 70B in 16 bits on one H100 with four "
        f"users and 50 ms a token. Memory is at {first.memory.load:.1f} and bandwidth at {first.bandwidth.load:.2f}; a "
        f"dashed line is at 1. Compute is at {first.compute.load:.2f}.",
        tables=(_table(),),
    )


def _table() -> Table:
    from _figures.decoding import steps

    users = (1, 16, 64)
    head = ("model, 16-bit weights, 2,048 tokens", *(f"{n} user{'s' * (n > 1)}" for n in users))
    rows = []
    for key in ("llama2-7b", "llama2-13b", "llama2-70b"):
        for chip_id in ("a100-80gb-sxm", "h100-sxm", "h200"):
            cells = []
            for n in users:
                found = verdict(model=key, chip=chip_id, batch=n)
                cells.append(
                    f"passes; {found.binding.name} at {found.binding.load:.2f}"
                    if found.feasible
                    else f"shut: {' and '.join(gate.name for gate in found.shut)}"
                )
            rows.append((f"{steps()[key].name} on one {Hardware.get(chip_id).name}", *cells))
    return Table(
        f"Gates for {FIRST['deadline']} ms a token, at 85% of the bandwidth and 50% of the peak", (head, *rows)
    )


def _picture() -> Figure:
    from _figures.feasibility import TONES

    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 1.9))
    for place, gate in enumerate(verdict().gates):
        ax.barh(place, gate.load, left=0, height=0.6, color=colors[f"{TONES[gate.name]}Line"])
        ax.text(1.1 * gate.load, place, f"{gate.load:.2g}", va="center")
    ax.axvline(1, color=colors["primary"], linestyle="--")
    ax.set(xscale="log", xlim=(0.001, 10), yticks=range(3), yticklabels=list(TONES), xlabel="need / limit")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    return fig
