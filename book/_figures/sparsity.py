"""Figures of the chapter on sparsity; each draws one claim from numbers of the package, a network or a record."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

from mlsys import viz
from mlsys.measure.records import Row
from mlsys.sparsity import BSR, CSR, NMSparse

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
GROUPS = {1: "-", 4: "--", 32: "-.", 256: ":"}
"""Sizes of a group that is skipped as a whole, with their lines: a number, a 2:4 group, a warp, a tile of 16 x 16."""
TONES = ("Blue", "Orange", "Green", "Violet")
ARRAYS = 9.4
"""Where the arrays of a format begin, in cells from the left side of the matrix."""
KINDS = {"anywhere": ("GreenLine", "s"), "N of M": ("BlueLine", "o"), "blocks of 16 x 16": ("OrangeLine", "^")}
"""Patterns of zeros that the trained network is given, with their colors and marks."""
SCHEMES = {"CSR": ("OrangeLine", "s-"), "BSR 64x64": ("BlueLine", "o-")}
"""Variants of the row `sparse matmul by density` with their colors and lines."""


def empty_groups() -> None:
    """Draw which share of the groups of g neighbors holds nothing but zeros, against the density."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.9))
    density = np.geomspace(1e-4, 1, 200)
    names = {1: "single numbers", 4: "groups of 4", 32: "groups of 32", 256: "tiles of 16 x 16"}
    for (group, line), tone in zip(GROUPS.items(), TONES, strict=True):
        ax.plot(density, 100 * (1 - density) ** group, line, color=colors[f"{tone}Line"], label=names[group])
    ax.set(xscale="log", xlabel="density: share of the numbers that are not zero", ylabel="groups without work, %")
    ax.xaxis.set_major_locator(FixedLocator([1e-4, 1e-3, 1e-2, 1e-1, 1]))
    ax.set_xticklabels(["0.0001", "0.001", "0.01", "0.1", "1"])
    ax.legend(loc="lower left")


def formats(matrix: NDArray[np.float16], block: int = 2) -> None:
    """Draw one matrix dense and in CSR, BSR and 2:4, each with all of its arrays.

    Args:
        matrix: a square 2:4 sparse matrix whose side the block divides.
        block: side of a block of BSR.
    """
    side = len(matrix)
    stored = (matrix, CSR.from_dense(matrix), BSR.from_dense(matrix, (block, block)), NMSparse.from_dense(matrix))
    _, ax, _, _ = viz.setup_plot(figsize=(WIDTH, 8.0))
    names = ("dense", "CSR", f"BSR, blocks of {block} x {block}", "2:4")
    draw = (_dense, _csr, _bsr, _two_of_four)
    for place, (name, form, arrays) in enumerate(zip(names, stored, draw, strict=True)):
        top = place * (side + 2.2)
        ax.text(0, top - 0.35, f"{name}: {form.nbytes} bytes", weight="bold", va="bottom")
        arrays(ax, top, matrix, form)
    ax.set(xlim=(-0.2, ARRAYS + 14.4), ylim=(4 * (side + 2.2) - 1.9, -1.7), aspect="equal")
    ax.axis("off")


def _box(
    ax: Axes, x: float, y: float, text: object, tone: str | None = None, size: tuple[float, float] = (1, 1)
) -> None:
    colors = viz.COLORS
    fill, edge = (colors[f"{tone}L"], colors[f"{tone}Line"]) if tone else ("white", colors["grid"])
    ax.add_patch(Rectangle((x, y), *size, facecolor=fill, edgecolor=edge, linewidth=0.7, zorder=2 if tone else 1))
    ink = colors["primary"] if tone else "#69717d"
    ax.text(x + size[0] / 2, y + size[1] / 2 + 0.04, str(text), ha="center", va="center", fontsize=8, color=ink)


def _grid(ax: Axes, top: float, matrix: NDArray[np.float16], tones: NDArray[np.object_]) -> None:
    for row, column in np.ndindex(*matrix.shape):
        _box(ax, column, top + row, int(matrix[row, column]), tones[row, column])


def _strip(ax: Axes, y: float, name: str, entries: Sequence[object], tones: Sequence[str | None]) -> None:
    ax.text(ARRAYS, y - 0.15, name, fontsize=9, va="bottom")
    for place, (entry, tone) in enumerate(zip(entries, tones, strict=True)):
        _box(ax, ARRAYS + place, y, entry, tone)


def _dense(ax: Axes, top: float, matrix: NDArray[np.float16], form: NDArray[np.float16]) -> None:
    _grid(ax, top, matrix, np.where(matrix != 0, "Blue", None))
    note = f"{form.size} values of {form.itemsize} bytes,\nrow after row, zeros and all"
    ax.text(ARRAYS, top + len(matrix) / 2, note, fontsize=9, va="center")


def _csr(ax: Axes, top: float, matrix: NDArray[np.float16], form: CSR) -> None:
    rows = np.repeat(np.arange(len(matrix)), np.diff(form.row_pointers))
    tones = [TONES[row % 2] for row in rows]
    painted = np.full(matrix.shape, None)
    painted[rows, form.columns] = tones
    _grid(ax, top, matrix, painted)
    pointers = [TONES[row % 2] for row in range(len(matrix))]
    _strip(ax, top + 1, "row pointers", list(form.row_pointers), [*pointers, "Violet"])
    _strip(ax, top + 3.8, "columns", list(form.columns), tones)
    _strip(ax, top + 6.6, "values", [int(value) for value in form.values], tones)


