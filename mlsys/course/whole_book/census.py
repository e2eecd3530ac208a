"""The count of what the site holds and what the whole book holds: figures, tables, equations, references and links.

The site is counted in its files as they were written. The PDF is counted in its tags, links and targets, the EPUB in
the files inside it: none of them through the pages that the book was made from.
"""

import posixpath
import re
import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pikepdf
from lxml import etree

from mlsys.course.pages.contents import book_pages
from mlsys.course.student_site import FOR_INSTRUCTORS
from mlsys.course.whole_book.pages import ANSWERS, STUDENTS
from mlsys.course.whole_book.pdf import structure

_XHTML = "{http://www.w3.org/1999/xhtml}"
_MATHML = "{http://www.w3.org/1998/Math/MathML}"
_BIBLIOGRAPHY = "bibliography"


@dataclass(frozen=True)
class Census:
    """Counts of one form of the book: references are the entries of the bibliography that the text cites."""

    figures: int
    tables: int
    equations: int
    references: int
    cross_references: int

    def missing(self, found: "Census") -> dict[str, int]:
        """Return by kind how many of what is here are not in `found`; a surplus is negative."""
        return {kind: getattr(self, kind) - getattr(found, kind) for kind in KINDS}


KINDS = tuple(field.name for field in fields(Census))


def count_site(root: Path, edition: str, site: Path | None = None) -> Census:
    """Count what the built site holds of an edition of the book."""
    site = site or root / "_build" / "html"
    addresses = {}
    for name, path in book_pages(root).items():
        docname = path.relative_to(root).with_suffix("").as_posix()
        if edition != STUDENTS or docname not in FOR_INSTRUCTORS:
            addresses[f"{docname}.html"] = name
    counts = dict.fromkeys(KINDS, 0)
    cited: set[str] = set()
    for address in addresses:
        text = (site / address).read_text(encoding="utf-8")
        article = text[text.index("<article") : text.index("</article>")]
        if edition == STUDENTS:
            article = re.sub(r'<details class="sd-.*?</details>', "", article, flags=re.S)
        article = re.sub(
            r'<div class="toctree-wrapper.*?</div>|<p class="course-(?:notebook|languages)".*?</p>',
            "",
            article,
            flags=re.S,
        )
        counts["figures"] += len(re.findall(r"<figure\b", article))
        counts["tables"] += len(re.findall(r"<table\b", article))
        counts["equations"] += len(re.findall(r'<(?:span|div) class="math\b', article))
        for link in re.findall(r"<a\b[^>]*>", article):
            target = re.search(r'href="([^"]*)"', link)
            if target is None or "headerlink" in link or re.match(r"\w+:", target[1]):
                continue
            place, _, identifier = target[1].partition("#")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(address), place)) if place else address
            if place in addresses:
                counts["cross_references"] += 1
                if addresses[place] == _BIBLIOGRAPHY and identifier:
                    cited.add(identifier)
    return Census(**(counts | {"references": len(cited)}))


def count_pdf(pdf: Path) -> Census:
    """Count what a PDF of the book holds, in its structure and its links."""
    counts = dict.fromkeys(KINDS, 0)
    cited: set[str] = set()
    with pikepdf.open(pdf) as opened:
        places: Any = opened.Root.get("/Dests", {})
        for element in structure(opened):
            kind = str(element.S)
            if kind == "/Figure" and "/Alt" in element:
                counts["figures"] += 1  # Chromium tags a figure and the picture in it; the picture has the alt text
            counts["tables"] += kind == "/Table"
            counts["equations"] += kind == "/Formula"
            target = _target(element) if kind == "/Link" else ""
            if target in places:
                name, _, identifier = target[1:].partition("--")
                counts["cross_references"] += name != ANSWERS
                if name == _BIBLIOGRAPHY and identifier:
                    cited.add(identifier)
        # The contents link to each page once; of their links, only that to the answers is not counted above.
        pages = {name for name in places if "--" not in name}
        counts["cross_references"] -= len(pages - {f"/{ANSWERS}"})
    return Census(**(counts | {"references": len(cited)}))


def _target(link: pikepdf.Dictionary) -> str:
    """Return the name that a link leads to in the same file, or an empty text."""
    for part in link.K if isinstance(link.K, pikepdf.Array) else [link.K]:
        if isinstance(part, pikepdf.Dictionary) and "/Obj" in part and "/Dest" in part.Obj:
            return str(part.Obj.Dest)
    return ""


def count_epub(epub: Path) -> Census:
    """Count what an EPUB of the book holds, in the pages inside it."""
    counts = dict.fromkeys(KINDS, 0)
    cited: set[str] = set()
    with zipfile.ZipFile(epub) as opened:
        pages = {posixpath.basename(name): name for name in opened.namelist() if name.endswith(".xhtml")}
        for name, page in pages.items():
            if name in ("nav.xhtml", "title.xhtml"):
                continue
            document = etree.fromstring(opened.read(page))
            counts["figures"] += _many(document, f"{_XHTML}figure")
            counts["tables"] += _many(document, f"{_XHTML}table")
            counts["equations"] += _many(document, f"{_MATHML}math")
            for link in document.iter(f"{_XHTML}a"):
                place, _, identifier = link.get("href", "").partition("#")
                if place in pages and place != f"{ANSWERS}.xhtml":
                    counts["cross_references"] += 1
                    if place == f"{_BIBLIOGRAPHY}.xhtml" and identifier:
                        cited.add(identifier)
    return Census(**(counts | {"references": len(cited)}))


def _many(document: etree._Element, tag: str) -> int:
    return sum(1 for _ in document.iter(tag))
