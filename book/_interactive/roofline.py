"""The roofline explorer: chips with their roofs, operations with their FLOPs and bytes."""

from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, ops, viz
from mlsys.formatting import fmt
from mlsys.hardware import Accelerator
from mlsys.ops import Op
from mlsys.roofline import Roofline

CHIPS = (
    "v100-sxm2 t4 a100-80gb-sxm l4 h100-sxm h200 b200 mi300x gaudi-3 tpu-v4 tpu-v5e tpu-v6e snapdragon-x-elite"
).split()
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")
FIRST_CHIP, FIRST_PRECISION, FIRST_OP = "a100-80gb-sxm", "fp16", "layer32"
PICTURED = ("a100-80gb-sxm", "h100-sxm")


def operations(dtype: str) -> dict[str, tuple[str, Op]]:
    """The operations to choose from, in one number format, each with its label."""
    return {
        "matmul4096": ("matrix product, 4,096 × 4,096", ops.matmul(m=4096, n=4096, k=4096, dtype=dtype)),
        "matmul256": ("matrix product, 256 × 256", ops.matmul(m=256, n=256, k=256, dtype=dtype)),
        "layer256": ("dense layer 2,048 → 2,048, batch 256", ops.linear(batch=256, d_in=2048, d_out=2048, dtype=dtype)),
        "layer32": ("dense layer 2,048 → 2,048, batch 32", ops.linear(batch=32, d_in=2048, d_out=2048, dtype=dtype)),
        "layer1": ("dense layer 2,048 → 2,048, batch 1", ops.linear(batch=1, d_in=2048, d_out=2048, dtype=dtype)),
        "conv": (
            "convolution 3 × 3, 128 → 256 channels",
            ops.conv2d(n=32, c_in=128, h=56, w=56, c_out=256, kernel=3, padding=1, dtype=dtype),
        ),
        "depthwise": (
            "depthwise convolution 3 × 3, 128 channels",
            ops.depthwise_conv2d(n=32, channels=128, h=56, w=56, kernel=3, padding=1, dtype=dtype),
        ),
        "decode": (
            "attention, one new token, 4,096 in the cache",
            ops.attention_decode(batch=1, heads=32, context=4096, head_dim=128, dtype=dtype),
        ),
        "layernorm": ("LayerNorm of 16,384 × 768", ops.layernorm(rows=16384, cols=768, dtype=dtype)),
        "softmax": ("softmax of 4,096 × 4,096", ops.softmax(rows=4096, cols=4096, dtype=dtype)),
        "relu": ("ReLU of 16 million numbers", ops.elementwise(elements=4096 * 4096, dtype=dtype)),
    }


def content() -> Content:
    """The numbers and the fallback of the roofline explorer."""
    chips = [Hardware.get(name) for name in CHIPS]
    formats = {
        dtype: {
            key: {"label": label, "engine": op.engine, "flops": op.flop_count, "bytes": op.read_count + op.write_count}
            for key, (label, op) in operations(dtype).items()
        }
        for dtype in PRECISIONS
    }
    numbers = {
        "chips": [{"id": chip.id, "name": chip.name, "roofs": _roofs(chip)} for chip in chips],
        "ops": formats,
        "first": {"chip": FIRST_CHIP, "precision": FIRST_PRECISION, "op": FIRST_OP},
    }
    pictured = " and ".join(Hardware.get(name).name for name in PICTURED)
    return Content(
        title="Roofline explorer",
        numbers=numbers,
        picture=_picture,
        alt=f"Attainable rate against arithmetic intensity, both axes logarithmic, for {pictured} in FP16. Each roof "
        "rises with the intensity and turns flat at a marked ridge point; the newer chip's lies higher and its ridge "
        "further right. Dots mark where operations lie: a layer for one sample far left on the slope, a large matrix "
        "product right on the flat part.",
        tables=(_chip_table(chips), _op_table()),
    )


