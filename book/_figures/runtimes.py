"""Figures of the chapter on runtimes; each draws one claim from numbers of the package or of a record."""

from collections.abc import Mapping, Sequence

from mlsys import viz
from mlsys.runtime.batching import Served
from mlsys.runtime.streams import Timeline

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""


def timelines(shown: Mapping[str, Timeline]) -> None:
    """Timelines one above the other on one axis of time, each with its title and its end."""
    import matplotlib.pyplot as plt

    viz.apply_style()
    _, axes = plt.subplots(len(shown), 1, figsize=(WIDTH, 1.75 * len(shown)), sharex=True, layout="constrained")
    longest = 1e3 * max(timeline.total_s for timeline in shown.values())
    for ax, (title, timeline) in zip(axes, shown.items(), strict=True):
        timeline.plot(ax)
        end = 1e3 * timeline.total_s
        ax.axvline(end, color=viz.COLORS["RedLine"], linewidth=1.5)
        ax.set_title(f"{title}: {end:.0f} ms", fontsize=10, loc="left")
        ax.set(xlim=(0, 1.02 * longest), xlabel="")
    axes[-1].set_xlabel("time, ms")


def request(timeline: Timeline) -> None:
    """Two requests on their way through the device."""
    _, ax, _, _ = viz.setup_plot(figsize=(WIDTH, 2.6))
    timeline.plot(ax)


def tail(rates: Sequence[float], served: Mapping[int, Sequence[Served]], most_ms: float) -> None:
    """Median and 99th percentile of the latency against the rate of requests, for several largest batches."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    lines = ("RedLine", "OrangeLine", "BlueLine")
    for (most, runs), line in zip(served.items(), lines, strict=True):
        for percent, style in ((99, "-"), (50, "--")):
            latency = [1e3 * run.percentile(percent) for run in runs]
            ax.loglog(rates, latency, style, marker="o", markersize=3, color=colors[line])
        fits = [(rate, 1e3 * run.percentile(99)) for rate, run in zip(rates, runs, strict=True)]
        at = max(fit for fit in fits if fit[1] < most_ms)
        words = "one at a time" if most == 1 else f"up to {most}"
        ax.text(at[0] * 0.9, max(at[1], 2.3), words, color=colors[line], ha="right")
    ax.text(rates[0], 1e3 * served[1][0].percentile(99) * 1.8, "99th percentile", fontsize=9)
    ax.text(rates[0], 1e3 * served[1][0].percentile(50) * 0.72, "median (dashed)", fontsize=9)
    ax.set(xlabel="requests per second", ylabel="latency, ms", ylim=(0.5, most_ms))
    ax.set_xticks([100, 1000, 10000], ["100", "1,000", "10,000"])
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.minorticks_off()
