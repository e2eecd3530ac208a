"""The player of dataflows: one small convolution with its weights, sums, inputs or rows staying put, step by step.

Everything is walked here, product by product, and the counts are taken while walking. `mlsys.dataflow` counts the same
in closed form; the tests compare them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from _interactive.content import Content, Table

KERNEL, IMAGE = 3, 5
"""Sides of the filter and of the image; the result has 3 x 3 sums."""
OUTPUT = IMAGE - KERNEL + 1
DATAFLOWS = {
    "ws": "weight stationary",
    "os": "output stationary",
    "is": "input stationary",
    "rs": "row stationary",
}

Product = tuple[int, int, int]
"""Numbers of the weight, the input and the sum, each row by row."""


@dataclass
class Walk:
    """One dataflow: the products of each step, and how often each operand has crossed to the far memory by then.

    Attributes:
        steps: The products of each step.
        counts: Accesses of weights, inputs and sums after each step.
        passed: Moves inside the array after each step: numbers that enter an element, and sums that go to a neighbor.
    """

    steps: list[list[Product]] = field(default_factory=list)
    counts: list[tuple[int, int, int]] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)


def product(p: int, q: int, r: int, s: int) -> Product:
    """The numbers that place (r, s) of the filter needs for the sum at (p, q)."""
    return r * KERNEL + s, (p + r) * IMAGE + q + s, p * OUTPUT + q


def order(dataflow: str) -> Iterator[Product]:
    """All products of a single multiplier, in the order in which the dataflow makes them."""
    filters, positions = ([(row, col) for row in range(side) for col in range(side)] for side in (KERNEL, OUTPUT))
    if dataflow == "ws":
        yield from (product(p, q, r, s) for r, s in filters for p, q in positions)
    elif dataflow == "os":
        yield from (product(p, q, r, s) for p, q in positions for r, s in filters)
    else:
        for h in range(IMAGE):
            for w in range(IMAGE):
                yield from (product(h - r, w - s, r, s) for r, s in filters if (h - r, w - s) in positions)


def one_multiplier(dataflow: str) -> Walk:
    """Walk with room for one weight, one input and one sum: what changes is fetched, and unfinished sums leave."""
    walk = Walk()
    near: list[int | None] = [None, None, None]
    moved = [0, 0, 0]
    begun: set[int] = set()
    for use in order(dataflow):
        for operand in (0, 1):
            moved[operand] += use[operand] != near[operand]
        if use[2] != near[2]:
            moved[2] += 1 + (use[2] in begun)  # it is read if it is not new, and written when it leaves
            begun.add(use[2])
        near = list(use)
        walk.steps.append([use])
        walk.counts.append((moved[0], moved[1], moved[2]))
        walk.passed.append(0)
    return walk


def rows_stay() -> Walk:
    """Walk nine elements: (r, p) keeps row r of the filter and slides it along row p + r of the image."""
    walk = Walk()
    weights: set[int] = set()
    inputs: set[int] = set()
    delivered: set[tuple[int, int, int, str]] = set()
    sums = passed = 0
    for q in range(OUTPUT):
        for s in range(KERNEL):
            uses = [product(p, q, r, s) for r in range(KERNEL) for p in range(OUTPUT)]
            for place, (weight, value, _) in enumerate(uses):
                weights.add(weight)
                inputs.add(value)
                delivered |= {(place, weight, 0, "weight"), (place, value, 0, "input")}
            if s == KERNEL - 1:  # a column of sums is finished: it moves up through the rows of elements
                sums += OUTPUT
                passed += OUTPUT * (KERNEL - 1)
            walk.steps.append(uses)
            walk.counts.append((len(weights), len(inputs), sums))
            walk.passed.append(len(delivered) + passed)
    return walk


def walks() -> dict[str, Walk]:
    """Every dataflow of the player."""
    return {name: rows_stay() if name == "rs" else one_multiplier(name) for name in DATAFLOWS}


def content() -> Content:
    """The numbers and the fallback of the player of dataflows."""
    return Content(
        title="One convolution, four dataflows",
        numbers={
            "sides": {"weights": KERNEL, "inputs": IMAGE, "sums": OUTPUT},
            "names": DATAFLOWS,
            "walks": {
                name: {"steps": walk.steps, "counts": walk.counts, "passed": walk.passed}
                for name, walk in walks().items()
            },
        },
        picture=_picture,
        alt="Groups of bars for four dataflows. Weight stationary has few weights and many inputs and sums. Output "
        "stationary has few sums and many weights and inputs. Input stationary has few inputs, many weights, and as "
        "many sums as weight stationary. Row stationary has few of all three.",
        tables=(_table(),),
    )


def _table() -> Table:
    rows = [("dataflow", "steps", "weights", "inputs", "sums", "moves inside the array")]
    rows += [
        (DATAFLOWS[name], str(len(walk.steps)), *(str(count) for count in walk.counts[-1]), str(walk.passed[-1]))
        for name, walk in walks().items()
    ]
    return Table("Accesses to the far memory when the convolution is done", tuple(rows))


def _picture() -> Figure:
    from _figures.dataflow import played

    played({DATAFLOWS[name]: walk.counts[-1] for name, walk in walks().items()})
    return plt.gcf()
