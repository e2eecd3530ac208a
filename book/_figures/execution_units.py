"""Figures of the chapter on execution units; each draws one claim, from numbers of the package or of a record."""

from collections.abc import Sequence
from math import gcd

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from mlsys import Hardware, viz
from mlsys.core.dtypes import bytes_per_element
from mlsys.hardware.fragments import SHAPES, Operand, fragment, holder
from mlsys.measure.records import Row

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

WORK = {
    "scalar FMA, FP32": 1,
    "NEON FMA, FP32": 128 // 32,
    "AVX-512 FMA, FP32": 512 // 32,
    "FMA of a warp, FP32": 32,
    "mma of a warp, FP16": 16 * 8 * 16,
    "AMX tile product, BF16": 16 * 16 * 32,
    "wgmma of four warps, FP16": 64 * 256 * 16,
}
"""Multiply-adds of one instruction at its largest shape: widths of registers over 32 bits; NVIDIA, PTX ISA, shapes of
mma and wgmma; Intel, Software Developer's Manual, TDPBF16PS (tiles of 16 rows of 64 bytes)."""

DALLY = {"number formats": 16, "complex instructions": 12.5, "process": 2.5, "sparsity": 2}
"""Factors of the chart in Dally's keynote of 2023, "Hardware for Deep Learning"."""

LIKE_FOR_LIKE = {
    "FP32, no tensor cores": [
        ("k20x", "fp32", "vector", False),
        ("p100-sxm2", "fp32", "vector", False),
        ("v100-sxm2", "fp32", "vector", False),
        ("a100-80gb-sxm", "fp32", "vector", False),
        ("h100-sxm", "fp32", "vector", False),
    ],
    "FP16, dense": [
        ("p100-sxm2", "fp16", "vector", False),
        ("v100-sxm2", "fp16", "tensor", False),
        ("a100-80gb-sxm", "fp16", "tensor", False),
        ("h100-sxm", "fp16", "tensor", False),
    ],
    "as in the chart": [
        ("k20x", "fp32", "vector", False),
        ("p100-sxm2", "fp16", "vector", False),
        ("v100-sxm2", "fp16", "tensor", False),
        ("a100-80gb-sxm", "int8", "tensor", True),
        ("h100-sxm", "fp8", "tensor", True),
    ],
}
"""Peaks of one kind, and the mixture of kinds that makes a factor of 1,000: chip, format, engine, sparse."""


def peaks(kind: str) -> list[tuple[str, float, float]]:
    """Name, year and peak in TFLOP/s of the chips of one kind."""
    found = []
    for name, precision, engine, sparse in LIKE_FOR_LIKE[kind]:
        chip = Hardware.get(name)
        rate = chip.peak(precision, engine=engine, sparse=sparse).m_as("TFLOP/s")
        found.append((name.split("-")[0].upper(), chip.field("announced").value.m_as(""), rate))
    return found


def work() -> None:
    """Multiply-adds of one instruction, from a scalar unit to four warps of a Hopper chip."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.9))
    matrix = [name for name in WORK if not name.endswith("FP32")]
    tones = [colors["OrangeLine"] if name in matrix else colors["BlueLine"] for name in WORK]
    ax.barh(list(WORK), [count - 0.5 for count in WORK.values()], color=tones, left=0.5)
    for place, count in enumerate(WORK.values()):
        ax.text(1.3 * count, place, f"{count:,}", va="center", fontsize=9)
    ax.set(xscale="log", xlim=(0.5, 1e7), xlabel="multiply-adds of one instruction")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


def fragments(lane: int) -> None:
    """Operands of mma.m16n8k16 as a product is written: each element with its lane; one lane's elements are filled."""
    viz.apply_style()
    import matplotlib.pyplot as plt

    (rows, inner), (_, columns) = SHAPES["A"], SHAPES["C"]
    shapes = {"width_ratios": [inner, columns], "height_ratios": [inner, rows]}
    _, axes = plt.subplots(2, 2, figsize=(WIDTH, 6.4), gridspec_kw=shapes, layout="constrained")
    titles = {"A": "A: 16 × 16", "B": "B: 16 × 8", "C": "C and D: 16 × 8"}
    places: dict[Operand, Axes] = {"A": axes[1, 0], "B": axes[0, 1], "C": axes[1, 1]}
    for operand, ax in places.items():
        _operand(ax, operand, lane)
        ax.set_title(titles[operand], fontsize=9)
    note = axes[0, 0]
    note.axis("off")
    note.text(
        0.0,
        0.5,
        f"Each cell names the lane\nthat holds the element.\n\nFilled: the elements of\nlane {lane}, numbered in\n"
        "the order of its registers.\n\nOutlined: what the sums\nof this lane need.",
        va="center",
        fontsize=9,
        transform=note.transAxes,
    )


