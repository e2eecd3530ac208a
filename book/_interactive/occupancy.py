"""The occupancy explorer: what a block uses, how many blocks an SM holds, and the bytes that they have in flight."""

from dataclasses import asdict
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from _interactive.content import Content, Table
from mlsys import Hardware, viz
from mlsys.formatting import fmt
from mlsys.hardware import Accelerator
from mlsys.hardware.memory import HIERARCHIES, level
from mlsys.hardware.occupancy import SM, Occupancy, occupancy
from mlsys.traffic.coalescing import WARP_LANES

CHIPS = ("t4", "l4", "a100-80gb-sxm", "h100-sxm")
FIRST = {"chip": "h100-sxm", "threads": 256, "registers": 64, "shared_kib": 0, "bytes": 4}
BYTES = (4, 8, 16, 32, 64, 128)
"""Bytes of a thread that may be on their way at once."""
SHARED_KIB = (0, 24, 48, 96)
"""Shared memory of a block in the table."""
REGISTERS = (32, 64, 96, 128, 255)
"""Registers of a thread in the table."""


def needed(chip: Accelerator) -> tuple[float, float] | None:
    """Bytes in flight of each SM that keep the memory busy, at the least and greatest latency, if one was measured."""
    if chip.id not in HIERARCHIES.names():
        return None
    memory, sms = level(chip.id, "hbm"), chip.field("sm_count").value.m_as("")
    low, high = (memory.bytes_in_flight(latency).m_as("byte") / sms for latency in memory.latency_range)
    return low, high


def content() -> Content:
    """The numbers and the fallback of the occupancy explorer."""
    chips: list[dict[str, Any]] = [
        {
            "id": name,
            "name": (chip := Hardware.get(name)).name,
            "sm": asdict(SM.of(chip)),
            "needed": needed(chip),
        }
        for name in CHIPS
    ]
    found = _first()
    return Content(
        title="Occupancy",
        numbers={"chips": chips, "lanes": WARP_LANES, "bytes": BYTES, "first": FIRST},
        picture=_picture,
        alt=f"The warp slots of one SM of an H100 as a grid of four rows, one for each partition. Blocks of "
        f"{FIRST['threads']} threads with {FIRST['registers']} registers each fill {found.warps} of the "
        f"{found.most_warps} slots with {found.blocks} blocks, and the rest is empty.",
        tables=(_table(),),
    )


def _first() -> Occupancy:
    return occupancy(FIRST["chip"], threads=FIRST["threads"], registers=FIRST["registers"])


def _table() -> Table:
    head = ("registers per thread", *(f"{kib} KiB shared" for kib in SHARED_KIB))
    rows = []
    for registers in REGISTERS:
        cells = []
        for kib in SHARED_KIB:
            found = occupancy(FIRST["chip"], threads=FIRST["threads"], registers=registers, shared_bytes=1024 * kib)
            cells.append(f"{found.blocks}, {fmt(100 * found.share, 1)}%")
        rows.append((str(registers), *cells))
    return Table(f"Resident blocks of {FIRST['threads']} threads, and the occupancy, on an H100", (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.4))
    found, sm = _first(), SM.of(Hardware.get(FIRST["chip"]))
    tones = ("Blue", "Orange", "Green", "Violet")
    for place in range(found.most_warps):
        column, row = divmod(place, sm.partitions)
        block = place // found.warps_per_block
        tone = tones[block % len(tones)]
        fill = colors[f"{tone}L"] if place < found.warps else "white"
        edge = colors[f"{tone}Line"] if place < found.warps else colors["grid"]
        ax.add_patch(Rectangle((column + 0.06, row + 0.06), 0.88, 0.88, facecolor=fill, edgecolor=edge))
    ax.set(xlim=(-0.1, found.most_warps / sm.partitions + 0.1), ylim=(sm.partitions + 0.1, -0.1))
    ax.set(yticks=[row + 0.5 for row in range(sm.partitions)], xticks=[])
    ax.set_yticklabels([f"partition {row + 1}" for row in range(sm.partitions)])
    ax.set_xlabel(f"warp slots: {found.warps} of {found.most_warps} are taken, by {found.blocks} blocks")
    ax.tick_params(length=0)
    ax.grid(visible=False)
    for spine in ("left", "bottom"):
        ax.spines[spine].set_visible(False)
    return fig
