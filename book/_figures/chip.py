"""A GPU as a box diagram: its memories from the arithmetic to the host, with the rate of each path on its arrow.

A chapter draws it with `boxes`, stresses the path that it is about, and glues the same numbers from `paths`.
"""

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from mlsys import viz
from mlsys.formatting import fmt
from mlsys.hardware import Hardware
from mlsys.hardware.links import link
from mlsys.hardware.memory import level
from mlsys.units import Quantity, ureg

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

OPERANDS_PER_MULTIPLY_ADD = 3
"""Two factors and the sum."""


@dataclass(frozen=True)
class Path:
    """The way between a memory and its neighbor that is nearer to the arithmetic.

    Attributes:
        name: the farther memory: "register", "shared", "l2", "hbm" or "host".
        rate: bytes per second that can pass toward the arithmetic, all SMs together.
    """

    name: str
    rate: Quantity

    @property
    def label(self) -> str:
        """The rate as it is written on the arrow."""
        in_gigabytes = self.rate.m_as("GB/s")
        if in_gigabytes < 1000:
            return fmt(in_gigabytes, 0) + " GB/s"
        in_terabytes = in_gigabytes / 1000
        return fmt(in_terabytes, 0 if in_terabytes >= 100 else 1) + " TB/s"


def paths(chip_id: str = "a100-80gb-sxm", link_id: str = "pcie-4-x16") -> dict[str, Path]:
    """Return the paths of a chip by the name of the farther memory, the fastest first.

    The registers' rate is computed: in each cycle of the boost clock each FP32 lane reads three operands of four bytes.
    All others are sourced: of the chip's memory levels, and of one direction of its link to the host.
    """
    chip = Hardware.get(chip_id)
    lanes, clock = chip.field("vector_lanes").value.m_as(""), chip.field("boost_clock").value
    operands = ureg.Quantity(lanes * OPERANDS_PER_MULTIPLY_ADD * 4, "byte")
    found = {"register": Path("register", (operands * clock).to("TB/s"))}
    found |= {name: Path(name, level(chip_id, name).bandwidth) for name in ("shared", "l2", "hbm")}
    return found | {"host": Path("host", link(link_id).per_direction)}


def boxes(chip_id: str = "a100-80gb-sxm", link_id: str = "pcie-4-x16", stressed: str = "") -> None:
    """A GPU's memories between its arithmetic and the host, sizes in the boxes and rates on the arrows.

    Args:
        chip_id: a chip of `mlsys.hardware.memory` with all of its levels.
        link_id: its link to the host.
        stressed: name of the path that the text is about; it is drawn in red.
    """
    chip, ways = Hardware.get(chip_id), paths(chip_id, link_id)
    fig, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 6.3))
    ax.set(xlim=(0, 10), ylim=(12.9, 0))
    ax.axis("off")
    sms = int(chip.field("sm_count").value.m_as(""))
    _box(ax, 0.1, 0.1, 9.8, 8.95, "", "white", "primary")  # the chip
    ax.text(0.4, 8.72, f"the chip: {chip.name}", va="center", fontsize=9)
    for behind in (0.4, 0.2, 0.0):  # a stack: there are many SMs
        _box(ax, 0.5 + behind, 0.85 - behind, 8.6, 5.5, "", "white", "BlueLine")
    ax.text(0.8, 1.2, f"one of {sms} SMs", color=colors["BlueLine"], va="center", weight="bold")
    tensor = fmt(chip.peak("fp16").m_as("TFLOP/s"), 0)
    vector = fmt(chip.peak("fp32", engine="vector").m_as("TFLOP/s"), 1)
    _box(ax, 0.8, 1.55, 3.9, 1.05, f"tensor cores, FP16\n{tensor} TFLOP/s", "GreenL", "GreenLine")
    _box(ax, 4.9, 1.55, 3.9, 1.05, f"FP32 lanes\n{vector} TFLOP/s", "GreenL", "GreenLine")
    sizes = {name: level(chip_id, name).capacity for name in ("register", "l1", "l2", "hbm")}
    each = {name: fmt(sizes[name].m_as("KiB") / sms, 0) + " KiB" for name in ("register", "l1")}
    _box(ax, 0.8, 3.55, 8.0, 0.75, f"registers, {each['register']} in each SM", "BlueL", "BlueLine")
    _box(ax, 0.8, 5.25, 8.0, 0.75, f"L1 cache and shared memory, {each['l1']}", "BlueL", "BlueLine")
    _box(ax, 0.8, 7.45, 8.0, 0.85, f"L2 cache, {fmt(sizes['l2'].m_as('MiB'), 0)} MiB", "VioletL", "VioletLine")
    memory = f"device memory (HBM), {fmt(sizes['hbm'].m_as('GB'), 0)} GB"
    _box(ax, 0.8, 10.1, 8.0, 0.85, memory, "OrangeL", "OrangeLine")
    _box(ax, 0.8, 11.95, 8.0, 0.85, "the host's memory", "BrownL", "BrownLine")
    ends = {
        "register": (3.55, 2.6),
        "shared": (5.25, 4.3),
        "l2": (7.45, 6.35),
        "hbm": (10.1, 8.3),
        "host": (11.95, 10.95),
    }
    for name, (start, end) in ends.items():
        color = colors["RedLine" if name == stressed else "primary"]
        weight = "bold" if name == stressed else "normal"
        arrow = {"arrowstyle": "<->", "color": color, "linewidth": 2.6 if name == stressed else 1.6, "shrinkA": 0}
        ax.annotate("", xy=(5.6, end), xytext=(5.6, start), arrowprops=arrow | {"shrinkB": 0})
        note = {"register": ", all SMs", "shared": ", all SMs", "host": " each way"}.get(name, "")
        middle = 9.6 if name == "hbm" else (start + end) / 2  # clear of the chip's edge
        ax.text(5.95, middle, ways[name].label + note, va="center", color=color, weight=weight)
    fig.set_layout_engine("constrained", w_pad=0.02, h_pad=0.02)


def _box(ax: Axes, x: float, y: float, width: float, height: float, text: str, fill: str, edge: str) -> None:
    color = viz.COLORS.get(fill, fill)
    box = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.12", linewidth=1.3)
    box.set(facecolor=color, edgecolor=viz.COLORS[edge])
    ax.add_patch(box)
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center")
