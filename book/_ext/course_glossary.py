"""Below each term of the glossary: the chapter that explains it, where it is first used there, and the next picture.

`book/concepts.toml` says under `explains` which chapter that is. `course_prose` puts the target at the first use.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_concepts import DATA, titles
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from mlsys.course.pages.contents import book_pages

PAGE = "glossary"
"""Name of the page that has the glossary."""


def explained(root: Path) -> dict[str, str]:
    """The chapter that explains a term, by the term; only chapters of the table of contents."""
    concepts = tomllib.loads((root / DATA).read_text(encoding="utf-8"))
    pages = book_pages(root)
    return {
        term: chapter for chapter, entry in concepts.items() if chapter in pages for term in entry.get("explains", ())
    }


def entries(document: nodes.document) -> Iterator[tuple[str, nodes.definition]]:
    """Each term of the page's glossary with its definition."""
    for item in document.findall(nodes.definition_list_item):
        term, definition = item.next_node(nodes.term), item.next_node(nodes.definition)
        if term is not None and definition is not None and any(name.startswith("term-") for name in term["ids"]):
            yield term.astext().replace("’", "'"), definition  # Sphinx sets typographic apostrophes


def picture(document: nodes.document, use: str) -> str:
    """Return the place of the figure in the section where a term is first used: the next, or the last before it.

    Empty if this section has none.
    """
    target = next((node for node in document.findall(nodes.Element) if use in node.get("ids", ())), None)
    section = target
    while section is not None and not isinstance(section, nodes.section):
        section = section.parent
    if target is None or section is None:
        return ""
    before, after, found = "", "", False
    for node in section.findall(nodes.Element):
        found = found or node is target
        if isinstance(node, nodes.figure) and node["ids"]:
            before, after = (before, after or node["ids"][0]) if found else (node["ids"][0], after)
    return after or before


def add_places(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Add to each definition the link to the chapter that explains its term."""
    if docname.rpartition("/")[2] != PAGE:
        return
    root = Path(app.srcdir)
    where, pages = explained(root), book_pages(root)
    names = titles(root, sorted(set(where.values())))
    for term, definition in entries(document):
        if term in where:
            chapter = where[term]
            page = pages[chapter].relative_to(root).with_suffix("").as_posix()
            address = f"{app.builder.get_relative_uri(docname, page)}#use-of-{nodes.make_id(term)}"
            link = nodes.reference("", names[chapter], internal=True, refuri=address)
            parts: list[nodes.Node] = [nodes.Text("Explained in "), link]
            if place := picture(app.env.get_doctree(page), f"use-of-{nodes.make_id(term)}"):
                address = f"{app.builder.get_relative_uri(docname, page)}#{place}"
                shown = nodes.reference("", "a picture", internal=True, refuri=address)
                parts += [nodes.Text(", with "), shown]
            definition += nodes.paragraph("", "", *parts, classes=["course-explained"])


def read_again(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The glossary shows titles of other pages, so it is read again when one of them changes."""
    pages = {name for name in env.found_docs if name.rpartition("/")[2] == PAGE}
    return sorted(pages) if added | changed | removed else []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", add_places)
    app.connect("env-get-outdated", read_again)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
