"""The weeks of a syllabus as a table, written from `book/syllabi.toml`: `{syllabus} 10`."""

from pathlib import Path
from typing import Any

from course_tables import table
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from mlsys.course.kit.syllabus import DATA, Syllabus, Week, read_syllabi
from mlsys.course.pages.contents import book_pages
from mlsys.errors import UserError

logger = logging.getLogger(__name__)


class SyllabusDirective(SphinxDirective):
    """One row per week. The argument is the length in weeks."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the table and the line before it, or say what is wrong with the data."""
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / DATA))
        try:
            syllabus = read_syllabi(root)[int(self.arguments[0])]
        except (UserError, KeyError, ValueError) as error:
            logger.error("syllabus %r: %s", self.arguments[0], error, location=(self.env.docname, self.lineno))
            return []
        said, messages = self.parse_inline(
            f"The aim: {syllabus.aim}. Count on about {syllabus.hours} hours a week beside lectures."
        )
        return [nodes.paragraph("", "", *said, *messages), self.weeks(root, syllabus)]

    def weeks(self, root: Path, syllabus: Syllabus) -> nodes.table:
        """Build the table of the weeks, with links to the pages."""
        pages = book_pages(root)
        rows = [
            (
                str(number),
                self.links(root, [pages[name] for name in week.read]),
                self.work(root, week, pages),
                self.links(root, [pages[week.lab]] if week.hand_in else []),
            )
            for number, week in enumerate(syllabus.weeks, 1)
        ]
        return table(("week", "read", "do", "hand in"), rows)

    def work(self, root: Path, week: Week, pages: dict[str, Path]) -> nodes.inline:
        """Build what to do in a week, with a link to its lab if that is not handed in yet."""
        text = nodes.inline("", "", *self.parse_inline(week.do)[0])
        if week.lab and not week.hand_in:
            text += [nodes.Text(" ("), self.link(root, pages[week.lab], "its page"), nodes.Text(")")]
        return text

    def links(self, root: Path, pages: list[Path]) -> nodes.inline:
        """Build a text with a link to each page, which shows the page's title."""
        text = nodes.inline()
        for place, page in enumerate(pages):
            if place:
                text += nodes.Text(", ")
            text += self.link(root, page)
        return text

    def link(self, root: Path, page: Path, words: str = "") -> pending_xref:
        """Build a link to a page, with its title or other words."""
        link = pending_xref(
            "",
            nodes.inline("", words, classes=["std", "std-doc"]),
            refdomain="std",
            reftype="doc",
            reftarget="/" + page.relative_to(root).with_suffix("").as_posix(),
            refexplicit=bool(words),
            refwarn=True,
            refdoc=self.env.docname,
        )
        self.set_source_info(link)
        return link


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("syllabus", SyllabusDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
