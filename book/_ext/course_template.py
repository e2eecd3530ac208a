"""The parts that every chapter has, in their order; the build refuses a chapter that lacks one.

`book/_chapter-template.md` shows them all. A part is recognized by its class, its directive or its heading.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from course_prose import FENCE, blank, line_of
from sphinx.application import Sphinx
from sphinx.util import logging

from mlsys.course.pages.languages import ENGLISH, Language, language_of, read_language
from mlsys.course.pages.notebooks import numbers_sections

logger = logging.getLogger(__name__)

HEADINGS = tuple(read_language(ENGLISH)["headings"])
"""Titles of the sections that close a chapter, in their order; other languages have words for them."""

BOXES = {
    "the question": (r"^:class: course-question$", ":::{admonition} The question` with `:class: course-question"),
    "the prediction": (r"^:{3,}\{predict\} ", ":::{predict} ID"),
    "the settled prediction": (r"^:{3,}\{settled\} ", ":::{settled} ID"),
    "the rule to carry away": (
        r"^:class: course-rule$",
        ":::{admonition} The rule to carry away` with `:class: course-rule",
    ),
}
"""Boxes of a chapter: how each is found, and how it is written."""

ORDER = [
    ("the question", "the prediction", "the settled prediction", "Pitfalls"),
    ("the prediction", "the rule to carry away", "Pitfalls"),
    HEADINGS,
]
"""What comes before what. The rule and the settled prediction may come in either order, and before or in "Measured"."""

SECTION = re.compile(r"^## (?P<title>.+?)[ ]*$", re.M)
NUMBER = re.compile(r"\d+\.[ ]")


@dataclass(frozen=True)
class Part:
    """Where a part of a chapter begins, and how often it is there."""

    line: int
    count: int


def missing_parts(text: str, language: Language | None = None) -> Iterator[tuple[int, str]]:
    r"""Line and message of everything in which a chapter differs from the template.

    >>> [message for _, message in missing_parts("# Title\\n")][0][:36]
    'the chapter lacks the question: write'
    """
    titles = (language or read_language(ENGLISH))["headings"]
    seen = FENCE.sub(lambda found: blank(found[0]), text)
    last = text.rstrip("\n").count("\n") + 1
    found: dict[str, Part] = {}
    for name, (pattern, how) in BOXES.items():
        places = [line_of(seen, place.start()) for place in re.finditer(pattern, seen, re.M)]
        if places:
            found[name] = Part(places[0], len(places))
        else:
            yield last, f"the chapter lacks {name}: write `{how}`, as in book/_chapter-template.md"
    sections = [(line_of(seen, section.start()), section["title"]) for section in SECTION.finditer(seen)]
    for line, title in sections:
        if NUMBER.match(title):
            yield line, f"the section {title!r} has a number of its own: take it out, the build numbers the sections"
    for name, known in titles.items():
        places = [line for line, title in sections if NUMBER.sub("", title) == known]
        if places:
            found[name] = Part(places[0], len(places))
        else:
            yield last, f"the chapter lacks the section {known!r}: write `## {known}`"
    for name, part in found.items():
        if part.count > 1:
            yield part.line, f"the chapter has {name} {part.count} times: keep one"
    for order in ORDER:
        there = [name for name in order if name in found]
        for before, after in pairwise(there):
            if found[before].line > found[after].line:
                yield found[before].line, f"{before} comes after {after} (line {found[after].line}): move it before"


def check_parts(app: Sphinx, docname: str, source: list[str]) -> None:
    """Refuse a chapter that lacks a part of the template or has them in another order."""
    page = Path(app.env.doc2path(docname))
    if numbers_sections(page):
        language = read_language(language_of(page), Path(app.srcdir))
        for line, fault in sorted(missing_parts(source[0], language)):
            logger.error("%s", fault, location=(docname, line))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", check_parts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
