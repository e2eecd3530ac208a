"""Small parts of pages: the field of the page on errors, the entry to cite, the search, what not to load.

What a page left in the build is taken away when the page is moved or deleted, so that it is not published.
"""

import json
import posixpath
import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any

import yaml
from course_languages import page_language
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.index_entries import split_index_msg

logger = logging.getLogger(__name__)

CITATION = "CITATION.cff"
MOVED = "book/moved.toml"

LEADS_ON = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>This page has moved</title>
<link rel="canonical" href="{address}"><meta http-equiv="refresh" content="1; url={address}">
<script>location.replace("{address}" + location.hash);</script></head>
<body><p><a href="{address}">This page has moved.</a></p></body></html>
"""

ICON_SCRIPT = re.compile(r'<script src="[^"]*scripts/fontawesome\.js[^"]*"></script>\n?')
"""Half a megabyte that holds up the first paint: the icons come from a font that the theme's style loads as well."""

FIELD = """<div id="stuck-search" hidden>
<label for="stuck-message">{field}</label>
<textarea id="stuck-message" rows="3" spellcheck="false" autocomplete="off"></textarea>
<p role="status" aria-live="polite"></p>
</div>"""


class StuckSearch(SphinxDirective):
    """A field that narrows the entries of the page to those that fit a message; its script shows it."""

    def run(self) -> list[nodes.Node]:
        """Build the field."""
        words = page_language(self.env, self.env.docname)["stuck"]
        return [nodes.raw("", FIELD.format(field=escape(words["field"])), format="html")]


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


def synonyms(root: Path) -> list[list[str]]:
    """The groups of words for one thing, which the search treats alike; none if the book has no such file."""
    path = root / "book" / "synonyms.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))["groups"] if path.is_file() else []


def add_script(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give the page with the field its script, and the page of the search its own, with the words for one thing."""
    if pagename == "search":
        app.add_js_file(None, body=f"globalThis.courseSynonyms = {json.dumps(synonyms(Path(app.srcdir)))};")
        app.add_js_file("search.js", loading_method="defer")
    if doctree and any("stuck-search" in raw.astext() for raw in doctree.findall(nodes.raw)):
        app.add_js_file("stuck.js", loading_method="defer")


def keep_index_entries(app: Sphinx) -> list[Any]:
    """Give the search the index entries of pages that this build did not read: Sphinx keeps their words alone."""
    indexer = getattr(app.builder, "indexer", None)
    if indexer is None:
        return []
    known = indexer._index_entries  # Sphinx has no other way in
    for docname, entries in app.env.get_domain("index").entries.items():
        if docname not in known and docname in indexer._titles:
            words = {
                (word, target or "", main) for kind, value, target, main, _ in entries for word in _words(kind, value)
            }
            known[docname] = sorted(words)
    return []


def _words(kind: str, value: str) -> list[str]:
    try:
        return split_index_msg(kind, value)
    except ValueError:  # Sphinx has warned of it when it read the page
        return []


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


def lead_on(app: Sphinx, exception: Exception | None) -> None:
    """Write, at the address that a page had, a page that leads to the one that it has now: `book/moved.toml`."""
    path = Path(app.srcdir) / MOVED
    if exception or app.builder.name != "html" or not path.is_file():
        return
    for old, new in tomllib.loads(path.read_text(encoding="utf-8")).items():
        if new not in app.env.found_docs or old in app.env.found_docs:
            fault = (
                "leads to a page that the book does not have" if new not in app.env.found_docs else "is a page itself"
            )
            logger.error("%s: %s %s: correct the line, or take it out", MOVED, old, fault)
            continue
        address = posixpath.relpath(f"{new}.html", posixpath.dirname(old))
        target = Path(app.outdir) / f"{old}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(LEADS_ON.format(address=address), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("stuck-search", StuckSearch)
    app.add_directive("citation", Citation)
    app.connect("html-page-context", add_script)
    app.connect("html-page-context", mend_lists)
    app.connect("html-collect-pages", keep_index_entries)
    app.setup_extension("course_languages")
    app.connect("build-finished", remove_old_pages)
    app.connect("build-finished", lead_on)
    app.connect("build-finished", drop_icon_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
