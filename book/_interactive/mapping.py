"""The player of loop orders: a small convolution in each of its 120 orders, and what each order moves."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys.dataflow import compulsory, convolution, order_accesses

NEST = convolution(filters=16, kernel=3, height=8, width=8)
"""The example of the chapter: 16 filters of 3 x 3 over an image of 8 x 8."""
HELD = (1, 36, 576)
"""Sums that stay near: one, those of one filter, all."""
ROWS = ("mrspq", "pqmrs", "pqrsm", "srqmp")
"""Orders of the table."""


def orders() -> list[dict[str, object]]:
    """Every order in the sequence in which Python lists them, with what it moves for each count of sums near."""
    found: list[dict[str, object]] = []
    for order in NEST.orders():
        moved = [order_accesses(NEST, order, accumulators=held) for held in HELD]
        found.append({"order": "".join(order), "moved": [(one.weights, one.inputs, one.sums) for one in moved]})
    return found


def content() -> Content:
    """The numbers and the fallback of the player of loop orders."""
    return Content(
        title="All orders of five loops",
        numbers={
            "orders": orders(),
            "held": HELD,
            "extents": dict(NEST.extents),
            "least": compulsory(NEST).total,
        },
        picture=_picture,
        alt="A bar for each of the 120 orders, best first, stacked from weights, inputs and sums. The bars form five "
        "flat steps. A dashed line far below all of them is what any order must move.",
        tables=(_table(),),
    )


def _table() -> Table:
    head = ("order, outermost first", "sums near", "weights", "inputs", "sums", "total")
    rows = []
    for order in ROWS:
        for held in HELD[:2]:
            moved = order_accesses(NEST, order, accumulators=held)
            counts = (moved.weights, moved.inputs, moved.sums, moved.total)
            rows.append((" ".join(order), str(held), *(f"{count:,}" for count in counts)))
    return Table("What some orders move", (head, *rows))


def _picture() -> Figure:
    from _figures.mapping import all_orders

    all_orders(NEST)
    return plt.gcf()