def _operand(ax: Axes, operand: Operand, lane: int) -> None:
    rows, columns = SHAPES[operand]
    own = fragment(operand, lane)
    sums = fragment("C", lane)
    needed = {"A": {row for row, _ in sums}, "B": {column for _, column in sums}}
    for row in range(rows):
        for column in range(columns):
            mine = (row, column) in own
            wanted = {"A": row, "B": column, "C": None}[operand] in needed.get(operand, set())
            fill = viz.COLORS["OrangeL"] if mine else "white"
            edge = viz.COLORS["OrangeLine"] if mine or wanted else viz.COLORS["grid"]
            above = 2 if mine or wanted else 1
            corner = (column + 0.06, row + 0.06)
            ax.add_patch(Rectangle(corner, 0.88, 0.88, facecolor=fill, edgecolor=edge, linewidth=1.2, zorder=above))
            held_by, number = holder(operand, row, column)
            text = f"{held_by}" if not mine else f"#{number}"
            ax.text(column + 0.5, row + 0.53, text, ha="center", va="center", fontsize=8, zorder=3)
    ax.set(xlim=(0, columns), ylim=(rows, 0), aspect="equal")
    ax.axis("off")


def thousandfold() -> None:
    """Peaks of one GPU by year: one format at a time, and the mixture that grows a thousandfold."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.6))
    tones = {"FP32, no tensor cores": "BlueLine", "FP16, dense": "GreenLine", "as in the chart": "OrangeLine"}
    for kind, tone in tones.items():
        found = peaks(kind)
        years, rates = [year for _, year, _ in found], [rate for *_, rate in found]
        ax.plot(years, rates, "o--" if kind == "as in the chart" else "o-", color=colors[tone], label=kind)
    for name, year, rate in peaks("as in the chart"):
        ax.annotate(name, (year, rate), xytext=(-4, 5), textcoords="offset points", ha="right", fontsize=9)
    ax.set(
        yscale="log",
        xlabel="year",
        ylabel="peak, trillions of operations per second",
        ylim=(2, 12000),
        xlim=(2010.3, 2023),
    )
    ax.legend(loc="upper left", frameon=False)


def row_alignment(row: Row) -> int:
    """Largest power of two, up to 16, that divides the bytes of a row of the second matrix."""
    return gcd(16, int(row.shape[1] * bytes_per_element(row.dtype)))


def _rate(row: Row) -> float:
    assert row.achieved is not None, f"{row.name} has times alone"
    return row.achieved


def alignment(rows: Sequence[Row], ordinary: Row) -> None:
    """Measured rate against the length of a row, with a mark for how its bytes are aligned."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    tones = {16: "BlueLine", 8: "GreenLine", 4: "OrangeLine", 2: "RedLine"}
    marks = {16: "o", 8: "s", 4: "^", 2: "v"}
    for alignment_bytes, tone in tones.items():
        found = [row for row in rows if row_alignment(row) == alignment_bytes]
        places = [rows.index(row) for row in found]
        if found:
            rates = [_rate(row) for row in found]
            label = f"multiple of {alignment_bytes} bytes" + (
                f", not of {2 * alignment_bytes}" if alignment_bytes < 16 else ""
            )
            ax.plot(places, rates, marks[alignment_bytes], color=colors[tone], label=label)
    ax.axhline(_rate(ordinary), color=colors["primary"], linestyle="--", linewidth=1)
    ax.text(len(rows) - 0.6, _rate(ordinary), "FP32, ordinary units", ha="right", va="bottom", fontsize=9)
    ax.set_xticks(range(len(rows)), [f"{row.shape[1]:,}" for row in rows], rotation=45)
    ax.set(xlabel="elements in a row, n", ylabel="TFLOP/s", ylim=(0, 1.4 * max(map(_rate, rows))))
    ax.legend(loc="upper left", frameon=False, ncols=2, fontsize=8)
