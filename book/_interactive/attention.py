"""The sweep of one query over blocks of keys: the largest score, the sum and the output, rescaled block by block."""

from collections.abc import Sequence
from math import exp, inf

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import viz

SCORES = (1, 2, 0, -1, 5, 3, 4, 2, 4, 6, 0, 1)
"""Invented scores of a query and twelve keys; in blocks of four their maxima are 2, 5 and 6."""
VALUES = (
    (0.9, 0.1, 0.5), (0.8, 0.3, 0.1), (0.2, 0.9, 0.4), (0.6, 0.6, 0.0), (0.1, 0.4, 1.0), (0.5, 0.2, 0.9),
    (0.3, 0.8, 0.7), (0.7, 0.1, 0.2), (0.4, 0.5, 0.3), (0.9, 0.7, 0.2), (0.2, 0.2, 0.8), (0.0, 1.0, 0.6),
)  # fmt: skip
"""Invented values of the keys, three numbers each; none is negative, so that bars can be stacked."""
BLOCKS = (1, 2, 3, 4, 6, 12)
FIRST = 4
ORDERS = {
    "given": ("as they come", tuple(range(len(SCORES)))),
    "falling": ("largest score first", tuple(sorted(range(len(SCORES)), key=lambda place: -SCORES[place]))),
    "rising": ("smallest score first", tuple(sorted(range(len(SCORES)), key=lambda place: SCORES[place]))),
}
"""Orders of the keys: the words for each, and the places of the keys."""

Step = dict[str, object]


def sweep(scores: Sequence[float], values: Sequence[Sequence[float]], block: int) -> list[Step]:
    """What one query has gathered after each block of keys.

    A step holds the largest score `m`, the factor for what was there before, and [sum, *output], none of them divided,
    `before` the block, `kept` after the factor, and `now`.
    """
    largest = -inf
    now = [0.0] * (1 + len(values[0]))
    steps: list[Step] = []
    for start in range(0, len(scores), block):
        part = scores[start : start + block]
        higher = max(largest, *part)
        factor = exp(largest - higher)
        before, kept = now, [factor * one for one in now]
        weights = [exp(score - higher) for score in part]
        columns = ([1.0] * len(part), *zip(*values[start : start + block], strict=True))
        now = [
            old + sum(weight * one for weight, one in zip(weights, column, strict=True))
            for old, column in zip(kept, columns, strict=True)
        ]
        was = None if largest == -inf else largest
        steps.append({"was": was, "m": higher, "factor": factor, "before": before, "kept": kept, "now": now})
        largest = higher
    return steps


def run(order: str, block: int) -> list[Step]:
    """The sweep of the example in one order of the keys."""
    _, places = ORDERS[order]
    return sweep([SCORES[place] for place in places], [VALUES[place] for place in places], block)


def content() -> Content:
    """The numbers and the fallback of the sweep."""
    numbers = {
        "blocks": BLOCKS,
        "first": FIRST,
        "orders": [
            {
                "name": name,
                "label": label,
                "scores": [SCORES[place] for place in places],
                "runs": {str(block): run(name, block) for block in BLOCKS},
            }
            for name, (label, places) in ORDERS.items()
        ],
    }
    return Content(
        title="A query sweeps over blocks of keys",
        numbers=numbers,
        picture=_picture,
        alt="Above, bars of twelve scores in three blocks of four; a line for the largest so far rises from 2 to 5 and "
        "then to 6. Below, the sum after each block: what is kept from before is thin after the second block, where "
        "the factor is 0.05, and about a third of what it was after the third.",
        tables=(_table(),),
    )


def _table() -> Table:
    rows = [("block", "m", "factor", "l", "output, divided by l")]
    for place, step in enumerate(run("given", FIRST), 1):
        total, *output = step["now"]  # type: ignore[misc]
        shown = ", ".join(f"{one / total:.3f}" for one in output)
        rows.append((str(place), str(step["m"]), f"{step['factor']:.3f}", f"{total:.3f}", shown))
    return Table(f"The sweep in blocks of {FIRST}, the keys as they come", tuple(rows))


def _picture() -> Figure:
    viz.apply_style()
    import matplotlib.pyplot as plt

    fig, (top, low) = plt.subplots(2, 1, figsize=(5.0, 4.6), layout="constrained")
    colors = viz.COLORS
    steps, orange = run("given", FIRST), colors["OrangeLine"]
    for place, score in enumerate(SCORES):
        fill = "BlueL" if place // FIRST % 2 == 0 else "GreenL"
        top.bar(place, score, 0.8, color=colors[fill], edgecolor=colors["BlueLine"])
    for place, step in enumerate(steps):
        top.hlines(step["m"], place * FIRST - 0.5, (place + 1) * FIRST - 0.5, color=colors["OrangeLine"], linewidth=2.5)
        label = f"m = {step['m']}"
        top.text(place * FIRST - 0.4, step["m"] + 0.15, label, color=colors["OrangeLine"], va="bottom")
    top.set(ylabel="score", xlabel="keys, in blocks of four", ylim=(-1.4, 7.4))
    top.set_xticks([])
    for place, step in enumerate(steps):
        before, kept, now = (step[name][0] for name in ("before", "kept", "now"))  # type: ignore[index]
        low.bar(place - 0.22, before, 0.4, color="white", edgecolor=colors["primary"], linestyle=":")
        low.bar(place + 0.22, kept, 0.4, color=colors["BlueLine"], label="kept" if place == 0 else None)
        low.bar(place + 0.22, now - kept, 0.4, bottom=kept, color=orange, label=None if place else "added")
        if place:
            low.text(place - 0.22, before + 0.05, f"× {step['factor']:.3f}", ha="center", va="bottom", fontsize=9)
    low.set_xticks(range(len(steps)), [f"block {place + 1}" for place in range(len(steps))])
    low.set(ylabel="sum l", ylim=(0, 2.6))
    low.legend(loc="upper left", ncols=2, fontsize=9)
    return fig
