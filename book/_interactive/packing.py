"""Weights packed by hand: which two of four stay, their values and metadata, and the bytes before and after."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from _interactive.content import Content, Table
from _interactive.numerics import formats
from mlsys import viz
from mlsys.formatting import fmt
from mlsys.sparsity import NMSparse, prune

FORMATS = {"fp16": np.float16, "int8": np.int8}
COUNTS = (8, 16)
"""How many weights the reader may type."""
EXAMPLES = {
    "eight weights": "3 0 -1 2 0.5 -0.75 4 0.25",
    "sixteen weights": "7 -2 0 9 1 1 1 1 0 0 5 0 -128 127 6 -6",
    "random places": "0 0 5 2 0 0 0 0 8 3 0 1 4 0 0 0",
}
FIRST = {"example": "eight weights", "format": "fp16"}


def pack(text: str, name: str) -> tuple[NMSparse, np.ndarray[Any, Any]]:
    """Prune and pack weights, and return them with the dense row, both in the named format."""
    dense = np.array([[float(word) for word in text.split()]]).astype(FORMATS[name])
    return NMSparse.from_dense(prune(dense)), dense


def metadata(packed: NMSparse) -> int:
    """Return the bits of all groups as one number, the first group in the lowest four bits."""
    return int.from_bytes(packed.metadata.tobytes(), "little")


def content() -> Content:
    """The numbers and the fallback of the packing."""
    packed, dense = pack(EXAMPLES[FIRST["example"]], FIRST["format"])
    known = formats()
    return Content(
        title="Two of four, packed by hand",
        numbers={
            "formats": {name: known[name] for name in FORMATS},
            "counts": COUNTS,
            "examples": EXAMPLES,
            "first": FIRST,
        },
        picture=_picture,
        alt="Two rows, one for each group of four weights. On the left the four weights, the two of largest magnitude "
        f"in color. On the right the two values that are stored and their places, as two bits each. {dense.nbytes} "
        f"bytes become {packed.nbytes}.",
        tables=(_table(), _sizes()),
        scripts=("formats",),
    )


def _groups() -> list[tuple[list[float], list[int], list[float]]]:
    packed, dense = pack(EXAMPLES[FIRST["example"]], FIRST["format"])
    weights = dense.reshape(-1, packed.m).tolist()
    return list(zip(weights, packed.places()[0].tolist(), packed.values.reshape(-1, packed.n).tolist(), strict=True))


def _bits(places: list[int]) -> str:
    """The metadata of a group as it is written, highest bit first: the second place, then the first."""
    return " ".join(f"{place:02b}" for place in reversed(places))


def _table() -> Table:
    head = ("weights of a group", "places that stay", "values", "metadata")
    rows = [
        (
            ", ".join(f"{w:g}" for w in weights),
            ", ".join(map(str, places)),
            ", ".join(f"{v:g}" for v in values),
            _bits(places),
        )
        for weights, places, values in _groups()
    ]
    return Table("The groups of the first example", (head, *rows))


def _sizes() -> Table:
    rows = []
    for name in FORMATS:
        packed, dense = pack(EXAMPLES["sixteen weights"], name)
        ratio = fmt(dense.nbytes / packed.nbytes, 2)
        rows.append((name.upper(), str(dense.nbytes), str(packed.values.nbytes), str(packed.metadata.nbytes), ratio))
    return Table("Bytes of sixteen weights", (("format", "before", "values", "metadata", "times smaller"), *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.2))

    def box(x: float, y: float, text: str, tone: str | None, wide: float = 1.4) -> None:
        fill, edge = (colors[f"{tone}L"], colors[f"{tone}Line"]) if tone else ("white", colors["grid"])
        ax.add_patch(Rectangle((x, y), wide, 0.8, facecolor=fill, edgecolor=edge))
        ax.text(x + wide / 2, y + 0.42, text, ha="center", va="center")

    for x, name in ((0, "weights"), (6.6, "values that stay"), (10.4, "metadata")):
        ax.text(x, -0.12, name, va="bottom", weight="bold")
    for row, (weights, places, values) in enumerate(_groups()):
        for place, weight in enumerate(weights):
            box(1.5 * place, row, f"{weight:g}", "Blue" if place in places else None)
        for place, kept in enumerate(values):
            box(6.6 + 1.5 * place, row, f"{kept:g}", "Blue")
        box(10.4, row, _bits(places), "Orange", 2)
    ax.set(xlim=(-0.1, 12.6), ylim=(len(_groups()) + 0.1, -0.7))
    ax.axis("off")
    return fig
