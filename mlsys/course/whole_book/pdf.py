"""The whole book as a PDF, which Chromium prints: bookmarks, links within the file, tags for screen readers.

Formulas are set by the site's own copy of MathJax, so that nothing is fetched from anywhere.
"""

import html as text_of_html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pikepdf
from lxml import etree, html
from lxml.html import HtmlElement

from mlsys.course.whole_book.browser import chromium
from mlsys.course.whole_book.pages import Book, Page, tex_of
from mlsys.errors import UserError

HERE = Path(__file__).parent

_DOCUMENT = """<!DOCTYPE html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="{pygments}">
<style>{style}</style>
<script>window.MathJax = {{
  chtml: {{scale: 0.9}},
  options: {{
    enableAssistiveMml: false,
    enableMenu: false,
    ignoreHtmlClass: "tex2jax_ignore|mathjax_ignore",
    processHtmlClass: "tex2jax_process|mathjax_process|math",
  }},
}};</script>
<script defer src="{mathjax}"></script>
</head><body>
<div class="title-page"><h1>{title}</h1><p>{author}</p><p>{edition}</p>
<p>Version {version}. Text: CC BY 4.0. Code: Apache-2.0.</p></div>
{contents}
{pages}
</body></html>
"""

_FORMULAS = """Array.from(document.querySelectorAll("em"), (e) => e.classList.contains("math") ? e.dataset.tex : "")"""
"""For each emphasized text of the document, its TeX if it is a formula."""

_ADD_TEX = """() => document.querySelectorAll("em.math").forEach((formula) => {
  const text = document.createElement("span");
  text.className = "tex";
  text.textContent = formula.dataset.tex;
  formula.prepend(text);
})"""
"""Puts its TeX behind each formula, too small to be seen: MathJax's glyphs are no text that a search can find."""

_FILL_IN = """(numbers) => document.querySelectorAll("nav.contents a").forEach((link) => {
  link.nextElementSibling.textContent = numbers[link.hash.slice(1)];
})"""
"""Writes the page numbers into the contents."""

EDITION_LINES = {"students": "", "instructors": "Instructors' edition, with the solutions of the exercises"}


def whole_document(book: Book) -> str:
    """Return the book as one HTML document, with its links bound; pictures and scripts are those of the site."""
    site = book.site.resolve().as_uri()
    book.bind(lambda page, name, identifier: _anchor(name, identifier), lambda picture: f"{site}/{picture}")
    for page in book.pages:
        for mark in list(page.body.iter("span")):
            _hand_on(mark)
        for element in page.body.iter(etree.Element):
            if element.get("id"):
                element.set("id", _anchor(page.name, element.get("id"))[1:])
        page.body.set("id", page.name)
        for formula in list(page.body.find_class("math")):
            _mark(formula)
    return _DOCUMENT.format(
        title=text_of_html.escape(book.title),
        author=text_of_html.escape(book.author),
        edition=EDITION_LINES[book.edition],
        version=book.version,
        pygments=f"{site}/_static/pygments.css",
        mathjax=f"{site}/_static/mathjax/tex-mml-chtml.js",
        style="".join((HERE / name).read_text(encoding="utf-8") for name in ("book.css", "paper.css")),
        contents=_contents(book),
        pages="\n".join(html.tostring(page.body, encoding="unicode", with_tail=False) for page in book.pages),
    )


