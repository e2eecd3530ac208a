"""Paths through the book: `{reader-paths}` lists for each aim of `book/paths.toml` its chapters in order and its labs.

A path has the chapters that the aim asks for and all that those need, as `book/concepts.toml` says.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_concepts import Concepts, read_concepts
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from mlsys.course.pages.contents import CONTENTS, book_pages

logger = logging.getLogger(__name__)

DATA = "book/paths.toml"


@dataclass(frozen=True)
class ReaderPath:
    """The path of readers with one aim.

    Attributes:
        aim: whose path it is, as a sentence without its full stop.
        result: what these readers can do at its end.
        chapters: names of its chapters in the order of the contents, the needed ones included.
        goals: those that the aim asks for.
        labs: names of the labs' pages.
    """

    aim: str
    result: str
    chapters: tuple[str, ...]
    goals: tuple[str, ...]
    labs: tuple[str, ...]


def needed(goals: list[str], concepts: Concepts) -> set[str]:
    """The chapters that the goals need, and the goals themselves."""
    found: set[str] = set()
    waiting = list(goals)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += concepts[name]["needs"]
    return found


def read_paths(root: Path) -> dict[str, ReaderPath]:
    """The paths in the order of the file.

    Raises:
        ValueError: a goal that is no chapter, or a lab without a page.
    """
    concepts, pages = read_concepts(root), book_pages(root)
    listed: dict[str, dict[str, Any]] = tomllib.loads((root / DATA).read_text(encoding="utf-8"))
    found = {}
    for key, entry in listed.items():
        gone = [name for name in entry["goals"] if name not in concepts]
        gone += [name for name in entry["labs"] if name not in pages]
        if gone:
            raise ValueError(f"{DATA}: [{key}] names {', '.join(gone)}, which _toc.yml does not list: correct the name")
        chapters = needed(entry["goals"], concepts)
        found[key] = ReaderPath(
            entry["aim"],
            entry["result"],
            tuple(name for name in concepts if name in chapters),
            tuple(entry["goals"]),
            tuple(entry["labs"]),
        )
    return found


class ReaderPaths(SphinxDirective):
    """A definition list: the aims, each with its chapters and labs."""

    def run(self) -> list[nodes.Node]:
        """List the paths."""
        root = Path(self.env.srcdir)
        for file in (DATA, "book/concepts.toml", CONTENTS):
            self.env.note_dependency(str(root / file))
        try:
            paths = read_paths(root)
        except ValueError as error:
            logger.error("%s", error, location=(self.env.docname, self.lineno))
            return []
        found = nodes.definition_list(classes=["course-paths"])
        for path in paths.values():
            term = nodes.term("", path.aim)
            what = nodes.paragraph("", f"At the end you can {path.result}.")
            chapters = nodes.paragraph("", f"{len(path.chapters)} chapters: ")
            chapters += self._joined(path.chapters, path.goals)
            labs = nodes.paragraph("", "", *self._joined(path.labs, ()))
            found += nodes.definition_list_item("", term, nodes.definition("", what, chapters, labs))
        return [found]

    def _joined(self, names: tuple[str, ...], strong: tuple[str, ...]) -> list[nodes.Node]:
        """Links to pages, with arrows, for some titles have commas; those in `strong` are set in bold."""
        found: list[nodes.Node] = []
        for place, name in enumerate(names):
            found.append(nodes.Text(" → " if place else ""))
            link = self._link(name)
            found.append(nodes.strong("", "", link) if name in strong else link)
        return [*found, nodes.Text(".")]

    def _link(self, name: str) -> addnodes.pending_xref:
        page = book_pages(Path(self.env.srcdir))[name].relative_to(self.env.srcdir).with_suffix("")
        return addnodes.pending_xref(
            "", nodes.inline(), refdomain="std", reftype="doc", reftarget=f"/{page}", refexplicit=False, refwarn=True
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("reader-paths", ReaderPaths)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
