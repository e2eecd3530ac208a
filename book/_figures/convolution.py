"""Figures of the chapter on convolution; each draws one claim from numbers of the package or of a record."""

from collections.abc import Mapping, Sequence
from itertools import product

from matplotlib.patches import Rectangle

from mlsys import viz
from mlsys.measure.records import Record, Row
from mlsys.models.convolutional import build_resnet50
from mlsys.models.images import ConvSizes, ImageNetwork
from mlsys.models.shapes import shapes
from mlsys.ops import Op, conv2d, conv_output_size
from mlsys.roofline import Roofline
from mlsys.traffic.coalescing import SECTOR_BYTES, offset

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
BOUNDS = {"memory": ("memory", "OrangeLine"), "compute": ("arithmetic", "BlueLine")}
"""Name and color of what limits a kernel."""


def windows(side: int = 4, taps: int = 3, marked: int = 5) -> None:
    """Draw a small image with numbered pixels beside the matrix of its windows, with one pixel marked in both."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.5))
    places = conv_output_size(side, taps)
    frames = {0: "BlueLine", places * places - 1: "OrangeLine"}

    def cell(left: float, top: float, pixel: int, wide: float = 1) -> None:
        fill = colors["RedL"] if pixel == marked else "white"
        ax.add_patch(Rectangle((left, top), wide, 1, facecolor=fill, edgecolor=colors["grid"]))
        color = colors["RedLine"] if pixel == marked else colors["primary"]
        ax.text(left + wide / 2, top + 0.52, str(pixel), ha="center", va="center", fontsize=9, color=color)

    for row, col in product(range(side), range(side)):
        cell(col, row, row * side + col)
    left = side + 1.6
    for number, (p, q) in enumerate(product(range(places), range(places))):
        for place, (r, s) in enumerate(product(range(taps), range(taps))):
            cell(left + place, number, (p + r) * side + q + s)
        if number in frames:
            look = {"fill": False, "edgecolor": colors[frames[number]], "linewidth": 2.2}
            ax.add_patch(Rectangle((q + 0.06, p + 0.06), taps - 0.12, taps - 0.12, **look))
            ax.add_patch(Rectangle((left, number + 0.06), taps * taps, 0.88, **look))
    ax.text(side / 2, -0.25, f"image, {side} × {side}", ha="center", va="bottom", fontsize=10)
    count = f"{places**2} windows × {taps**2} numbers"
    ax.text(left + taps * taps / 2, -0.25, count, ha="center", va="bottom", fontsize=10)
    ax.set(xlim=(-0.1, left + taps * taps + 0.1), ylim=(side + 0.1, -1.1), aspect="equal")
    ax.axis("off")


def routes(panels: Mapping[str, tuple[Roofline, Mapping[str, Sequence[Op]]]]) -> None:
    """Draw the least time of each route, one piece per kernel, in the color of what limits the kernel.

    Args:
        panels: by title, the roofline and, by name, the kernels of each route in the order in which they run.
    """
    viz.apply_style()
    import matplotlib.pyplot as plt

    colors = viz.COLORS
    fig, axes = plt.subplots(len(panels), 1, figsize=(WIDTH, 1.9 * len(panels)), layout="constrained")
    for ax, (title, (roofline, kernels)) in zip(axes, panels.items(), strict=True):
        for place, route in enumerate(kernels.values()):
            start = 0.0
            for op in route:
                wide = roofline.time(op).m_as("ms")
                color = colors[BOUNDS[roofline.bound(op)][1]]
                ax.barh(place, wide, 0.62, left=start, color=color, edgecolor="white", linewidth=1.2)
                start += wide
            digits = 3 if start < 1 else 2
            near = {"textcoords": "offset points", "va": "center", "fontsize": 9}
            ax.annotate(f"{start:.{digits}f}", (start, place), (4, 0), **near)
        ends = [sum(roofline.time(op).m_as("ms") for op in route) for route in kernels.values()]
        ax.set_yticks(range(len(kernels)), list(kernels))
        ax.set(xlim=(0, 1.16 * max(ends)), ylim=(len(kernels) - 0.5, -0.5))
        ax.set_title(title, fontsize=10, loc="left")
        ax.grid(visible=False, axis="y")
    axes[-1].set_xlabel("time at the roofs, ms")
    marks = [Rectangle((0, 0), 1, 1, color=colors[color]) for _, color in BOUNDS.values()]
    fig.legend(marks, [f"limited by {name}" for name, _ in BOUNDS.values()], loc="outside lower center", ncols=2)


def errors(found: Mapping[str, Mapping[int, float]], rounding: Mapping[str, float], taps: int = 3) -> None:
    """Draw the error of Winograd's method against its multiplications for a result, with that of rounding alone.

    Args:
        found: by number format, the relative error for each number of outputs along one direction.
        rounding: by number format, the relative error of rounding an exact result.
        taps: taps of the filter along one direction.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.4))
    lines = dict(zip(found, ("RedLine", "OrangeLine", "BlueLine"), strict=True))
    for form, by_outputs in found.items():
        counts = [((outputs + taps - 1) / outputs) ** 2 for outputs in by_outputs]
        values = list(by_outputs.values())
        color = colors[lines[form]]
        ax.plot([taps**2, *counts], [rounding[form], *values], ":", color=color, linewidth=1.2)
        ax.plot(counts, values, "o", color=color, markersize=5)
        ax.plot([taps**2], [rounding[form]], "s", color=color, markersize=5)
        ax.text(taps**2 * 1.08, rounding[form], form.upper(), color=color, ha="right", va="center", fontsize=10)
        for outputs, count, value in zip(by_outputs, counts, values, strict=True):
            if form == "bf16":
                ax.text(count, value * 2.6, f"{outputs} × {outputs}", ha="center", fontsize=9, color=color)
    ax.set(xscale="log", yscale="log", xlabel="multiplications for a result and a channel", ylabel="relative error")
    ax.set_xlim(13.5, 1.55)
    ax.set_ylim(5e-9, 1)
    ax.set_yticks([1e-8, 1e-6, 1e-4, 1e-2, 1], ["10⁻⁸", "10⁻⁶", "10⁻⁴", "0.01", "1"])
    ticks = [9, 4, 2.25, 1.78]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def resnet_windows(images: int) -> list[ConvSizes]:
    """Return the sizes of all convolutions of ResNet-50, in the order in which they run."""
    shape = shapes().resnet50
    network = ImageNetwork(n=images, c=shape.channels, h=shape.image, w=shape.image, dtype="bf16")
    build_resnet50(network)
    return network.conv_sizes


