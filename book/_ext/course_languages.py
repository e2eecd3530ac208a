"""Pages in another language than English: their cells, the words around their text, and the way to and from English.

A page in `book/he` is in the language whose words are in `book/_languages/he.toml`. `limits-he` translates `limits`:
the two lead to each other, and the translation names the sections that have changed in English since. A link to a
chapter that is translated leads to the translation, and a link to any other page says that this page is in English. A
word of the theme that the language lacks is an error that names the file and the key.
"""

import html
import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from mlsys.course.pages.contents import CONTENTS, book_pages
from mlsys.course.pages.languages import ENGLISH, FOLDER, Language, LanguageError, codes, language_of, read_language
from mlsys.course.pages.notebooks import NO_CHAPTER, is_chapter
from mlsys.course.pages.translation import STATE, Change, changes, expanded, original_of
from mlsys.errors import UserError

logger = logging.getLogger(__name__)

ARTICLE = '<article class="bd-article">'
"""The theme's tag, as it is written for every page."""
TURNED = (
    '<nav id="pst-page-toc-nav" class="page-toc"',
    '<footer class="prev-next-footer d-print-none"',
    '<footer class="bd-footer-content"',
)
"""Parts beside the article that run in the direction of its language."""
FOR_SCRIPTS = ("progress", "stuck")
"""Groups of words that scripts say; those of a quiz and of a prediction travel with their boxes."""
QUIETLY = ("glossary", "bibliography")
"""Pages in English to which so many links lead that only their tooltips say so."""

TOKEN = re.compile(r"<!--.*?-->|<[^>]*>|[^<]+", re.S)
TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)([^>]*)>", re.S)
SAID_IN = re.compile(r'((?:title|aria-label|placeholder|data-bs-title)=")([^"]*)(")')
LINK = re.compile(r'<a ([^>]*?)href="([^"#]*\.html)(#[^"]*)?"([^>]*)>')
LETTER = re.compile(r"[^\W\d_]")
OF_THE_PAGE = {
    "head",
    "h1",
    "script",
    "style",
    "noscript",
    "svg",
    "kbd",
    "article",
    "nav.bd-links",
    "a.nav-link",
    "p.prev-next-title",
}
"""What is not the theme's: the text of the page, and titles of pages and sections."""


def page_language(env: BuildEnvironment, docname: str) -> Language:
    """Return the language of a page; pages that Sphinx makes itself, such as the index, are in English."""
    code = language_of(Path(env.doc2path(docname))) if docname in env.found_docs else ENGLISH
    return read_language(code, Path(env.srcdir))


def _docname(env: BuildEnvironment, page: Path) -> str:
    return page.relative_to(env.srcdir).with_suffix("").as_posix()


def versions(env: BuildEnvironment, docname: str) -> dict[str, str]:
    """Return the pages that say the same as this one, itself among them, by their languages."""
    if docname not in env.found_docs:
        return {}
    page = Path(env.doc2path(docname))
    original = original_of(page) or page
    found = {ENGLISH: _docname(env, original)} if language_of(original) == ENGLISH else {}
    for code in codes(Path(env.srcdir)):
        name = f"book/{code}/{original.stem}-{code}"
        if name in env.found_docs:
            found[code] = name
    return found if docname in found.values() else {}


# The text


def fill_in(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give a translation the cells of its English page, and have it read again when that page or a word changes."""
    page, root = Path(app.env.doc2path(docname)), Path(app.srcdir)
    code = language_of(page)
    if code == ENGLISH:
        return
    original = original_of(page)
    for needed in (root / FOLDER / f"{code}.toml", root / FOLDER / f"{ENGLISH}.toml", page.parent / STATE, original):
        if needed is not None:
            app.env.note_dependency(str(needed))
    try:
        source[0] = expanded(page, source[0])
        changes(page)
    except UserError as error:
        logger.error("%s", error, location=docname)


def check_words(app: Sphinx) -> None:
    """Refuse a language that lacks a word."""
    for code in codes(Path(app.srcdir)):
        try:
            read_language(code, Path(app.srcdir))
        except LanguageError as error:
            logger.error("%s", error)


def mark_links(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Lead the links of a translation to translations, and mark those that lead to English."""
    language = page_language(app.env, docname)
    if language.code == ENGLISH:
        return
    words = language["languages"]
    for link in list(doctree.findall(nodes.reference)):
        place, _, fragment = link.get("refuri", "").partition("#")
        if not link.get("internal") or not place.endswith(".html"):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(docname), place)).removesuffix(".html")
        if target not in app.env.found_docs or language_of(Path(app.env.doc2path(target))) != ENGLISH:
            continue
        own = versions(app.env, target).get(language.code)
        if own and not fragment:
            link["refuri"] = app.builder.get_relative_uri(docname, own)
            continue
        link["classes"].append("course-in-english")
        link.setdefault("reftitle", words["untranslated_tooltip"])
        if posixpath.basename(target) not in QUIETLY:
            note = f" ({words['untranslated']})"
            link.parent.insert(link.parent.index(link) + 1, nodes.inline(note, note, classes=["course-language-note"]))


