"""How many numbers the running text of a page holds: where they come too close, a table or a figure shows them better.

Tables, quizzes, captions, code and the solutions of exercises are not counted.
"""

import re
from pathlib import Path
from typing import Any

from course_prose import FENCE, FRONT_MATTER
from sphinx.application import Sphinx
from sphinx.util import logging

from mlsys.course.pages.notebooks import numbers_sections

logger = logging.getLogger(__name__)

MAX_NUMBERS_PER_100_WORDS = 8
"""Numbers in 100 words of a chapter's running text; beyond this a reader skips them."""

SOLUTION = re.compile(r"^(?P<colons>:{3,})\{dropdown\}.*?^(?P=colons)[ ]*$", re.M | re.S)
ASIDE = re.compile(r"^(?:%|\||#|\([\w-]+\)=|:{3,}|:[\w-]+:).*$", re.M)
CITED = re.compile(r"\{cite:[tp]\}`[^`]*`|\]\([^)]*\)")
NUMBER_ROLE = re.compile(r"\{glue:text\}`[^`]*`")
ROLE = re.compile(r"\{[\w:-]+\}`([^`<]*)[^`]*`")
WORD = re.compile(r"[\w$\\][\w'’.,×·/%$\\^{}-]*")
NUMERAL = re.compile(r"[-−$]?\d[\d.,]*(?:%|[.,;:)])?\$?$")


def density(text: str) -> tuple[int, int]:
    """Numbers and words of the running text; a number is a word too.

    >>> density("It moves {glue:text}`moved` in 3 steps on an A100, | twice.")
    (2, 10)
    """
    text = FENCE.sub("", FRONT_MATTER.sub("", text))
    text = ASIDE.sub("", SOLUTION.sub("", text))
    text = ROLE.sub(r"\1", NUMBER_ROLE.sub("0", CITED.sub("", text)))
    words = WORD.findall(text)
    return sum(bool(NUMERAL.match(word)) for word in words), len(words)


def check_density(app: Sphinx, docname: str, source: list[str]) -> None:
    """Refuse a chapter whose text holds too many numbers."""
    if not numbers_sections(Path(app.env.doc2path(docname))):
        return
    numbers, words = density(source[0])
    if 100 * numbers > MAX_NUMBERS_PER_100_WORDS * words:
        logger.error(
            "the text has %d numbers in %d words, %.1f in 100, and %d are allowed: move some into a table, a figure or "
            "an exercise, or leave them out",
            numbers,
            words,
            100 * numbers / words,
            MAX_NUMBERS_PER_100_WORDS,
            location=docname,
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", check_density)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
