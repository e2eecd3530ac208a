"""The figure of Amdahl's law: a share, a speedup of it, and what remains of the time."""

from _figures.words import said
from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import viz
from mlsys.formatting import fmt
from mlsys.formulas import amdahl, amdahl_ceiling

SHARES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
SPEEDUPS = (2, 10, 100, 1000)
LARGEST = {"p": 0.999, "s": 1000}
"""The ends of both sliders; they begin at a share of 0 and at a speedup of 1."""
FIRST = {"p": 0.9, "s": 20}


def content() -> Content:
    """The numbers and the fallback of the figure of Amdahl's law."""
    whole = amdahl(FIRST["p"], FIRST["s"])
    return Content(
        title=said("Amdahl's law"),
        numbers={"first": FIRST, "largest": LARGEST},
        picture=_picture,
        alt=said(
            "Two horizontal bars. The first is the time before: a short part that is not accelerated and a long one, "
            "{share}%, that is. In the second bar the long part has shrunk {times} times and the short part is as "
            "before, so the whole is {whole} times as fast."
        ).format(share=f"{100 * FIRST['p']:.0f}", times=FIRST["s"], whole=fmt(whole, 1)),
        tables=(_table(),),
    )


def _table() -> Table:
    head = (said("accelerated share p"), *(f"S = {s:,}" for s in SPEEDUPS), said("ceiling"))
    rows = [(f"{p:g}", *(fmt(amdahl(p, s), 1) for s in SPEEDUPS), fmt(amdahl_ceiling(p), 1)) for p in SHARES]
    return Table(said("Speedup of the whole job"), (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 1.9))
    p, s = FIRST["p"], FIRST["s"]
    for place, fast in enumerate((p, p / s)):
        ax.barh(place, 1 - p, height=0.6, color=colors["OrangeLine"])
        ax.barh(place, fast, left=1 - p, height=0.6, color=colors["BlueLine"])
    ax.text((1 - p) / 2, 0, said("rest"), ha="center", va="center", color="white", fontsize=9)
    ax.text(1 - p / 2, 0, said("accelerated part"), ha="center", va="center", color="white", fontsize=9)
    ax.set(yticks=[0, 1], yticklabels=[said("before"), said("after")], xlabel=said("time, in units of the time before"))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    return fig