class LanguageChapters(SphinxDirective):
    """All chapters of the book by part, for the page that lists those of its language: the others lead to English."""

    def run(self) -> list[nodes.Node]:
        """Build the list."""
        root, language = Path(self.env.srcdir), page_language(self.env, self.env.docname)
        self.env.note_dependency(str(root / CONTENTS))
        found: list[nodes.Node] = []
        for caption, names in _chapters(root).items():
            try:
                found += [nodes.rubric("", language.said("parts", caption))] if caption else []
            except LanguageError as error:
                logger.error("%s", error, location=(self.env.docname, self.lineno))
            found.append(nodes.bullet_list("", *(self.entry(root / f"{name}.md", language) for name in names)))
        return found

    def entry(self, page: Path, language: Language) -> nodes.list_item:
        """A chapter with its title: the translated one, or the English one with a note."""
        own = page.parents[1] / language.code / f"{page.stem}-{language.code}.md"
        listed = own.stem in book_pages(Path(self.env.srcdir))
        target = own if listed else page
        link = addnodes.pending_xref(
            "",
            nodes.inline(),
            refdomain="std",
            reftype="doc",
            reftarget=f"/{_docname(self.env, target)}",
            refexplicit=False,
            refwarn=True,
        )
        return nodes.list_item("", nodes.paragraph("", "", link), classes=[] if listed else ["course-untranslated"])


def _chapters(root: Path) -> dict[str, list[str]]:
    """Documents of the English chapters by the caption of their part."""
    contents = yaml.safe_load((root / CONTENTS).read_text(encoding="utf-8"))
    found: dict[str, list[str]] = {}
    for part in contents.get("parts", [contents]):
        for entry in part.get("chapters", ()):
            page = root / f"{entry['file']}.md"
            if page.is_file() and is_chapter(page) and page.stem not in NO_CHAPTER and language_of(page) == ENGLISH:
                found.setdefault(part.get("caption", ""), []).append(entry["file"])
    return found


# The page around it


