"""The planner played: buffers are placed one after the other, and the order decides how much memory they need."""

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from _interactive.content import Content, Table
from mlsys import viz
from mlsys.runtime import Buffer, peak_live, plan_height, plan_memory
from mlsys.runtime.first_fit import ORDERS, place_in_order

BUFFERS = tuple(
    Buffer(*one)
    for one in (
        (0, 2, 3), (0, 2, 5), (0, 5, 3), (2, 4, 5), (2, 5, 1), (2, 7, 2),
        (3, 6, 3), (4, 8, 3), (5, 6, 6), (6, 7, 3), (7, 9, 4),
    )
)  # fmt: skip
"""Eleven invented buffers for which each simple order wastes memory and the search does not."""

FIRST = "size"


def plans() -> dict[str, tuple[str, list[int], list[int]]]:
    """By name: the words for an order, the places of the buffers in that order, and their offsets."""
    keys = {"time": lambda buffer: (buffer.lower,), **ORDERS}
    words = {
        "time": "as they are needed",
        "size": "largest first",
        "area": "largest size × lifetime first",
        "lifetime": "longest-lived first",
    }
    made = {}
    for name, key in keys.items():
        order = sorted(range(len(BUFFERS)), key=lambda place: (key(BUFFERS[place]), place))
        made[name] = (words[name], order, place_in_order(BUFFERS, order))
    searched = plan_memory(BUFFERS)
    bottom_up = sorted(range(len(BUFFERS)), key=lambda place: (searched[place], place))
    made["search"] = ("found by the search, lowest first", bottom_up, searched)
    return made


def letter(place: int) -> str:
    """What a buffer is called."""
    return "ABCDEFGHIJK"[place]


def content() -> Content:
    """The numbers and the fallback of the planner."""
    made = plans()
    numbers = {
        "buffers": [{"name": letter(place), **buffer._asdict()} for place, buffer in enumerate(BUFFERS)],
        "plans": [
            {"name": name, "label": words, "order": order, "offsets": offsets}
            for name, (words, order, offsets) in made.items()
        ],
        "peak": peak_live(BUFFERS),
        "first": FIRST,
    }
    height = plan_height(BUFFERS, made[FIRST][2])
    return Content(
        title="Memory planner",
        numbers=numbers,
        picture=_picture,
        alt=f"Eleven rectangles on a plane of time and offset, none over another. They are placed {made[FIRST][0]} and "
        f"reach a height of {height}. A dotted line marks {peak_live(BUFFERS)}, the most that is live at once. "
        "Between the rectangles there are gaps that no buffer could use.",
        tables=(_buffers(), _heights()),
    )


def _buffers() -> Table:
    rows = [("buffer", "live from", "up to", "size", *(words for words, _, _ in plans().values()))]
    for place, (lower, upper, size) in enumerate(BUFFERS):
        offsets = (str(offsets[place]) for _, _, offsets in plans().values())
        rows.append((letter(place), str(lower), str(upper), str(size), *offsets))
    return Table("The buffers, and the offset of each in each plan", tuple(rows))


def _heights() -> Table:
    rows = [("order", "memory needed")]
    rows += [(words, str(plan_height(BUFFERS, offsets))) for words, _, offsets in plans().values()]
    return Table(f"Memory that each plan needs; {peak_live(BUFFERS)} are live at once", tuple(rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(5.0, 3.4))
    _, _, offsets = plans()[FIRST]
    for place, (buffer, offset) in enumerate(zip(BUFFERS, offsets, strict=True)):
        ax.add_patch(
            Rectangle(
                (buffer.lower, offset), buffer.upper - buffer.lower, buffer.size,
                facecolor=colors["BlueL"], edgecolor=colors["BlueLine"],
            )
        )  # fmt: skip
        middle = ((buffer.lower + buffer.upper) / 2, offset + buffer.size / 2)
        ax.text(*middle, letter(place), ha="center", va="center")
    peak, height = peak_live(BUFFERS), plan_height(BUFFERS, offsets)
    ax.axhline(peak, color=colors["primary"], linestyle=":")
    ax.text(9.05, peak - 1.0, f"live at most: {peak}", ha="right")
    ax.set(xlabel="time, steps", ylabel="offset", xlim=(0, 9.1), ylim=(0, 1.08 * height))
    ax.set_yticks(range(0, height + 1, 2))
    ax.grid(visible=False)
    return fig
