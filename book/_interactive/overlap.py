"""A job in pieces: copies in, computing and copies out run side by side, and every piece has its fixed cost."""

from collections.abc import Sequence
from itertools import accumulate

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import viz
from mlsys.formatting import fmt
from mlsys.traffic.overlap import best_pieces, time_in_pieces

LIMITS = {"copy": (0.1, 100), "compute": (0.1, 100), "pieces": (1, 64), "cost": (0, 1000)}
"""What may be entered: milliseconds of one copy and of computing, pieces, and microseconds of one operation."""
FIRST = {"copy": 10, "compute": 30, "pieces": 4, "cost": 50}
FIRST_WAYS = "in"
WAYS = {"in": "in only", "both": "in, and as much out again"}
LANES = ("copy in", "compute", "copy out")
COSTS_US = (5, 50, 500)
"""Costs of one operation in the table."""


def stages(copy: float, compute: float, ways: str) -> tuple[float, ...]:
    """The stages of a job with that copy."""
    return (copy, compute) if ways == "in" else (copy, compute, copy)


def bars(times: Sequence[float], pieces: int, cost: float) -> list[list[tuple[float, float]]]:
    """Start and end of every piece in every stage.

    All pieces are alike, so the stages up to a stage hand on a piece whenever the slowest of them has done one.
    """
    each = [time / pieces + cost for time in times]
    first = [end - mine for end, mine in zip(accumulate(each), each, strict=True)]
    pace = list(accumulate(each, max))
    return [
        [(start + n * slowest, start + n * slowest + mine) for n in range(pieces)]
        for start, slowest, mine in zip(first, pace, each, strict=True)
    ]


def content() -> Content:
    """The numbers and the fallback of the figure."""
    times, cost = stages(FIRST["copy"], FIRST["compute"], FIRST_WAYS), FIRST["cost"] / 1000
    turns, cut = (time_in_pieces(times, pieces=n, cost=cost) for n in (1, FIRST["pieces"]))
    return Content(
        title="Copies behind computing",
        numbers={"limits": LIMITS, "first": {**FIRST, "ways": FIRST_WAYS}, "ways": list(WAYS.items()), "lanes": LANES},
        picture=_picture,
        alt=f"Two timelines over one axis in milliseconds. In the upper one, {FIRST['copy']} ms of copying are "
        f"followed by {FIRST['compute']} ms of computing. In the lower one both are cut into {FIRST['pieces']} pieces. "
        f"The copies follow each other without a gap, computing begins after the first, and all ends after "
        f"{fmt(cut, 1)} instead of {fmt(turns, 1)} ms.",
        tables=(_table(),),
    )


def _table() -> Table:
    head = ("copies", "cost of one operation", "one after the other", "best number of pieces", "time with it")
    rows = []
    for ways, words in WAYS.items():
        times = stages(FIRST["copy"], FIRST["compute"], ways)
        for cost_us in COSTS_US:
            cost = cost_us / 1000
            best = best_pieces(times, cost=cost)
            turns, least = (time_in_pieces(times, pieces=n, cost=cost) for n in (1, best))
            rows.append((words, f"{cost_us} µs", f"{fmt(turns, 2)} ms", str(best), f"{fmt(least, 2)} ms"))
    return Table(f"Copies of {FIRST['copy']} ms and {FIRST['compute']} ms of computing", (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.6))
    times, cost = stages(FIRST["copy"], FIRST["compute"], FIRST_WAYS), FIRST["cost"] / 1000
    places, names = [], []
    for block, pieces in enumerate((1, FIRST["pieces"])):
        for lane, (stage, tone) in enumerate(zip(bars(times, pieces, cost), ("Blue", "Orange"), strict=False)):
            place = block * (len(times) + 0.6) + lane
            places.append(place)
            names.append(LANES[lane])
            for start, end in stage:
                ax.barh(
                    place, end - start, left=start, height=0.8,
                    color=colors[f"{tone}L"], edgecolor=colors[f"{tone}Line"],
                )  # fmt: skip
    ax.set(yticks=places, yticklabels=names, xlabel="time, ms")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    return fig
