"""The page about similar kernels: a list of pairs, and the code of each pair side by side. It loads nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import jinja2

from mlsys.classroom.similarity.compare import Pair, Passage, Work
from mlsys.classroom.similarity.tokens import RUN
from mlsys.classroom.templates import page_file, page_templates

_PACKAGE = "mlsys.classroom.similarity"


@dataclass(frozen=True)
class Line:
    """A line of code: its number in the cell, its text, and the passage that it belongs to, or 0."""

    number: int
    text: str
    passage: int
    begins: bool


def similar_page(lab: str, pairs: Sequence[Pair], notes: Sequence[str]) -> str:
    """Return the page as HTML; everything that a student wrote is escaped.

    Args:
        lab: the title of the lab.
        pairs: what is shown.
        notes: who is left out, and other things to know.
    """
    return _template().render(
        lab=lab,
        pairs=pairs,
        notes=notes,
        run=RUN,
        zip=zip,
        sides=lambda pair: (
            _side(pair.left, [passage.left for passage in pair.passages]),
            _side(pair.right, [passage.right for passage in pair.passages]),
        ),
        style=page_file(_PACKAGE, "similar.css"),
    )


def where(work: Work, place: tuple[int, int, int]) -> str:
    """Say which lines a passage has, as in "c-kernel 3-17"."""
    cell, first, last = place
    return f"{work.names[cell]} {first}-{last}" if last > first else f"{work.names[cell]} {first}"


def in_words(pair: Pair, passage: Passage) -> tuple[str, str]:
    """Return where a passage is in both works."""
    return where(pair.left, passage.left), where(pair.right, passage.right)


def _side(work: Work, places: Sequence[tuple[int, int, int]]) -> Iterator[tuple[str, list[Line]]]:
    """Yield each cell of one work: what it answers, and its lines."""
    for cell, source in enumerate(work.sources):
        of_line: dict[int, int] = {}
        begins = set()
        for number, (index, first, last) in enumerate(places, 1):
            if index == cell:
                begins.add(first)
                of_line |= {line: number for line in range(first, last + 1) if line not in of_line}
        lines = source.split("\n")
        yield (
            work.names[cell],
            [Line(number, text, of_line.get(number, 0), number in begins) for number, text in enumerate(lines, 1)],
        )


@cache
def _template() -> jinja2.Template:
    return page_templates(_PACKAGE, places=in_words).get_template("similar.html.j2")
