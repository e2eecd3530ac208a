"""The bit explorer: a number in each format of the package, its bits, its neighbors and its range."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import viz
from mlsys.formatting import fmt
from mlsys.numerics import FLOAT_FORMATS, FloatFormat, IntFormat

INTEGERS = (8, 4)
"""Widths of the integers that the explorer shows beside the floating-point formats, in bits."""

FIRST = {"format": "fp16", "number": "0.1"}


def label(name: str) -> str:
    """The name of a format in running text, such as "FP8 E4M3" for "fp8-e4m3"."""
    return name.upper().replace("-", " ")


def formats() -> dict[str, Mapping[str, Any]]:
    """All formats by name, as the scripts need them."""
    floats = {name: _float(form) for name, form in FLOAT_FORMATS.items()}
    integers = {f"int{bits}": _integer(IntFormat(bits)) for bits in INTEGERS}
    return {name: {"label": label(name), **form} for name, form in (floats | integers).items()}


def _float(form: FloatFormat) -> dict[str, Any]:
    return {
        "integer": False,
        "bits": form.bits,
        "exponentBits": form.exponent_bits,
        "mantissaBits": form.mantissa_bits,
        "specials": form.specials,
        "bias": form.bias,
        "max": form.max,
        "minNormal": form.min_normal,
        "minSubnormal": form.min_subnormal,
    }


def _integer(form: IntFormat) -> dict[str, Any]:
    return {"integer": True, "bits": form.bits, "min": form.min, "max": form.max, "minNormal": 1, "minSubnormal": 1}


def content() -> Content:
    """The numbers and the fallback of the explorer."""
    return Content(
        title="Numbers bit by bit",
        numbers={"formats": formats(), "first": FIRST},
        picture=_picture,
        alt="A bar for each number format on a logarithmic axis of sizes, from the smallest number of full precision "
        "to the largest number, with a thin line down to the smallest number at all. FP32, TF32 and BF16 reach equally "
        "far, from about 1e-38 to 1e38; FP16 and FP8 E5M2 reach from about 1e-5 to 1e5, FP8 E4M3 from 0.01 to 448, and "
        "FP4 and the integers cover one or two powers of ten.",
        tables=(_table(),),
        scripts=("formats",),
    )


def _table() -> Table:
    head = ("format", "bits", "largest", "smallest of full precision", "smallest", "spacing at 1")
    rows = [
        (label(name), str(form["bits"]), *(f"{form[key]:.4g}" for key in ("max", "minNormal", "minSubnormal")))
        for name, form in formats().items()
    ]
    spacings = [f"{FLOAT_FORMATS[name].epsilon:.3g}" if name in FLOAT_FORMATS else "1" for name in formats()]
    return Table("What each format can hold", (head, *((*row, gap) for row, gap in zip(rows, spacings, strict=True))))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 3.2))
    shown = formats()
    for place, form in enumerate(shown.values()):
        ax.plot([form["minSubnormal"], form["max"]], [place, place], color=colors["BlueLine"], linewidth=1)
        ax.plot([form["minNormal"], form["max"]], [place, place], color=colors["BlueLine"], linewidth=7)
    ax.set(xscale="log", yticks=range(len(shown)), xlabel="size of a number")
    ax.set_yticklabels([f"{form['label']}, {fmt(form['bits'], 0)} bits" for form in shown.values()])
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    return fig
