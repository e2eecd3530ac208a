"""Figures of the chapter on mapping; each draws one claim from counts of the package."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from mlsys import viz
from mlsys.dataflow import Accesses, LoopNest, compulsory, order_accesses
from mlsys.dataflow.levels import LevelAccesses, steps
from mlsys.dataflow.other_tools import TimeloopRun
from mlsys.dataflow.search import search_space

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""
PARTS = {"weights": "BlueLine", "inputs": "OrangeLine", "sums": "GreenLine"}
"""What moves, and its color."""


def growth(sizes: int, parallel: int) -> None:
    """Draw the size of the space against the count of loops, one line for each count of memory levels."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    loops = range(3, 8)
    for levels, color in ((1, "BlueLine"), (2, "GreenLine"), (3, "RedLine")):
        counts = [float(search_space(sizes=sizes, loops=d, parallel=parallel, levels=levels)) for d in loops]
        ax.plot(loops, counts, "o-", color=colors[color])
        name = f"{levels} level{'s' if levels > 1 else ''}"
        ax.annotate(name, (7, counts[-1]), xytext=(6, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set(yscale="log", xlabel="loops of the nest", ylabel="mappings, at most", xlim=(2.8, 7.9), xticks=list(loops))
    powers = range(3, 28, 3)
    ax.set_yticks([10.0**power for power in powers], [f"$10^{{{power}}}$" for power in powers])


def stacked(ax: Axes, place: float, moved: Accesses, width: float = 0.7) -> None:
    """Draw one bar of weights, inputs and sums on top of each other."""
    bottom = 0
    for part, color in PARTS.items():
        height = getattr(moved, part)
        ax.bar(place, height, bottom=bottom, width=width, color=viz.COLORS[color], label=part if place == 0 else None)
        bottom += height


def near_sums(nest: LoopNest, orders: Mapping[str, str], accumulators: tuple[int, int]) -> None:
    """Draw what two orders move while few and while many sums stay near."""
    _, ax, _, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    cases = [(name, order, held) for held in accumulators for name, order in orders.items()]
    for place, (_, order, held) in enumerate(cases):
        moved = order_accesses(nest, order, accumulators=held)
        stacked(ax, place, moved)
        ax.text(place, moved.total + 200, f"{moved.total:,}", ha="center", fontsize=9)
    names = [f"{name}\n{held} sum{'s' if held > 1 else ''} near" for name, _, held in cases]
    ax.set_xticks(range(len(cases)), names)
    ax.set(ylabel="accesses", ylim=(0, 20000))
    ax.grid(visible=False, axis="x")
    ax.legend(loc="upper right", ncols=3, frameon=False)


def all_orders(nest: LoopNest) -> None:
    """Draw what each order of the loops moves, in order of the total, above the least that any order could move."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 3.2))
    counts = sorted((order_accesses(nest, order) for order in nest.orders()), key=lambda moved: moved.total)
    for place, moved in enumerate(counts):
        stacked(ax, place, moved, width=1)
    least = compulsory(nest).total
    ax.axhline(least, color=colors["primary"], linestyle="--")
    ax.text(len(counts), least + 250, f"each number once: {least:,}", ha="right", fontsize=9, color="white")
    ax.set(xlabel="orders of the loops, best first", ylabel="accesses", xlim=(-0.5, len(counts) - 0.5), ylim=(0, 19500))
    ax.grid(visible=False, axis="x")
    ax.legend(loc="upper left", ncols=3, frameon=False)


def beside(run: TimeloopRun, counts: Mapping[tuple[str, str], LevelAccesses]) -> str:
    """Return our counts of a mapping beside Timeloop's, a line for each that is not zero, as a cell prints them."""
    rows = [
        (f"{level:14}{operand:9}{what}", getattr(ours, what), getattr(run.counts[level, operand], what))
        for (level, operand), ours in counts.items()
        for what in ("reads", "fills", "updates")
    ]
    rows.append(("cycles", steps(run.levels), run.cycles))
    lines = [f"{'':31}{'here':>12}{'Timeloop':>12}{'ratio':>8}"]
    lines += [f"{name:31}{here:12,}{there:12,}{_ratio(here, there):>8}" for name, here, there in rows if here or there]
    here, there = run.energy_of(counts) / 1e6, run.energy_pj / 1e6
    return "\n".join([*lines, f"{'energy in µJ':31}{here:12.2f}{there:12.2f}{here / there:>8.4f}"])


def _ratio(here: int, there: int) -> str:
    return "equal" if here == there else f"{here / there:.4f}" if there else "none"
