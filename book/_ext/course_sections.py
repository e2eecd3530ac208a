"""Sections of a chapter are numbered by the build: "1. ", "2. " in headings, contents and references."""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.references import SphinxDomains

from mlsys.course.pages.notebooks import numbers_sections


class SectionNumbers(SphinxTransform):
    """Puts the number into the title itself, so that contents, references and the search show it."""

    default_priority = SphinxDomains.default_priority - 2  # Sphinx collects the titles there

    def apply(self, **kwargs: Any) -> None:
        """Number the sections of a page, if it is a chapter."""
        if not numbers_sections(Path(self.env.doc2path(self.env.docname))):
            return
        for number, title in enumerate(second_level(self.document), 1):
            title.insert(0, nodes.Text(f"{number}. "))


def second_level(document: nodes.document) -> list[nodes.title]:
    """Titles of the sections directly below that of the page."""
    return [
        section[0]
        for page in document.children
        if isinstance(page, nodes.section)
        for section in page.children
        if isinstance(section, nodes.section) and isinstance(section[0], nodes.title)
    ]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_transform(SectionNumbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
