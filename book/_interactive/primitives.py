"""The explorer of primitives: a layer, the operations of each unit, instructions at a width, and times at the peaks."""

from dataclasses import asdict

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, viz
from mlsys.formatting import fmt
from mlsys.ops import primitives

CHIPS = {
    "H100, products in FP16": ("h100-sxm", "fp16"),
    "H100, products in FP8": ("h100-sxm", "fp8"),
    "A100, products in FP16": ("a100-80gb-sxm", "fp16"),
}
WIDTHS = {1: "one number", 8: "8 numbers", 16: "16 numbers", 32: "32 numbers (a warp)"}
"""Numbers that one instruction works on."""
SIZES = {
    "batch": 32,
    "inputs": 256,
    "outputs": 512,
    "tokens": 4096,
    "width": 128,
    "rows": 4096,
    "columns": 4096,
    "elements": 2**16,
}
"""What every size is at first."""
LARGEST = 100_000
"""Largest size that the explorer accepts: two products of three sizes still add up exactly in JavaScript."""
FIRST_CHIP = "H100, products in FP16"
FIRST = {"layer": "attention, one head", "chip": FIRST_CHIP, "width": 8}
NAMES = {"matrix": "matrix unit", "vector": "vector unit", "special": "special functions", "memory": "loads by index"}
TABLE_WIDTHS = (32, 64, 128, 256)


def content() -> Content:
    """The numbers and the fallback of the explorer of primitives."""
    layers = {
        name: {"sizes": primitives.sizes_of(name), "steps": [asdict(step) for step in steps]}
        for name, steps in primitives.LAYERS.items()
    }
    chips = {name: primitives.rates(Hardware.get(chip), dtype) for name, (chip, dtype) in CHIPS.items()}
    return Content(
        title="Primitives of a layer",
        numbers={
            "layers": layers,
            "chips": chips,
            "widths": list(WIDTHS.items()),
            "sizes": SIZES,
            "largest": LARGEST,
            "names": NAMES,
            "first": FIRST,
        },
        picture=_picture,
        alt=f"Three bars of time on an H100, for one head of attention with {SIZES['tokens']:,} tokens and a head "
        f"width of {SIZES['width']}. The longest is the matrix unit's. The bar of the special functions is half as "
        "long, and that of the vector unit is shorter still.",
        tables=(_table(),),
    )


def times_us(width: int) -> dict[str, float]:
    """Microseconds of each unit at its peak on the first chip, for one head of attention."""
    chip, dtype = CHIPS[FIRST_CHIP]
    rates = primitives.rates(Hardware.get(chip), dtype)
    found = primitives.counts("attention, one head", tokens=SIZES["tokens"], width=width)
    return {unit: 1e6 * found[unit] / rate for unit, rate in rates.items()}


def _table() -> Table:
    head = ("head width", *(f"{NAMES[unit]}, µs" for unit in ("matrix", "vector", "special")))
    rows = [(str(width), *(fmt(time, 1) for time in times_us(width).values())) for width in TABLE_WIDTHS]
    return Table(f"One head of attention, {SIZES['tokens']:,} tokens, on an H100 in FP16", (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 1.9))
    times = times_us(SIZES["width"])
    tones = {"matrix": "BlueLine", "vector": "GreenLine", "special": "OrangeLine"}
    for place, (unit, time) in enumerate(times.items()):
        ax.barh(place, time, height=0.6, color=colors[tones[unit]])
    ax.set(yticks=range(len(times)), yticklabels=[NAMES[unit] for unit in times], xlabel="time at the unit's peak, µs")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    return fig
