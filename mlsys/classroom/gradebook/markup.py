"""What a student wrote, as HTML that is safe to show: code in colors, Markdown, or plain text.

This is called in the helper process only: see `mlsys.classroom.processes.limited`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Any

from bleach.sanitizer import Cleaner  # type: ignore[import-untyped]
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

_TAGS = {"a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "li"}
_TAGS |= {"ol", "p", "pre", "s", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul"}
"""What a written answer may hold: no styles, which could reach other hosts, and no scripts."""

MAX_PROSE = 10_000
"""Characters of a written answer up to which it is set as Markdown; longer ones are shown as plain text."""
MAX_CODE = 20_000
"""The same for the colors of code."""

Attachments = Mapping[str, Mapping[str, str]]
"""Pictures as `mlsys.classroom.intake.pictures` keeps them: by name, each with its MIME type and Base64."""


@lru_cache(maxsize=400)  # a class shares its tests, and code is colored once to see whether that takes too long
def code(source: str) -> str:
    """Return Python in colors; plain text if it is very long or cannot be colored."""
    if len(source) > MAX_CODE:
        return plain(source, most=MAX_CODE)
    try:
        return f"<pre><code>{highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))}</code></pre>"
    except Exception:  # whatever a text makes of a lexer, it has a place on the page
        return plain(source, most=MAX_CODE)


def color_all(sources: Iterable[str]) -> None:
    """Color every text, in its full length: the time that formgrader's page would take for it."""
    for source in sources:
        if len(source) > MAX_CODE:
            highlight(source, PythonLexer(), HtmlFormatter(nowrap=True))
        code(source)


def prose(source: str, pictures: Attachments | None = None) -> str:
    """Return Markdown without scripts, handlers, pictures from elsewhere or other ways out of the page.

    It is shown as plain text if it is very long or cannot be set.
    """
    if len(source) > MAX_PROSE:
        return plain(source, pictures)
    try:
        cleaner = Cleaner(
            tags=_TAGS,
            attributes={"a": ["href"], "img": ["src", "alt"]},
            protocols={"http", "https", "mailto", "attachment"},
            strip=True,
            filters=[lambda source: _own_pictures(source, pictures or {})],
        )
        html: str = cleaner.clean(MarkdownWithMath(renderer=_Renderer(escape=False)).render(source))
        return html
    except Exception:  # readers of Markdown raise on some texts, and none of them may cost anybody the page
        return plain(source, pictures)


def plain(text: str, pictures: Attachments | None = None, *, most: int = MAX_PROSE) -> str:
    """Return the text unchanged, and below it its pictures."""
    shown = f"{escape(text[:most])}..." if len(text) > most else escape(text)
    below = (f'<p><img src="{_address(bundle)}" alt="{escape(name)}"></p>' for name, bundle in (pictures or {}).items())
    return f"<pre>{shown}</pre>{''.join(below)}"


class _Renderer(IPythonRenderer):
    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Leave the address of a picture as it is: nbconvert's own method raises for attachments that are not there."""
        return str(super(IPythonRenderer, self).image(text, url, title))


def _own_pictures(tokens: Iterable[dict[str, Any]], pictures: Attachments) -> Iterator[dict[str, Any]]:
    """Return HTML with the cell's own pictures in it, and a note in place of every other."""
    for token in tokens:
        if token.get("name") != "img":
            yield token
            continue
        attributes = {name: value for (_, name), value in token["data"].items()}
        name = attributes.get("src", "").removeprefix("attachment:")
        if name in pictures:
            alt = attributes.get("alt") or name
            yield token | {"data": {(None, "src"): _address(pictures[name]), (None, "alt"): alt}}
        else:
            named = attributes.get("alt", "").strip()
            yield {"type": "Characters", "data": f"[picture {named} is not shown]" if named else "[picture not shown]"}


def _address(bundle: Mapping[str, str]) -> str:
    [(kind, data)] = bundle.items()
    return f"data:{kind};base64,{data}"
