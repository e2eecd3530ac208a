"""Figures of the chapter on first kernels, and the layouts that Triton's compiler writes down."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from mlsys import viz
from mlsys.traffic.coalescing import LINE_BYTES, SECTOR_BYTES, warp_transactions

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

Lines = Sequence[tuple[int | None, str]]
"""Lines of a compiled form, each with the line of the kernel that it was made from."""


@dataclass(frozen=True)
class Layout:
    """Which thread of a program holds which elements of a block: Triton's `#ttg.blocked`.

    Attributes:
        size_per_thread: neighboring elements of one thread, by dimension.
        threads_per_warp: threads of a warp, by dimension.
        warps_per_cta: warps of the program, by dimension.
        order: dimensions, the one first along which neighbors are counted.
    """

    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_cta: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def read(cls, text: str) -> "Layout":
        """Read a layout as the compiler writes it.

        >>> Layout.read("{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}").covered
        (1024,)
        """
        keys = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
        found = {
            key: tuple(map(int, numbers.split(","))) for key, numbers in re.findall(r"(\w+) = \[([\d, ]+)\]", text)
        }
        return cls(*(found[key] for key in keys))

    @property
    def covered(self) -> tuple[int, ...]:
        """Shape of the part of a block that all threads cover once; a larger block repeats it."""
        parts = zip(self.size_per_thread, self.threads_per_warp, self.warps_per_cta, strict=True)
        return tuple(prod(part) for part in parts)

    def holder(self, *element: int) -> tuple[int, int, int]:
        """Return the warp and the lane that hold an element of the first cover, and its place among the thread's.

        >>> layout = Layout((1, 4), (2, 16), (4, 1), (1, 0))
        >>> layout.holder(5, 37)
        (2, 25, 1)
        """
        places, warps, lanes = [], [], []
        for at, size, threads, count in zip(
            element, self.size_per_thread, self.threads_per_warp, self.warps_per_cta, strict=True
        ):
            places.append(at % size)
            lanes.append(at // size % threads)
            warps.append(at // (size * threads) % count)
        counted = (warps, self.warps_per_cta), (lanes, self.threads_per_warp), (places, self.size_per_thread)
        warp, lane, place = (self._one_number(*pair) for pair in counted)
        return warp, lane, place

    def _one_number(self, index: Sequence[int], shape: Sequence[int]) -> int:
        number = 0
        for dimension in reversed(self.order):
            number = number * shape[dimension] + index[dimension]
        return number


def made_from(lines: Lines, line: int) -> list[str]:
    """Return what one line of the kernel became, without indentation."""
    return [" ".join(text.split()) for source, text in lines if source == line]


def show(stages: Mapping[str, Lines], names: Sequence[str], line: int) -> None:
    """Print what one line of the kernel became in some stages."""
    for name in names:
        print(name, *made_from(stages[name], line), sep="\n  ")


def show_layout(text: str) -> None:
    """Print a layout in two lines."""
    print(text.replace(", warps", ",\n  warps"))


def tail(count: int, block: int) -> None:
    """Draw the blocks of a vector whose end is ragged: which lanes work, and which the mask switches off."""
    programs = ceil(count / block)
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.0))
    ax.set(xlim=(-0.1, programs * block + 0.5 * (programs - 1) + 0.1), ylim=(-1.3, 2.3))
    ax.axis("off")
    for program in range(programs):
        left = program * (block + 0.5)
        ax.text(left + block / 2, 1.6, f"program {program}", ha="center", fontsize=10)
        for lane in range(block):
            index = program * block + lane
            on = index < count
            face, edge = (colors["BlueL"], colors["BlueLine"]) if on else ("white", colors["RedLine"])
            style = "-" if on else "--"
            ax.add_patch(
                Rectangle((left + lane + 0.04, 0.2), 0.92, 1.1, facecolor=face, edgecolor=edge, linestyle=style)
            )
            ax.text(left + lane + 0.5, 0.75, str(index), ha="center", va="center", fontsize=11, color=edge)
            ax.text(left + lane + 0.5, -0.2, "on" if on else "off", ha="center", va="center", fontsize=9, color=edge)
    ax.text(0, -1.0, f"index < {count}?  {count % block or block} lanes of the last program work", fontsize=10)


PATTERNS: Mapping[str, Sequence[int]] = {
    "neighbors: lane i reads number i": [4 * lane for lane in range(32)],
    "every second number": [8 * lane for lane in range(32)],
    "every eighth number": [32 * lane for lane in range(32)],
    "32 places apart": [128 * lane for lane in range(32)],
    "scattered": [4 * (797 * lane * lane % 1021) for lane in range(32)],
}
"""Byte addresses of the 32 lanes of a warp, each of which reads one float32 number."""


def sectors() -> None:
    """Draw which sectors a warp touches, for five patterns of addresses, one row each, 128-byte lines side by side."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(len(PATTERNS), 1, figsize=(WIDTH, 4.6), layout="constrained")
    for ax, (name, addresses) in zip(axes, PATTERNS.items(), strict=True):
        found = warp_transactions(addresses, element_bytes=4)
        said = f"{name}: {found.sectors} sectors, {100 * found.efficiency:.3g}% used"
        ax.set_title(said, fontsize=10, loc="left", pad=2)
        touched = {address // SECTOR_BYTES for address in addresses}
        _sector_map(ax, touched, {address // 4 for address in addresses})


def _sector_map(ax: Axes, touched: set[int], numbers: set[int]) -> None:
    colors, lines, each = viz.COLORS, 32, LINE_BYTES // SECTOR_BYTES
    ax.vlines(range(lines + 1), 0, each, color=colors["grid"], linewidth=0.6)
    ax.hlines(range(each + 1), 0, lines, color=colors["grid"], linewidth=0.6)
    for sector in touched:
        line, row = divmod(sector, each)
        used = sum(number * 4 // SECTOR_BYTES == sector for number in numbers) * 4 / SECTOR_BYTES
        for share, color in ((1.0, "BlueL"), (used, "BlueLine")):
            ax.add_patch(Rectangle((line, each - 1 - row), share, 1, facecolor=colors[color], linewidth=0))
    ax.set(xlim=(-0.1, lines + 0.1), ylim=(-0.1, each + 0.1))
    ax.axis("off")


def held(layout: Layout) -> None:
    """Draw the first elements of a block with their threads, and below them the whole block with its warps."""
    colors = viz.COLORS
    viz.apply_style()
    import matplotlib.pyplot as plt

    _, (near, far) = plt.subplots(2, 1, figsize=(WIDTH, 2.9), layout="constrained")
    tones = ("Blue", "Orange", "Green", "Violet")
    shown = 4 * layout.size_per_thread[0]
    near.set_title(f"the first {shown} elements", fontsize=10, loc="left")
    for element in range(shown):
        _, lane, _ = layout.holder(element)
        tone = tones[lane % len(tones)]
        box = Rectangle((element, 0), 0.94, 1, facecolor=colors[f"{tone}L"], edgecolor=colors[f"{tone}Line"])
        near.add_patch(box)
        near.text(element + 0.47, 0.5, str(element), ha="center", va="center", fontsize=9)
    for lane in range(4):
        middle = (lane + 0.5) * layout.size_per_thread[0]
        near.text(middle, -0.5, f"thread {lane}", ha="center", fontsize=9, color=colors[f"{tones[lane]}Line"])
    near.set(xlim=(-0.1, shown), ylim=(-0.8, 1.1))
    [total], [warps] = layout.covered, layout.warps_per_cta
    each = total // warps
    far.set_title(f"all {total} elements of one pass", fontsize=10, loc="left")
    for warp in range(warps):
        far.add_patch(Rectangle((warp * each, 0), 0.985 * each, 1, facecolor="white", edgecolor=colors["primary"]))
        text = f"warp {warp}\n{warp * each} to {(warp + 1) * each - 1}"
        far.text((warp + 0.5) * each, 0.5, text, ha="center", va="center", fontsize=9)
    far.set(xlim=(-0.01 * total, total), ylim=(-0.1, 1.1))
    for ax in (near, far):
        ax.axis("off")


def strides(measured: Mapping[int, float], pieces: Sequence[int] = (32, 64), element_bytes: int = 4) -> None:
    """Draw the time of reads at growing strides over that at stride 1, and what pieces of some sizes would predict."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.4))
    steps = list(measured)
    ax.plot(steps, list(measured.values()), "o", color=colors["BlueLine"], markersize=8, zorder=4)
    ax.text(1.15 * steps[2], 0.86 * measured[steps[2]], "measured", color=colors["BlueLine"], va="top")
    sides = (("OrangeLine", "--", 0.87, "top"), ("GreenLine", "-.", 1.12, "bottom"))
    for piece, (tone, style, lift, side) in zip(pieces, sides, strict=True):
        predicted = [min(step, piece // element_bytes) for step in steps]
        ax.plot(steps, predicted, style, color=colors[tone])
        ax.text(steps[-1], lift * predicted[-1], f"pieces of {piece} bytes", color=colors[tone], ha="right", va=side)
    ax.set(xscale="log", yscale="log", ylim=(0.8, 30))
    ax.set_xlabel("stride, in FP32 numbers")
    ax.set_ylabel("time over that of neighbors")
    ax.set_xticks(steps, [str(step) for step in steps])
    ax.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    ax.minorticks_off()
