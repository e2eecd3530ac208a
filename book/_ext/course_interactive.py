"""Figures that the reader operates: `{interactive} NAME` with its caption, and no server behind the page.

The numbers come from `mlsys` through `book/_interactive` and are embedded in the page as JSON. A static picture and
tables stand in the page as well: they are what is there without JavaScript, and the tables stay within reach with it.
"""

import json
import os
import re
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from course_languages import page_language
from course_tables import table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from mlsys.course.pages.languages import ENGLISH, Language, LanguageError
from mlsys.errors import UnknownName, UserError

BOOK = Path(__file__).parents[1]
sys.path.insert(0, str(BOOK))

from _figures import words  # noqa: E402
from _interactive import FIGURES, Content, Table  # noqa: E402

logger = logging.getLogger(__name__)

SAID = re.compile(r'\bsaid\(\s*"((?:[^"\\]|\\.)*)"')
"""A text that a script says in the language of the page."""
KEY = re.compile(r'\bcourseFigure\.start\(\s*"[\w-]+",\s*"((?:[^"\\]|\\.)*)",')
"""The key to the marks of a drawing, which `courseFigure` says in the language of the page."""
SCRIPTS = "interactive"
"""Folder below `_static` with the scripts, the style and the drawing library."""
DRAWING_LIBRARY = f"{SCRIPTS}/d3-7.9.2/d3.min.js"


class InteractiveNode(nodes.General, nodes.Element):
    """A figure: its children are the static picture, the folded tables and the caption."""


class FoldNode(nodes.General, nodes.Element):
    """The tables of an interactive figure, open where there is no script."""


class CaptionNode(nodes.General, nodes.Element):
    """What the figure is for, and what to try."""


