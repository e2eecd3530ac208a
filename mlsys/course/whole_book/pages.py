"""Pages of the built site as parts of one book: their contents without what only a browser needs.

Ids and links still are those of the site; `Book.bind` gives each of them the form that a book in one file needs.
"""

import copy
import os
import posixpath
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from lxml import etree, html
from lxml.html import HtmlElement, fragment_fromstring

from mlsys.course.pages.contents import CONTENTS
from mlsys.course.pages.languages import read_language
from mlsys.course.settings import PLACEHOLDER, Settings, read_settings
from mlsys.course.student_site import FOR_INSTRUCTORS
from mlsys.errors import UserError

STUDENTS = "students"
INSTRUCTORS = "instructors"
EDITIONS = (STUDENTS, INSTRUCTORS)
"""The editions of the book; only that of the instructors has solutions of exercises and pages for instructors."""

ANSWERS = "answers"
"""Name of the page at the end that has the answers of the self-checks."""

_TAGS_OF_A_BROWSER = {"button", "input", "script", "select", "textarea", "noscript"}
_CLASSES_OF_A_BROWSER = {
    "headerlink",
    "course-quiz-act",
    "course-quiz-reply",
    "course-progress",
    "toctree-wrapper",
    "controls",
    "result",
}
"""Elements that do nothing on paper."""


def _date_of_now() -> datetime:
    """Return the date that a file states: that of SOURCE_DATE_EPOCH, which makes builds reproducible, or now."""
    return datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()), UTC)


@dataclass
class Page:
    """One page: `address` is its file in the site, such as book/performance/tiling.html."""

    name: str
    title: str
    part: str
    address: str
    language: str
    body: HtmlElement


@dataclass
class Book:
    """The pages of one edition in the order of the contents; `site` is the folder that their pictures lie in."""

    title: str
    author: str
    version: str
    edition: str
    site: Path
    pages: list[Page]
    by_address: dict[str, str] = field(default_factory=dict)
    dated: datetime = field(default_factory=_date_of_now)

    def __post_init__(self) -> None:
        self.by_address = {page.address: page.name for page in self.pages}

    def bind(self, link: Callable[[Page, str, str], str], picture: Callable[[str], str]) -> list[str]:
        """Give links and pictures the form of the bound book; return the links that lead to nothing in it.

        Args:
            link: the address, in the book, of an id on a page, from the page that links; the id may be empty.
            picture: the address, in the book, of a picture of the site.
        """
        ids = {
            page.name: {element.get("id") for element in page.body.iter() if element.get("id")} for page in self.pages
        }
        lost = []
        for page in self.pages:
            folder = posixpath.dirname(page.address)
            for image in page.body.iter("img"):
                image.attrib.pop("loading", None)  # what is loaded when it is scrolled to may be missing in print
                image.set("src", picture(posixpath.normpath(posixpath.join(folder, image.get("src")))))
            for anchor in list(page.body.iter("a")):
                target = anchor.get("href")
                if target is None or target.startswith(("http://", "https://", "mailto:")):
                    continue
                address, _, identifier = target.partition("#")
                address = posixpath.normpath(posixpath.join(folder, address)) if address else page.address
                name = self.by_address.get(address)
                if name is not None and (not identifier or identifier in ids[name]):
                    anchor.set("href", link(page, name, identifier))
                else:
                    lost.append(f"{page.name}: {target}")
                    anchor.tag = "span"
                    del anchor.attrib["href"]
        return lost


def read_book(root: Path, edition: str, site: Path | None = None) -> Book:
    """Return the pages of the built site, in the order of the contents, as one edition of the book has them.

    Args:
        root: the repository.
        edition: one of `EDITIONS`.
        site: the built site; by default that of the repository.

    Raises:
        UserError: the site is not built, or a page of the contents is missing in it.
    """
    site = site or root / "_build" / "html"
    contents = yaml.safe_load((root / CONTENTS).read_text(encoding="utf-8"))
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    settings = read_settings(root)
    pages = []
    for docname, part in _listed(contents):
        if edition == STUDENTS and docname in FOR_INSTRUCTORS:
            continue
        pages.append(read_page(site, docname, part))
    answers = []
    for page in pages:
        words = read_language(page.language)["book"]
        answers += _answers(page, words)
        _still(page, edition, settings, words)
    if answers:
        body = fragment_fromstring('<section class="page"><h1>Answers to the self-checks</h1></section>')
        body.extend(answers)
        pages.append(Page(ANSWERS, "Answers to the self-checks", "Answers", "answers.html", "en", body))
    return Book(str(config["title"]), str(config["author"]), settings.version, edition, site, pages)


def tex_of(formula: HtmlElement) -> str:
    r"""Return the TeX of a formula of the site, without the delimiters around it.

    >>> tex_of(fragment_fromstring(r'<span class="math">\(T/2\)</span>'))
    'T/2'
    """
    text = str(formula.text_content()).strip()
    return text[2:-2].strip() if text[:2] in ("\\(", "\\[") else text


def _listed(contents: dict) -> Iterator[tuple[str, str]]:
    yield contents["root"], ""
    for part in contents["parts"]:
        for chapter in part["chapters"]:
            yield chapter["file"], part["caption"]