def _roofs(chip: Accelerator) -> list[dict[str, Any]]:
    """Every dense roofline of a chip: its slope, and its flat roof for each engine (none where no document has one)."""
    found = []
    for precision in PRECISIONS:
        for engine in ("tensor", "vector"):
            if not any((peak.precision, peak.engine, peak.sparse) == (precision, engine, False) for peak in chip.peaks):
                continue
            roofline = Roofline.of(chip, precision, engine)
            vector = roofline.peaks_per_s.get("vector")
            found.append(
                {
                    "precision": precision,
                    "main": engine,
                    "bandwidth": roofline.bandwidth_per_s,
                    "peaks": {"tensor": roofline.peaks_per_s.get("tensor", vector), "vector": vector},
                }
            )
    return found


def _chip_table(chips: list[Accelerator]) -> Table:
    rows: list[tuple[str, ...]] = [("chip", "format", "peak, TFLOP/s", "memory, GB/s", "ridge point, FLOP/byte")]
    for chip in chips:
        precision = next(p for p in ("fp16", "bf16", "int8") if any(x.precision == p for x in chip.peaks))
        roofline = Roofline.of(chip, precision)
        numbers = (
            roofline.peak.m_as("TFLOP/s"),
            roofline.bandwidth.m_as("GB/s"),
            roofline.ridge().m_as("flop/byte"),
        )
        rows.append((chip.name, precision, *(f"{number:,.5g}" for number in numbers[:2]), fmt(numbers[2], 0)))
    return Table("Where each chip's roof turns flat (matrix units; for int8, operations count as FLOP)", tuple(rows))


def _op_table() -> Table:
    roofline = Roofline.of(Hardware.get(FIRST_CHIP), FIRST_PRECISION)
    rows: list[tuple[str, ...]] = [("operation in FP16", "FLOP per byte", "limit", "at most, TFLOP/s")]
    for label, op in operations(FIRST_PRECISION).values():
        rate = roofline.attainable(op).m_as("TFLOP/s")
        intensity = op.intensity.m_as("flop/byte")
        rows.append((label, fmt(intensity, 0 if intensity > 10 else 2), roofline.bound(op), f"{rate:.3g}"))
    return Table(f"What the roofs of an {Hardware.get(FIRST_CHIP).name} allow", tuple(rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(5.0, 3.9))
    lines = [colors["BlueLine"], colors["OrangeLine"]]
    for name, color in zip(PICTURED, lines, strict=True):
        roofline = Roofline.of(Hardware.get(name), FIRST_PRECISION)
        ridge, peak = roofline.ridge().m_as("flop/byte"), roofline.peak.m_as("TFLOP/s")
        slope = roofline.bandwidth.m_as("TB/s")
        ax.loglog([0.3, ridge, 4000], [0.3 * slope, peak, peak], color=color)
        ax.plot(ridge, peak, "o", color=color)
        ax.text(1.1 * ridge, 0.9 * peak, f"{ridge:.0f}", color=color, va="top", weight="bold")
        ax.text(3800, 1.15 * peak, Hardware.get(name).name.removeprefix("NVIDIA "), color=color, ha="right")
    base = Roofline.of(Hardware.get(PICTURED[0]), FIRST_PRECISION)
    chosen = operations(FIRST_PRECISION)
    marked = {"layer1": "dense layer,\nbatch 1", "layer32": "dense layer,\nbatch 32", "matmul4096": "matrix\nproduct"}
    for key, text in marked.items():
        op = chosen[key][1]
        rate = base.attainable(op).m_as("TFLOP/s")
        ax.plot(op.intensity.m_as("flop/byte"), rate, "D", color=colors["primary"], zorder=4)
        ax.text(1.2 * op.intensity.m_as("flop/byte"), 0.82 * rate, text, va="top")
    ax.set(xlabel="FLOP for each byte moved", ylabel="TFLOP/s, at most", xlim=(0.3, 4000), ylim=(0.5, 2500))
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.minorticks_off()
    return fig
