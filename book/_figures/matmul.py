"""Figures of the chapter on the tiled matrix multiply; each draws one claim from numbers that it is given."""

from collections.abc import Callable, Sequence

from matplotlib.patches import Rectangle

from mlsys import viz
from mlsys.measure.records import Row

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""


def orders(place: Callable[[int, int, int], tuple[int, int]], tiles: int, at_once: int, group: int) -> None:
    """Draw which tiles of C the first programs compute, row by row and in groups of rows."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.1), layout="constrained")
    colors = viz.COLORS
    for ax, rows, title in zip(axes, (1, group), ("row by row", f"groups of {group} rows"), strict=True):
        ax.set(xlim=(-0.3, tiles + 0.3), ylim=(tiles + 0.3, -0.3), aspect="equal")
        ax.axis("off")
        taken = [place(number, tiles, rows) for number in range(at_once)]
        bands = len({row for row, _ in taken}) + len({column for _, column in taken})
        for row, column in taken:
            ax.add_patch(Rectangle((column, row), 1, 1, facecolor=colors["BlueLine"], edgecolor="white", linewidth=0.3))
        ax.add_patch(Rectangle((0, 0), tiles, tiles, facecolor="none", edgecolor=colors["primary"], linewidth=1.4))
        ax.set_title(f"{title}:\n{bands} bands", fontsize=10)


def against_size(rows: Sequence[Row], library: Sequence[Row], peaks: Sequence[tuple[str, float]]) -> None:
    """Draw rates of square products against their side, with the library's and the peaks in TFLOP/s."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.0))
    for (dtype, peak), tone in zip(peaks, ("BlueLine", "OrangeLine"), strict=True):
        for found, style, name in ((rows, "o-", "Triton"), (library, "s--", "cuBLAS")):
            points = sorted((row.shape[0], row.achieved) for row in found if row.dtype == dtype)
            sides, rates = zip(*points, strict=True)
            ax.plot(
                sides, rates, style, color=colors[tone], markersize=5, linewidth=1.3, label=f"{name}, {dtype.upper()}"
            )
        ax.axhline(peak, color=colors[tone], linestyle=":", linewidth=1.5)
        ax.text(1000, peak * 1.05, f"peak, {dtype.upper()}", color=colors[tone], fontsize=9, va="bottom")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set(xlabel="side of the matrices, elements", ylabel="rate, TFLOP/s", xlim=(900, 9200), ylim=(25, 1600))
    ax.set_xticks([1024, 2048, 4096, 8192], ["1,024", "2,048", "4,096", "8,192"])
    ax.set_yticks([30, 100, 300, 1000], ["30", "100", "300", "1,000"])
    ax.minorticks_off()
    ax.legend(loc="center right", fontsize=9)