def _bsr(ax: Axes, top: float, matrix: NDArray[np.float16], form: BSR) -> None:
    block = form.blocks.shape[1]
    rows = np.repeat(np.arange(len(form.row_pointers) - 1), np.diff(form.row_pointers))
    tones = [TONES[row % 2] for row in rows]
    painted = np.full(matrix.shape, None)
    for row, column, tone in zip(rows, form.columns, tones, strict=True):
        painted[row * block : (row + 1) * block, column * block : (column + 1) * block] = tone
    _grid(ax, top, matrix, painted)
    pointers = [TONES[row % 2] for row in range(len(form.row_pointers) - 1)]
    _strip(ax, top + 0.8, "row pointers, in blocks", list(form.row_pointers), [*pointers, "Violet"])
    _strip(ax, top + 3.4, "columns, in blocks", list(form.columns), tones)
    ax.text(ARRAYS, top + 5.85, "values, block after block", fontsize=9, va="bottom")
    for place, (values, tone) in enumerate(zip(form.blocks, tones, strict=True)):
        for row, column in np.ndindex(block, block):
            _box(ax, ARRAYS + place * (block + 0.4) + column, top + 6 + row, int(values[row, column]), tone)


def _two_of_four(ax: Axes, top: float, matrix: NDArray[np.float16], form: NMSparse) -> None:
    places = form.places()
    painted = np.full(matrix.shape, None)
    ax.text(ARRAYS, top - 0.15, "values", fontsize=9, va="bottom")
    ax.text(ARRAYS + 5.2, top - 0.15, "their places, two bits each", fontsize=9, va="bottom")
    for row, group, kept in np.ndindex(*places.shape):
        tone, slot = TONES[group % 2], group * form.n + kept
        place = places[row, group, kept]
        painted[row, group * form.m + place] = tone
        _box(ax, ARRAYS + slot, top + row, int(form.values[row, slot]), tone)
        _box(ax, ARRAYS + 5.2 + 1.3 * slot, top + row, f"{place:02b}", tone, (1.3, 1))
    _grid(ax, top, matrix, painted)


def tuning(found: Mapping[str, Mapping[float, tuple[float, float]]], untouched: float) -> None:
    """Draw the loss of a pruned network before and after it was tuned, by pattern and density.

    Args:
        found: for each of `KINDS`, the loss just pruned and the loss after tuning, by density.
        untouched: loss of the network with all weights, tuned as long.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.1))
    for kind, losses in found.items():
        color, mark = KINDS[kind]
        density = sorted(losses)
        pruned, tuned = ([losses[d][after] for d in density] for after in (0, 1))
        ax.plot(density, pruned, mark + ":", color=colors[color], linewidth=1.3, markerfacecolor="white")
        ax.plot(density, tuned, mark + "-", color=colors[color], label=kind)
    ax.axhline(untouched, color=colors["primary"], linewidth=1, linestyle="--")
    ax.text(0.12, untouched - 0.05, "all weights", va="top", fontsize=9)
    ax.set(xscale="log", xlabel="density: share of the weights that stay", ylabel="loss")
    shares = sorted({d for losses in found.values() for d in losses})
    ax.xaxis.set_major_locator(FixedLocator(shares))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels([f"{share:g}" for share in shares])
    ax.set_ylim(untouched - 0.35, 5.5)
    ax.legend(title="zeros; dotted: before tuning")


def promised_and_measured(bars: Mapping[str, tuple[float, str]]) -> None:
    """Draw speedups of 2:4 as bars, promises and measurements, beside the line of no gain.

    Args:
        bars: speedup and kind ("ceiling" or "measured"), by what it is.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.42 * len(bars)))
    fills = {"ceiling": ("white", "//"), "measured": (colors["BlueL"], "")}
    for place, (speedup, kind) in enumerate(bars.values()):
        fill, hatch = fills[kind]
        ax.barh(place, speedup, height=0.62, color=fill, edgecolor=colors["BlueLine"], hatch=hatch)
        ax.text(speedup, place, f" {speedup:.2f}", va="center")
    ax.axvline(1, color=colors["primary"], linewidth=1, linestyle="--")
    ax.set(yticks=range(len(bars)), yticklabels=list(bars), xlabel="times as fast as the dense product", xlim=(0, 2.3))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


def by_density(dense: Row, rows: Mapping[str, Sequence[Row]], structured: float) -> None:
    """Draw how fast products with a sparse weight are, relative to the dense one, against the density.

    Args:
        dense: the dense product.
        rows: products with a sparse weight, by scheme; shape m, n, k, stored elements of the weight.
        structured: speedup of the 2:4 product, which has half of its weights.
    """
    fig, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    for scheme, products in rows.items():
        color, line = SCHEMES[scheme]
        density = [row.shape[3] / (row.shape[0] * row.shape[2]) for row in products]
        ax.loglog(density, [dense.median_s / row.median_s for row in products], line, color=colors[color], label=scheme)
    ax.plot([0.5], [structured], "D", color=colors["GreenLine"], label="2:4")
    span = np.array([min(row.shape[3] / (row.shape[0] * row.shape[2]) for s in rows.values() for row in s), 1])
    ax.plot(span, 1 / span, ":", color=colors["primary"], linewidth=1.3, label="1 / density")
    ax.axhline(1, color=colors["primary"], linewidth=1, linestyle="--")
    ax.text(0.03, 1.06, "dense", va="bottom", fontsize=9)
    ax.set(xlabel="density of the weight", ylabel="times as fast as dense")
    fig.legend(loc="outside upper left", ncols=2)
