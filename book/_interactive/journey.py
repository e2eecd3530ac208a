"""A tensor's journey: its size and a chip, and for each memory that holds it the time and energy to read it once."""

from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, viz
from mlsys.formatting import fmt
from mlsys.hardware.energy import Energy, basis
from mlsys.hardware.memory import level

CHIPS = ("h100-sxm", "a100-80gb-sxm")
LEVELS = {"shared": "shared memories", "l2": "L2 cache", "hbm": "device memory"}
"""Levels that the figure draws, from the nearest, with their names in a sentence."""
ENERGY_OF = {"shared": "l1", "l2": "l2", "hbm": "hbm"}
"""For each level, the access that prices it: the shared memory of an SM and its L1 cache are one array of cells."""
FIRST_CHIP, FIRST_BYTES = "h100-sxm", 32_000
SIZES = (1, 1_000, 32_000, 1_000_000, 10_000_000, 1_000_000_000)
"""Bytes of the tensors in the table."""


def levels(chip_id: str) -> list[dict[str, Any]]:
    """The drawn levels of a chip, from the nearest: bytes, seconds, bytes/s, and joules per bit up to the SM.

    A number from a far level passes through the nearer ones, so the energies of all levels on its way add up.
    """
    spent: Energy | None = None
    found = []
    for name, words in LEVELS.items():
        here = level(chip_id, name)
        step = basis(level(chip_id, "hbm").energy_basis).access(ENERGY_OF[name])
        spent = step if spent is None else spent + step
        found.append(
            {
                "name": words,
                "capacity": here.capacity.m_as("byte"),
                "latency": here.latency.m_as("s"),
                "bandwidth": here.bandwidth.m_as("byte/s"),
                "energy": spent.m_as("J"),
            }
        )
    return found


def time_s(chosen: dict[str, Any], size: float) -> float:
    """Seconds to read `size` bytes from a level, all SMs together: latency + bytes / bandwidth."""
    return float(chosen["latency"] + size / chosen["bandwidth"])


def content() -> Content:
    """The numbers and the fallback of the journey."""
    chips = [{"id": name, "name": Hardware.get(name).name, "levels": levels(name)} for name in CHIPS]
    return Content(
        title="A tensor's journey",
        numbers={"chips": chips, "first": {"chip": FIRST_CHIP, "bytes": FIRST_BYTES}},
        picture=_picture,
        alt="Time to read a tensor against its size, both axes logarithmic, as three lines for the shared memories, "
        "the L2 cache and the device memory of an H100. Each line is flat at the latency for small tensors, and rises "
        "in step with the size for large ones. A circle marks the bend. Each line ends at the size of its memory.",
        tables=(_table(),),
    )


def _table() -> Table:
    found = levels(FIRST_CHIP)
    head = ("bytes", *(one["name"] for one in found))
    rows = []
    for size in SIZES:
        cells = [
            f"{fmt(1e9 * time_s(one, size), 0)} ns" if size <= one["capacity"] else "does not fit" for one in found
        ]
        rows.append((fmt(size, 0), *cells))
    return Table("Time to read a tensor once on an H100, from each memory", (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 3.6))
    for one, color in zip(levels(FIRST_CHIP), ("GreenLine", "OrangeLine", "BlueLine"), strict=True):
        sizes = [100 * 10 ** (place / 20) for place in range(181)]
        inside = [size for size in sizes if size < one["capacity"]] + [one["capacity"]]
        ax.plot(inside, [1e9 * time_s(one, size) for size in inside], color=colors[color], label=one["name"])
        bend = one["latency"] * one["bandwidth"]
        ax.plot([bend], [1e9 * time_s(one, bend)], "o", color=colors[color])
    ax.axvline(FIRST_BYTES, color=colors["primary"], linestyle=":")
    ax.set(xscale="log", yscale="log", xlabel="bytes of the tensor", ylabel="time to read it, ns")
    ax.legend()
    return fig
