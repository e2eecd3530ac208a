"""Figures of the chapter on primitives; each draws one claim from numbers of the package or of a record."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

from mlsys import viz

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
SEED_BITS = 8
"""Bits of the table's answer from which Newton's method starts."""


def shares(models: Mapping[str, tuple[float, float]]) -> None:
    """Draw what share of the operations and of the time products and convolutions are.

    Args:
        models: for each network, the share of the FLOPs and the share of the time, up to 1.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 1.1 + 0.75 * len(models)))
    for place, (flops, time) in enumerate(models.values()):
        for shift, share, color, label in (
            (-0.19, flops, "BlueLine", "operations"),
            (0.19, time, "OrangeLine", "time"),
        ):
            ax.barh(place + shift, 100 * share, height=0.34, color=colors[color], label=None if place else label)
            ax.text(100 * share + 1, place + shift, f"{100 * share:.0f}%", va="center")
    ax.set(yticks=range(len(models)), yticklabels=list(models), xlabel="share of products and convolutions")
    ax.set(xlim=(0, 112), xticks=(0, 25, 50, 75, 100), xticklabels=("0", "25%", "50%", "75%", "100%"))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)


def newton_errors(steps: int, seed_bits: int = SEED_BITS) -> NDArray[np.float64]:
    """Return the largest relative error of 1 / sqrt(x) after 0, 1, ... Newton steps y <- y (3 - x y^2) / 2.

    The first guess is wrong by up to 2^-(seed_bits + 1) of its value, as if a table gave it with that many bits. A
    guess (1 + e) / sqrt(x) becomes (1 - (3 e^2 + e^3) / 2) / sqrt(x) for every x, so no rounding hides small errors.
    """
    errors = np.array([-1.0, 1.0]) * 2.0 ** -(seed_bits + 1)
    found = []
    for _ in range(steps + 1):
        found.append(np.max(np.abs(errors)))
        errors = -(3 * errors**2 + errors**3) / 2
    return np.array(found)


def newton(steps: int = 3) -> None:
    """Draw the correct bits of 1 / sqrt(x) after each Newton step, and the bits that FP32 and FP64 hold."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.8))
    bits = -np.log2(newton_errors(steps)) - 1
    ax.plot(range(steps + 1), bits, "o-", color=colors["BlueLine"])
    for place, value in enumerate(bits):
        ax.text(place + 0.08, value - 4.5, f"{value:.0f}", color=colors["BlueLine"])
    for name, held in (("FP32", 24), ("FP64", 53)):
        ax.axhline(held, linestyle="--", linewidth=1.2, color=colors["OrangeLine"])
        ax.text(0, held + 1.2, f"{name} holds {held} bits", color=colors["OrangeLine"])
    ax.set(xlabel="Newton steps after the table", ylabel="correct bits", xticks=range(steps + 1), ylim=(0, 70))
    ax.set_xlim(-0.1, steps + 0.35)


def attention(widths: Sequence[int], products: Mapping[str, Sequence[float]], exponentials_us: float) -> None:
    """Draw the time of attention's products over the head width, and that of its exponentials.

    Args:
        widths: head widths.
        products: for each number format, the microseconds of the products at each width.
        exponentials_us: microseconds of the exponentials, the same at each width.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.0))
    for (name, times), color, style in zip(products.items(), ("BlueLine", "GreenLine"), ("o-", "s-"), strict=True):
        ax.loglog(widths, times, style, color=colors[color], label=f"products in {name}")
    ax.axhline(exponentials_us, linestyle="--", color=colors["OrangeLine"], label="exponentials")
    ax.set(xlabel="head width", ylabel="time at the peak, µs")
    ax.xaxis.set_major_locator(FixedLocator(list(widths)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([str(width) for width in widths])
    ax.yaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels(["1", "2", "5", "10", "20"])
    ax.legend(loc="upper left")
