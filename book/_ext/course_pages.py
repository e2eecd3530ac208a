"""Small parts of pages: the field of the page on errors, the entry to cite, excerpts of results, what not to load.

What a page left in the build is taken away when the page is moved or deleted, so that it is not published.
"""

import re
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

CITATION = "CITATION.cff"

ICON_SCRIPT = re.compile(r'<script src="[^"]*scripts/fontawesome\.js[^"]*"></script>\n?')
"""Half a megabyte that holds up the first paint: the icons come from a font that the theme's style loads as well."""

FIELD = """<div id="stuck-search" hidden>
<label for="stuck-message">Your message</label>
<textarea id="stuck-message" rows="3" spellcheck="false" autocomplete="off"></textarea>
<p role="status" aria-live="polite"></p>
</div>"""


class StuckSearch(SphinxDirective):
    """A field that narrows the entries of the page to those that fit a message; its script shows it."""

    def run(self) -> list[nodes.Node]:
        """Build the field."""
        return [nodes.raw("", FIELD, format="html")]


class Citation(SphinxDirective):
    """The entry for a bibliography, from the repository's file on how to cite it."""

    def run(self) -> list[nodes.Node]:
        """Build the listing."""
        path = Path(self.env.srcdir) / CITATION
        self.env.note_dependency(str(path))
        work = yaml.safe_load(path.read_text(encoding="utf-8"))
        authors = " and ".join(f"{{{author['name']}}}" for author in work["authors"])
        entry = "\n".join(
            (
                f"@software{{ai_hardware_acceleration_{work['version'].replace('.', '_')},",
                f"  title   = {{{{{work['title']}}}}},",
                f"  author  = {{{authors}}},",
                f"  version = {{{work['version']}}},",
                f"  year    = {{{str(work['date-released'])[:4]}}}",
                "}",
            )
        )
        return [nodes.literal_block(entry, entry, language="bibtex")]


def add_script(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give the page with the field its script, and the page of the search the one that makes its excerpts."""
    if pagename == "search":
        app.add_js_file("search-excerpts.js", loading_method="defer")
    if doctree and any("stuck-search" in raw.astext() for raw in doctree.findall(nodes.raw)):
        app.add_js_file("stuck.js", loading_method="defer")


def mend_lists(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Take a role from the list of citations that its entries do not fit, which confuses screen readers."""
    if "body" in context:
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )


def drop_icon_script(app: Sphinx, exception: Exception | None) -> None:
    """Take the script that draws icons out of the written pages."""
    if exception or app.builder.name != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if "scripts/fontawesome.js" in text:
            path.write_text(ICON_SCRIPT.sub("", text), encoding="utf-8")


def remove_old_pages(app: Sphinx, exception: Exception | None) -> None:
    """Take away what earlier builds wrote for pages that the book no longer has."""
    if exception or app.builder.name != "html":
        return
    site = Path(app.outdir)
    for tree in (site, site / "_sources", site.parent / "jupyter_execute"):
        for path in (tree / "book").rglob("*.*"):
            docname = path.relative_to(tree).as_posix().removesuffix("".join(path.suffixes))
            if path.is_file() and docname not in app.env.found_docs:
                path.unlink()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("stuck-search", StuckSearch)
    app.add_directive("citation", Citation)
    app.connect("html-page-context", add_script)
    app.connect("html-page-context", mend_lists)
    app.connect("build-finished", remove_old_pages)
    app.connect("build-finished", drop_icon_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
