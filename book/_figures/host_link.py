"""Figures of the chapter on the host link; each draws one claim from numbers of the package or of a record."""

from collections.abc import Mapping, Sequence

import numpy as np

from mlsys import Hardware, viz
from mlsys.hardware.links import link
from mlsys.measure.records import Row
from mlsys.runtime.streams import Timeline

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
LANES = {"to device": "link in", "SMs": "SMs", "to host": "link out"}
LINKS = {
    "NVLink 3, A100": "nvlink-3",
    "NVLink 4, H100": "nvlink-4",
    "PCIe 4, A100": "pcie-4-x16",
    "PCIe 5, H100": "pcie-5-x16",
    "InfiniBand HDR": "infiniband-hdr",
    "InfiniBand NDR": "infiniband-ndr",
}
"""Links by their label; they alternate between a server with A100 and one with H100, as the memories do."""
CURVES = {
    "pinned both ways": ("GreenLine", "pinned, both ways"),
    "pinned to device": ("BlueLine", "pinned, in"),
    "pageable to device": ("RedLine", "pageable, in"),
    "pageable to host": ("OrangeLine", "pageable, out"),
}


def four_steps(timeline: Timeline, issue_s: float) -> None:
    """Draw a job of copies and one product in four lanes, the first of them the host that issues it."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.3))
    names = ["host", *LANES.values()]
    issued = 1e6 * issue_s * len(timeline.bars)
    end = 1e6 * timeline.total_s
    for number in range(len(timeline.bars)):
        ax.barh(
            0, 1e6 * issue_s, left=1e6 * issue_s * number, height=0.7,
            color=colors["VioletL"], edgecolor=colors["VioletLine"],
        )  # fmt: skip
    ax.text(issued + 4, 0, "issues, then is free until it needs the result", va="center", fontsize=9)
    tones = {"to device": "Blue", "SMs": "Green", "to host": "Orange"}
    for bar in timeline.bars:
        place, tone = names.index(LANES[bar.lane]), tones[bar.lane]
        start, long = 1e6 * bar.start_s, 1e6 * (bar.end_s - bar.start_s)
        ax.barh(place, long, left=start, height=0.7, color=colors[f"{tone}L"], edgecolor=colors[f"{tone}Line"])
        ax.text(start + long / 2, place, bar.name, ha="center", va="center", fontsize=9)
    ax.set(yticks=range(4), yticklabels=names, xlabel="time, µs", xlim=(0, 1.02 * end))
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")


def taper() -> None:
    """Draw the rates of memories and links as bars on a logarithmic axis."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.0))
    memories = {"HBM, A100": Hardware.Cloud.A100, "HBM, H100": Hardware.Cloud.H100}
    rates = {label: chip.memory_bw for label, chip in memories.items()}
    rates |= {label: link(name).per_direction for label, name in LINKS.items()}
    for place, rate in enumerate(rates.values()):
        gb_s = rate.m_as("GB/s")
        ax.barh(place, gb_s, height=0.65, color=colors["OrangeLine" if place % 2 == 0 else "BlueLine"])
        ax.text(1.08 * gb_s, place, f"{gb_s:,.0f}", va="center")
    ax.set(xscale="log", xlim=(10, 9000), yticks=range(len(rates)), yticklabels=list(rates))
    ax.set_xticks([10, 100, 1000], ["10", "100", "1,000"])
    ax.minorticks_off()
    ax.set_xlabel("GB/s, in one direction")
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")


def rates(rows: Sequence[Row], fixed_s: float, peak_gb_s: float) -> None:
    """Draw the rates of copies over their size, with a model of a fixed cost and a rate; its half is marked."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.5))
    curve = np.geomspace(4096, 2**28, 120)
    model = curve / (1e9 * fixed_s + curve / peak_gb_s)
    ax.plot(curve, model, "--", color=colors["primary"], linewidth=1.2, label="D / (L + D/BW)")
    half = fixed_s * peak_gb_s * 1e9
    ax.plot([half, half, 4096], [0.13, peak_gb_s / 2, peak_gb_s / 2], ":", color=colors["primary"], linewidth=1.2)
    for variant, (color, label) in CURVES.items():
        mine = [row for row in rows if row.variant == variant]
        sizes, shown = [row.shape[0] for row in mine], [row.achieved or 0.0 for row in mine]
        ax.plot(sizes, shown, "o-", color=colors[color], markersize=4, linewidth=1.4, label=label)
    ax.set(xscale="log", yscale="log", xlabel="bytes copied", ylabel="GB/s", ylim=(0.12, 200), xlim=(3500, 3.4e8))
    ax.set_xticks([2**12, 2**16, 2**20, 2**24, 2**28], ["4 KiB", "64 KiB", "1 MiB", "16 MiB", "256 MiB"])
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.minorticks_off()
    ax.legend(loc="lower right")


def overlapped(measured_ms: Mapping[str, float], predicted_ms: Mapping[str, float]) -> None:
    """Draw the times of copies and products, alone and together, with a mark where a model puts them."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.2))
    tones = ("BlueLine", "GreenLine", "OrangeLine", "VioletLine")
    for place, ((name, time), tone) in enumerate(zip(measured_ms.items(), tones, strict=True)):
        ax.barh(place, time, height=0.6, color=colors[tone])
        reach = max(time, predicted_ms.get(name, 0.0))
        ax.text(reach, place, f"  {time:.2f}", va="center")
        if name in predicted_ms:
            ax.plot([predicted_ms[name]] * 2, [place - 0.42, place + 0.42], color=colors["primary"], linewidth=2.5)
    ax.set(yticks=range(len(measured_ms)), yticklabels=list(measured_ms), xlabel="time, ms")
    ax.margins(x=0.14)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
