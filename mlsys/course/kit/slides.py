"""The slides of a chapter, taken from its page: claims, figures, prediction, rule, self-checks; the text as notes.

A slide is what can be read at the back of a room. What is too long for one is in the notes.
"""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lxml import etree, html
from lxml.html import HtmlElement

from mlsys.course.pages.languages import read_language
from mlsys.course.whole_book.pages import Page

_LARGEST_TABLE = (6, 5)
"""Rows and columns of a table that can still be read on a slide."""
_MOST_LETTERS = 330
"""Letters of such a table."""
_LONGEST_CODE = (13, 66)
"""Lines, and characters in a line, of code that can still be read on a slide."""
_MOST_ITEMS = 4
"""Items of a list on one slide."""
_WIDE = 2.2
"""Width over height of a picture, from which on its claim is below it."""


@dataclass(frozen=True)
class Slide:
    """One slide: a kind for its look, a title, a body, and notes, which are paragraphs of the chapter."""

    kind: str
    title: str
    body: tuple[HtmlElement, ...]
    notes: tuple[HtmlElement, ...]


def slides_of(page: Page) -> list[Slide]:
    """Return the slides of a chapter.

    Args:
        page: the chapter as the site has it, its pictures and formulas already as the deck shows them.
    """
    _without_links(page.body)
    chapter = next(page.body.iter("section"))
    sections = [part for part in chapter if part.tag == "section"]
    words = read_language(page.language)["slides"]
    choices = next((copy.deepcopy(part) for part in page.body.find_class("course-predict-choices")), None)
    slides = list(_opening(page, [part for part in chapter if part.tag != "section"], words))
    # The parts of every chapter end in the same order, and only one of them has self-checks.
    checks = next((place for place, part in enumerate(sections) if part.find_class("course-quiz")), len(sections) + 1)
    for section in sections[: checks - 1]:
        slides += _section(section, choices)
    for section in sections[checks - 1 : checks]:
        slides += _list(section, leads_only=True)
    for section in sections[checks : checks + 1]:
        slides += _checks(section, words)
    for place in (checks + 2, checks + 4):  # the exercises and the further reading are not for slides
        for section in sections[place : place + 1]:
            slides += _list(section, leads_only=False)
    return slides


def _opening(page: Page, parts: list[HtmlElement], words: Mapping[str, str]) -> Iterator[Slide]:
    question = [part for part in parts if "course-question" in part.get("class", "")]
    yield Slide("opening", page.title, tuple(_inside(question[0])) if question else (), ())
    for part in parts:
        before = part.getprevious()
        if part.tag == "ul" and before is not None:
            yield Slide("", " ".join(before.text_content().split()).rstrip(":"), (part,), ())
        if "course-predict" in part.get("class", ""):
            inside = [inner for inner in _inside(part) if "course-predict-where" not in inner.get("class", "")]
            yield Slide("ask", part.findtext("p"), tuple(inside), (_text(words["predict"]),))


def _section(section: HtmlElement, choices: HtmlElement | None) -> Iterator[Slide]:
    name = _title(section)
    notes = tuple(copy.deepcopy(part) for part in section.iter("p") if _is_running_text(part, section))
    for box in section.find_class("course-settled"):
        for choice in choices if choices is not None else ():
            choice.set("class", "right" if choice.get("data-letter") == box.get("data-letter") else "")
        answer = [] if choices is None else [choices]
        yield Slide("ask", box.findtext("p"), (*answer, *_inside(box)), ())
    shown = [*_figures(name, section)] or [*_small_things(name, section)] or [_words(name, section, notes[:1])]
    yield Slide(shown[0].kind, shown[0].title, shown[0].body, (*shown[0].notes, *notes))
    yield from shown[1:]
    for rule in section.find_class("course-rule"):
        yield Slide("rule", rule.findtext("p"), tuple(_inside(rule)), ())


def _words(name: str, section: HtmlElement, first: tuple[HtmlElement, ...]) -> Slide:
    """Return a slide with the first paragraph of a section, and with the list that it announces."""
    if first and first[0].text_content().rstrip().endswith(":"):
        return Slide("", name, (*first, *(copy.deepcopy(part) for part in section.iter("ul", "ol")))[:2], ())
    return Slide("", name, first, ())


def _figures(name: str, section: HtmlElement) -> Iterator[Slide]:
    for figure in section.iter("figure"):
        image, caption = next(figure.iter("img")), figure.find("figcaption")
        paragraphs = [copy.deepcopy(part) for part in caption.iter("p")]
        for paragraph in paragraphs:
            for number in paragraph.find_class("caption-number"):
                number.drop_tree()
        box = html.Element("div", {"class": "drawn"})
        if _aspect(image) > _WIDE:
            box.set("class", "drawn wide")
        box.append(copy.deepcopy(image))
        claim = html.Element("div", {"class": "claim"})
        first, rest = _first_sentences(paragraphs[0]) if paragraphs else (_text(name), None)
        claim.append(first)
        box.append(claim)
        yield Slide("", name, (box,), tuple(part for part in (rest, *paragraphs[1:]) if part is not None))


