"""Figures of the chapter on number formats; each draws one claim from numbers of the package, a network or a record."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from mlsys import viz
from mlsys.hardware.energy import basis
from mlsys.numerics import FLOAT_FORMATS, FloatFormat

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
STYLE = {
    "int8": ("OrangeLine", "o-"),
    "fp8-e4m3": ("BlueLine", "s-"),
    "fp8-e5m2": ("VioletLine", "^-"),
    "int4": ("OrangeLine", "o:"),
    "fp4-e2m1": ("BlueLine", "s:"),
}
"""Color and line of each format of the figures on blocks: integers orange, floating point blue, four bits dotted."""
BITS_ADDED = {"fp16": "GreenLine", "bf16": "OrangeLine", "fp32": "BlueLine"}
"""Accumulators with their colors."""


def label(name: str) -> str:
    """Return a format's name as the text writes it, such as "FP8 E4M3"."""
    return name.upper().replace("-", " ")


def layouts() -> None:
    """Draw the bits of every floating-point format: sign, exponent, mantissa."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.0))
    parts = (("OrangeL", "OrangeLine"), ("BlueL", "BlueLine"), ("GreenL", "GreenLine"))
    for row, form in enumerate(FLOAT_FORMATS.values()):
        start = 0
        widths = (1, form.exponent_bits, form.mantissa_bits)
        for width, (fill, edge) in zip(widths, parts, strict=True):
            for bit in range(start, start + width):
                box = Rectangle(
                    (bit, row - 0.36), 1, 0.72, facecolor=colors[fill], edgecolor=colors[edge], linewidth=0.8
                )
                ax.add_patch(box)
            start += width
        ax.text(start + 0.6, row, f"{form.exponent_bits} + {form.mantissa_bits}", va="center", fontsize=9)
    ax.set(xlim=(-0.2, 37.5), ylim=(len(FLOAT_FORMATS) - 0.4, -0.7), xticks=[])
    ax.set_yticks(range(len(FLOAT_FORMATS)), [label(name) for name in FLOAT_FORMATS])
    ax.grid(visible=False)
    ax.tick_params(length=0)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    for x, (_, edge), name in zip((-0.3, 3.2, 16), parts, ("sign", "exponent", "mantissa"), strict=True):
        ax.text(x, -0.5, name, color=colors[edge], fontsize=9, weight="bold", va="bottom")


def energies(basis_id: str = "horowitz-45nm") -> None:
    """Draw the energy of a multiplication and of an addition by number format."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.6))
    source = basis(basis_id)
    names = ("fp32", "int32", "fp16", "int8")
    for offset, kind, color in ((-0.19, "multiply", "BlueLine"), (0.19, "add", "OrangeLine")):
        values = [source.operation(f"{name} {kind}").m_as("pJ") for name in names]
        places = [place + offset for place in range(len(names))]
        ax.barh(places, values, height=0.36, color=colors[color], label=kind)
        for place, value in zip(places, values, strict=True):
            ax.text(value * 1.06, place, f"{value:g}", va="center", fontsize=9)
    ax.set(xscale="log", xlabel="energy of one operation, pJ", xlim=(0.02, 9))
    ax.set_yticks(range(len(names)), [label(name) for name in names])
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower right")


def accumulators(errors: Mapping[str, NDArray[np.float64]]) -> None:
    """Draw the relative error of a sum of products against the number of products, by accumulator.

    Args:
        errors: relative error after 1, 2, ... products, by the accumulator's format.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.9))
    for (name, found), mark in zip(errors.items(), ("o-", "s-", "^-"), strict=True):
        counts = [2**k for k in range(4, 30) if 2**k <= len(found)]
        ax.loglog(counts, [found[n - 1] for n in counts], mark, color=colors[BITS_ADDED[name]], label=label(name))
    ax.set(xlabel="products added", ylabel="relative error of the sum")
    ax.legend(title="accumulator", loc="center right", bbox_to_anchor=(1, 0.42))


def gradients(sizes: NDArray[np.float64], form: FloatFormat, scale: float) -> None:
    """Draw how many gradients have which size, as they are and scaled, beside the range of a format.

    Args:
        sizes: absolute values, without zeros.
        form: the format whose range is shaded.
        scale: the factor by which the loss is multiplied, a power of two.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.9))
    low, normal, high = (np.log2(x) for x in (form.min_subnormal, form.min_normal, form.max))
    ax.axvspan(normal, high, color=colors["GreenL"], label="full precision")
    ax.axvspan(low - 1, normal, color=colors["OrangeL"], label="fewer digits")
    bins = np.arange(-40, 18)
    for factor, color, line, name in ((1, "BlueLine", "-", "gradients"), (scale, "RedLine", "--", "loss scaled")):
        count, _ = np.histogram(np.log2(sizes * factor), bins)
        share = 100 * count / len(sizes)
        ax.step(bins[:-1], share, where="post", color=colors[color], linestyle=line, label=name)
    ax.set(
        xlabel="size of a gradient, power of two",
        ylabel="share of the gradients, %",
        xlim=(-40, 17),
        yscale="log",
        ylim=(0.01, 400),
    )
    ax.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    ax.minorticks_off()
    ax.grid(visible=False, axis="x")
    ax.legend(loc="upper center", ncols=2, fontsize=9, frameon=True, facecolor="white", framealpha=1)


def by_block(panels: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Draw the error of narrow formats against the size of the block that shares a scale.

    Args:
        panels: by title of a panel and by format, the relative error for each block, whose key is its label.
    """
    import matplotlib.pyplot as plt

    viz.apply_style()
    fig, axes = plt.subplots(
        len(panels), 1, figsize=(WIDTH, 2.5 * len(panels)), layout="constrained", sharex=True, sharey=True
    )
    drawn: Sequence[Axes] = np.atleast_1d(axes).tolist()
    for ax, (title, errors) in zip(drawn, panels.items(), strict=True):
        for name, found in errors.items():
            color, mark = STYLE[name]
            ax.plot(
                range(len(found)),
                [100 * error for error in found.values()],
                mark,
                color=viz.COLORS[color],
                label=label(name),
            )
        ax.set(yscale="log", ylabel="error, %")
        ax.set_title(title, fontsize=10, loc="left")
        ax.set_yticks([0.3, 1, 3, 10, 30], ["0.3", "1", "3", "10", "30"])
        ax.minorticks_off()
        ax.set_xticks(range(len(found)), list(found))
    drawn[-1].set_xlabel("numbers that share a scale")
    handles, names = drawn[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=3, fontsize=9)


def rates_and_errors(found: Mapping[str, tuple[float, float]]) -> None:
    """Draw the error of a product of matrices against the rate at which a device computes it.

    Args:
        found: TFLOP/s and relative error by format.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.0))
    for name, (rate, error) in found.items():
        ax.plot(rate, 100 * error, "o", color=colors["BlueLine"], markersize=8)
        side = "right" if name in ("tf32", "fp8-e4m3") else "left"
        ax.annotate(
            label(name), (rate, 100 * error), xytext=(-9 if side == "right" else 9, 0), textcoords="offset points",
            ha=side, va="center",
        )  # fmt: skip
    ax.set(
        xscale="log", yscale="log", xlabel="measured rate, TFLOP/s", ylabel="error of the product, %", xlim=(30, 3000)
    )