def translate(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Write the switch of a page, the note on what is behind, and the words that Sphinx and the scripts say."""
    language = page_language(app.env, pagename)
    said = {group: dict(language[group]) for group in FOR_SCRIPTS} | {"copy": language["page"]["copy"]}
    said |= {"copied": language["page"]["copied"]}
    app.add_js_file(None, body=f"globalThis.courseWords = {json.dumps(said, ensure_ascii=False)};")
    same = versions(app.env, pagename)
    if "body" not in context:
        return
    line = ""
    here = posixpath.dirname(app.builder.get_target_uri(pagename)) or "."
    addresses = {code: posixpath.relpath(app.builder.get_target_uri(name), here) for code, name in same.items()}
    if len(same) > 1:
        context["metatags"] += "".join(
            f'<link rel="alternate" hreflang="{code}" href="{address}" />\n' for code, address in addresses.items()
        )
        line += _switch(app, language, addresses)
    if language.code != ENGLISH:
        context["language"] = language.code
        for word in ("figure", "table"):
            for start in ('<span class="caption-number">', '<span class="std std-numref">'):
                english = f"{start}{read_language(ENGLISH, Path(app.srcdir))['page'][word]} "
                context["body"] = context["body"].replace(english, f"{start}{language['page'][word]} ")
        line += _behind(app, pagename, language, addresses)
    if line:
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{line}", 1)


def _switch(app: Sphinx, language: Language, addresses: dict[str, str]) -> str:
    links = []
    for code, address in addresses.items():
        if code != language.code:
            other = read_language(code, Path(app.srcdir))
            links.append(
                f'<a href="{address}" rel="alternate" hreflang="{code}" lang="{code}" dir="{other.direction}">'
                f"{html.escape(other.name)}</a>"
            )
    label = html.escape(language["languages"]["switch"], quote=True)
    return f'<p class="course-languages" role="navigation" aria-label="{label}">{" ".join(links)}</p>\n'


def _behind(app: Sphinx, pagename: str, language: Language, addresses: dict[str, str]) -> str:
    """The note for the reader on sections that have changed in English; the terminal shows their names too."""
    try:
        changed = changes(Path(app.env.doc2path(pagename)))
    except UserError:
        return ""  # the build has named it when it read the page
    if not changed:
        return ""
    print(f"Language  {behind(pagename, changed)}", file=sys.stderr)
    items = "".join(f'<li><bdi lang="en">{html.escape(change.section)}</bdi></li>' for change in changed)
    words = language["languages"]
    link = f'<a href="{addresses[ENGLISH]}" hreflang="en">{html.escape(words["stale_link"])}</a>'
    return (
        f'<div class="admonition note course-stale"><p class="admonition-title">{html.escape(words["stale"])}</p>\n'
        f"<ul>{items}</ul><p>{link}</p></div>\n"
    )


def behind(page: str, changed: list[Change]) -> str:
    """Return the line that says which sections of a translation are behind English.

    >>> behind("book/he/limits-he", [Change("Summary", "changed")])
    "book/he/limits-he is behind its English page: 'Summary' is changed"
    """
    return f"{page} is behind its English page: {', '.join(f'{one.section!r} is {one.how}' for one in changed)}"


def in_language(page: str, language: Language) -> str:
    """Return a written page with the theme's words in its language, and the language on its article.

    Raises:
        LanguageError: the language lacks words of the theme; all of them are named.
        ValueError: there is no article.
    """
    article = f'<article class="bd-article" lang="{language.code}" dir="{language.direction}">'
    if ARTICLE not in page and article not in page:
        raise ValueError(f"the theme writes no {ARTICLE} any more: change ARTICLE in book/_ext/course_languages.py")
    if article in page:  # the page is as an earlier build has left it
        return page
    page = page.replace(ARTICLE, article)
    for start in TURNED:
        page = page.replace(start, f'{start} dir="{language.direction}"', 1)
    page = page.replace('<nav class="bd-links bd-docs-nav"', '<nav class="bd-links bd-docs-nav" lang="en" dir="ltr"', 1)
    missing: list[str] = []
    words, known = language["frame"], set(language["frame"].values())

    def word(english: str) -> str:
        plain = html.unescape(" ".join(english.split()))
        if plain in words:
            return html.escape(words[plain], quote=True)
        if plain not in known and LETTER.search(plain):
            missing.append(plain)
        return english

    written = "".join(_worded(page, word))
    if missing:
        listed = ", ".join(f'"{one}"' for one in dict.fromkeys(missing))
        raise LanguageError(f"{language.file}: [frame] lacks {listed}: add it there and in {ENGLISH}.toml")
    return written


def _worded(page: str, word: Any) -> Iterator[str]:
    """The tokens of a page, with `word` of each text that the theme says."""
    inside, depth = "", 0
    for token in TOKEN.findall(page):
        tag = TAG.fullmatch(token)
        if inside:
            if tag and tag[2] == inside and not tag[3].endswith("/"):
                depth += -1 if tag[1] else 1
            if depth == 0:
                inside = ""
            if inside == "article" and tag and "headerlink" in tag[3]:
                token = SAID_IN.sub(lambda found: found[1] + word(found[2]) + found[3], token)
        elif tag:
            token = SAID_IN.sub(lambda found: found[1] + word(found[2]) + found[3], token)
            classes = re.search(r'class="([^"]*)"', tag[3])
            names = {tag[2], *(f"{tag[2]}.{one}" for one in (classes[1].split() if classes else ()))}
            if not tag[1] and names & OF_THE_PAGE:
                inside, depth = tag[2], 1
        elif not token.startswith("<"):
            text = token.strip()
            if not LETTER.search(text[:1]) and text[:1] != "©":
                text = text.lstrip(".|· \n")  # what stands between two links
            if text:
                token = token.replace(text, word(text), 1)
        yield token


def name_languages(page: str, docname: str, languages: dict[str, Language]) -> str:
    """Return a written page whose links to pages of another language name it, as `hreflang` and as `lang`."""

    def named(found: re.Match[str]) -> str:
        before, place, fragment, after = found.groups()
        if "hreflang" in before + after:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(docname), place)).removesuffix(".html")
        if target in languages:
            language = languages[target]
            after += f' hreflang="{language.code}" lang="{language.code}" dir="{language.direction}"'
        elif "course-in-english" in before + after:
            after += ' hreflang="en"'
        return f'<a {before}href="{place}{fragment or ""}"{after}>'

    return LINK.sub(named, page)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Say in the language of each written page what the theme says, and name the languages of links."""
    if exception or app.builder.name != "html":
        return
    env = app.env
    languages = {name: page_language(env, name) for name in sorted(env.found_docs)}
    others = {name: language for name, language in languages.items() if language.code != ENGLISH}
    for name in sorted(env.found_docs) if others else ():
        path = Path(app.outdir) / f"{name}.html"
        if not path.is_file():
            continue
        was = text = path.read_text("utf-8")
        if name in others:
            try:
                text = in_language(text, others[name])
            except (LanguageError, ValueError) as error:
                logger.error("%s: %s", name, error)
        elsewhere = {other: one for other, one in others.items() if one.code != languages[name].code}
        text = name_languages(text, name, elsewhere)
        if text != was:
            path.write_text(text, "utf-8")


def read_again(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """A page that lists chapters shows their titles; one that is translated for the first time gets its switch."""
    again = set()
    for name in added | changed | removed:
        again |= {name for name in versions(env, name).values() if name in env.found_docs}
    if added | changed | removed:
        again |= {
            name for name in env.found_docs if name.startswith("book/") and name.split("/")[-1].startswith("chapters-")
        }
    return sorted(again)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("language-chapters", LanguageChapters)
    app.add_css_file("languages.css")
    app.add_css_file("rtl.css")
    app.add_js_file("languages.js", loading_method="defer")
    app.connect("builder-inited", check_words)
    app.connect("source-read", fill_in, priority=900)  # what checks the text sees it as it was written
    app.connect("doctree-resolved", mark_links)
    app.connect("html-page-context", translate, priority=950)
    app.connect("env-get-outdated", read_again)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
