"""Figures of the chapter on feasibility; each draws one claim from numbers of the package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.patches import FancyBboxPatch

from mlsys import Hardware, ops, viz
from mlsys.feasibility import Feasibility
from mlsys.measure.records import Record, Row
from mlsys.units import Quantity

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
TONES = {"memory": "Blue", "bandwidth": "Orange", "compute": "Green"}
"""The three gates, with colors."""
QUESTIONS = {
    "memory": (
        "Does it fit?",
        "weights + caches + results\n≤ memory",
        "narrower weights, shorter\ncontexts, more chips",
    ),
    "bandwidth": (
        "Is it fed in time?",
        "bytes / bandwidth\n≤ deadline",
        "narrower weights,\nfewer users,\nmore bandwidth",
    ),
    "compute": (
        "Is it computed in time?",
        "FLOPs / reached rate\n≤ deadline",
        "fewer users, narrower\narithmetic, more chips",
    ),
}
"""For each gate: its question, its formula, and what opens it."""


def flow() -> None:
    """Draw the three gates one below the other, each with its formula and with what to change if it is shut."""
    fig, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.7))
    for place, (name, (question, formula, change)) in enumerate(QUESTIONS.items()):
        top = 3.7 - 1.15 * place
        for left, width, text, fill in ((0.0, 2.55, f"{question}\n{formula}", "L"), (3.1, 2.3, change, None)):
            edge = colors[f"{TONES[name]}Line"] if fill else colors["primary"]
            face = colors[f"{TONES[name]}L"] if fill else "white"
            box = FancyBboxPatch(
                (left, top - 0.78), width, 0.78, boxstyle="round,pad=0.02,rounding_size=0.08", ec=edge, fc=face,
                linestyle="-" if fill else "--",
            )  # fmt: skip
            ax.add_patch(box)
            ax.text(left + width / 2, top - 0.39, text, ha="center", va="center", fontsize=9)
        arrow = {"arrowstyle": "-|>", "color": colors["primary"], "linewidth": 1.4}
        ax.annotate("", (3.08, top - 0.39), (2.57, top - 0.39), arrowprops={**arrow, "linestyle": "--"})
        ax.text(2.83, top - 0.33, "no", ha="center", va="bottom", fontsize=8.5)
        ax.annotate("", (1.27, top - 1.13), (1.27, top - 0.8), arrowprops=arrow)
        ax.text(1.37, top - 0.97, "yes", va="center", fontsize=8.5)
    ax.text(
        1.27, 3.7 - 3 * 1.15 - 0.08, "feasible at these rates: now measure", ha="center", va="center", fontweight="bold"
    )
    ax.set(xlim=(-0.05, 5.45), ylim=(0.08, 3.74))
    ax.axis("off")
    fig.get_layout_engine().set(w_pad=0, h_pad=0)


def loads(cases: Mapping[str, Feasibility]) -> None:
    """Draw the load of each gate, need over limit, for several deployments; the binding gate is marked."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.72 * len(cases)))
    for place, verdict in enumerate(cases.values()):
        for shift, gate in enumerate(verdict.gates):
            height = place + 0.26 * (shift - 1)
            shown = max(gate.load, 0.0012)
            ax.barh(
                height, shown, left=0, height=0.22, color=colors[f"{TONES[gate.name]}Line"],
                label=gate.name if place == 0 else None,
            )  # fmt: skip
            number = f"{gate.load:.2f}" if gate.load >= 0.01 else f"{gate.load:.1g}"
            ax.text(
                1.12 * (max(shown, 1.0) if shown > 0.4 else shown),  # not on the dashed limit
                height,
                number + ("  binds" if gate == verdict.binding else ""),
                va="center",
                fontsize=8.5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )
    ax.axvline(1, color=colors["primary"], linestyle="--", linewidth=1.2)
    ax.set(xscale="log", xlim=(0.001, 16), yticks=range(len(cases)), yticklabels=list(cases), xlabel="need / limit")
    ax.set_xticks([0.001, 0.01, 0.1, 1, 10], ["0.001", "0.01", "0.1", "1", "10"])
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower center", bbox_to_anchor=(0.3, 1.0), ncols=3)


@dataclass(frozen=True)
class Timed:
    """A measured kernel beside the time that the gates say.

    Attributes:
        kind: what it is, for the legend.
        gates_s: the longer of bytes / bandwidth and FLOPs / peak, from the data sheet.
        measured_s: seconds of a call.
    """

    kind: str
    gates_s: float
    measured_s: float


def timed(record: Record, chip_id: str) -> list[Timed]:
    """Return kernels of a record whose bytes and FLOPs are known, with the time that a data sheet gives them."""
    chip = Hardware.get(chip_id)

    def gates(op_bytes: Quantity, flops: Quantity, peak: Quantity) -> float:
        return max((op_bytes / chip.memory_bw).m_as("s"), (flops / peak).m_as("s"))

    found = []
    for row in record.named("dense layer by batch"):
        op = ops.linear(batch=row.shape[0], d_in=row.shape[1], d_out=row.shape[2], dtype=row.dtype)
        found.append(Timed("dense layers", gates(op.bytes, op.flops, chip.peak(row.dtype)), row.median_s))
    for row in record.named("matmul by dtype"):
        if row.dtype in ("fp16", "bf16", "fp8", "int8"):
            op = ops.matmul(m=row.shape[0], n=row.shape[1], k=row.shape[2], dtype=row.dtype)
            found.append(Timed("products", gates(op.bytes, op.flops, chip.peak(row.dtype)), row.median_s))
    for row in record.named("vector add"):
        op = ops.elementwise(elements=row.shape[0], inputs=2, dtype=row.dtype)
        found.append(Timed("vector sums", gates(op.bytes, op.flops, chip.peak("fp32", engine="vector")), row.median_s))
    for row in (*record.named("fused softmax"), *record.named("fused layernorm")):
        found.append(Timed("softmax, layer norm", _moved_gb(row) / chip.memory_bw.m_as("GB/s"), row.median_s))
    return found


def _moved_gb(row: Row) -> float:
    assert row.achieved is not None
    return row.achieved * row.median_s


def floor(kernels: Sequence[Timed]) -> None:
    """Draw the measured times over the times that the gates say, with the line on which both are equal."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.5))
    marks = {"dense layers": ("o", "RedLine"), "products": ("s", "GreenLine"), "vector sums": ("^", "BlueLine"),
             "softmax, layer norm": ("D", "VioletLine")}  # fmt: skip
    for kind, (mark, tone) in marks.items():
        some = [one for one in kernels if one.kind == kind]
        ax.loglog(
            [1e6 * one.gates_s for one in some], [1e6 * one.measured_s for one in some], mark, color=colors[tone],
            label=kind, markersize=5,
        )  # fmt: skip
    ends = [0.8, 3000]
    ax.loglog(ends, ends, color=colors["primary"], linewidth=1.2)
    ax.text(230, 130, "as the gates say", rotation=36, rotation_mode="anchor", fontsize=8.5)
    ax.set(xlabel="time that the gates say, µs", ylabel="measured, µs", xlim=ends, ylim=(2, 3000))
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.set_yticks([10, 100, 1000], ["10", "100", "1,000"])
    ax.legend(loc="upper left")