def _small_things(name: str, section: HtmlElement) -> Iterator[Slide]:
    """Yield a slide with the first table, the first code or the first formula of a section that has no figure."""
    for table in section.iter("table"):
        rows = list(table.iter("tr"))
        small = len(rows) <= _LARGEST_TABLE[0] and max(len(row) for row in rows) <= _LARGEST_TABLE[1]
        if small and len(" ".join(table.text_content().split())) <= _MOST_LETTERS:
            yield Slide("", name, (table,), ())
            return
    for formula in section.iter("div"):
        if "math" in formula.get("class", "").split():
            yield Slide("", name, (formula,), ())
            return
    for code in (code for cell in section.find_class("cell_input") for code in cell.iter("pre")):
        lines = code.text_content().rstrip().splitlines()
        if len(lines) <= _LONGEST_CODE[0] and max(map(len, lines), default=0) <= _LONGEST_CODE[1]:
            yield Slide("", name, (code,), ())
            return


def _list(section: HtmlElement, leads_only: bool) -> Iterator[Slide]:
    """Yield slides with the items of a section's lists, or with the bold words that begin them."""
    items = [item for part in section.iter("ul") for item in part]
    slides = -(-len(items) // _MOST_ITEMS)
    for place in range(slides):
        shown, notes = html.Element("ul"), []
        for item in items[place * len(items) // slides : (place + 1) * len(items) // slides]:
            lead = item.find(".//strong")
            entry = html.Element("li")
            if leads_only and lead is not None:
                entry.text = lead.text_content()
                notes += list(item.iter("p"))
            else:
                entry.extend(copy.deepcopy(item))
                entry.text = item.text
            shown.append(entry)
        yield Slide("", _title(section), (shown,), tuple(notes))


def _checks(section: HtmlElement, words: Mapping[str, str]) -> Iterator[Slide]:
    name = _title(section)
    for quiz in section.find_class("course-quiz"):
        question = copy.deepcopy(quiz.find("legend"))
        question.tag = "p"
        asked, answered, notes = html.Element("ol", {"type": "a"}), html.Element("ol", {"type": "a"}), []
        for choice in quiz.find_class("course-quiz-choice"):
            label = choice.find("label")
            for shown in (asked, answered):
                entry = copy.deepcopy(label)
                entry.tag = "li"
                entry.attrib.clear()
                shown.append(entry)
            feedback = copy.deepcopy(choice.find("details/p"))
            notes.append(feedback)
            if choice.get("data-right") == "true":
                answered[-1].set("class", "right")
        yield Slide("ask", name, (question, asked), (_text(words["vote"]),))
        yield Slide("ask", f"{name}: {words['answer']}", (copy.deepcopy(question), answered), tuple(notes))


def _without_links(body: HtmlElement) -> None:
    """Take away links, marks beside headings, scripts and ids: a slide leads nowhere."""
    for element in list(body.iterdescendants(etree.Element)):
        classes = element.get("class", "").split()
        if "headerlink" in classes or element.tag in ("script", "button", "input") or "hidden" in element.attrib:
            element.drop_tree()
        elif element.tag == "a":
            element.drop_tag()
        else:
            element.attrib.pop("id", None)


def _inside(box: HtmlElement) -> list[HtmlElement]:
    return [copy.deepcopy(part) for part in box if "admonition-title" not in part.get("class", "")]


def _title(section: HtmlElement) -> str:
    """Return the heading of a section without its number."""
    heading = " ".join(section.find("h2").text_content().split())
    number, _, rest = heading.partition(". ")
    return rest if number.isdigit() else heading


def _is_running_text(paragraph: HtmlElement, section: HtmlElement) -> bool:
    """Whether a paragraph is in the text of a section, and not in a box, a figure or a table."""
    for above in paragraph.iterancestors():
        if above is section:
            return True
        if above.tag not in ("section", "div", "li", "ul", "ol") or "admonition" in above.get("class", ""):
            return False
    return False


def _text(words: str) -> HtmlElement:
    paragraph = html.Element("p")
    paragraph.text = words
    return paragraph


def _first_sentences(paragraph: HtmlElement, most: int = 170) -> tuple[HtmlElement, HtmlElement | None]:
    """Divide a caption after the last sentence that ends within the first so many characters."""
    whole = paragraph.text_content()
    if len(whole) <= most:
        return paragraph, None
    return _text(_sentences(whole, most)), paragraph


def _sentences(text: str, most: int) -> str:
    kept = ""
    for sentence in " ".join(text.split()).replace(". ", ".\n").split("\n"):
        if kept and len(kept) + len(sentence) > most:
            break
        kept += sentence + " "
    return " ".join(kept.split())


def _aspect(image: HtmlElement) -> float:
    return float(image.get("data-aspect", "1.5"))