class InteractiveDirective(SphinxDirective):
    """The argument is the name of the figure, the content its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Build the figure, or say what is wrong with it."""
        name = self.arguments[0]
        where = (self.env.docname, self.lineno)
        for source in (BOOK / "_interactive").glob("*.py"):
            self.env.note_dependency(str(source))
        language = page_language(self.env, self.env.docname)
        try:
            words.use(language.code)
            content = _content(name)
            said = spoken(name, content.scripts, language)
            picture = self.picture(name if language.code == ENGLISH else f"{name}-{language.code}", content)
        except UserError as error:
            logger.error("interactive figure %r: %s", name, error, location=where)
            return []
        finally:
            words.use(ENGLISH)
        scripts = (f"{SCRIPTS}/{script}.js" for script in (name, *content.scripts))
        for needed in (BOOK / "_static" / script for script in (*scripts, DRAWING_LIBRARY)):
            if not needed.is_file():
                logger.error("interactive figure %r: its script %s is missing", name, needed, location=where)
                return []
        caption = self.parse_content_to_nodes()
        if not caption:
            logger.error(
                "interactive figure %r has no caption: say below its name what to try and what there is to see",
                name,
                location=where,
            )
            return []
        numbers = json.dumps(content.numbers, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        figure = InteractiveNode(
            ids=[f"interactive-{name}"],
            name=name,
            title=content.title,
            numbers=numbers,
            scripts=content.scripts,
            words=json.dumps(said, ensure_ascii=False) if said else "",
            said=dict(language["interactive"]),
        )
        figure += nodes.image(uri=picture, alt=content.alt, loading="lazy")
        figure += FoldNode(
            "", *(child for one in content.tables for child in _shown(one)), said=dict(language["interactive"])
        )
        figure += CaptionNode("", *caption)
        self.set_source_info(figure)
        return [figure]

    def picture(self, name: str, content: Content) -> str:
        """Draw the static picture to a file of the build; Sphinx copies it into the site."""
        import matplotlib.pyplot as plt

        path = Path(self.env.app.outdir).parent / "interactive" / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = content.picture()
        drawn.savefig(path, metadata={"Date": None})
        plt.close(drawn)
        return "/" + Path(os.path.relpath(path, self.env.srcdir)).as_posix()


def spoken(name: str, shared: Iterable[str], language: Language) -> dict[str, str]:
    """Return what the scripts of a figure say, by the English words; nothing for English, which they say themselves.

    Raises:
        LanguageError: the language lacks a word, or a script says its words in English only.
    """
    if language.code == ENGLISH:
        return {}
    found: dict[str, str] = {}
    for script in ("figure", *shared, name):
        text = (BOOK / "_static" / SCRIPTS / f"{script}.js").read_text(encoding="utf-8")
        texts = SAID.findall(text) + (KEY.findall(text) if script == name else [])
        if not SAID.search(text) or (script == name and not KEY.search(text)):
            raise LanguageError(
                f'{SCRIPTS}/{script}.js says words in English only: write each as said("..."), and its key as one text'
            )
        found |= {one: language.said("figures", one) for one in (json.loads(f'"{text}"') for text in texts)}
    return found


def _content(name: str) -> Content:
    if name not in FIGURES:
        raise UnknownName.of("figure", name, FIGURES)
    return FIGURES[name]()


def _shown(content: Table) -> list[nodes.Node]:
    """A table and its title."""
    head, *body = content.rows
    return [nodes.paragraph("", content.title), table(head, body)]


def visit_interactive(self: HTML5Translator, node: InteractiveNode) -> None:
    """Open the figure; the script fills the controls and replaces the picture."""
    title = escape(node["title"], quote=True)
    controls = escape(node["said"]["controls"].format(title=node["title"]), quote=True)
    said = f' data-words="{escape(node["words"], quote=True)}"' if node["words"] else ""
    self.body.append(
        f'<figure class="course-interactive" id="{node["ids"][0]}" data-figure="{node["name"]}" data-title="{title}"'
        f"{said}>\n"
        f'<div class="controls" role="group" aria-label="{controls}" hidden></div>\n'
        '<div class="drawing">\n'
    )


def depart_interactive(self: HTML5Translator, node: InteractiveNode) -> None:
    """Embed the numbers; a `<` in them must not end the script."""
    numbers = node["numbers"].replace("<", "\\u003c")
    self.body.append(f'<script type="application/json">{numbers}</script>\n</figure>\n')


def visit_fold(self: HTML5Translator, node: FoldNode) -> None:
    """End the drawing, leave a place for the result, and open the fold."""
    self.body.append(
        '</div>\n<div class="result" role="status" aria-live="polite"></div>\n'
        f"<details open><summary>{escape(node['said']['numbers'])}</summary>\n"
    )


def depart_fold(self: HTML5Translator, node: FoldNode) -> None:
    """Close the fold."""
    self.body.append("</details>\n")


def visit_caption(self: HTML5Translator, node: CaptionNode) -> None:
    """Open the caption."""
    self.body.append("<figcaption>\n")


def depart_caption(self: HTML5Translator, node: CaptionNode) -> None:
    """Close the caption."""
    self.body.append("</figcaption>\n")


def add_scripts(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give a page the scripts of its figures, and a page without one none."""
    figures = list(doctree.findall(InteractiveNode)) if doctree else []
    if figures:
        app.add_css_file(f"{SCRIPTS}/interactive.css")
        shared = sorted({script for figure in figures for script in figure["scripts"]})
        names = ("figure", *shared, *sorted({figure["name"] for figure in figures}))
        for script in (DRAWING_LIBRARY, *(f"{SCRIPTS}/{name}.js" for name in names)):
            app.add_js_file(script, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.setup_extension("course_languages")
    app.add_directive("interactive", InteractiveDirective)
    app.add_node(InteractiveNode, html=(visit_interactive, depart_interactive))
    app.add_node(FoldNode, html=(visit_fold, depart_fold))
    app.add_node(CaptionNode, html=(visit_caption, depart_caption))
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
