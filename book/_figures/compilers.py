"""Figures of the chapter on compilers; each draws one claim from numbers of the compiler or of a record."""

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from mlsys import viz
from mlsys.measure.records import Record, Row

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

PEER = "torch.compile"

NETWORK = """\
class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.linears = nn.ModuleList(nn.Linear(width, width) for _ in range(2))

    def forward(self, x):
        for norm, linear in zip(self.norms, self.linears):
            x = x + 0.5 * F.gelu(linear(norm(x)))
        unread = x.abs().mean()  # left over from debugging
        return x
"""
"""The network of the chapter, as it is printed there."""

NOTHING_FUSED = """\
def nothing_fused(graph):
    moves = ("Transpose", "View")
    results = [op.outputs[0] for op in graph.operations if op.op not in moves]
    program = fuse(replace(graph, outputs=tuple(results)), h200)
    return replace(program, graph=graph)
"""
"""The stage that stores every result, as it is printed there."""

WAYS = {"all stages": "", "nothing fused": ", nothing fused", "small tiles": ", small tiles"}
"""What the record's variants of the network end in, by the words of the chapter."""


def network() -> Any:
    """Return the class of the chapter's network."""
    from torch import nn
    from torch.nn import functional

    names: dict[str, Any] = {"nn": nn, "F": functional}
    exec(NETWORK, names)
    return names["Network"]


def network_times(record: Record) -> dict[str, dict[str, float]]:
    """Return microseconds of the chapter's network, by the way it was compiled, as "graph" and as "call".

    A record without the network gives none.
    """
    found: dict[str, dict[str, float]] = {}
    if not any(row.name == "chapter: network" for row in record.rows):
        return found
    for kind in ("graph", "call"):
        (ours,) = record.named("chapter: network", kind)
        for peer in ("eager", PEER):
            found.setdefault(peer, {})[kind] = 1e6 * ours.reference_s[peer]
        for way, ending in WAYS.items():
            (row,) = record.named("chapter: network", kind + ending)
            found.setdefault(way, {})[kind] = 1e6 * row.median_s
    return found


def group_of(record: Record, group: str, variant: str) -> list[Row]:
    """Return the rows of a group of graphs, such as "chains"."""
    return [row for row in record.rows if row.name.startswith(f"{group}: ") and row.variant == variant]


def mean_ratio(rows: Sequence[Row]) -> float:
    """Return the geometric mean of torch.compile's time over ours."""
    return geometric_mean([row.peers[PEER] for row in rows])


def passes() -> None:
    """Passes over memory of a result with m inputs and k users, if it is stored and if it is inlined."""
    import matplotlib.pyplot as plt

    viz.apply_style()
    _, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.7), sharey=True, layout="constrained")
    users = range(1, 6)
    for ax, inputs in zip(axes, (1, 2, 3), strict=True):
        ax.plot(users, [inputs + 1 + k for k in users], "o-", color=viz.COLORS["OrangeLine"], markersize=4)
        ax.plot(users, [inputs * k for k in users], "s--", color=viz.COLORS["BlueLine"], markersize=4)
        ax.set_title(f"{inputs} input{'s' * (inputs > 1)}", fontsize=10)
        ax.set(xticks=users, ylim=(0, 12.5), xlim=(0.7, 5.3))
    axes[0].set_ylabel("passes over memory")
    axes[1].set_xlabel("kernels that use the result")
    axes[0].text(5.2, 7.3, "stored", color=viz.COLORS["OrangeLine"], ha="right", fontsize=9)
    axes[0].text(5.2, 1.9, "inlined", color=viz.COLORS["BlueLine"], ha="right", fontsize=9)


def lifetimes(shown: Mapping[str, tuple[Mapping[str, tuple[int, int, int]], Mapping[str, int]]]) -> None:
    """Lifetimes and places of intermediate tensors, for plans by their titles: time to the right, memory upward."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    viz.apply_style()
    _, axes = plt.subplots(1, len(shown), figsize=(WIDTH, 3.0), sharey=True, layout="constrained")
    for ax, (title, (lives, offsets)) in zip(axes, shown.items(), strict=True):
        top = max(offsets[name] + size for name, (_, _, size) in lives.items())
        for name, (first, end, size) in lives.items():
            ax.add_patch(
                Rectangle(
                    (first, offsets[name] / 1024), end - first, size / 1024,
                    facecolor=viz.COLORS["BlueL"], edgecolor=viz.COLORS["BlueLine"],
                )
            )  # fmt: skip
        last = max(end for _, end, _ in lives.values())
        ax.set(xlim=(-0.3, last + 0.3), xlabel="time, kernels")
        ax.set_title(f"{title}:\n{top / 1024:.0f} KiB", fontsize=10)
        ax.set_xticks(range(0, last + 1, 4))
        ax.grid(visible=False)
    tops = [offsets[name] + lives[name][2] for lives, offsets in shown.values() for name in lives]
    axes[0].set(ylim=(0, 1.04 * max(tops) / 1024), ylabel="place, KiB")


def ratios(record: Record) -> None:
    """How often torch.compile's time contains ours, graph by graph: kernels alone, and calls from Python."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    groups = {"chains": "element-wise\nchains", "rows": "softmax and\nnormalizations", "MLP": "small MLPs"}
    for place, (group, _) in enumerate(groups.items()):
        for shift, kind, line, mark in ((-0.14, "graph", "BlueLine", "o"), (0.14, "call", "OrangeLine", "D")):
            found = [row.peers[PEER] for row in group_of(record, group, kind)]
            ax.plot([place + shift] * len(found), found, mark, color=colors[line], markersize=5, alpha=0.55)
            mean = geometric_mean(found)
            ax.plot([place + shift - 0.1, place + shift + 0.1], [mean, mean], color=colors[line], linewidth=2.5)
    ax.axhline(1, color=colors["primary"], linestyle=":")
    ax.set_yscale("log")
    ax.set_xticks(range(len(groups)), list(groups.values()))
    ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    ax.minorticks_off()
    ax.set(xlim=(-0.5, len(groups) - 0.5), ylabel="torch.compile's time over ours")
    ax.plot([], [], "o", color=colors["BlueLine"], label="kernels alone")
    ax.plot([], [], "D", color=colors["OrangeLine"], label="called from Python")
    ax.legend(loc="upper left", fontsize=9)
    ax.grid(visible=False, axis="x")
