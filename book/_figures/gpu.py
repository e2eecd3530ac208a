"""Figures of the chapter on threads, warps, blocks and SMs; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from mlsys import viz
from mlsys.formatting import fmt
from mlsys.hardware import Hardware
from mlsys.hardware.memory import level
from mlsys.hardware.occupancy import SM
from mlsys.traffic.banks import bank_passes
from mlsys.traffic.coalescing import WARP_LANES

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
LARGEST_CLUSTER = 8
"""Blocks of the largest cluster that every GPU with clusters can run (NVIDIA, CUDA Programming Guide)."""
LARGEST_CLUSTER_ON_REQUEST = 16
"""Blocks of the largest cluster of an H100, for a kernel that allows it (NVIDIA, Hopper Tuning Guide, 1.4.1.3)."""


def mapping(chip_id: str, rates: Mapping[str, str], clusters: bool = False) -> None:
    """Draw what each part of a launch is placed on, from a thread to the grid, with the rates of the memories.

    Args:
        chip_id: a chip with an SM's limits and all of its memory levels.
        rates: how the rates of "register", "shared", "l2" and "hbm" are written, all SMs together.
        clusters: whether the chip can group blocks into clusters.
    """
    chip = Hardware.get(chip_id)
    sm, sms = SM.of(chip), int(chip.field("sm_count").value.m_as(""))
    lanes = int(chip.field("vector_lanes").value.m_as("")) // sms // sm.partitions
    size = {name: level(chip_id, name).capacity for name in ("register", "l1", "l2", "hbm")}
    of_sm = {name: fmt(size[name].m_as("KiB") / sms, 0) for name in ("register", "l1")}
    registers = fmt(size["register"].m_as("KiB") / sms / sm.partitions, 0)
    rows = [
        ("a thread", "its own registers\nand index", "a lane", "one multiply-add\nper clock", "Green"),
        (
            f"a warp:\n{WARP_LANES} threads",
            "one instruction\nat a time",
            f"a partition: {lanes} lanes",
            f"one scheduler, {sm.warps // sm.partitions} warps,\n{registers} KiB of registers",
            "Blue",
        ),
        (
            f"a block: up to\n{fmt(sm.threads_per_block, 0)} threads",
            "shares memory\nand a barrier",
            f"an SM: {sm.partitions} partitions",
            f"{sm.warps} warps, {sm.blocks} blocks,\n{of_sm['l1']} KiB L1 and shared",
            "Blue",
        ),
        (
            "a grid:\nall blocks",
            "in any order",
            f"the chip: {sms} SMs",
            f"{fmt(size['l2'].m_as('MiB'), 0)} MiB of L2 cache",
            "Violet",
        ),
        ("tensors", "stay between\nlaunches", "device memory", f"{fmt(size['hbm'].m_as('GB'), 0)} GB of HBM", "Orange"),
    ]
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 6.5))
    ax.set(xlim=(0, 10), ylim=(13.0, -0.55))
    ax.axis("off")
    ax.text(1.75, -0.25, "what you write", ha="center", weight="bold")
    ax.text(7.25, -0.25, chip.name.removeprefix("NVIDIA "), ha="center", weight="bold")
    height, pitch = 1.55, 2.75
    for place, (name, note, unit, what, tone) in enumerate(rows):
        top = place * pitch
        _box(ax, 0.05, top, 3.6, height, tone)
        ax.text(1.85, top + 0.42, name, ha="center", va="center", weight="bold", fontsize=9.5, linespacing=1.0)
        ax.text(1.85, top + 1.12, note, ha="center", va="center", fontsize=9, linespacing=1.0)
        _box(ax, 4.55, top, 5.4, height, tone)
        ax.text(7.25, top + 0.35, unit, ha="center", va="center", weight="bold")
        ax.text(7.25, top + 1.0, what, ha="center", va="center", fontsize=9, linespacing=1.05)
        arrow = {"arrowstyle": "->", "color": colors["primary"], "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", xy=(4.5, top + height / 2), xytext=(3.7, top + height / 2), arrowprops=arrow)
    memories = {"register": "registers", "shared": "shared memory", "l2": "L2 cache", "hbm": "device memory"}
    for place, (name, memory) in enumerate(memories.items()):
        low, high = (place + 1) * pitch, place * pitch + height
        arrow = {"arrowstyle": "<->", "color": colors["RedLine"], "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", xy=(5.6, high), xytext=(5.6, low), arrowprops=arrow)
        middle = (low + high) / 2
        ax.text(5.85, middle - 0.22, rates[name], va="center", color=colors["RedLine"], weight="bold")
        ax.text(5.85, middle + 0.27, f"from {memory}", va="center", color=colors["RedLine"], fontsize=9)
    if clusters:
        top = 2 * pitch + height + 0.08
        text = f"a cluster: up to\n{LARGEST_CLUSTER} blocks, on SMs\nof one GPC"
        ax.text(
            1.85, top + 0.52, text, ha="center", va="center", fontsize=9, color=colors["VioletLine"], linespacing=1.0
        )


def _box(ax: Axes, x: float, y: float, width: float, height: float, tone: str) -> None:
    box = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.12", linewidth=1.3)
    box.set(facecolor=viz.COLORS[f"{tone}L"], edgecolor=viz.COLORS[f"{tone}Line"])
    ax.add_patch(box)


def divergence() -> None:
    """Draw which lanes of a warp work in each slot, when all take the same branch and when half of them do."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    _, panels = plt.subplots(2, 1, figsize=(WIDTH, 4.3), layout="constrained", sharex=True)
    shown, before, path, after = 8, 1, 3, 1
    tones = {"common": "Blue", "if": "Green", "else": "Orange"}
    for ax, takes_if in zip(panels, (shown, shown // 2), strict=True):
        parts = [("common", before), ("if", path), *([("else", path)] if takes_if < shown else []), ("common", after)]
        start = 0
        for name, slots in parts:
            for slot in range(start, start + slots):
                for lane in range(shown):
                    works = name == "common" or (name == "if") == (lane < takes_if)
                    color = viz.COLORS[f"{tones[name]}L"] if works else "white"
                    edge = viz.COLORS[f"{tones[name]}Line"] if works else viz.COLORS["grid"]
                    ax.add_patch(Rectangle((slot + 0.06, lane + 0.08), 0.88, 0.84, facecolor=color, edgecolor=edge))
            label = {"common": "both", "if": "the if path", "else": "the else path"}[name]
            tone = viz.COLORS[f"{tones[name]}Line"]
            ax.text(start + slots / 2, -0.35, label, ha="center", va="bottom", fontsize=9, color=tone)
            start += slots
        ax.set(ylim=(shown, -1.1), yticks=[0.5, shown - 0.5], yticklabels=["lane 0", f"lane {shown - 1}"])
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.spines[["left", "bottom"]].set_visible(False)
        text = "all lanes take the if path" if takes_if == shown else "half of the lanes take each path"
        ax.set_title(text, fontsize=10, loc="left", weight="bold")
    panels[1].set(xlim=(0, before + 2 * path + after), xticks=range(0, before + 2 * path + after + 1))
    panels[1].set_xlabel("issue slots of the scheduler")


def hiding(wait: int = 8, slots: int = 24) -> None:
    """Draw a scheduler that issues one instruction per clock, with few warps, with many, and with few that do more.

    Args:
        wait: clocks from an instruction to the next one of the same warp that needs its result.
        slots: clocks that are drawn.
    """
    viz.apply_style()
    import matplotlib.pyplot as plt

    cases = (
        (2, 1, "2 warps"),
        (wait, 1, f"{wait} warps"),
        (2, wait // 2, f"2 warps, {wait // 2} loads at once each"),
    )
    heights = [warps + 2.6 for warps, _, _ in cases]
    _, panels = plt.subplots(
        3, 1, figsize=(WIDTH, 4.9), layout="constrained", sharex=True, gridspec_kw={"height_ratios": heights}
    )
    for ax, (warps, together, title) in zip(panels, cases, strict=True):
        issued = {
            warp * together + step + turn * max(wait, warps * together): warp
            for turn in range(slots)
            for warp in range(warps)
            for step in range(together)
        }
        busy = sum(clock in issued for clock in range(slots))
        for clock in range(slots):
            for warp in range(warps):
                works = issued.get(clock) == warp
                color = viz.COLORS["BlueLine"] if works else viz.COLORS["BlueL"]
                ax.add_patch(Rectangle((clock + 0.05, warp + 0.08), 0.9, 0.84, facecolor=color))
            color = viz.COLORS["GreenLine"] if clock in issued else "white"
            edge = viz.COLORS["GreenLine"]
            ax.add_patch(
                Rectangle((clock + 0.05, warps + 0.45), 0.9, 0.84, facecolor=color, edgecolor=edge, linewidth=0.7)
            )
        ax.set(
            ylim=(warps + 1.5, -0.2), yticks=[(warps - 1) / 2 + 0.5, warps + 0.9], yticklabels=["warps", "scheduler"]
        )
        ax.set_title(f"{title}: {fmt(100 * busy / slots, 0)}% used", fontsize=10, loc="left", weight="bold")
        ax.tick_params(length=0)
        ax.grid(visible=False)
        ax.spines[["left", "bottom"]].set_visible(False)
    panels[-1].set(xlim=(0, slots), xticks=range(0, slots + 1, 8), xlabel="clocks")


def banks(side: int = 8, column: int = 2) -> None:
    """Draw the banks of a tile's column in a memory with few banks, without and with a column of padding."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    _, panels = plt.subplots(1, 2, figsize=(WIDTH, 3.1), layout="constrained", width_ratios=(side, side + 1))
    for ax, pitch in zip(panels, (side, side + 1), strict=True):
        passes = bank_passes((4 * (row * pitch + column) for row in range(side)), element_bytes=4, banks=side)
        for row in range(side):
            for col in range(pitch):
                bank = (row * pitch + col) % side
                padding, read = col == side, col == column
                fill = viz.COLORS["OrangeL"] if read else "white"
                edge = viz.COLORS["OrangeLine"] if read else viz.COLORS["primary"]
                box = Rectangle((col + 0.05, row + 0.05), 0.9, 0.9, facecolor=fill, edgecolor=edge, linewidth=0.8)
                box.set_linestyle(":" if padding else "-")
                ax.add_patch(box)
                color = viz.COLORS["OrangeLine"] if read else viz.COLORS["primary"]
                text = "" if padding else str(bank)
                weight = "bold" if read else "normal"
                ax.text(col + 0.5, row + 0.54, text, ha="center", va="center", fontsize=9, color=color, weight=weight)
        ax.set(xlim=(-0.05, pitch + 0.05), ylim=(side + 0.05, -0.05), aspect="equal")
        ax.axis("off")
        name = f"rows of {side}" if pitch == side else f"rows of {pitch}"
        ax.set_title(f"{name}:\n{passes} {'pass' if passes == 1 else 'passes'}", fontsize=10, weight="bold")


def clusters(blocks: int = 4) -> None:
    """Draw blocks that share data by way of the L2, and a cluster whose SMs reach each other's shared memory."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.5))
    ax.set(xlim=(0, 10), ylim=(9.3, -0.1))
    ax.axis("off")
    pitch, width = 10 / blocks, 10 / blocks - 0.5
    for top, title in ((0.55, "without a cluster: through the L2"), (5.35, "a cluster: from SM to SM, with a barrier")):
        ax.text(0.2, top - 0.4, title, weight="bold", va="center")
        for block in range(blocks):
            x = block * pitch + 0.25
            _box(ax, x, top, width, 1.7, "Blue")
            ax.text(x + width / 2, top + 0.4, f"SM {block}", ha="center", va="center", fontsize=9)
            _box(ax, x + 0.15, top + 0.8, width - 0.3, 0.75, "Green")
            ax.text(x + width / 2, top + 1.18, "shared", ha="center", va="center", fontsize=9)
    _box(ax, 0.25, 3.25, 9.5, 0.8, "Violet")
    ax.text(5, 3.65, "L2 cache", ha="center", va="center")
    arrow = {"color": colors["RedLine"], "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0, "arrowstyle": "<->"}
    for block in range(blocks):
        middle = block * pitch + 0.25 + width / 2
        for top, bottom in ((2.13, 3.22), (6.93, 7.67)):
            ax.annotate("", xy=(middle, bottom), xytext=(middle, top), arrowprops=arrow)
    _box(ax, 0.25, 7.7, 9.5, 0.7, "Green")
    ax.text(5, 8.05, "network between SMs", ha="center", va="center")
    ax.plot([0.25, 9.75], [8.85, 8.85], color=colors["OrangeLine"], linewidth=2.2, linestyle="--")
    ax.text(
        5,
        9.15,
        "a barrier for all blocks of the cluster",
        ha="center",
        va="center",
        fontsize=9,
        color=colors["OrangeLine"],
    )


def against_occupancy(points: Mapping[str, tuple[float, float, str]]) -> None:
    """Draw the speed of kernels that compute the same product against their occupancy.

    Args:
        points: for each kernel, its occupancy in percent, its rate in TFLOP/s, and where its name is written:
            "left", "right", "above", or "" for nowhere.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    for name, (share, rate, side) in points.items():
        library = name == "cuBLAS"
        ax.plot(share, rate, "s" if library else "o", color=colors["OrangeLine" if library else "BlueLine"])
        if side:
            offset, align = {"left": ((-8, 0), "right"), "right": ((8, 0), "left"), "above": ((-8, 11), "left")}[side]
            style = {
                "va": "center",
                "ha": align,
                "fontsize": 9,
                "color": colors["OrangeLine" if library else "primary"],
                "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # not the lines of the grid
            }
            ax.annotate(name, (share, rate), xytext=offset, textcoords="offset points", **style)
    ax.set(xlabel="occupancy, % of the warp slots", ylabel="TFLOP/s", yscale="log", xlim=(0, 108), ylim=(0.25, 2500))
    ax.set_xticks([0, 12.5, 25, 50, 75, 100], ["0", "12.5", "25", "50", "75", "100"])
    ax.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.minorticks_off()


def in_flight(ways: Sequence[tuple[str, float]], needed: tuple[float, float]) -> None:
    """Draw the bytes that an SM can have on their way, by how they are asked for, beside what the memory needs.

    Args:
        ways: what asks for the bytes, and how many, in bytes per SM.
        needed: bytes per SM that keep the memory busy, at the least and at the greatest latency measured.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.62 * len(ways)))
    ax.axvspan(*needed, color=colors["RedL"], zorder=0)
    ax.text(needed[1] * 1.08, len(ways) - 0.42, "needed", color=colors["RedLine"], va="center", fontsize=9)
    for place, (name, amount) in enumerate(ways):
        ax.plot([100, amount], [place, place], color=colors["BlueLine"], linewidth=5, solid_capstyle="butt")
        ax.text(amount * 1.1, place, f"{amount / 1e3:.2g} kB", va="center", fontsize=9)
        ax.text(110, place - 0.38, name, va="center", fontsize=9)
    ax.set(xscale="log", xlim=(100, 4e5), ylim=(len(ways) - 0.2, -0.75), xlabel="bytes in flight of each SM")
    ax.set_yticks([])
    ax.grid(visible=False, axis="y")
    ax.spines["left"].set_visible(False)
    ax.set_xticks([100, 1e3, 1e4, 1e5], ["100", "1,000", "10,000", "100,000"])
    ax.minorticks_off()
