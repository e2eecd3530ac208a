"""Pages that run from right to left: `dir: rtl` and `lang: he` in the front matter of a page.

The article of such a page gets both as attributes, and `rtl.css` sets its lists and boxes; code, formulas and pictures
stay left to right. What Sphinx and the course put into an article in English is said in the page's language.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

DIRECTIONS = ("ltr", "rtl")

WORDS = {"he": {"Figure": "איור", "Table": "טבלה"}}
"""By language: what stands before the number of a figure or table."""

TOOLTIPS = {
    "he": {
        "Link to this heading": "קישור לכותרת הזאת",
        "Link to this image": "קישור לתמונה הזאת",
        "Link to this table": "קישור לטבלה הזאת",
    }
}
"""By language: what Sphinx says of the marks beside headings, figures and tables."""

FRAME = {"he": {"Report an error": "דיווח על טעות", "Contents": "בעמוד זה"}}
"""By language: what the theme writes beside the article of a page, each between two tags."""

ARTICLE = '<article class="bd-article">'
"""The theme's tag, as it is written for every page."""


def translate(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Write "Figure 1" and the tooltips of an article in the language of its page."""
    language = app.env.metadata.get(pagename, {}).get("lang", "")
    for english, word in WORDS.get(language, {}).items():
        for start in ('<span class="caption-number">', '<span class="std std-numref">'):
            context["body"] = context["body"].replace(f"{start}{english} ", f"{start}{word} ")
    for english, words in TOOLTIPS.get(language, {}).items():
        context["body"] = context["body"].replace(f'title="{english}"', f'title="{words}"')


def article_with_direction(html: str, language: str, direction: str) -> str:
    """The page with both attributes on its article; a page that has them stays as it is.

    Raises:
        ValueError: if there is no article to put them on.
    """
    wanted = f'<article class="bd-article" lang="{language}" dir="{direction}">'
    if wanted not in html and ARTICLE not in html:
        raise ValueError(f"the theme writes no {ARTICLE} any more: change ARTICLE in book/_ext/course_rtl.py")
    return html.replace(ARTICLE, wanted)


def frame_in_language(html: str, language: str) -> str:
    """The page with the theme's words beside its article in the page's language."""
    for english, word in FRAME.get(language, {}).items():
        html = re.sub(rf"(>\s*){english}(\s*<)", rf"\g<1>{word}\g<2>", html)
    return html


def set_direction(app: Sphinx, exception: Exception | None) -> None:
    """Put language and direction on the written pages that ask for them."""
    if exception or app.builder.name != "html":
        return
    for page, data in sorted(app.env.metadata.items()):
        if "dir" not in data:
            continue
        direction, language = data["dir"], data.get("lang", "")
        if direction not in DIRECTIONS or not language:
            logger.error(
                "%s: dir is %r and lang is %r; a page with dir needs one of %s, and a lang such as he",
                page,
                direction,
                language,
                " or ".join(DIRECTIONS),
            )
            continue
        path = Path(app.outdir) / f"{page}.html"
        try:
            page_text = article_with_direction(path.read_text("utf-8"), language, direction)
            path.write_text(frame_in_language(page_text, language), "utf-8")
        except ValueError as error:
            logger.error("%s: %s", page, error)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx, with the style sheet for such pages."""
    app.add_css_file("rtl.css")
    app.connect("html-page-context", translate, priority=950)
    app.connect("build-finished", set_direction)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
