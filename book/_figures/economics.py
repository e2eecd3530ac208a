"""Figures of the chapter on cost; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence

import numpy as np

from mlsys import viz
from mlsys.costs.economics import price_per_attainable
from mlsys.hardware import Accelerator

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""


def rankings(by_peak: Mapping[str, Sequence[float]], by_bandwidth: Mapping[str, Sequence[float]]) -> None:
    """Draw what each chip costs for its arithmetic and for its bandwidth, the first chip being 1 in both.

    Args:
        by_peak: for each chip, dollars per TFLOP/s: one price, or the lowest and the highest.
        by_bandwidth: for each chip, dollars per GB/s, likewise.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.1))
    first = next(iter(by_peak))
    for shift, (label, tone, prices) in enumerate(
        (("for its arithmetic", "OrangeLine", by_peak), ("for its bandwidth", "BlueLine", by_bandwidth))
    ):
        base = prices[first][0]
        for place, (name, ends) in enumerate(prices.items()):
            shown = [end / base for end in ends]
            height = place + 0.34 * (shift - 0.5)
            legend = label if name == first else None
            ax.barh(height, min(shown), height=0.3, color=colors[tone], label=legend)
            ax.barh(height, max(shown) - min(shown), left=min(shown), height=0.3, color=colors[tone], alpha=0.45)
            text = " – ".join(dict.fromkeys(f"{value:.2f}" for value in shown))
            ax.text(max(shown) + 0.015, height, text, va="center", fontsize=9)
    ax.set(yticks=range(len(by_peak)), yticklabels=list(by_peak), xlim=(0, 1.32), xlabel=f"price, {first} = 1")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower center", bbox_to_anchor=(0.42, 1.0), ncols=2)


def crossing(chips: Mapping[str, tuple[Accelerator, float]], at: float, precision: str = "fp16") -> None:
    """Draw what 10^18 FLOP cost on each chip over the intensity of the work, at the roof.

    Args:
        chips: for each name, the chip and its price in dollars per hour.
        at: intensity at which the prices are equal, FLOP/byte.
        precision: number format of the peaks.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.1))
    intensities = np.geomspace(10, 2000, 241)
    looks = (("BlueLine", "-"), ("OrangeLine", "--"))
    for (name, (chip, hourly)), (tone, dashes) in zip(chips.items(), looks, strict=True):
        second = hourly / 3600
        exa = [1e6 * price_per_attainable(second, chip, x, precision).m_as("USD/(TFLOP/s)") for x in intensities]
        ax.loglog(intensities, exa, dashes, color=colors[tone], label=f"{name}, ${hourly:.2f} an hour")
    equal = 1e6 * price_per_attainable(chips[next(iter(chips))][1] / 3600, chips[next(iter(chips))][0], at).m
    ax.plot([at], [equal], "o", color=colors["primary"])
    ax.annotate(f"equal at {at:.0f}", (at, equal), xytext=(-8, -16), textcoords="offset points", ha="right")
    ax.set(xlabel="FLOP per byte", ylabel="dollars for $10^{18}$ FLOP", ylim=(0.4, 60))
    ax.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
    ax.set_yticks([1, 10], ["1", "10"])
    ax.legend(loc="upper right")


def busy(prices: Mapping[int, float], read: float) -> None:
    """Draw what a million tokens cost over the share of the paid hours in which there is work.

    Args:
        prices: for each number of users, dollars for a million written tokens on a chip that is always busy.
        read: dollars for a million tokens of a prompt, likewise.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    shares = np.geomspace(0.05, 1, 60)
    tones = ("BlueLine", "GreenLine", "OrangeLine")
    for (users, price), tone in zip(prices.items(), tones, strict=True):
        ax.loglog(100 * shares, price / shares, color=colors[tone])
        who = "1 user" if users == 1 else f"{users} users"
        ax.text(
            6.5, 1.12 * price / 0.065, f"written for {who}", color=colors[tone], rotation=-11, rotation_mode="anchor"
        )
    ax.loglog(100 * shares, read / shares, "--", color=colors["VioletLine"])
    ax.text(
        6.5, 1.12 * read / 0.065, "read in a prompt", color=colors["VioletLine"], rotation=-11, rotation_mode="anchor"
    )
    ax.set(xlabel="share of the paid hours with work, %", ylabel="dollars per million tokens", xlim=(5, 100))
    ax.set_xticks([5, 10, 20, 50, 100], ["5", "10", "20", "50", "100"])
    ax.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    ax.minorticks_off()


def paid(prices: Mapping[str, float], sheet: float, sheet_name: str) -> None:
    """Draw what 10^18 operations cost in several kernels on one chip, beside the price at a data-sheet peak.

    Args:
        prices: for each kernel, dollars for 10^18 operations at the measured rate.
        sheet: the same at the peak.
        sheet_name: what the peak is.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.34 * len(prices)))
    for place, price in enumerate(prices.values()):
        ax.plot([sheet, price], [place, place], color=colors["grid"], linewidth=4, solid_capstyle="butt")
        ax.plot([price], [place], "o", color=colors["RedLine"])
        beside, side = (1.25, "left") if price > sheet else (0.8, "right")
        ax.text(beside * price, place, f"{price:.3g}", va="center", ha=side, fontsize=9)
    ax.axvline(sheet, color=colors["primary"], linestyle="--", linewidth=1.2)
    ax.text(sheet, -0.75, sheet_name, ha="center", va="bottom", fontsize=9)
    ax.set(xscale="log", yticks=range(len(prices)), yticklabels=list(prices), xlabel="dollars for $10^{18}$ operations")
    ax.set_xlim(0.1, 3000)
    ax.set_ylim(len(prices) - 0.5, -0.6)
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.grid(visible=False, axis="y")
