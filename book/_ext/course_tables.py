"""One way to build a table for the extensions of the book."""

from collections.abc import Iterable, Sequence

from docutils import nodes

Cell = str | nodes.Node


def table(head: Sequence[Cell], body: Iterable[Sequence[Cell]], look: str = "") -> nodes.table:
    """Build a table of text and inline nodes; `look` is its class in the style sheet."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *(_row(cells) for cells in body))
    return nodes.table("", group, classes=[look] if look else [])


def _row(cells: Iterable[Cell]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", _node(cell))) for cell in cells))


def _node(cell: Cell) -> nodes.Node:
    return nodes.Text(cell) if isinstance(cell, str) else cell
