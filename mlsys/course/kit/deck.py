"""A deck per chapter as one HTML file, which any browser shows without a network, with its notes.

Chromium lays out every slide once, and what does not fit at a size that can be read at the back of a room goes to the
notes.
"""

import base64
import html as text_of_html
import re
from collections.abc import Collection
from pathlib import Path

from lxml import etree

from mlsys.course.kit.slides import Slide, slides_of
from mlsys.course.pages.contents import book_pages
from mlsys.course.pages.notebooks import is_chapter, numbers_sections
from mlsys.course.whole_book.browser import chromium
from mlsys.course.whole_book.formulas import set_formulas
from mlsys.course.whole_book.pages import Page, read_page
from mlsys.errors import UnknownName, UserError

HERE = Path(__file__).parent

SMALLEST_TEXT = 28
"""Smallest size of text on a slide, in pixels of a slide 720 high: 1/26 of the height, read from eight heights away."""

_DECK = """<!DOCTYPE html>
<html lang="{language}"><head><meta charset="utf-8"><title>{title}: slides</title><style>{style}</style></head>
<body>
{slides}
<script>{script}</script>
</body></html>
"""

_FIT = """(smallest) => [...document.querySelectorAll(".slide")].map((slide) => {
  slide.classList.add("shown");
  const body = slide.querySelector(".body");
  const notes = slide.nextElementSibling;
  const fits = () => slide.scrollHeight <= slide.clientHeight && body.scrollHeight <= body.clientHeight + 1
    && body.scrollWidth <= body.clientWidth + 1;
  let size = parseFloat(getComputedStyle(body).fontSize);
  while (!fits() && size > smallest) body.style.fontSize = `${--size}px`;
  let moved = 0;
  while (!fits()) {
    const list = [...body.querySelectorAll("ul, ol")].findLast((one) => one.children.length > 1);
    const last = list ? list.lastElementChild : body.children.length > 1 ? body.lastElementChild : null;
    if (!last) break;
    const kept = document.createElement("p");
    kept.append(...last.childNodes);
    notes.prepend(kept);
    last.remove();
    moved += 1;
  }
  const result = [fits(), moved, slide.querySelector("h2").textContent];
  slide.classList.remove("shown");
  return result;
})"""


def write_decks(root: Path, folder: Path, chapters: Collection[str] = (), site: Path | None = None) -> list[Path]:
    """Write a deck for each chapter, and a page that lists them, into a folder.

    Args:
        root: the repository.
        folder: where the decks go.
        chapters: names of chapters; by default all.
        site: the built site; by default that of the repository.

    Raises:
        UnknownName: a name that is no chapter's.
        UserError: the site is not built, or a slide holds a thing that cannot be made to fit.
    """
    site = site or root / "_build" / "html"
    known = {name: path for name, path in book_pages(root).items() if path.is_file() and _has_slides(path)}
    for name in chapters:
        if name not in known:
            raise UnknownName.of("chapter", name, known)
    pages = [
        read_page(site, path.relative_to(root).with_suffix("").as_posix(), "")
        for name, path in known.items()
        if not chapters or name in chapters
    ]
    for page in pages:
        _embed_pictures(page, site)
    folder.mkdir(parents=True, exist_ok=True)
    set_formulas((page.body for page in pages), site, folder)
    written = []
    for page in pages:
        path = folder / f"{page.name}.html"
        path.write_text(_deck(page), encoding="utf-8")
        written.append(path)
    _fit(written)
    entries = "\n".join(f'<li><a href="{page.name}.html">{text_of_html.escape(page.title)}</a></li>' for page in pages)
    (folder / "index.html").write_text(
        '<!DOCTYPE html><meta charset="utf-8"><title>Slides</title><h1>Slides</h1><p>Arrow keys turn the slides, N '
        f"shows the notes, printing gives handouts with notes.</p><ul>\n{entries}\n</ul>\n",
        encoding="utf-8",
    )
    return written


def _has_slides(page: Path) -> bool:
    return is_chapter(page) and numbers_sections(page)


def _embed_pictures(page: Page, site: Path) -> None:
    for image in page.body.iter("img"):
        image.attrib.pop("loading", None)
        picture = (site / page.address).parent / image.get("src")
        data = picture.read_bytes()
        kind = "svg+xml" if picture.suffix == ".svg" else picture.suffix[1:]
        size = re.search(rb'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', data)
        image.set("src", f"data:image/{kind};base64,{base64.b64encode(data).decode()}")
        image.set("data-aspect", f"{float(size[1]) / float(size[2]):.2f}" if size else "1.5")


def _deck(page: Page) -> str:
    slides = slides_of(page)
    return _DECK.format(
        language=page.language,
        title=text_of_html.escape(page.title),
        style=(HERE / "deck.css").read_text(encoding="utf-8"),
        slides="\n".join(_html(slide, number, page) for number, slide in enumerate(slides, 1)),
        script=(HERE / "deck.js").read_text(encoding="utf-8"),
    )


def _html(slide: Slide, number: int, page: Page) -> str:
    direction = ' dir="rtl"' if page.body.get("dir") == "rtl" else ""
    body, notes = (
        "".join(etree.tostring(part, encoding="unicode", with_tail=False, method="html") for part in parts)
        for parts in (slide.body, slide.notes)
    )
    return (
        f'<section class="slide {slide.kind}"{direction}><h2>{text_of_html.escape(slide.title)}</h2>'
        f'<div class="body">{body}</div><div class="foot">{text_of_html.escape(page.title)} · {number}</div>'
        "</section>\n"
        f'<aside class="notes"{direction}>{notes}</aside>'
    )


def _fit(decks: list[Path]) -> None:
    """Make text smaller, and move what still does not fit to the notes, as a browser lays the slides out."""
    with chromium() as browser:
        opened = browser.new_page(viewport={"width": 1280, "height": 720})
        for path in decks:
            text = path.read_text(encoding="utf-8")
            opened.set_content(re.sub(r"<script>.*?</script>", "", text, flags=re.S))
            too_large = [title for fits, _, title in opened.evaluate(_FIT, SMALLEST_TEXT) if not fits]
            if too_large:
                raise UserError(f"{path.name}: the slide {too_large[0]!r} cannot be made to fit: shorten its paragraph")
            body = opened.evaluate("document.body.innerHTML")
            script = (HERE / "deck.js").read_text(encoding="utf-8")
            head = text[: text.index("<body>")]
            path.write_text(
                f"{head}<body>\n{body.strip()}\n<script>{script}</script>\n</body></html>\n", encoding="utf-8"
            )
