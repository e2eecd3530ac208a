"""The self-checks of the book as questions for learning platforms, read from the built site with their numbers."""

from dataclasses import dataclass
from pathlib import Path

from lxml import etree, html
from lxml.html import HtmlElement

from mlsys.course.pages.contents import book_pages
from mlsys.course.pages.notebooks import is_chapter
from mlsys.course.whole_book.pages import read_page
from mlsys.errors import UserError

_KEPT = {"em", "strong", "code", "sub", "sup"}
"""Elements of a text that every platform shows; of others only the text stays."""


@dataclass(frozen=True)
class Choice:
    r"""One answer: text and feedback are XHTML without an element around them, formulas are TeX between \\( and \\)."""

    text: str
    right: bool
    feedback: str


@dataclass(frozen=True)
class Question:
    """A question with one right choice; `name` is unique in the book and never changes with the text."""

    name: str
    text: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Chapter:
    """The questions of one chapter."""

    name: str
    title: str
    language: str
    questions: tuple[Question, ...]


def read_questions(root: Path, site: Path | None = None) -> list[Chapter]:
    """Return the questions of all chapters in the order of the contents.

    Args:
        root: the repository.
        site: the built site; by default that of the repository.

    Raises:
        UserError: the site is not built, or has no question.
    """
    site = site or root / "_build" / "html"
    chapters = []
    for path in book_pages(root).values():
        if path.is_file() and is_chapter(path):
            page = read_page(site, path.relative_to(root).with_suffix("").as_posix(), "")
            questions = tuple(_question(quiz) for quiz in page.body.find_class("course-quiz"))
            if questions:
                chapters.append(Chapter(page.name, page.title, page.language, questions))
    if not chapters:
        raise UserError(f"{site} has no self-check: build the site with `make book`")
    return chapters


def _question(quiz: HtmlElement) -> Question:
    legend = quiz.find("legend")
    number, _, rest = (legend.text or "").partition(". ")
    if number.isdigit():
        legend.text = rest
    choices = tuple(
        Choice(
            _simple(choice.find("label")), choice.get("data-right") == "true", _simple(choice.find("details/p/span"))
        )
        for choice in quiz.find_class("course-quiz-choice")
    )
    return Question(quiz.get("id").removeprefix("quiz-"), _simple(legend), choices)


def _simple(element: HtmlElement) -> str:
    """Return the contents of an element with the kept elements only."""
    for inner in list(element.iterdescendants(etree.Element)):
        inner.attrib.clear()
        if inner.tag not in _KEPT:
            inner.drop_tag()
    element.attrib.clear()
    text = etree.tostring(element, encoding="unicode", with_tail=False)
    inside = text[text.index(">") + 1 : text.rindex("</")]
    return " ".join(inside.split())


def plain(text: str) -> str:
    """Return the text of a question or choice without elements, for titles."""
    return str(html.fragment_fromstring(text, create_parent=True).text_content())
