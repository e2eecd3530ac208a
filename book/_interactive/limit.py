"""The figure of the front page: a chip and an operation, and which of the chip's two limits stops it."""

from typing import Any

from matplotlib.figure import Figure

from _interactive import roofline
from _interactive.content import Content, Table
from mlsys import Hardware, viz
from mlsys.formatting import fmt
from mlsys.hardware import Accelerator
from mlsys.ops import Op
from mlsys.roofline import Roofline

CHIPS = "t4 a100-80gb-sxm h100-sxm h200 b200 mi300x tpu-v5e tpu-v6e".split()
FORMATS = ("fp16", "bf16")
"""Two bytes per number on every chip, so that an operation moves the same bytes on each."""
OPERATIONS = {
    "matmul4096": "a large matrix product",
    "conv": "a convolution",
    "layer256": "a dense layer for a batch of 256",
    "layer1": "a dense layer for one sample",
    "decode": "attention for one new token",
    "softmax": "a softmax",
    "relu": "an activation (ReLU)",
}
"""Operations of the roofline explorer, in plain words."""
FIRST_CHIP, FIRST_OP = "h100-sxm", "layer1"


def rooflines(chip: Accelerator) -> tuple[str, Roofline]:
    """The format of a chip that has two bytes per number, and its dense roofline."""
    found = next(name for name in FORMATS if any(peak.precision == name for peak in chip.peaks))
    return found, Roofline.of(chip, found)


def operations() -> dict[str, tuple[str, Op]]:
    """The operations with their labels."""
    known = roofline.operations("fp16")
    return {key: (label, known[key][1]) for key, label in OPERATIONS.items()}


def content() -> Content:
    """The numbers and the fallback of the front page's figure."""
    chips: list[dict[str, Any]] = []
    for name in CHIPS:
        chip = Hardware.get(name)
        precision, roofs = rooflines(chip)
        vector = roofs.peaks_per_s.get("vector")
        peaks = {"tensor": roofs.peaks_per_s.get("tensor", vector), "vector": vector}
        chips.append({"name": _short(chip), "format": precision, "bandwidth": roofs.bandwidth_per_s, "peaks": peaks})
    ops = [
        {"label": label, "engine": op.engine, "intensity": op.intensity.m_as("flop/byte")}
        for label, op in operations().values()
    ]
    first = {"chip": CHIPS.index(FIRST_CHIP), "op": list(OPERATIONS).index(FIRST_OP)}
    return Content(
        title="Which limit?",
        numbers={"chips": chips, "ops": ops, "first": first},
        picture=_picture,
        alt=f"The rate that an {_short(Hardware.get(FIRST_CHIP))} can reach, against the operations for each byte "
        "moved, both axes logarithmic. A line rises, and turns flat at a corner. A dense layer for one sample is "
        "far left on the slope, at a small part of the height of the flat part; a large matrix product is on the flat "
        "part.",
        tables=(_table(),),
    )


def _short(chip: Accelerator) -> str:
    return chip.name.split(" (")[0].removeprefix("NVIDIA ").removeprefix("Google ").removeprefix("AMD Instinct ")


def _table() -> Table:
    chip = Hardware.get(FIRST_CHIP)
    _, roofs = rooflines(chip)
    rows: list[tuple[str, ...]] = [("operation", "FLOP per byte", "limit", "at most, TFLOP/s")]
    for label, op in operations().values():
        intensity, rate = op.intensity.m_as("flop/byte"), roofs.attainable(op).m_as("TFLOP/s")
        limit = {"memory": "memory", "compute": "arithmetic"}[roofs.bound(op)]
        rows.append((label, fmt(intensity, 0 if intensity > 10 else 2), limit, f"{rate:.3g}"))
    return Table(f"What limits an operation on an {_short(chip)}", tuple(rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.7))
    chip = Hardware.get(FIRST_CHIP)
    _, roofs = rooflines(chip)
    ridge, peak = roofs.ridge().m_as("flop/byte"), roofs.peak.m_as("TFLOP/s")
    slope = roofs.bandwidth.m_as("TB/s")
    ax.loglog([0.1, ridge, 10000], [0.1 * slope, peak, peak], color=colors["primary"], linewidth=3)
    for key, across, down, side in (("layer1", 1.3, 0.55, "left"), ("matmul4096", 1, 0.35, "center")):
        label, op = operations()[key]
        at = op.intensity.m_as("flop/byte")
        ax.plot(at, roofs.attainable(op).m_as("TFLOP/s"), "D", color=colors["RedLine"], zorder=4)
        ax.text(across * at, down * roofs.attainable(op).m_as("TFLOP/s"), label, color=colors["RedLine"], ha=side)
    ax.text(3, 60, "memory\nis the limit", color=colors["BlueLine"], ha="center")
    ax.text(1600, 40, "arithmetic\nis the limit", color=colors["OrangeLine"], ha="center")
    ax.set(xlabel="FLOP for each byte moved", ylabel="TFLOP/s, at most", ylim=(0.2, 3000))
    ax.set_xticks([0.1, 1, 10, 100, 1000, 10000], ["0.1", "1", "10", "100", "1,000", "10,000"])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.minorticks_off()
    return fig