def read_page(site: Path, docname: str, part: str) -> Page:
    """Return one page as the site has it.

    Args:
        site: the built site.
        docname: the page, such as book/performance/tiling.
        part: the part of the book that the page belongs to.

    Raises:
        UserError: the page is not in the site.
    """
    path = site / f"{docname}.html"
    if not path.is_file():
        raise UserError(f"{path} is missing: run `make book`, from which the whole book is made")
    document = html.document_fromstring(path.read_bytes())
    article = document.find_class("bd-article")[0]
    title = article.find(".//h1")
    language = article.get("lang", "en")
    name = Path(docname).name
    body = html.Element("div", {"class": "page", "lang": language})
    if article.get("dir"):
        body.set("dir", article.get("dir"))
    body.extend(list(article))
    heading = copy.deepcopy(title)
    for link in heading.find_class("headerlink"):
        link.drop_tree()
    return Page(name, heading.text_content().strip(), part, f"{docname}.html", language, body)


def _answers(page: Page, words: Mapping[str, str]) -> list[HtmlElement]:
    """Take the feedback out of the self-checks of a page, and return it as a section of the answers."""
    quizzes = page.body.find_class("course-quiz")
    if not quizzes:
        return []
    section = fragment_fromstring(f'<section id="{page.name}" lang="{page.language}"><h2></h2></section>')
    if page.body.get("dir"):
        section.set("dir", page.body.get("dir"))
    section[0].text = page.title
    letters = words["letters"]
    for place, quiz in enumerate(quizzes, 1):
        entry = html.Element("div", {"class": "answer", "id": f"answer-{quiz.get('id')}"})
        for letter, choice in zip(letters, quiz.find_class("course-quiz-choice"), strict=False):
            fold = choice.find("details")
            said = fold.find("p")
            said.text = f"{place} ({letter}) " if letter == letters[0] else f"({letter}) "
            entry.append(said)
            fold.drop_tree()
        section.append(entry)
    return [section]


def _still(page: Page, edition: str, settings: Settings, words: Mapping[str, str]) -> None:
    """Make a page stand still: no fold, no button, no script."""
    body = page.body
    for element in list(body.iterdescendants(etree.Element)):
        classes = set(element.get("class", "").split())
        if element.tag in _TAGS_OF_A_BROWSER or classes & _CLASSES_OF_A_BROWSER or "hidden" in element.attrib:
            element.drop_tree()
    for place in list(body.iter("wbr")):  # lxml takes it for an element that holds what follows
        place.text = "\N{ZERO WIDTH SPACE}" + (place.text or "")
        place.drop_tag()
    for quiz in body.find_class("course-quiz"):
        before = quiz.getprevious()
        if before is not None and before.tag == "p":  # it says how to choose and check
            before.text = words["answered"]
            del before[:]
        _still_quiz(page, quiz, words)
    for section in list(body.iter("section")):
        if len(section) == 1 and section[0].tag in ("h2", "h3"):  # what it held is nothing without a browser
            section.drop_tree()
    for fold in list(body.iter("details")):
        if "sd-dropdown" in fold.get("class", "") and edition == STUDENTS:
            fold.drop_tree()
        else:
            _open(fold, words)
    for figure in body.find_class("course-interactive"):
        caption = figure.find("figcaption")
        note = fragment_fromstring(f'<p class="operate"><a>{words["operate"]}</a>.</p>')
        if PLACEHOLDER in settings.repository:
            note[0].drop_tag()
        else:
            note[0].set("href", settings.page_url(f"{page.address}#{figure.get('id')}"))
        caption.append(note)
    for line in [*body.find_class("course-notebook"), *body.find_class("course-languages")]:
        line.drop_tree()


def _still_quiz(page: Page, quiz: HtmlElement, words: Mapping[str, str]) -> None:
    quiz.tag = "div"
    for data in [name for name in quiz.attrib if name.startswith("data-")]:
        del quiz.attrib[data]
    for legend in quiz.iter("legend"):
        legend.tag = "p"
        legend.set("class", "course-quiz-question")
    for letter, choice in zip(words["letters"], quiz.find_class("course-quiz-choice"), strict=False):
        del choice.attrib["data-right"]
        for label in choice.iter("label"):
            label.tag = "span"
            del label.attrib["for"]
            label.text = f"({letter}) {label.text or ''}"
    where = fragment_fromstring(f'<p class="course-quiz-where"><a>{words["answers"]}</a></p>')
    where[0].set("href", _to_answers(page, quiz.get("id")))
    quiz.append(where)


def _to_answers(page: Page, quiz: str) -> str:
    up = posixpath.relpath("answers.html", posixpath.dirname(page.address) or ".")
    return f"{up}#answer-{quiz}"


def _open(fold: HtmlElement, words: Mapping[str, str]) -> None:
    summary = fold.find("summary")
    title = " ".join(summary.text_content().split())
    fold.tag = "div"
    fold.set("class", f"fold {fold.get('class', '')}".strip())
    fold.attrib.pop("open", None)
    tail = summary.tail
    summary.clear()
    summary.tag, summary.text, summary.tail = "p", title, tail
    summary.set("class", "fold-title")