def print_pdf(book: Book, target: Path) -> Path:
    """Print the book into the file `target` and return its path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source = target.with_suffix(".html")
    source.write_text(whole_document(book), encoding="utf-8")
    with chromium() as browser:
        page = browser.new_page()
        page.goto(source.resolve().as_uri(), wait_until="load", timeout=300_000)
        page.evaluate("MathJax.startup.promise.then(() => document.fonts.ready).then(() => true)")
        refused = page.evaluate("document.querySelectorAll('mjx-merror').length")
        if refused:
            raise UserError(f"{source}: MathJax refuses {refused} formulas: open the file and look for the red ones")
        formulas = page.evaluate(_FORMULAS)
        page.evaluate(_ADD_TEX)
        # Only a printed book knows on which page a chapter begins: print, fill in the contents, print again.
        _print(page, target)
        page.evaluate(_FILL_IN, page_numbers(target))
        _print(page, target)
    source.unlink()
    _finish(book, target, formulas)
    return target


def page_numbers(pdf: Path) -> dict[str, int]:
    """Return, for each name that a link in a PDF can lead to, the number of its page, counted from 1."""
    with pikepdf.open(pdf) as opened:
        number_of = {page.obj.objgen: number for number, page in enumerate(opened.pages, 1)}
        places: Any = opened.Root.get("/Dests", {})
        return {name[1:]: number_of[place[0].objgen] for name, place in places.items()}


def _print(page: Any, target: Path) -> None:
    page.pdf(path=str(target), prefer_css_page_size=True, print_background=True, outline=True, tagged=True)


def _finish(book: Book, target: Path, formulas: list[str]) -> None:
    """Tag the formulas as such, each with its TeX to be read aloud; say what the file is; pack it tightly."""
    with pikepdf.open(target, allow_overwriting_input=True) as pdf:
        emphasized = [element for element in structure(pdf) if element.get("/S") == pikepdf.Name.Em]
        if len(emphasized) != len(formulas):
            raise UserError(
                f"{target}: Chromium tagged {len(emphasized)} of {len(formulas)} emphasized texts and formulas: this "
                "version of it needs another way to find the formulas in mlsys/course/whole_book/pdf.py"
            )
        for element, formula in zip(emphasized, formulas, strict=True):
            if formula:
                element.S, element.Alt = pikepdf.Name.Formula, pikepdf.String(formula)
        with pdf.open_metadata(set_pikepdf_as_editor=False) as data:
            data["dc:title"], data["dc:language"] = book.title, ["en"]
            data["dc:creator"] = [book.author]
            data["xmp:CreateDate"] = data["xmp:ModifyDate"] = book.dated.isoformat()
        for date in ("/CreationDate", "/ModDate"):
            pdf.docinfo[date] = book.dated.strftime("D:%Y%m%d%H%M%SZ")
        pdf.save(
            target, deterministic_id=True, object_stream_mode=pikepdf.ObjectStreamMode.generate, recompress_flate=True
        )


def structure(pdf: pikepdf.Pdf) -> Iterator[pikepdf.Dictionary]:
    """Yield the elements of a tagged PDF in the order in which they are read."""
    waiting = [pdf.Root.StructTreeRoot]
    while waiting:
        element = waiting.pop()
        if isinstance(element, pikepdf.Array):
            waiting.extend(reversed(list(element)))
        elif isinstance(element, pikepdf.Dictionary):
            if "/S" in element:
                yield element
            if "/K" in element:
                waiting.append(element.K)


def _hand_on(mark: HtmlElement) -> None:
    """Give the id of an empty element to what follows it: Chromium may lose the target of an empty one."""
    following = mark.getnext()
    empty = len(mark) == 0 and not mark.text and not mark.tail
    if mark.get("id") and empty and following is not None and following.get("id") is None:
        following.set("id", mark.attrib.pop("id"))


def _mark(formula: HtmlElement) -> None:
    """Make a formula an emphasized text: of the tags that Chromium writes, one that can be found again."""
    source = tex_of(formula)
    if formula.tag == "span":
        formula.tag = "em"
        formula.set("data-tex", source)
        return
    inner = html.Element("em", {"class": "math", "data-tex": source})
    inner.text, formula.text = formula.text, None
    formula.insert(0, inner)


def _anchor(name: str, identifier: str) -> str:
    return f"#{name}--{identifier}" if identifier else f"#{name}"


def _contents(book: Book) -> str:
    lines, part = [], ""
    for page in book.pages:
        if page.part != part:
            lines.append(f"</ol></li><li>{page.part}<ol>" if part else f"<li>{page.part}<ol>")
            part = page.part
        lines.append(f'<li><a href="#{page.name}">{_title(page)}</a> <span class="number">000</span></li>')
    return f'<nav class="contents page"><h1>Contents</h1><ol>{"".join(lines)}</ol></li></ol></nav>'


def _title(page: Page) -> str:
    return f'<span lang="{page.language}">{text_of_html.escape(page.title)}</span>'