def in_record(one: ConvSizes) -> tuple[int, ...]:
    """Return the sizes of a convolution as the shape of a record's row has them."""
    return (one.n, one.c, one.h, one.w, one.c_out, one.kernel, one.kernel, one.stride)


def network_s(record: Record, name: str, peer: str) -> float:
    """Add up the seconds that all convolutions of ResNet-50 took, each of them timed alone.

    Args:
        record: with a row for each different convolution.
        name: of these rows.
        peer: which implementation's time.
    """
    rows = {row.shape: row.reference_s[peer] for row in record.named(name)}
    images = {shape[0] for shape in rows}
    return sum(rows[in_record(one)] for one in resnet_windows(*images))


def resnet_layers(images: int) -> dict[tuple[int, ...], Op]:
    """Return the different convolutions of ResNet-50 in BF16, by their sizes in the order of a record's shape.

    Of an image that 1 x 1 taps cross with a stride, only the pixels that they meet are counted.
    """
    found = {}
    for one in dict.fromkeys(resnet_windows(images)):
        skipped = one.stride if one.kernel == 1 else 1
        window = {"kernel": one.kernel, "stride": one.stride // skipped, "padding": one.padding}
        met = {"h": -(-one.h // skipped), "w": -(-one.w // skipped)}
        found[in_record(one)] = conv2d(n=one.n, c_in=one.c, c_out=one.c_out, **met, **window, dtype="bf16")
    return found


def layers(roofline: Roofline, ops: Mapping[tuple[int, ...], Op], rows: Mapping[tuple[int, ...], Row]) -> None:
    """Draw convolutions on a roofline, with what was measured of each.

    Args:
        roofline: of the device.
        ops: the convolutions by their sizes, as from `resnet_layers`.
        rows: measured rows by the same sizes.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.8))
    peak, bandwidth = roofline.peak.m_as("TFLOP/s"), roofline.bandwidth.m_as("TB/s")
    low, high = 22.0, 1500.0
    ax.plot([low, peak / bandwidth, high], [low * bandwidth, peak, peak], color=colors["primary"], linewidth=1.4)
    looks = {1: ("o", "OrangeLine", "1 × 1"), 3: ("s", "BlueLine", "3 × 3"), 7: ("D", "GreenLine", "7 × 7, the first")}
    for taps, (marker, color, name) in looks.items():
        chosen = [op for sizes, op in ops.items() if sizes[5] == taps]
        rates = [roofline.attainable(op).m_as("TFLOP/s") for op in chosen]
        look = {"color": colors[color], "markersize": 6, "linestyle": "none"}
        ax.plot([op.intensity.m for op in chosen], rates, marker, label=name, **look)
    at = [op.intensity.m for op in ops.values()]
    ours = [rows[sizes].achieved for sizes in ops]
    theirs = [op.flop_count / rows[sizes].reference_s["cuDNN"] / 1e12 for sizes, op in ops.items()]
    look = {"color": colors["primary"], "markersize": 6, "linestyle": "none"}
    ax.plot(at, ours, "x", label="measured, this course's", **look)
    ax.plot(at, theirs, "+", label="measured, cuDNN", **look)
    ax.set(xscale="log", yscale="log", xlabel="FLOP per byte", ylabel="TFLOP/s", xlim=(low, high), ylim=(18, 1500))
    ax.set_xticks([32, 64, 128, 256, 512, 1024], ["32", "64", "128", "256", "512", "1024"])
    ax.set_yticks([20, 50, 100, 200, 500, 1000], ["20", "50", "100", "200", "500", "1,000"])
    ax.minorticks_off()
    ax.legend(loc="lower right", fontsize=9)


def tile(side: int = 5, taps: int = 3, channels: int = 4, padding: int = 1, rows: int = 8, tap: int = 0) -> None:
    """Draw an image with its border beside the matrix of its windows, with one tile of the matrix and its pixels."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.3))
    places = conv_output_size(side, taps, padding=padding)
    whole = side + 2 * padding
    read = {divmod(number, places) for number in range(rows)}
    read = {(p + tap // taps, q + tap % taps) for p, q in read}
    unit = places**2 / whole  # the image is as tall as the matrix
    for row, col in product(range(whole), range(whole)):
        inside = padding <= row < side + padding and padding <= col < side + padding
        fill = colors["OrangeL"] if (row, col) in read else colors["BlueL"] if inside else "white"
        ax.add_patch(Rectangle((col * unit, row * unit), unit, unit, facecolor=fill, edgecolor=colors["grid"]))
    left, wide = whole * unit + 5, taps**2 * channels
    for number, place in product(range(places**2), range(taps**2)):
        row, col = number // places + place // taps, number % places + place % taps
        inside = padding <= row < side + padding and padding <= col < side + padding
        spot = (left + place * channels, number)
        fill = colors["BlueL"] if inside else "white"
        ax.add_patch(Rectangle(spot, channels, 1, facecolor=fill, edgecolor=colors["grid"], linewidth=0.6))
    look = {"fill": False, "edgecolor": colors["OrangeLine"], "linewidth": 2.4}
    ax.add_patch(Rectangle((left + tap * channels, 0), channels, rows, **look))
    ax.text(whole * unit / 2, -0.5, "image with its border", ha="center", va="bottom", fontsize=10)
    title = f"windows: {places**2} × {wide} numbers"
    ax.text(left + wide / 2, -0.5, title, ha="center", va="bottom", fontsize=10)
    ax.set(xlim=(-0.3, left + wide + 0.5), ylim=(places**2 + 0.3, -3), aspect="equal")
    ax.axis("off")


def used_share(
    layout: str, *, side: int, stride: int, channels: int = 64, pixels: int = 128, taps: int = 3, size: int = 2
) -> float:
    """Return the share of the moved bytes that the tiles of an implicit GEMM ask for, over the taps of a filter row.

    A tile is the first `pixels` pixels of a result, whose padding keeps the size at stride 1, times `channels` channels
    of one tap of the filter's middle row. What the tile touches moves in whole sectors, each of them once.
    """
    places = conv_output_size(side, taps, stride, taps // 2)
    images = -(-pixels // places**2)
    asked, moved = 0, 0
    for tap in range(taps):
        addresses = []
        for number in range(pixels):
            n, within = divmod(number, places**2)
            row, col = within // places * stride, within % places * stride + tap - taps // 2
            if 0 <= col < side:
                addresses += [
                    size * offset((n, c, row, col), (images, channels, side, side), layout) for c in range(channels)
                ]
        asked += size * len(addresses)
        moved += SECTOR_BYTES * len({address // SECTOR_BYTES for address in addresses})
    return asked / moved
